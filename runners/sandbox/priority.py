"""Who runs first where several programs want a processor."""

import contextlib
import os
from collections.abc import Iterator

PRIORITY = 1
"""Of real time, the least: that of endpoints. The emulated link has a higher one."""
WATCHER = 2
"""Of whoever ends endpoints: thousands of them, which one can become, may want the processor."""


@contextlib.contextmanager
def ahead_of_others(priority: int = PRIORITY) -> Iterator[bool]:
    """This thread, and all that it starts meanwhile, run ahead of ordinary programs, where that is allowed:
    whether it is.

    Linux keeps a share of the time for the others, so a program that never waits stops nobody.
    """
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(priority))
    except PermissionError:
        yield False
        return
    try:
        yield True
    finally:
        os.sched_setscheduler(0, *before)


def behind_the_watcher() -> None:
    """Have this process, which is ahead of others as its parent is, run behind that one."""
    if os.sched_getscheduler(0) == os.SCHED_RR:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(PRIORITY))


def is_granted() -> bool:
    """Whether this process may have it."""
    with ahead_of_others() as granted:
        return granted
