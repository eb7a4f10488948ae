"""The traffic of the workload `messages`: when messages become due, and their sizes.

A timetable has a pair for each message: microseconds since the sender began, and bytes. It comes from a rate
and a size, or from a trace: a file `traces/NAME.json` beside the design. Only this module refuses traffic
that endpoints cannot send: times that go back, sizes and numbers out of range.
"""

import hashlib
import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from fecbench.runners.workloads.json_file import Line, checked, find_document, read_json

Timetable = list[list[int]]

MOST_MESSAGES = 100_000
LARGEST_MESSAGE_BYTES = 16 * 2**20
MOST_PARTS = 65_536
"""Most parts of a message: a DATAGRAM frame has 16 bits for the number of a part."""
MOST_PARTS_IN_ALL = 500_000
"""Most parts of all messages: each is a row of the series that both ends record, which has 64 MiB at most."""
LONGEST_S = 86_400


class Trace(BaseModel):
    """Messages that somebody sent, or that a seed made."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    title: Line
    made_by: Line
    messages: Annotated[
        list[Annotated[list[int], Field(min_length=2, max_length=2)]],
        Field(min_length=1, max_length=MOST_MESSAGES),
    ]
    """The time at which each message is due, in microseconds since the sender may begin, and its bytes."""

    @model_validator(mode="after")
    def _check_messages(self) -> Self:
        for number, ((before_us, _), (due_us, _)) in enumerate(pairwise(self.messages), 1):
            if due_us < before_us:
                raise ValueError(
                    f"message {number}: is due at {due_us} µs, and the one before at {before_us}:"
                    " times must not decrease"
                )
        for number, (due_us, size_bytes) in enumerate(self.messages):
            if not 0 <= due_us <= LONGEST_S * 1_000_000:
                raise ValueError(
                    f"message {number}: {due_us} µs must be from 0 to {LONGEST_S * 1_000_000}, a day"
                )
            if not 1 <= size_bytes <= LARGEST_MESSAGE_BYTES:
                raise ValueError(
                    f"message {number}: {size_bytes} bytes must be from 1 to {LARGEST_MESSAGE_BYTES}"
                )
        return self

    def text(self) -> str:
        """The file's text: one message a line."""
        head = {"title": self.title, "made_by": self.made_by}
        lines = ",\n  ".join(json.dumps(message) for message in self.messages)
        return json.dumps(head, ensure_ascii=False, indent=1)[:-2] + f',\n "messages": [\n  {lines}\n ]\n}}\n'


def load(path: Path) -> Trace:
    """The trace in a file. Raises Refusal."""
    return checked(Trace, read_json(path), str(path))


def stored(path: Path) -> dict[str, Any]:
    """A trace as a campaign keeps it: the file's hash, and the timetable, to be run again."""
    return {"sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "timetable": load(path).messages}


def path_of(name: str, folders: Sequence[Path]) -> Path:
    """The file of the trace of that name: in `traces` within these folders. Raises Refusal."""
    return find_document(folders, "trace", name, "workload messages: trace")


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
