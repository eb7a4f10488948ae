"""`fecbench hunt --engines`: what it refuses, and a simulator of rquic that a test makes wrong."""

import json
import os
import shlex
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from fecbench import designs
from fecbench.runners.implementations.finding import ours
from tests.runners.conftest import MADE_UP, Done
from tests.support.designs import Table, between, downloads, one_of, variant

TRIALS = 80
SIMULATOR = """
import json, subprocess, sys
program = {program!r}
if sys.argv[1:]:
    sys.exit(subprocess.call([program, *sys.argv[1:]]))
simulator = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
for line in sys.stdin:
    print(line, end="", file=simulator.stdin, flush=True)
    answer = json.loads(simulator.stdout.readline())
    if "endpoints" in answer:
        answer["endpoints"]["client"]["metrics"]["dct_s"] *= 0.7
    print(json.dumps(answer), flush=True)
"""
RANGES = {"bandwidth_mbps": between(5, 20), "owd_ms": between(20, 40)}


def space(implementation: str = "rquic", ranges: Table = RANGES, **more: object) -> str:
    options = {"scheme": "none"} if implementation in ("rquic", "hasty") else {}
    return downloads(
        "space",
        10_000,
        variant("rQUIC", implementation, **options, baseline=True),
        seed=5,
        timeout_s=20,
        plan={"method": "sobol", "points": 4},
        factors={**ranges, "loss.p": one_of(0.0, 0.02)},
        constants={"loss.model": "uniform", "queue_bdp": 1.5, **more},
    )


Run = Callable[..., Done]


@pytest.fixture
def design(tmp_path: Path) -> Path:
    path = tmp_path / "space.toml"
    path.write_text(space())
    return path


@pytest.fixture
def hunt(fecbench_here: Run, design: Path, tmp_path: Path) -> Callable[..., Done]:
    def hunt(*arguments: object, trials: int = TRIALS) -> Done:
        words = ("--engines", "--db", tmp_path / "x.sqlite", "--trials", trials, "--no-calibrate")
        return fecbench_here("hunt", design, *words, *arguments)

    return hunt


@pytest.fixture
def hasty(tmp_path: Path) -> Path:
    """The implementation whose simulator tells of every transfer that it took 30 % less time."""
    rquic = ours().find("rquic", "tests").folder
    folder = tmp_path / "hasty"
    shutil.copytree(rquic, folder, symlinks=True)
    (folder / "hasty.py").write_text(SIMULATOR.format(program=str(rquic / "build/rquic-simulator")))
    declared = folder / "impl.toml"
    text = declared.read_text()
    for before, after in (
        ('simulator = ["build/rquic-simulator"]', 'simulator = ["/usr/bin/python3", "hasty.py"]'),
        ('name = "rquic"', 'name = "hasty"'),
    ):
        assert before in text
        text = text.replace(before, after)
    declared.write_text(text)
    return folder


def stored(db: Path, engine: str) -> dict[str, list[str]]:
    """The seeds of the trials of an engine's looks, by the names of these without what a crosscheck adds."""
    query = "SELECT campaigns.name, trials.seeds FROM trials JOIN campaigns ON campaigns.id = campaign_id"
    with closing(sqlite3.connect(db)) as connection:
        rows = connection.execute(query).fetchall()
    of_engine = [row for row in rows if row[0].endswith("-crosscheck") == (engine == "local")]
    names = {name.removesuffix("-crosscheck") for name, _ in of_engine if "screen" not in name}
    return {
        name: sorted({seeds for other, seeds in of_engine if other.removesuffix("-crosscheck") == name})
        for name in names
    }


