"""One running simulator: nothing that it answered is lost, and how it ended is told."""

import selectors
from collections.abc import Iterator
from pathlib import Path

import pytest

from runners.engines.simulator import Simulator, SimulatorEnded


@pytest.fixture
def selector() -> Iterator[selectors.BaseSelector]:
    with selectors.DefaultSelector() as selector:
        yield selector


def started(script: str, folder: Path, selector: selectors.BaseSelector) -> Simulator:
    """A program of the system's Python."""
    return Simulator(["/usr/bin/python3", "-c", script], folder, folder, None, selector)


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
    simulator = Simulator([str(tmp_path / "absent")], tmp_path, tmp_path, None, selector)
    _, said = lines_until_its_end(simulator, selector)
    assert "absent cannot be started" in said
    simulator.close()
