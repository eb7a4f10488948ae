"""`fecbench hunt` with a simulator that is made up, in which a test plants harm."""

import json
import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
import threading
import tomllib
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fecbench import designs
from fecbench.runners.commands.console import hunting
from fecbench.runners.hunt import campaign_laboratory
from tests.runners.conftest import MADE_UP, Done
from tests.support import preloaded
from tests.support.designs import Table, between, text_of, variant, workload

FACTORS = {
    "owd_ms": between(5, 100, scale="log"),
    "bandwidth_mbps": between(1, 50, scale="log"),
    "workload.size_bytes": between(1000, 100_000, scale="log", integer=True),
}
LOSSES = {"losses": {"linked": {"none": {"loss.p": 0}, "5 %": {"loss.p": 0.05}}}}
OLD, NEW, TWIN = variant("old", "made-up", baseline=True), variant("new", "newer"), variant("twin", "made-up")
UNIFORM = {"loss.model": "uniform"}


def space(factors: Table, *variants: Table, **keys: object) -> str:
    usual = {"seed": 5, "repetitions": 20, "statistic": "mean", "plan": {"method": "sobol", "points": 4}}
    tables = {"factors": factors, "workloads": [workload()], "variants": variants}
    return text_of("space", **usual | tables | keys)


DESIGN = space(FACTORS | LOSSES, OLD, NEW, TWIN, constants=UNIFORM)
PLANTED = "1.4 if 9_000 <= size <= 12_000 and rtt_s > 0.05 else 1"
TRIALS = 400
"""The fewest that a hunt takes: they find the harm."""
Run = Callable[..., Done]


def with_harm(folder: Path, times: str = PLANTED) -> Path:
    """The simulator whose transfers take so many times as long."""
    shutil.copytree(MADE_UP, folder)
    program = folder / "simulator.py"
    text = program.read_text()
    written = text.replace("+ jitter_s\n", f"+ jitter_s\n    dct_s *= {times}\n")
    assert written != text
    program.write_text(written)
    return folder


@pytest.fixture
def design(tmp_path: Path) -> Path:
    return write_design(tmp_path)


def write_design(folder: Path) -> Path:
    path = folder / "space.toml"
    path.write_text(DESIGN)
    return path


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> list[object]:
    newer = with_harm(tmp_path_factory.mktemp("builds") / "newer")
    folders = [f"made-up={MADE_UP}", f"newer={newer}"]
    return ["--no-calibrate", *(word for folder in folders for word in ("--implementations", folder))]


@dataclass(frozen=True)
class Hunted:
    """A hunt that has found the harm, for tests that only look at what it left."""

    words: list[object]
    db: Path
    output: Path
    stdout: str

    @property
    def document(self) -> Any:
        return json.loads(self.stdout)


@pytest.fixture(scope="module")
def hunted(fecbench: Any, options: list[object], tmp_path_factory: pytest.TempPathFactory) -> Hunted:
    folder = tmp_path_factory.mktemp("hunted")
    db, output = folder / "x.sqlite", folder / "out"
    words = ["hunt", write_design(folder), "--arm", "new", "--json", "--db", db, "--trials", TRIALS, *options]
    done = fecbench(*words, "--output", output)
    assert done.returncode == 1, done
    return Hunted(words, db, output, done.stdout)


@pytest.fixture
def hunt(fecbench_here: Run, design: Path, options: list[object], tmp_path: Path) -> Callable[..., Done]:
    def hunt(*arguments: object, db: Path = tmp_path / "x.sqlite", trials: int = TRIALS) -> Done:
        return fecbench_here("hunt", design, *arguments, "--db", db, "--trials", trials, *options)

    return hunt


def documents(result: Done) -> Any:
    return json.loads(result.stdout)


def test_a_look_at_more_networks_than_a_design_may_have_points_is_several_campaigns(
    hunt: Callable[..., Done], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign_laboratory, "MOST_POINTS", 30)
    result = hunt("--arm", "new", "--json")
    assert result.returncode == 1, result
    with closing(sqlite3.connect(tmp_path / "x.sqlite")) as connection:
        points = dict(
            connection.execute(
                "SELECT name, COUNT(*) FROM campaigns c JOIN points ON campaign_id = c.id GROUP BY c.id"
            )
        )
    scans = [name for name in points if "-01-scan-" in name]
    assert len(scans) == 3
    assert max(points.values()) == 30


