"""Who runs first where several programs want a processor."""

import contextlib
import os
from collections.abc import Iterator

PRIORITY = 1
"""Of real time, the least: the emulated link has a higher one."""


@contextlib.contextmanager
def ahead_of_others() -> Iterator[bool]:
    """This thread, and all that it starts meanwhile, run ahead of ordinary programs, where that is allowed:
    whether it is.

    Linux keeps a share of the time for the others, so a program that never waits stops nobody.
    """
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(PRIORITY))
    except PermissionError:
        yield False
        return
    try:
        yield True
    finally:
        os.sched_setscheduler(0, *before)


def is_granted() -> bool:
    """Whether this process may have it."""
    with ahead_of_others() as granted:
        return granted
