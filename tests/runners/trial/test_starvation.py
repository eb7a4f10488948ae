"""A program that is kept from running is noticed; one that waits of its own will is not."""

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fecbench.runners.trial import starvation
from fecbench.runners.trial.starvation import INTERVAL_S, Stall, Watch
from fecbench.runners.trial.supervisor import Supervisor
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: real-time priority")

# Wants CPU 0 all the time, in a thread that it makes when it is told to; another has ended before.
WORKER = """
import os, threading, time
os.sched_setaffinity(0, {0})
ended = threading.Thread(target=time.sleep, args=[0.05])
ended.start()
print("ready", flush=True)
input()
ended.join()
def work():
    while True:
        pass
threading.Thread(target=work).start()
print("working", flush=True)
"""
# Takes 60 ms of CPU 0 when it is told to, by its own account: the kernel may let others run in between.
HOG = """
import os, time
os.sched_setaffinity(0, {0})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
print("ready", flush=True)
input()
end = time.process_time() + 0.06
while time.process_time() < end:
    pass
print("done", flush=True)
"""


def started(program: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    return process


def put_to_work(worker: subprocess.Popen[str]) -> None:
    assert worker.stdin
    assert worker.stdout
    worker.stdin.write("go\n")
    worker.stdin.flush()
    assert worker.stdout.readline() == "working\n"


def await_stall(watch: Watch, start_s: float) -> None:
    """Await the wait for the hog; the kernel reports a wait only when the thread runs again."""
    wait_until(lambda: watch.stalled_s(start_s, time.monotonic()) > 0.05, "the wait for the hog")


def session_without_programs() -> int:
    with subprocess.Popen([sys.executable, "-c", "pass"], start_new_session=True) as process:
        return process.pid


def descriptors() -> set[str]:
    return {path.name for path in Path("/proc/self/fd").iterdir()}


@pytest.fixture
def worker() -> Iterator[subprocess.Popen[str]]:
    with started(WORKER) as process:
        yield process
        process.kill()


@pytest.fixture
def no_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count only the waits of threads, not the delays of the watch's own samples."""
    monkeypatch.setattr(starvation, "GAP_AT_LEAST_S", math.inf)


@pytest.mark.usefixtures("no_gap")
def test_a_thread_that_a_hog_keeps_from_running_has_stalled(worker: subprocess.Popen[str]) -> None:
    put_to_work(worker)
    with Watch([worker.pid]) as watch, started(HOG) as hog:
        start_s = time.monotonic()
        hog.communicate("go\n")
        await_stall(watch, start_s)
        result = time.monotonic()
        assert watch.stalled_s(result, result) < 0.05, "what was before the beginning does not count"


@pytest.mark.usefixtures("no_gap")
def test_a_thread_that_was_made_meanwhile_is_watched_too(worker: subprocess.Popen[str]) -> None:
    with Watch([worker.pid]) as watch, started(HOG) as hog:
        put_to_work(worker)
        watch.sample()
        start_s = time.monotonic()
        hog.communicate("go\n")
        await_stall(watch, start_s)


def test_a_watch_leaves_no_file_open(worker: subprocess.Popen[str]) -> None:
    before = descriptors()
    with Watch([worker.pid]) as watch:
        put_to_work(worker)
        watch.sample()
        assert descriptors() > before
    assert descriptors() == before


def test_the_time_without_a_sample_is_a_stall_beyond_one_interval() -> None:
    with Watch([session_without_programs()]) as watch:
        now = time.monotonic()
        assert watch.stalled_s(now, now + 3 + INTERVAL_S) == pytest.approx(3, abs=0.5)


@pytest.mark.usefixtures("no_gap")
def test_a_program_that_is_stopped_by_a_signal_has_stalled_until_it_goes_on(
    worker: subprocess.Popen[str],
) -> None:
    with Watch([worker.pid]) as watch:
        worker.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, worker.pid, os.WSTOPPED)
        stopped = time.monotonic()
        watch.sample()
        for _ in range(20):
            time.sleep(INTERVAL_S)
            watch.sample()
        worker.send_signal(signal.SIGCONT)
        os.waitid(os.P_PID, worker.pid, os.WCONTINUED)
        continued = time.monotonic()
        watch.sample()
        stalled_s = watch.within_s(stopped, continued)
        assert continued - stopped - stalled_s <= watch.longest_gap_s + INTERVAL_S