def test_planted_harm_is_found_and_told_in_the_form_that_scripts_rely_on(
    hunt: Callable[..., Done], tmp_path: Path
) -> None:
    result = hunt(
        "--arm", "new", "--json", "--output", tmp_path / "out", trials=4000
    )  # with room to look around
    assert result.returncode == 1, result
    document = documents(result)
    assert document.keys() == {"looked", "share", "found"}
    assert document["share"].keys() == {"harmed", "interval", "margin"}
    assert 0 < document["looked"] <= 4000
    low, high = document["share"]["interval"]
    assert low <= document["share"]["harmed"] <= high
    assert document["found"]
    for finding in document["found"]:
        assert list(finding) == [
            *("network", "ratio", "interval", "repetitions", "shrunk_from", "region", "noise", "replay")
        ]
        assert finding["network"].keys() == finding["shrunk_from"].keys() >= {"workload", "owd_ms", "losses"}
        for network in (finding["network"], finding["shrunk_from"]):
            assert 9_000 <= network["workload.size_bytes"] <= 12_000 and network["owd_ms"] > 25
        assert finding["ratio"] == pytest.approx(1.4, rel=0.05)
        assert finding["interval"][0] - 1e-9 <= finding["ratio"] <= finding["interval"][1] + 1e-9
        assert finding["repetitions"] == 20
        assert len(finding["replay"]) == 2
    first = document["found"][0]  # for further ones there may be no room to look around
    box = first["region"]["box"]
    assert box.keys() == {"owd_ms", "bandwidth_mbps", "workload.size_bytes"}
    assert all(low <= first["network"][name] <= high for name, (low, high) in box.items())
    assert 0 <= first["region"]["harmed"] <= 1
    assert first["network"]["losses"] == "none"
    assert json.loads((tmp_path / "out" / "hunt.json").read_text()) == document
    assert first["noise"]["sure"] and first["noise"]["ratio"] == pytest.approx(1.4, rel=0.05)
    with closing(sqlite3.connect(tmp_path / "x.sqlite")) as connection:
        texts = dict(connection.execute("SELECT name, design_text FROM campaigns"))
    noisy = {name for name, text in texts.items() if "jitter_ms" in tomllib.loads(text)["constants"]}
    assert noisy == {name for name in texts if "-noise-" in name} and len(noisy) == 1


def test_both_trials_of_a_finding_replay_and_differ_as_it_says(
    hunted: Hunted, fecbench_here: Run, options: list[object], tmp_path: Path
) -> None:
    (finding, *_) = hunted.document["found"]
    times = []
    for command in finding["replay"]:
        words = shlex.split(command)
        assert words[:2] == ["fecbench", "replay"]
        folder = tmp_path / words[words.index("--output") + 1]
        words = [*words[1:3], "--db", words[words.index("--db") + 1], "--output", str(folder), "--json"]
        result = fecbench_here(*words, *options[1:])
        assert result.returncode == 0, result
        times.append(json.loads(result.stdout)["replayed"]["metrics"]["client"]["dct_s"])
    assert times[1] / times[0] == pytest.approx(1.4, rel=0.01)


def test_what_was_found_is_a_design_that_a_campaign_takes(
    hunted: Hunted, fecbench_here: Run, options: list[object], tmp_path: Path
) -> None:
    finding = hunted.output / "found.toml"
    design = designs.load(finding)
    assert design.name == "space-found" and design.plan_settings.method == "list"  # type: ignore[attr-defined]
    db = tmp_path / "again.sqlite"
    ran = fecbench_here("run", finding, "--engine", "virtual", "--db", db, "--json", *options)
    assert ran.returncode == 0, ran
    output = fecbench_here("show", "--db", db, "--json")
    (compared,) = json.loads(output.stdout)["campaigns"][0]["comparisons"]
    assert compared["harms"] == compared["points"] > 0, compared


@pytest.mark.parametrize("arms", [("twin", "old"), ("old", "twin")])
def test_the_same_arm_under_two_labels_is_no_finding(
    hunt: Callable[..., Done], arms: tuple[str, str]
) -> None:
    result = hunt("--arm", arms[0], "--against", arms[1])
    assert result.returncode == 0, result
    assert result.stdout.startswith("nothing found: no network in which “")


@pytest.mark.slow
def test_it_is_a_gain_the_other_way_round(hunt: Callable[..., Done]) -> None:
    result = hunt("--arm", "old", "--against", "new", "--for", "gain", "--json")
    assert result.returncode == 1, result
    assert documents(result)["found"][0]["ratio"] == pytest.approx(1 / 1.4, rel=0.01)


def test_the_same_hunt_twice_is_the_same_and_runs_nothing_again(hunted: Hunted, fecbench_here: Run) -> None:
    assert fecbench_here(*hunted.words).stdout == hunted.stdout
    assert runs(hunted.db) == hunted.document["looked"]


def runs(db: Path) -> int:
    with closing(sqlite3.connect(db)) as connection:
        return int(connection.execute("SELECT count(*) FROM trials").fetchone()[0])


def test_no_two_looks_share_a_seed(hunted: Hunted) -> None:
    """The judgement of a network is independent of its choice. Only the two arms of a pair share seeds."""
    with closing(sqlite3.connect(hunted.db)) as connection:
        seeds = [json.loads(row)["content"] for (row,) in connection.execute("SELECT seeds FROM trials")]
    assert set(Counter(seeds).values()) == {2}


