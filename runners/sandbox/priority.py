"""Priority among programs that compete for a processor."""

import contextlib
import os
from collections.abc import Iterator

PRIORITY = 1
"""Lowest real-time priority: the emulated link has a higher one."""


@contextlib.contextmanager
def ahead_of_others() -> Iterator[bool]:
    """Run this thread, and everything that it starts meanwhile, before ordinary programs; yield whether that
    is allowed.

    Linux keeps a share of the time for the others, so a program that never waits cannot stop them.
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
