"""Files that several processes share."""

import contextlib
from multiprocessing import get_context
from pathlib import Path
from threading import BrokenBarrierError

import pytest

from tests.support.once import made_once

FORKS = get_context("fork")
LIMIT_S = 0.3
"""Time that the maker of a file waits for another one, who is not to come."""


def note(path: Path) -> None:
    """Write a file, and a letter for each time that it was written."""
    with path.with_name("times").open("a") as times:
        times.write("x")
    path.write_text("whole")


def test_of_several_processes_one_makes_a_file(tmp_path: Path) -> None:
    path, makers = tmp_path / "file", FORKS.Barrier(2)

    def make(path: Path) -> None:
        with contextlib.suppress(BrokenBarrierError):
            makers.wait(LIMIT_S)
        note(path)

    def ask() -> None:
        assert made_once(path, make).read_text() == "whole"

    processes = [FORKS.Process(target=ask) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0, 0]
    assert (tmp_path / "times").read_text() == "x"


def test_a_file_that_could_not_be_made_is_made_by_the_next(tmp_path: Path) -> None:
    def fail(path: Path) -> None:
        path.write_text("half")
        raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        made_once(tmp_path / "file", fail)
    assert made_once(tmp_path / "file", note).read_text() == "whole"
