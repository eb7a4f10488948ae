"""The traffic of the workload `messages`: when messages become due, and their sizes.

A timetable has a pair for each message: microseconds since the sender began, and bytes. It comes from a rate
and a size, or from a trace: a file `traces/NAME.json` beside the design. This module refuses sizes and
numbers that endpoints cannot send.
"""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from fecbench.runners.workloads.timetable_file import TimetableFile

Timetable = list[list[int]]

MOST_MESSAGES = 100_000
LARGEST_MESSAGE_BYTES = 16 * 2**20
MOST_PARTS = 65_536
"""Most parts of a message: a DATAGRAM frame has 16 bits for the number of a part."""
MOST_PARTS_IN_ALL = 500_000
"""Most parts of all messages: each is a row of the series that both ends record, which has 64 MiB at most."""


class Trace(TimetableFile):
    """Messages that somebody sent, or that a seed made."""

    rows_are = "messages"
    largest_bytes = LARGEST_MESSAGE_BYTES

    messages: Annotated[
        list[Annotated[list[int], Field(min_length=2, max_length=2)]],
        Field(min_length=1, max_length=MOST_MESSAGES),
    ]


def regular(rate_hz: float, size_bytes: int, duration_s: float) -> Timetable:
    """Messages of one size, `rate_hz` of them a second, as long as they become due before `duration_s`."""
    return [[round(1e6 * number / rate_hz), size_bytes] for number in range(count(rate_hz, duration_s))]


def count(rate_hz: float, duration_s: float) -> int:
    """Return how many messages become due before `duration_s`: 750 at 30 Hz in 25 s."""
    messages = rate_hz * duration_s
    whole = round(messages)
    # The product of two decimals is not always the number that it should be: 0.1 · 30 is above 3.
    return max(1, whole if abs(messages - whole) < 1e-9 * messages else int(messages) + 1)


def parts(size_bytes: int, part_bytes: int) -> int:
    """Return how many parts a message has."""
    return -(-size_bytes // part_bytes)


def problem_of(timetable: Sequence[Sequence[int]], part_bytes: int) -> str:
    """Return why endpoints cannot send these messages in parts of that size, or nothing."""
    if len(timetable) > MOST_MESSAGES:
        return f"has {len(timetable)} messages; there may be {MOST_MESSAGES}"
    largest = max(size_bytes for _, size_bytes in timetable)
    if largest > LARGEST_MESSAGE_BYTES:
        return f"has a message of {largest} bytes; {LARGEST_MESSAGE_BYTES} are the most"
    if parts(largest, part_bytes) > MOST_PARTS:
        return f"has a message of {parts(largest, part_bytes)} parts; {MOST_PARTS} are the most"
    in_all = sum(parts(size_bytes, part_bytes) for _, size_bytes in timetable)
    if in_all > MOST_PARTS_IN_ALL:
        return f"has {in_all} parts in all; {MOST_PARTS_IN_ALL} are the most"
    return ""
