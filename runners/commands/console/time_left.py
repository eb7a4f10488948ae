"""Time that a command may still take: from its call, since it takes seconds to load on a busy machine, to
the end of its answer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

ANSWER_S = 3.5
"""Seconds of a processor for the last look at a large campaign, with its rules."""

_begun = (time.monotonic(), time.process_time())
"""Moment of the call: by the clock, and by the time of a processor."""


def begin() -> None:
    """Say that a command is called now."""
    global _begun
    _begun = (time.monotonic(), time.process_time())


class TimeLeft:
    """The time of the command that was called."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._stopped_s = 0.0

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Do not count what happens meanwhile."""
        begun = time.monotonic()
        try:
            yield
        finally:
            self._stopped_s += time.monotonic() - begun

    def before_answer(self) -> float:
        """Return for how many seconds trials may be run, so that there is time for the answer: as much as its
        processor time takes on this machine, by what the command has taken so far."""
        took_s = time.monotonic() - _begun[0] - self._stopped_s
        slowdown = max(1.0, took_s / max(time.process_time() - _begun[1], 0.1))
        left_s = self._limit_s - took_s
        return left_s - min(ANSWER_S * slowdown, left_s / 2)


def duration(seconds: float | None) -> str:
    """Seconds for a person: `2 min 05 s`."""
    if seconds is None:
        return "?"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
