"""A file of verdicts: a line of JSON for each comparison, appended when it ends.

A line is written at once, so that concurrent comparisons may share a file. A line that a killed comparison
wrote in part is refused by its number.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fecbench.complaint import complaint
from fecbench.errors import BadInput

Ratio = Annotated[float, Field(gt=0)]


class Version(BaseModel):
    """A build at the time of a comparison."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    word: str
    """The build as the command line named it."""
    commit: str | None
    """The commit that it is of, or was changed from; None: it is in no git repository."""
    committed_at: str
    """The commit's date, ISO 8601; "" if unknown."""
    changed: int
    """Files that differ from those of the commit."""

    @property
    def name(self) -> str:
        """A name for a person."""
        if self.commit is None:
            return self.word
        return f"{self.commit[:12]}{f' +{self.changed}' * bool(self.changed)}"


class Entry(BaseModel):
    """A verdict."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    at: str
    """The end of the comparison: UTC, ISO 8601."""
    implementation: str
    design: str
    engine: str
    verdict: str
    margin: float = Field(ge=0)
    ratios: dict[str, tuple[Ratio, Ratio, Ratio]]
    """The ratio of each workload that has an interval, with its ends, which hold jointly with all others and
    at all looks of the comparison; of all together as `all networks`."""
    errors: dict[str, Annotated[float, Field(ge=0)]] = {}
    """The standard error of the logarithm of each of these ratios alone; earlier versions wrote none."""
    old: Version
    new: Version


def entry_of(answer: Mapping[str, Any], versions: Mapping[str, Version], at: str, design: str) -> Entry:
    """Return the entry of an answer (`for_ci.document`) of these two builds. A workload whose ratio or
    interval is unknown or infinite has none in it."""
    with_interval = {
        name: one
        for name, one in {"all networks": answer, **answer["workloads"]}.items()
        if all(isinstance(value, float) for value in (one["ratio"], *one["interval"]))
    }
    return Entry(
        at=at,
        implementation=answer["implementation"],
        design=design,
        engine=answer["engine"],
        verdict=answer["verdict"],
        margin=answer["margin"],
        ratios={name: (one["ratio"], *one["interval"]) for name, one in with_interval.items()},
        errors={name: one["error"] for name, one in with_interval.items()},
        old=versions["old"],
        new=versions["new"],
    )


def append(path: Path, entry: Entry) -> None:
    """Add a verdict to a file, which is made when it is absent. Raises BadInput."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            os.write(descriptor, f"{entry.model_dump_json()}\n".encode())
        finally:
            os.close(descriptor)
    except OSError as error:
        raise BadInput(f"--history {path}: cannot be written: {error.strerror or error}") from None


def read(path: Path) -> list[Entry]:
    """Return the verdicts of a file, in its order. Raises BadInput."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadInput(f"{path}: cannot be read: {reason}") from None
    return [_entry(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]


def _entry(path: Path, number: int, line: str) -> Entry:
    try:
        return Entry.model_validate(json.loads(line))
    except ValidationError as error:
        raise BadInput(f"{path}:{number}: {complaint(error)}: compare --history writes such lines") from None
    except ValueError as error:
        raise BadInput(
            f"{path}:{number}: is no JSON ({error}): compare --history writes such lines"
        ) from None


def of_one_series(path: Path, entries: Sequence[Entry]) -> Sequence[Entry]:
    """Return the entries, which have to be of one implementation, design and engine. Raises BadInput."""
    if not entries:
        raise BadInput(f"{path}: holds no verdict: fecbench compare --history {path} adds one")
    kinds = sorted({(entry.implementation, entry.design, entry.engine) for entry in entries})
    if len(kinds) > 1:
        kinds_in_words = "; ".join(", ".join(kind) for kind in kinds)
        raise BadInput(
            f"{path}: holds verdicts of several kinds ({kinds_in_words}): give each a file of its own"
        )
    return entries
