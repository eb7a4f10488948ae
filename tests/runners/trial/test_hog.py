"""A trial beside a hog that takes the CPU away is invalid or right, never wrong.

Without losses a download takes the same time again and again, so a trial has a twin: the same one without a
hog. The hogs leave the CPUs idle most of the time, and end by themselves.
"""

import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fecbench.results.store.database import Database
from fecbench.results.store.records import TrialRecord
from tests.support.designs import between, variant, workload

pytestmark = pytest.mark.usefixtures("can_run_trials")

# Where it is not the little design.
DESIGN = {
    "timeout_s": 20,
    "repetitions": 1,
    "plan": {"method": "list", "points": [{"bandwidth_mbps": 10, "owd_ms": 10}]},
    "factors": {"bandwidth_mbps": between(5, 20), "owd_ms": between(5, 20)},
    "constants": {"loss.model": "none"},
    "workloads": [workload(size_bytes=200_000)],
    "variants": [variant("off", "rquic", scheme="none")],
}
TRIALS = 1

# The endpoints may be stalled for 5 % of the time, and every packet may wait a little longer than it did.
TOLERANCE = 0.10

# Takes one CPU for the first `busy` seconds of every 100 ms of the clock, at a real-time priority (or, for 0,
# as any other program). All hogs do so at the same time: from one alone others could flee to another CPU.
HOG = """
import os, sys, time
cpu, priority, busy = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
os.sched_setaffinity(0, {cpu})
if priority:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
print("busy", flush=True)
end = time.monotonic() + 90
while time.monotonic() < end:
    while (phase := time.monotonic() % 0.1) < busy:
        pass
    time.sleep(0.1 - phase)
"""
WIRE_PRIORITY = 50


@contextmanager
def hogs(priority: int, busy_s: float) -> Iterator[None]:
    """Start a hog on each CPU."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", HOG, str(cpu), str(priority), str(busy_s)], stdout=subprocess.PIPE
        )
        for cpu in sorted(os.sched_getaffinity(0))
    ]
    try:
        for hog in started:
            assert hog.stdout
            assert hog.stdout.readline() == b"busy\n"
        yield
    finally:
        for hog in started:
            hog.kill()
            hog.communicate()


def attempts(path: Path) -> list[TrialRecord]:
    """Return every attempt of every trial."""
    with Database.open(str(path)) as database:
        [campaign] = database.campaigns()
        keys = [stored.record.key for stored in database.trials(campaign.id)]
        assert len(keys) == TRIALS
        return [stored.record for key in keys for stored in database.attempts(campaign.id, key)]


@pytest.fixture(scope="module")
def run(fecbench: Any, write_design: Any) -> Callable[..., list[TrialRecord]]:
    """Runs the design in a folder, or resumes it, and gives every attempt."""

    def run(folder: Path, resume: bool = False) -> list[TrialRecord]:
        ran = fecbench.run(write_design(folder, **DESIGN), folder / "x.sqlite", *["--resume"] * resume)
        assert ran.stderr.startswith("campaign"), ran.stderr
        assert ran.returncode in (0, 1), ran.stderr
        return attempts(folder / "x.sqlite")

    return run


@pytest.fixture(scope="module")
def undisturbed(fecbench: Any, write_design: Any, tmp_path_factory: pytest.TempPathFactory) -> float:
    """The median DCT without a hog, in s."""
    folder = tmp_path_factory.mktemp("undisturbed")
    fecbench.run_until_ok(write_design(folder, **DESIGN), folder / "x.sqlite")
    trials = attempts(folder / "x.sqlite")
    return statistics.median(dct_s(trial) for trial in trials if trial.state == "ok")


def dct_s(trial: TrialRecord) -> float:
    return trial.metrics["client"]["dct_s"]


def assert_none_is_wrong(trials: list[TrialRecord], undisturbed: float) -> None:
    for trial in trials:
        assert trial.state in ("ok", "invalid"), trial.reason
        if trial.state == "ok":
            assert dct_s(trial) == pytest.approx(undisturbed, rel=TOLERANCE)


@pytest.mark.parametrize(
    ("priority", "said"),
    [
        pytest.param(WIRE_PRIORITY + 10, "packets left the emulator later", id="above the wire"),
        pytest.param(1, "endpoints were kept from running", id="below the wire", marks=pytest.mark.slow),
    ],
)
def test_a_hog_makes_trials_invalid_which_say_what_it_held_up(
    run: Callable[..., list[TrialRecord]], tmp_path: Path, undisturbed: float, priority: int, said: str
) -> None:
    with hogs(priority, busy_s=0.04):
        trials = run(tmp_path)
    assert_none_is_wrong(trials, undisturbed)
    assert any(said in trial.reason for trial in trials)


def test_short_work_of_other_programs_makes_no_trial_wrong(
    run: Callable[..., list[TrialRecord]], patiently: Callable[..., Any], tmp_path: Path, undisturbed: float
) -> None:
    def none_is_ok(trials: list[TrialRecord]) -> bool:
        return not any(trial.state == "ok" for trial in trials)

    with hogs(0, busy_s=0.01):
        # Other programs than these may have work, too.
        trials = patiently(lambda number: run(tmp_path, resume=number > 0), none_is_ok)
    assert_none_is_wrong(trials, undisturbed)
    if none_is_ok(trials) and os.getloadavg()[0] > len(os.sched_getaffinity(0)):
        pytest.skip("needs a machine whose other programs leave a CPU to its trials")
    assert not none_is_ok(trials)
