"""Rows of the series in which both ends note the parts of a timetable: when each was due, sent and there.

An endpoint may have written anything: each row that is impossible is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fecbench.runners.options import Option
from fecbench.runners.refusal import Refusal
from fecbench.runners.tasks import series
from fecbench.runners.tasks.outcome import Outcome
from fecbench.runners.tasks.series import SeriesError
from fecbench.runners.tasks.task import PairTask, Role

if TYPE_CHECKING:
    import pyarrow as pa

CLOCK_S = 2e-6
"""Timetables are in microseconds, and the times of endpoints have nine decimals."""
LATEST_S = 1e9
"""Latest time of a clock that begins when a machine starts."""
PERCENTILES = (50, 95, 99)
MOST_PLAYOUTS = 50

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def ends(pair: PairTask) -> tuple[Role, Role]:
    """Return the sender and the receiver of the messages of a pair."""
    return ("server", "client") if pair.workload["direction"] == "down" else ("client", "server")


def ahead_s(end: Role, outcome: Outcome) -> float:
    """Return how far the clock of an end is ahead of the client's: 0 where both ends have one clock."""
    return outcome.path.server_ahead_s if outcome.path is not None and end == "server" else 0.0


def table(name: str, end: Role, outcome: Outcome, most: int, columns: tuple[str, ...]) -> pa.Table:
    """Return the series of that name of an end, with at most so many rows. Raises SeriesError."""
    content = outcome.endpoints[end].series.get(name, b"")
    # Before it is parsed: what is parsed takes more memory than the file does.
    if content.count(b"\n") > most + 1:
        raise SeriesError(f"{end}: series {name}: has more than {most} rows, all that the timetable has")
    try:
        rows = series.table(name, content)
    except SeriesError as error:
        raise SeriesError(f"{end}: {error}") from None
    if tuple(rows.column_names) != columns:
        raise SeriesError(
            f"{end}: series {name}: columns {', '.join(rows.column_names)}: must be {', '.join(columns)}"
        )
    return rows


def column(table: pa.Table, name: str) -> Floats:
    """Return a column of a table."""
    values: Floats = table[name].to_numpy()
    return values


def times(of: str, end: Role, table: pa.Table, name: str) -> Floats:
    """Return a column of times, in s of the clock of an end. Raises SeriesError."""
    values = column(table, name)
    if (wrong := np.flatnonzero((values < 0) | (values > LATEST_S))).size:
        raise SeriesError(
            f"{end}: series {of}: row {wrong[0] + 1}: {name} = {values[wrong[0]]:.12g}:"
            f" must be from 0 to {LATEST_S:g}, seconds of the monotonic clock"
        )
    return values


def whole(of: str, end: Role, table: pa.Table, name: str, most: int) -> Integers:
    """Return a column of whole numbers up to `most`. Raises SeriesError."""
    values = column(table, name)
    if (wrong := np.flatnonzero((values != np.floor(values)) | (values < 0) | (values > most))).size:
        value = values[wrong[0]]
        raise SeriesError(
            f"{end}: series {of}: row {wrong[0] + 1}: {name} = {value:.12g}:"
            f" must be a whole number from 0 to {most}"
        )
    return values.astype(np.int64)


def latencies(latency_s: Floats) -> Iterator[tuple[str, float]]:
    """Yield the percentiles of all latencies, by nearest rank, and the longest of those that are finite.

    A percentile that falls on what never arrived is left out.
    """
    in_order = np.sort(latency_s)
    for percent in PERCENTILES:
        value = in_order[math.ceil(percent / 100 * len(in_order)) - 1]
        if math.isfinite(value):
            yield f"latency_p{percent}_ms", 1e3 * float(value)
    if len(whole := in_order[np.isfinite(in_order)]):
        yield "latency_max_ms", 1e3 * float(whole[-1])


def check_playouts(playouts: Sequence[Any], option: Option, where: str) -> None:
    """Refuse playout delays of a workload: too many, equal ones, or one that the option does not allow.

    `where` names the workload. Raises Refusal.
    """
    subject = f"{where}: playout_ms = {list(playouts)!r:.200}"
    if not 1 <= len(playouts) <= MOST_PLAYOUTS:
        raise Refusal(f"{subject}: must be 1 to {MOST_PLAYOUTS} numbers")
    for playout_ms in playouts:
        if problem := option.problem_of(playout_ms):
            raise Refusal(f"{subject}: each {problem}")
    if len(set(playouts)) < len(playouts):
        raise Refusal(f"{subject}: each must be another")
