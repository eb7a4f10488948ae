"""Lines of text with numbers, and refusals of lines without."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fecbench.complaint import wrong_value
from fecbench.quantities import counted
from fecbench.topologies.trace import MOST_STEPS, Trace, TraceError

LAST_STEP_US = 1_000_000
"""The length of a recording with one time."""
_MOST_S = 1e11
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_BETWEEN = re.compile(r"\s*,\s*|\s+")


@dataclass(frozen=True)
class Imported:
    """A trace, and what a person should know of how it was read."""

    trace: Trace
    notes: tuple[str, ...] = ()


def lines_of(content: bytes) -> list[str]:
    """Return the lines of a text, without a mark of UTF-8 and without their ends."""
    try:
        lines = content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise TraceError("is no text") from None
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines:
        raise TraceError("is empty")
    if len(lines) > MOST_STEPS + 1:
        raise TraceError(f"has {counted(len(lines), 'line')}; at most {MOST_STEPS} steps")
    return lines


def whole(text: str, where: str) -> int:
    """Return a whole number, not below 0."""
    stripped = text.strip()
    if not stripped.isascii() or not stripped.isdigit() or len(stripped) > 15:
        raise TraceError(wrong_value(where, stripped, "a whole number, not below 0"))
    return int(stripped)


def number(text: str, where: str) -> float:
    """Return a finite number."""
    stripped = text.strip()  # also of separators that float() does not strip
    value = float(stripped) if _NUMBER.fullmatch(stripped) else math.nan
    if not math.isfinite(value):
        raise TraceError(f"{where}: {text.strip()[:40]!r} is no number")
    return value


def time_s(text: str, where: str) -> float:
    """Return a time in s. One of more than 3,000 years is in another unit."""
    value = number(text, where)
    if abs(value) > _MOST_S:
        raise TraceError(f"{where}: {text.strip()[:40]!r}: must be a time in s")
    return value


def numbered(lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the columns of each line with its number from 1 on; a blank or a comma is between them.

    Between two commas with nothing between them there is a column without a value. A line without a column
    is blank.
    """
    for line_number, line in enumerate(lines, start=1):
        yield line_number, _BETWEEN.split(line.strip()) if line.strip() else []


def steps_us(times_s: Sequence[float], places: Sequence[str]) -> list[int]:
    """Return how long each time holds: until the next one; the last, as long as the one before.

    `places` says where in the file each of them stands.
    """
    steps = []
    for place in range(1, len(times_s)):
        step_us = round(1e6 * (times_s[place] - times_s[place - 1]))
        if step_us < 1:
            raise TraceError(f"{places[place]}: its time must be later than that before")
        steps.append(step_us)
    return [*steps, steps[-1] if steps else LAST_STEP_US]
