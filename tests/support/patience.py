"""Tests that other programs of this machine may disturb run ahead of them, and again if they were disturbed.

Nothing here makes a wrong result right: it stays wrong each time.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from fecbench.runners.engines.engine import Finished
from fecbench.runners.tasks.task import Task
from fecbench.runners.trial.judge import Judgement
from fecbench.runners.trial.site import Commands
from tests.support.trials import Trials

MOST_TRIES = 12
PATIENCE_S = 300  # after which nothing is tried again
LONGEST_PAUSE_S = 5
PRIORITY = 1  # below the wire
T = TypeVar("T")


@contextlib.contextmanager
def ahead() -> Iterator[None]:
    """Ordinary programs keep neither this thread nor what it starts from running, where that is allowed."""
    before, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(PRIORITY))
    try:
        yield
    finally:
        os.sched_setscheduler(0, before, parameters)


def patiently(attempt: Callable[[int], T], disturbed: Callable[[T], bool]) -> T:
    """Return the result of the last `attempt(number)`, of at most MOST_TRIES; the number is 0 at first.

    The pauses between them grow: a host that takes processors away does so for seconds.
    """
    begin = time.monotonic()
    for number in range(MOST_TRIES):
        with ahead():
            result = attempt(number)
        if not disturbed(result) or time.monotonic() > begin + PATIENCE_S:
            break
        time.sleep(min(number, LONGEST_PAUSE_S))
    return result


def carried_out(
    trials: Trials,
    task: Task,
    commands: Commands,
    folders: Mapping[str, Path],
    is_right: Callable[[Finished, Judgement], bool] = lambda *_: True,
) -> tuple[Finished, Judgement]:
    """An emulated trial, tried again while it is invalid, or ok and not as it should be."""

    def disturbed(result: tuple[Finished, Judgement]) -> bool:
        _, judgement = result
        return judgement.state == "invalid" or (judgement.state == "ok" and not is_right(*result))

    return patiently(lambda _: trials.run(task, commands, folders), disturbed)
