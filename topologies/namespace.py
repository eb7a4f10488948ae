"""Work inside another network namespace, without leaving one's own: in a thread that enters it and ends."""

import ctypes
import os
import subprocess
import threading
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

from fecbench.topologies.link import LinkError

Result = TypeVar("Result")

_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


def run_inside(netns_path: str, work: Callable[[], Result]) -> Result:
    """Run `work` in a thread in the network namespace at netns_path; return its value, or raise its
    exception.

    Programs that it starts are in the namespace too. Raises OSError if the namespace can't be entered.
    """

    return run_inside_each([(netns_path, work)])[0]


def run_inside_each(works: Iterable[tuple[str, Callable[[], Result]]]) -> list[Result]:
    """The same for works that each have a namespace, side by side."""

    def enter_and_work(netns_path: str, work: Callable[[], Result]) -> Result:
        enter(netns_path)
        return work()

    return run_in_parallel(partial(enter_and_work, *work) for work in works)


def enter(netns_path: str) -> None:
    """Move the calling thread there. Raises OSError."""
    with Path(netns_path).open("rb") as netns:
        _check(_libc.setns(netns.fileno(), _CLONE_NEWNET), f"setns {netns_path}")


def run_in_new(work: Callable[[], Result]) -> Result:
    """The same in a namespace that is made for it, and ends with the last descriptor or process in it."""

    def unshare_and_work() -> Result:
        _check(_libc.unshare(_CLONE_NEWNET), "unshare the network namespace")
        return work()

    return run_in_parallel([unshare_and_work])[0]


def run_in_parallel(works: Iterable[Callable[[], Result]]) -> list[Result]:
    """The results in the order of `works`; the first exception is raised once all have ended."""
    outcomes = [_Outcome(work) for work in works]
    for outcome in outcomes:
        outcome.start()
    for outcome in outcomes:
        outcome.join()
    return [outcome.result() for outcome in outcomes]


def run_tool(arguments: list[str], commands: Iterable[str] = ()) -> str:
    """The standard output of a program that is given `commands` as lines on its standard input.

    Raises LinkError with what it wrote on standard error.
    """
    program = subprocess.run(
        arguments,
        input="".join(f"{line}\n" for line in commands),
        capture_output=True,
        text=True,
        check=False,
    )
    if program.returncode != 0:
        complaint = " ".join((program.stderr or program.stdout).split())
        raise LinkError(f"`{' '.join(arguments)}` failed with status {program.returncode}: {complaint}")
    return program.stdout


class _Outcome(threading.Thread, Generic[Result]):
    """A thread whose result or exception is kept. A pool would reuse its threads, and one that has entered a
    namespace must not be given other work."""

    def __init__(self, work: Callable[[], Result]) -> None:
        super().__init__()
        self._work = work
        self._values: list[Result] = []
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            self._values.append(self._work())
        except BaseException as error:  # raised again in the thread that asked for the work
            self._error = error

    def result(self) -> Result:
        if self._error is not None:
            raise self._error
        return self._values[0]


def _check(status: int, attempt: str) -> None:
    if status != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"cannot {attempt}: {os.strerror(number)}")
