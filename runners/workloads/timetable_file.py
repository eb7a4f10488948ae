"""Traces of traffic in files beside a design: when each message or frame is due, and its bytes.

Only this module refuses what endpoints cannot send: times that go back, and times and sizes out of range.
"""

import hashlib
import json
from itertools import pairwise
from pathlib import Path
from typing import ClassVar, Self

from pydantic import BaseModel, ConfigDict, model_validator

from fecbench.runners.workloads.json_file import Line, checked, read_json

LONGEST_S = 86_400
LONGEST_US = LONGEST_S * 1_000_000


class TimetableFile(BaseModel):
    """A row for each message or frame: first microseconds since the sender may begin, and bytes."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    rows_are: ClassVar[str]
    """The field that has the rows, which are called so: messages, or frames."""
    largest_bytes: ClassVar[int]

    title: Line
    made_by: Line

    @property
    def rows(self) -> list[list[int]]:
        rows: list[list[int]] = getattr(self, self.rows_are)
        return rows

    @model_validator(mode="after")
    def _check_rows(self) -> Self:
        kind = self.rows_are.removesuffix("s")
        for number, ((before_us, *_), (due_us, *_)) in enumerate(pairwise(self.rows), 1):
            if due_us < before_us:
                raise ValueError(
                    f"{kind} {number}: is due at {due_us} µs, and the one before at {before_us}:"
                    " times must not decrease"
                )
        for number, (due_us, size_bytes, *_) in enumerate(self.rows):
            if not 0 <= due_us <= LONGEST_US:
                raise ValueError(f"{kind} {number}: {due_us} µs must be from 0 to {LONGEST_US}, a day")
            if not 1 <= size_bytes <= self.largest_bytes:
                raise ValueError(
                    f"{kind} {number}: {size_bytes} bytes must be from 1 to {self.largest_bytes}"
                )
        return self

    def text(self) -> str:
        """Return the file's text: a row a line."""
        head = json.dumps({"title": self.title, "made_by": self.made_by}, ensure_ascii=False, indent=1)
        lines = ",\n  ".join(map(json.dumps, self.rows))
        return f'{head[:-2]},\n "{self.rows_are}": [\n  {lines}\n ]\n}}\n'

    @classmethod
    def load(cls, path: Path) -> Self:
        """Return the trace in a file. Raises Refusal."""
        return checked(cls, read_json(path), str(path))

    @classmethod
    def stored(cls, path: Path, name: str) -> dict[str, object]:
        """Return a trace as a campaign keeps it, to be run again: the file's hash, and its rows by this name.

        Raises Refusal.
        """
        return {"sha256": hashlib.sha256(path.read_bytes()).hexdigest(), name: cls.load(path).rows}