def test_a_program_with_brackets_in_its_name_stands_still_from_a_signal_to_the_next(tmp_path: Path) -> None:
    program = tmp_path / ") T ("
    program.symlink_to(sys.executable)  # some systems have one program of many names as /bin/sleep
    with subprocess.Popen([program, "-c", "import time; time.sleep(1000)"]) as process:
        thread = starvation.Thread(f"/proc/{process.pid}/task/{process.pid}")
        try:
            assert not thread.is_stopped()
            process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, process.pid, os.WSTOPPED)
            assert thread.is_stopped()
            process.send_signal(signal.SIGCONT)
            os.waitid(os.P_PID, process.pid, os.WCONTINUED)
            assert not thread.is_stopped()
        finally:
            thread.close()
            process.kill()


@pytest.mark.usefixtures("no_gap")
def test_a_program_of_another_session_is_not_watched(worker: subprocess.Popen[str]) -> None:
    put_to_work(worker)
    with Watch([session_without_programs()]) as watch, started(HOG) as hog:
        start_s = time.monotonic()
        hog.communicate("go\n")
        watch.sample()
        assert watch.stalled_s(start_s, time.monotonic()) == 0


def test_a_gap_between_samples_is_a_stall_whoever_was_kept_from_running() -> None:
    with Watch([]) as watch:
        start_s = time.monotonic()
        for _ in range(20):
            time.sleep(INTERVAL_S)
            watch.sample()
        before_s = watch.stalled_s(start_s, time.monotonic())
        time.sleep(1.0)  # the gap
        watch.sample()
        for _ in range(20):
            time.sleep(INTERVAL_S)
            watch.sample()
        assert watch.stalled_s(start_s, time.monotonic()) - before_s > 1.0 - INTERVAL_S
        assert watch.longest_gap_s > 1.0


@given(
    begun_at=st.integers(0, 9),
    length_s=st.integers(0, 9),
    lasted_s=st.integers(0, 9),
    window=st.integers(0, 9),
)
def test_a_stall_counts_at_most_while_it_was_in_the_window(
    begun_at: int, length_s: int, lasted_s: int, window: int
) -> None:
    stall = Stall(begun_at, begun_at + length_s, lasted_s)
    inside_s = stall.within_s(window, window + 1)
    assert 0 <= inside_s <= min(lasted_s, 1)
    assert stall.within_s(0, 20) == min(lasted_s, stall.ended_at - stall.begun_at)
    if stall.ended_at <= window:
        assert inside_s == 0


STAT = "cpu  1 2 3 4 5 6 7 {} 0 0\ncpu0 1 2 3 4 5 6 7 {} 0 0\ncpu1 1 2 3 4 5 6 7 {} 0 0\nintr 12 0\n"


def test_what_was_stolen_is_that_of_the_cpu_that_lost_the_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stat = tmp_path / "stat"
    monkeypatch.setattr(starvation, "STAT", stat)
    stat.write_text(STAT.format(30, 10, 20))
    with Watch([]) as watch:
        stat.write_text(STAT.format(39, 17, 22))
        assert watch.stolen_s() == pytest.approx(7 / os.sysconf("SC_CLK_TCK"))


def test_a_program_that_is_followed_while_others_are_watched_is_watched_too() -> None:
    """A neighbour that joins late."""
    supervisor = Supervisor()
    with supervisor.watching([]) as watch:
        supervisor.wait(lambda: False, 5 * INTERVAL_S)
        late = subprocess.Popen(
            [sys.executable, "-c", "input()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        endpoint = supervisor.follow("background2_client", late)
        os.kill(late.pid, signal.SIGSTOP)
        begun_at = time.monotonic()
        supervisor.wait(lambda: False, 0.3)
        stalled_s = watch.within_s(begun_at, time.monotonic())
        os.kill(late.pid, signal.SIGCONT)
    supervisor.end(endpoint)
    for stream in (late.stdin, late.stdout, late.stderr):
        assert stream is not None
        stream.close()
    assert stalled_s > 0.15
