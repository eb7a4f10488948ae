"""Campaigns with implementations of the interop runner's contract: timers, replays, refusals, kills."""

import json
import os
import random
import shutil
import signal
import subprocess
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fecbench.checkout import REPOSITORY
from tests.support.declarations import declare_interop, option
from tests.support.designs import between, text_of, variant, workload
from tests.support.processes import with_mark
from tests.waiting import wait_until

KILLS = 20
LIMIT_S = 500.0
TOY = Path(__file__).parent.parent / "trial" / "interop" / "toy.c"
TOYS = {"params": "--speed={speed}"}
SPEED = {"speed": option(1)}


@pytest.fixture(scope="module")
def implementations(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an implementation of the interop contract."""
    folder = tmp_path_factory.mktemp("implementations")
    declare_interop(folder / "toy", "./toy", options=SPEED, **TOYS)
    subprocess.run(["cc", "-static", "-o", folder / "toy" / "toy", TOY], check=True)
    return folder


def write(path: Path, name: str = "download", size_bytes: int = 5000, **keys: Any) -> Path:
    text = text_of(
        "interop",
        timeout_s=20,
        plan={"method": "wsp", "points": 1},
        factors={"bandwidth_mbps": between(9, 11)},
        constants={"owd_ms": 5},
        **{"workloads": [workload(name, size_bytes=size_bytes)], **keys},
        variants=[
            variant("rquic", "rquic", scheme="plain", baseline=True),
            variant("toy", "toy"),
            variant("toy, asked", "toy") | {"baseline": "rquic"},
        ],
    )
    path.write_text(text)
    return path


@pytest.mark.usefixtures("can_run_trials")
def test_no_ratio_is_of_two_timers_unless_the_design_asks(
    fecbench: Any, implementations: Path, tmp_path: Path
) -> None:
    database = tmp_path / "interop.sqlite"
    of_toy = ("--implementations", implementations)
    fecbench.run_until_ok(write(tmp_path / "design.toml"), database, *of_toy)
    output = fecbench("show", "--db", database).stdout
    assert "The harness timed toy and toy, asked: from the first frame that the link saw" in output
    assert "The ratio of toy, asked to rquic, for which the design asks, is of two timers" in output
    assert "toy to rquic" not in output
    trials = {trial["key"]["variant"]: trial for trial in fecbench.trials(database)}
    assert {label: trial["checks"].get("timed_by") for label, trial in trials.items()} == {
        "rquic": None,
        "toy": "harness",
        "toy, asked": "harness",
    }
    replayed = tmp_path / "replayed"
    fecbench.replay_until_ok(trials["toy"]["id"], database, replayed, *of_toy)
    output = subprocess.run(
        ["tcpdump", "-n", "-r", replayed / "client.pcap"], capture_output=True, text=True
    ).stdout
    assert "> 10.0.2.2.443: " in output
    assert {path.name for path in replayed.iterdir() if path.is_dir()} == {"client", "server"}


COMPETING = {"workloads": [workload("competing", background="rquic", size_bytes=9)]}
REFUSED: list[tuple[dict[str, Any], tuple[str, ...], str]] = [
    ({"topology": "dumbbell", **COMPETING}, (), "must be a download alone"),
    ({"name": "upload", "size_bytes": 9}, (), "toy has no workload 'upload'"),
    ({"size_bytes": 600_000_000}, (), "must be at most 536870912"),
    ({}, ("--engine", "virtual"), "toy has no simulator"),
]


@pytest.mark.usefixtures("can_run_trials")
def test_what_it_cannot_take_part_in_is_refused(
    fecbench_here: Any, implementations: Path, tmp_path: Path
) -> None:
    for changes, options, problem in REFUSED:
        design = write(tmp_path / "design.toml", **changes)
        words = (design, "--db", tmp_path / "none.sqlite", "--implementations", implementations, *options)
        assert problem in fecbench_here("run", *words).refusal()


@pytest.mark.usefixtures("can_run_trials")
def test_a_check_says_what_of_the_contract_is_broken(
    fecbench: Any, implementations: Path, tmp_path: Path
) -> None:
    shutil.copytree(implementations / "toy", tmp_path / "wrong")
    declare_interop(tmp_path / "wrong", "./toy", options=SPEED, **TOYS, env={"WRONG": "1"})
    tmp_path.chmod(0o755)
    result = fecbench("implementations", "--implementations", tmp_path, "--check", "wrong", "--json")
    document = json.loads(result.stdout)
    assert (result.returncode, document["passed"]) == (1, False)
    good = [part["part"] for part in document["parts"] if part["good"]]
    assert good == ["impl.toml", "programs"]
    assert all("has other content" in problem for problem in document["problems"])


def processes_with(mark: str) -> set[int]:
    return with_mark(mark, ("cmdline", "environ")).keys() - {os.getpid()}


def machine() -> list[Any]:
    """Mounts, named namespaces and interfaces."""
    return [
        Path("/proc/self/mountinfo").read_text(),
        sorted(path.name for path in Path("/run/netns").glob("fecbench-*") if "-test-" not in path.name),
        sorted(path.name for path in Path("/sys/class/net").iterdir()),
    ]


@pytest.mark.slow
@pytest.mark.timeout(60 + 20 * KILLS)
@pytest.mark.usefixtures("can_run_trials")
def test_kills_at_any_moment_of_interop_trials_leave_nothing(
    fecbench: Any, implementations: Path, tmp_path: Path
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary)}
    design = write(tmp_path / "design.toml", repetitions=1000)
    before, moments = machine(), random.Random(20261122)
    for number in range(KILLS):
        database = tmp_path / f"{number}.sqlite"
        options = ("--no-calibrate", "--implementations", str(implementations), "--filter", "variant=toy")
        harness = subprocess.Popen(
            [fecbench.path, "run", str(design), "--db", str(database), *options],
            cwd=REPOSITORY,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert harness.stderr
        while "trials to run" not in (line := harness.stderr.readline()):
            assert line, "it ended before it began"
        # Not an event that is awaited, but the moment of the kill: anywhere in some trials.
        time.sleep(moments.uniform(0.2, 2.0))
        harness.kill()
        harness.communicate(timeout=LIMIT_S)
        assert harness.returncode == -signal.SIGKILL
        for mark in map(str, (temporary, implementations)):
            wait_until(partial(lambda mark: not processes_with(mark), mark), f"the ends of those with {mark}")
        assert machine() == before
    assert fecbench("clean", TMPDIR=str(temporary)).returncode == 0
    assert list(temporary.iterdir()) == []
