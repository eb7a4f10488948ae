"""The tables of this folder, read and checked: metrics, the columns of frames, and series.

An entry that lacks a key, has an unknown one, or a value of another kind is refused in one line.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from fecbench.complaint import complaint
from fecbench.errors import BadInput
from fecbench.results.metrics.metric import Better, By, Metric

FOLDER = Path(__file__).parent
METRICS = ("endpoints", "messages", "live", "video", "harness", "links")
"""The tables of metrics, in the order in which the guide lists them."""


@dataclass(frozen=True)
class Column:
    """A column of a table: its name, its unit as people write it, and what it means."""

    name: str
    unit: str
    meaning: str


@dataclass(frozen=True)
class Series:
    """A table that an endpoint leaves of a trial when its variant asks for it."""

    name: str
    meaning: str
    columns: tuple[Column, ...]


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _MetricEntry(_Entry):
    """A metric without its name."""

    words: str
    unit: str
    by: By
    meaning: str
    short: str = ""
    asked: str = ""
    better: Better | None = None
    absent_is_worst: bool = False
    of_any_end: bool = False
    is_share: bool = False


class _ColumnEntry(_Entry):
    meaning: str
    unit: str = ""


class _SeriesEntry(_Entry):
    meaning: str
    columns: dict[str, _ColumnEntry]


_Checked = TypeVar("_Checked", bound=_Entry)


def read_metrics(folder: Path = FOLDER) -> tuple[Metric, ...]:
    """Return the metrics of all tables. The `by` at the head of a table is that of each entry without one."""
    return tuple(metric for table in METRICS for metric in _metrics(folder / f"{table}.toml"))


def _metrics(file: Path) -> list[Metric]:
    entries = _read(file)
    by = {"by": entries.pop("by")} if "by" in entries else {}
    with_by = {name: by | entry if isinstance(entry, dict) else entry for name, entry in entries.items()}
    checked = _checked(_MetricEntry, file, with_by)
    return [Metric(name, **entry.model_dump()) for name, entry in checked.items()]


def read_columns(folder: Path = FOLDER, table: str = "columns") -> tuple[Column, ...]:
    """The columns of frames: of one of the tables `columns`, `factors` and `ratios`."""
    file = folder / f"{table}.toml"
    return _columns(_checked(_ColumnEntry, file, _read(file)))


def read_series(folder: Path = FOLDER) -> tuple[Series, ...]:
    """Each series with its columns."""
    file = folder / "series.toml"
    entries = _checked(_SeriesEntry, file, _read(file))
    return tuple(Series(name, entry.meaning, _columns(entry.columns)) for name, entry in entries.items())


def _columns(entries: Mapping[str, _ColumnEntry]) -> tuple[Column, ...]:
    return tuple(Column(name, entry.unit, entry.meaning) for name, entry in entries.items())


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{file.name}: {error}") from None


def _checked(model: type[_Checked], file: Path, entries: Mapping[str, object]) -> dict[str, _Checked]:
    """Return the entries by name; raise BadInput for one that is not as its keys have to be."""
    checked = {}
    for name, entry in entries.items():
        try:
            checked[name] = model.model_validate(entry)
        except ValidationError as error:
            raise BadInput(f"{file.name}: {name}: {complaint(error)}") from None
    return checked
