"""The tables of this folder, read and checked: metrics, the columns of frames, and series.

An entry that lacks a key, has an unknown one, or a value of another kind is refused in one line.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from fecbench.errors import BadInput
from fecbench.results.metrics.metric import Better, By, Metric

FOLDER = Path(__file__).parent
METRICS = ("endpoints", "messages", "video", "harness", "links")
"""The tables of metrics, in the order in which the guide lists them."""

# What each key of an entry has: a kind of value, or one of some words.
_Kinds = Mapping[str, type | tuple[str, ...]]
_METRIC: _Kinds = {"words": str, "unit": str, "by": get_args(By), "meaning": str}
_METRIC_MAY: _Kinds = {
    **{"short": str, "asked": str, "better": get_args(Better)},
    **{"absent_is_worst": bool, "is_share": bool},
}
_COLUMN: _Kinds = {"meaning": str}
_COLUMN_MAY: _Kinds = {"unit": str}
_SERIES: _Kinds = {"meaning": str, "columns": dict}


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


def read_metrics(folder: Path = FOLDER) -> tuple[Metric, ...]:
    """Those of all tables. The `by` at the head of a table is that of each entry that has none."""
    return tuple(metric for table in METRICS for metric in _metrics(folder / f"{table}.toml"))


def _metrics(file: Path) -> list[Metric]:
    entries = _read(file)
    by = entries.pop("by", None)
    metrics = []
    for name, entry in entries.items():
        where = f"{file.name}: {name}"
        with_by = {"by": by, **entry} if by is not None and isinstance(entry, dict) else entry
        metrics.append(Metric(name, **{"better": None, **_checked(where, with_by, _METRIC, _METRIC_MAY)}))
    return metrics


def read_columns(folder: Path = FOLDER, table: str = "columns") -> tuple[Column, ...]:
    """The columns of frames: of one of the tables `columns`, `factors` and `ratios`."""
    file = folder / f"{table}.toml"
    return _columns(file.name, _read(file))


def read_series(folder: Path = FOLDER) -> tuple[Series, ...]:
    """Each series with its columns."""
    file = folder / "series.toml"
    series = []
    for name, entry in _read(file).items():
        where = f"{file.name}: {name}"
        checked = _checked(where, entry, _SERIES, {})
        series.append(Series(name, checked["meaning"], _columns(where, checked["columns"])))
    return tuple(series)


def _columns(where: str, entries: Mapping[str, Any]) -> tuple[Column, ...]:
    return tuple(
        Column(name, **{"unit": "", **_checked(f"{where}: {name}", entry, _COLUMN, _COLUMN_MAY)})
        for name, entry in entries.items()
    )


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{file.name}: {error}") from None


def _checked(where: str, entry: Any, needed: _Kinds, may: _Kinds) -> dict[str, Any]:
    """The entry; raises BadInput where it is not as its keys have to be."""
    if not isinstance(entry, dict):
        raise BadInput(f"{where} = {entry!r}: must be a table with {', '.join(needed)}")
    kinds = {**needed, **may}
    for key in [*entry, *needed]:
        if key not in kinds:
            raise BadInput(f"{where}: {key} is no key of an entry; it has {', '.join(kinds)}")
        if key not in entry:
            raise BadInput(f"{where} lacks {key}")
        kind = kinds[key]
        if isinstance(kind, tuple):
            if entry[key] not in kind:
                raise BadInput(f"{where}: {key} = {entry[key]!r}: must be one of {', '.join(kind)}")
        elif not isinstance(entry[key], kind):
            raise BadInput(f"{where}: {key} = {entry[key]!r}: must be a {kind.__name__}")
    return entry
