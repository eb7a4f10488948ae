"""A running simulator: none of its answers is lost, and its end is reported."""

import os
import selectors
from collections.abc import Iterator
from pathlib import Path

import pytest

from fecbench.runners.engines.simulator import LINE_BYTES, READ_BYTES, Simulator, SimulatorEnded
from fecbench.runners.trial import cgroup

CGROUP = f"fecbench-{os.getpid()}-of_tests"


@pytest.fixture(autouse=True)
def cgroups() -> Iterator[None]:
    """Check that no cgroup is left."""
    yield
    cgroup.remove(CGROUP)


@pytest.fixture
def selector() -> Iterator[selectors.BaseSelector]:
    with selectors.DefaultSelector() as selector:
        yield selector


def started(script: str, folder: Path, selector: selectors.BaseSelector) -> Simulator:
    """A program of the system's Python."""
    return Simulator(["/usr/bin/python3", "-c", script], folder, folder, CGROUP, selector)


def lines_until_its_end(simulator: Simulator, selector: selectors.BaseSelector) -> tuple[list[bytes], str]:
    lines: list[bytes] = []
    while True:
        selector.select()
        try:
            lines += simulator.step()
        except SimulatorEnded as ended:
            return lines, str(ended)


def test_what_it_answered_just_before_it_ended_is_heard(
    tmp_path: Path, selector: selectors.BaseSelector
) -> None:
    script = "import sys; print('one'); print('two'); print('half', end=''); sys.exit('and out')"
    simulator = started(script, tmp_path, selector)
    simulator._process.wait()
    assert lines_until_its_end(simulator, selector) == ([b"one", b"two"], "ended with status 1: and out")
    simulator.close()


def test_a_line_longer_than_a_pipe_holds_goes_to_it_and_comes_back(
    tmp_path: Path, selector: selectors.BaseSelector
) -> None:
    simulator = started("import sys; print(sys.stdin.readline(), end='')", tmp_path, selector)
    line = b"x" * 3_000_000
    simulator.send(line + b"\n")
    assert lines_until_its_end(simulator, selector)[0] == [line]
    simulator.close()


def test_one_that_reads_nothing_keeps_nobody_waiting(
    tmp_path: Path, selector: selectors.BaseSelector
) -> None:
    simulator = started("import time; time.sleep(1000)", tmp_path, selector)
    simulator.send(b"x" * 3_000_000)
    assert simulator.step() == []
    simulator.close()
    assert simulator._process.returncode is not None
    assert not selector.get_map()


def test_one_that_cannot_be_started_says_why(tmp_path: Path, selector: selectors.BaseSelector) -> None:
    simulator = Simulator([str(tmp_path / "absent")], tmp_path, tmp_path, CGROUP, selector)
    _, message = lines_until_its_end(simulator, selector)
    assert "absent cannot be started" in message
    simulator.close()


def test_a_line_without_end_is_no_answer(tmp_path: Path, selector: selectors.BaseSelector) -> None:
    simulator = started("while True: print('x' * (1 << 20), end='')", tmp_path, selector)
    lines, message = lines_until_its_end(simulator, selector)
    assert (lines, message) == ([], f"wrote a line of more than {LINE_BYTES} bytes")
    assert len(simulator._unread) <= LINE_BYTES + READ_BYTES
    simulator.close()


def test_one_that_writes_without_end_is_heard_a_part_at_a_time(
    tmp_path: Path, selector: selectors.BaseSelector
) -> None:
    for where in ("stdout", "stderr"):
        script = f"import sys\nwhile True: sys.{where}.write('well\\n' * 100_000)"
        simulator = started(script, tmp_path, selector)
        for _ in range(20):
            selector.select()
            assert sum(map(len, simulator.step())) <= READ_BYTES
        simulator.close()


def test_one_that_closes_its_standard_error_leaves_nothing_to_do(
    tmp_path: Path, selector: selectors.BaseSelector
) -> None:
    script = "import os, time; os.close(2); print('there', flush=True); time.sleep(1000)"
    simulator = started(script, tmp_path, selector)
    lines: list[bytes] = []
    while len(selector.get_map()) > 1 or not lines:
        selector.select()
        lines += simulator.step()
    assert selector.select(0) == []
    simulator.close()
    assert not selector.get_map()