@pytest.mark.slow
@pytest.mark.usefixtures("can_run_trials")
def test_a_simulator_that_is_wrong_is_found_by_emulation(
    hunt: Callable[..., Done], fecbench_here: Run, design: Path, hasty: Path, tmp_path: Path
) -> None:
    design.write_text(space("hasty"))
    words = ("--implementations", f"hasty={hasty}", "--json", "--output", tmp_path / "out")
    result = hunt(*words)
    assert result.returncode == 1, result
    document = json.loads(result.stdout)
    assert document.keys() == {"looked", "share", "found"}
    assert 0 < document["looked"] <= TRIALS
    assert document["share"]["harmed"] > 0
    for finding in document["found"]:
        assert finding["interval"][0] <= finding["ratio"] <= finding["interval"][1]
        assert finding["ratio"] == pytest.approx(1 / 0.7, rel=0.1)
        assert finding["repetitions"] >= 10
    virtual, emulated = (stored(tmp_path / "x.sqlite", engine) for engine in ("virtual", "local"))
    assert virtual == emulated  # both trials of a pair have the same seeds
    seeds = [value for of_look in virtual.values() for value in of_look]
    assert len(set(seeds)) == len(seeds)  # and no look those of another
    assert designs.load(tmp_path / "out" / "found.toml").name == "space-found"
    assert hunt(*words).stdout == result.stdout  # nothing is run again
    commands = [shlex.split(command) for command in document["found"][0]["replay"]]
    assert [campaign(tmp_path / "x.sqlite", int(words[2]))[-11:] == "-crosscheck" for words in commands] == [
        False,
        True,
    ]
    words = commands[1]
    words[words.index("--output") + 1] = str(tmp_path / "replay")
    words[words.index("--plot") + 1] = str(tmp_path / "both.png")
    assert fecbench_here(*words[1:]).returncode in (0, 1)  # an emulated trial may be another one
    assert (tmp_path / "both.png").stat().st_size > 0


def campaign(db: Path, trial: int) -> str:
    """The name of the campaign of a trial."""
    query = "SELECT name FROM campaigns JOIN trials ON campaigns.id = campaign_id WHERE trials.id = ?"
    with closing(sqlite3.connect(db)) as connection:
        return str(connection.execute(query, (trial,)).fetchone()[0])


@pytest.mark.slow
@pytest.mark.usefixtures("can_run_trials")
def test_where_nothing_is_planted_nothing_is_found(hunt: Callable[..., Done]) -> None:
    result = hunt()
    assert result.returncode == 0, result
    assert result.stdout.startswith("nothing found: no network in which emulation and virtual time disagree")


REFUSED = [
    (("--against", "rQUIC"), "--against: is not of --engines"),
    (("--for", "gain"), "--for: is not of --engines"),
    (("--option", "a=1"), "--option: is not of --engines"),
    (("--builds", MADE_UP, MADE_UP), "--builds: is not of --engines"),
    (("--arm", "rquick"), "--arm rquick: has no such variant"),
    (("--minutes", 1), "--trials and --minutes"),
]


@pytest.mark.parametrize(("arguments", "line"), REFUSED)
def test_what_is_not_of_engines_is_refused_in_one_line(
    hunt: Callable[..., Done], arguments: tuple[object, ...], line: str, tmp_path: Path
) -> None:
    assert line in hunt(*arguments).refusal()
    assert not (tmp_path / "x.sqlite").exists()


def test_too_few_trials_are_refused_in_one_line(hunt: Callable[..., Done]) -> None:
    assert "--trials 79: is too few to confirm one network" in hunt(trials=79).refusal()


def test_a_design_without_simulator_or_without_a_range_is_refused_in_one_line(
    hunt: Callable[..., Done], design: Path
) -> None:
    design.write_text(space("quic-go"))
    assert "quic-go has no simulator" in hunt().refusal()
    design.write_text(space(ranges={}, bandwidth_mbps=5, owd_ms=20))
    assert "factors: none has a range" in hunt().refusal()


@pytest.mark.usefixtures("can_run_trials")
def test_an_implementation_that_cannot_be_emulated_disagrees_with_nothing(
    hunt: Callable[..., Done], design: Path
) -> None:
    """All of its trials fail in every network: this is reported, and is no finding."""
    design.write_text(space("made-up"))
    result = hunt("--implementations", f"made-up={MADE_UP}")
    assert result.returncode == 2 and result.stdout == "", result
    assert "all of the first 14 emulated trials failed, so nothing can be compared" in result.stderr


def test_without_root_it_is_refused_in_one_line(
    hunt: Callable[..., Done], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "fecbench hunt --engines must be root" in hunt().refusal()
    assert not (tmp_path / "x.sqlite").exists()
