"""Events that nobody reports, such as the end of a process that is not ours, are polled."""

import time
from collections.abc import Callable

LIMIT_S = 300.0
"""Long, since the machine may be busy."""


def wait_until(condition: Callable[[], object], what: str, limit_s: float = LIMIT_S) -> None:
    """Wait until it comes true; AssertionError with `what` after `limit_s`."""
    until = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < until, f"not within {limit_s:g} s: {what}"
        time.sleep(0.01)
