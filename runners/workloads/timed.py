"""Rows of the series in which both ends note the parts of a timetable: when each was due, sent and there; and
what links carry of them at the soonest.

An endpoint may have written anything: each row that is impossible is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fecbench.runners.tasks import series
from fecbench.runners.tasks.outcome import Outcome
from fecbench.runners.tasks.packet_sizes import UDP_HEADER_BYTES, header_bytes
from fecbench.runners.tasks.series import SeriesError
from fecbench.runners.tasks.task import PairTask, Role, Task
from fecbench.topologies.link import Direction
from fecbench.topologies.rate import in_series, together

if TYPE_CHECKING:
    import pyarrow as pa

CLOCK_S = 2e-6
"""Timetables are in microseconds, and the times of endpoints have nine decimals."""
_TOLERANCE_S = 1e-6
"""A part that comes sooner than links can carry it by no more than this is no fault of an endpoint."""
LATEST_S = 1e9
"""Latest time of a clock that begins when a machine starts."""
PERCENTILES = (50, 95, 99)

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


def direction_of(task: Task) -> Direction:
    """Return the direction of the messages."""
    direction: Direction = task.pairs[0].workload["direction"]
    return direction


def sent_bytes(task: Task, outcome: Outcome) -> int | None:
    """Return the UDP payload that came to the links in the direction of the messages: everything that the
    sender sent.

    None if a backend does not know, and where no link is ours.
    """
    if not outcome.links:
        return None
    sent = 0
    for link in outcome.links.values():
        report = link.directions[direction_of(task)]
        if report.bytes_in is None:
            return None
        sent += report.bytes_in - (header_bytes(task.family) + UDP_HEADER_BYTES) * report.frames_in
    return sent


def too_early(task: Task, takes_s: Floats, sizes: Integers) -> tuple[int, float] | None:
    """Return the first of these parts of the smallest size that took less time than the links need, with the
    least time in ms; None: all took as long."""
    links = [link.settings for link in task.links.values()]
    directions = [link.up if direction_of(task) == "up" else link.down for link in links]
    hops, rates = [direction.least_owd_ms for direction in directions], [way.rate for way in directions]
    # A relay's links are one behind the other, those of paths side by side.
    owd_s = (sum(hops) if task.has_relay else min(hops)) / 1e3
    rate = in_series(rates) if task.has_relay else together(rates)

    # On links that change, the least time is long to find. So first: can they carry the part in its time?
    available_s = (takes_s + _TOLERANCE_S) / task.validity.least_share - owd_s

    def doubtful(rows: NDArray[np.intp]) -> list[NDArray[np.intp]]:
        """Return those of these rows, in order of size, that the links may not have carried in time."""
        least_s, largest = float(available_s[rows].min()), int(sizes[rows[-1]])
        if least_s >= 0 and rate.most_bytes(0, least_s) >= largest:
            return []
        if sizes[rows[0]] == largest:
            return [rows]
        return [part for half in np.array_split(rows, 2) for part in doubtful(half)]

    for rows in doubtful(np.argsort(sizes, kind="stable")) if len(sizes) else []:
        least_s = owd_s + rate.least_time_s(float(sizes[rows[0]]))
        early = rows[takes_s[rows] < task.validity.least_share * least_s - _TOLERANCE_S]
        if early.size:
            return int(early[0]), 1e3 * least_s
    return None