def test_it_goes_on_after_a_kill_and_two_share_one_hunt(
    hunted: Hunted, design: Path, options: list[object], tmp_path: Path
) -> None:
    whole = hunted.stdout
    db = tmp_path / "killed.sqlite"
    program = [str(Path(sys.executable).parent / "fecbench"), "hunt", str(design), "--arm", "new"]
    words = [*program, "--db", str(db), "--trials", str(TRIALS), "--json", "--jobs", "1", *map(str, options)]
    killed = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert killed.stderr is not None
    for line in killed.stderr:
        if "scan" in line and "trials to run" in line:
            break
    killed.kill()
    killed.communicate()
    assert 0 < runs(db) < json.loads(whole)["looked"]
    answers: list[str] = []

    def go_on() -> None:
        answers.append(preloaded.fecbench(words[1:], design.parent, os.environ, 500).stdout)

    threads = [threading.Thread(target=go_on) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 2
    for answer in answers:
        assert without_replays(answer) == without_replays(whole)
    assert runs(db) == json.loads(whole)["looked"]


def without_replays(answer: str) -> Any:
    """Return the document without numbers of trials, which depend on which of two simulators ends first."""
    document = json.loads(answer)
    return {**document, "found": [{**finding, "replay": None} for finding in document["found"]]}


@pytest.mark.slow
def test_a_build_that_is_slower_at_some_sizes_alone_is_found_in_minutes(
    fecbench_here: Run, design: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hunt of 400 trials that tells how long they take, and one of 800 that fit into what is left."""
    monkeypatch.setattr(hunting, "SHORT_S", 120 * hunting.SHARE_OF_TIME / 2.5)
    old, new = MADE_UP, with_harm(tmp_path / "slower", "1.3 if size > 90_000 else 1")
    words = ("hunt", "--builds", old, new, design, "--db", tmp_path / "x.sqlite", "--no-calibrate", "--json")
    result = fecbench_here(*words, "--minutes", 2)
    assert result.returncode == 1, result
    assert "note: 800 trials fit into the time" in result.stderr
    assert 400 < documents(result)["looked"] <= 800
    for finding in documents(result)["found"]:
        assert finding["network"]["workload.size_bytes"] > 90_000
        assert finding["ratio"] == pytest.approx(1.3, rel=0.01)
        assert all(f"--implementations made-up.new={new}" in command for command in finding["replay"])


def test_a_hunt_whose_time_is_over_before_it_could_say_anything_says_so(
    fecbench_here: Run, design: Path, options: list[object], tmp_path: Path
) -> None:
    words = ("hunt", design, "--arm", "new", "--db", tmp_path / "x.sqlite", "--minutes", 0.01, *options)
    result = fecbench_here(*words)
    assert result.returncode == 3, result
    assert result.stdout.startswith("no answer: ")
    document = documents(fecbench_here(*words, "--json"))
    assert document["found"] == []


REFUSED = [
    ((), {}, r"--arm is missing: must be the label of a variant of .*: 'old', 'new', 'twin'"),
    (("--arm", "new", "--option", "manner=good"), {}, r"--option manner=good: is of builds"),
    (("--arm", "new", "--minutes", 1), {}, r"--trials and --minutes"),
    (("--arm", "new", "--builds", MADE_UP, MADE_UP), {}, r"--arm: is of variants"),
    (("--arm", "newest"), {}, r"--arm newest: has no such variant"),
    (("--arm", "old"), {}, r"--arm and --against are both 'old'"),
    (("--arm", "new", "--for", "fun"), {}, r"--for"),
    (("--arm", "new"), {"trials": 398}, r"--trials 398: .* must be 400 or more"),
]


@pytest.mark.parametrize(("arguments", "more", "line"), REFUSED)
def test_what_cannot_be_hunted_is_refused_in_one_line(
    hunt: Callable[..., Done], arguments: tuple[str, ...], more: dict[str, int], line: str, tmp_path: Path
) -> None:
    assert re.search(line, hunt(*arguments, **more).refusal())
    assert not (tmp_path / "x.sqlite").exists()


REFUSED_DESIGNS = [
    ({"constants": {**UNIFORM, "internet.owd_ms": 5}}, "factors.owd_ms: reaches nobody"),
    ({"constants": {**UNIFORM, "workload.dwell": 3}}, "workload.dwell"),
    ({"variants": [OLD, NEW, TWIN | {"server": "old"}]}, "'twin': its servers are another variant's"),
    ({"statistic": "p95"}, "statistic = 'p95': a hunt"),
]


@pytest.mark.parametrize(("keys", "line"), REFUSED_DESIGNS)
def test_a_design_that_cannot_be_searched_is_refused_in_one_line(
    hunt: Callable[..., Done], design: Path, keys: Table, line: str
) -> None:
    design.write_text(space(FACTORS | LOSSES, OLD, NEW, TWIN, **{"constants": UNIFORM, **keys}))
    assert line in hunt("--arm", "twin", "--against", "old").refusal()
