"""Who runs first where several programs want a processor."""

import contextlib
import logging
import os
from collections.abc import Iterator

_log = logging.getLogger(__name__)

PRIORITY = 1
"""Of real time, the least: the emulated link has a higher one."""


@contextlib.contextmanager
def ahead_of_others() -> Iterator[None]:
    """This process, and all that it starts meanwhile, run ahead of ordinary programs, where that is allowed.

    Linux keeps a share of the time for the others, so a program that never waits stops nobody.
    """
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(PRIORITY))
    except PermissionError:
        _log.info("real-time priority is not granted: other programs disturb trials more")
        yield
        return
    try:
        yield
    finally:
        os.sched_setscheduler(0, *before)
