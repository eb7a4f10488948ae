"""Frames as an analysis in a notebook wants them: round-trip times and sizes as columns, units of all
columns, and names that `DataFrame.query` takes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd

from fecbench.errors import BadInput
from fecbench.results import metrics
from fecbench.results.store.records import CampaignInfo

_DELAY = re.compile(r"((?:\w+\.)*?)(?:(?:up|down)\.)?owd_ms")
_ROUND_TRIP, _SIZE = "rtt_ms", "size_bytes"


def with_round_trips(points: pd.DataFrame, campaign: CampaignInfo) -> pd.DataFrame:
    """The points of a campaign with `rtt_ms`: what the design says, or the one-way delays of both directions
    together, of each link of which it says them; `path1.rtt_ms` where links have names."""
    constants = campaign.constants
    round_trips = {name: ms for name, ms in constants.items() if name.rpartition(".")[2] == _ROUND_TRIP}
    points = points.assign(**{name: float(ms) for name, ms in round_trips.items() if name not in points})
    names_of_points = [*points.columns, *constants]
    prefixes = dict.fromkeys(match[1] for match in map(_DELAY.fullmatch, map(str, names_of_points)) if match)
    for prefix in prefixes:
        ways: list[Any] = []
        for direction in ("up", "down"):
            # The most specific name counts; a round trip is half of it each way.
            of_link = (f"{prefix}{direction}.owd_ms", f"{prefix}owd_ms", f"{prefix}{_ROUND_TRIP}")
            names = dict.fromkeys((*of_link, f"{direction}.owd_ms", "owd_ms", _ROUND_TRIP))
            of_names = {name: points[name] if name in points else constants.get(name) for name in names}
            delays = {name: delay for name, delay in of_names.items() if delay is not None}
            name = next(iter(delays), None)
            ways.append(name and (delays[name] / 2 if name.endswith(_ROUND_TRIP) else delays[name]))
        name = f"{prefix}rtt_ms"
        if all(way is not None for way in ways) and name not in points:
            round_trip = pd.Series(ways[0] + ways[1], index=points.index, dtype="float64")
            last = [place for place, column in enumerate(points) if _DELAY.fullmatch(str(column))]
            points = points.copy()
            points.insert(last[-1] + 1 if last else len(points.columns), name, round_trip)
    return points


def with_sizes(frame: pd.DataFrame, campaign: CampaignInfo) -> pd.DataFrame:
    """A frame with a column `workload` and, where workloads have a size, `size_bytes` after it."""
    sizes = {w["label"]: w["parameters"][_SIZE] for w in campaign.workloads if _SIZE in w["parameters"]}
    if _SIZE in frame or not sizes:
        return frame
    sized = frame.copy()
    column = frame["workload"].astype(object).map(sizes)
    sized.insert(list(frame.columns).index("workload") + 1, _SIZE, column)
    return sized


def finished(frame: pd.DataFrame, *, plain: bool = False) -> pd.DataFrame:
    """A frame with the units of its columns in `attrs["units"]`; with `plain`, by its `plain_names`."""
    renamed = frame.rename(columns=plain_names(frame.columns)) if plain else frame
    units = zip(renamed.columns, map(unit_of, map(str, frame.columns)), strict=True)
    renamed.attrs["units"] = {str(name): unit for name, unit in units if unit}
    return renamed


def plain_names(names: Iterable[Any]) -> dict[str, str]:
    """Names that `DataFrame.query` and attributes take: "loss_p" for "loss.p". Raises BadInput where two
    would become one."""
    plain = {str(name): re.sub(r"\W", "_", str(name)) for name in names}
    owner: dict[str, str] = {}
    for name, other in plain.items():
        if owner.setdefault(other, name) != name:
            raise BadInput(
                f"columns {owner[other]!r} and {name!r} would both be {other!r}: read without plain"
            )
    return plain


def unit_of(name: str) -> str:
    """The unit of a column, as people write it; "" for none."""
    return _described(name)[0]


def dictionary(names: Iterable[str], tables: str) -> pd.DataFrame:
    """Return the meaning of columns of these names, a row each: `unit`, `meaning`, `better` ("less",
    "more" or ""), the name as `plain` has it, and in which `tables` they are."""
    rows = list(_rows(names, tables))
    return pd.DataFrame(rows, columns=["column", "unit", "meaning", "better", "plain", "tables"])


def _rows(names: Iterable[str], tables: str) -> Iterator[tuple[str, ...]]:
    for name in names:
        yield (name, *_described(name), re.sub(r"\W", "_", name), tables)


def _described(name: str) -> tuple[str, str, str]:
    """Unit, meaning, and which direction is better."""
    if column := metrics.column(name):
        return column.unit, column.meaning, ""
    metric = metrics.of(name)
    return metric.unit, metric.meaning, metric.better or ""
