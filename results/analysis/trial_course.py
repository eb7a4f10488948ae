"""The course of one trial: what each packet met, repair, and congestion control, over time.

A course is typed data, ready to be drawn (`results.figures.course`). Its times are seconds since the client
sent its first packet. Data that a trial lacks is absent, and a note says so.

`of_record` has what a database keeps: series that were asked for, and verdicts without their times. A trial
that was run again with everything recorded has its packets, too: `crossing` says what became of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fecbench.results.store.records import SeriesTable, StoredTrial, TrialRecord, VerdictLog
from fecbench.results.store.stored_series import unpack

Numbers = NDArray[Any]
ARRIVED, LOST, DROPPED, UNDER_WAY, MISSING = range(5)
"""The fate of a packet: the loss model dropped it (LOST), the link did, by its queue or in an outage
(DROPPED), the trial ended before (UNDER_WAY), or it never came, and the record does not fit (MISSING)."""

CONGESTION, REPAIR = "cwnd", "fec"
SERIES = {
    CONGESTION: ("congestion_window_bytes", "bytes_in_flight", "smoothed_rtt_ms"),
    REPAIR: ("repair_sent", "repair_received", "packets_rebuilt"),
}
"""The series of the contract that a course reads, with their columns behind t_s and connection."""
_ENDS: tuple[Literal["server", "client"], ...] = ("server", "client")


@dataclass(frozen=True)
class Crossing:
    """The packets of one direction of a link, in the order in which they were sent: an entry each."""

    link: str
    direction: str
    sent_s: Numbers
    arrived_s: Numbers
    """NaN: never."""
    payload_bytes: Numbers
    """Payload of UDP or TCP."""
    fates: Numbers

    def times(self, fate: int) -> Numbers:
        """Return the times at which packets of this fate were sent."""
        times_s: Numbers = self.sent_s[self.fates == fate]
        return times_s


@dataclass(frozen=True)
class Congestion:
    """The state of a connection's congestion control: a row for each change."""

    endpoint: str
    t_s: Numbers
    window_bytes: Numbers
    in_flight_bytes: Numbers
    smoothed_rtt_ms: Numbers
    """NaN before the first measurement."""


@dataclass(frozen=True)
class Repair:
    """The times at which an endpoint sent repair packets, received some, and rebuilt packets."""

    endpoint: str
    sent_s: Numbers
    received_s: Numbers
    rebuilt_s: Numbers


@dataclass(frozen=True)
class Course:
    """One trial over time."""

    detail: str
    """The trial, in a line."""
    sender: Literal["server", "client"]
    """The endpoint that sent more bytes: the server of a download."""
    completed_s: float | None = None
    """The time at which the client had all; None: it never had, or did not report it."""
    crossings: Sequence[Crossing] = ()
    verdicts: Sequence[VerdictLog] = ()
    """The packets that the loss model dropped, by number among those that reached it; for unknown packets."""
    congestion: Sequence[Congestion] = ()
    repair: Sequence[Repair] = ()
    notes: Sequence[str] = field(default=())
    """A line about each thing that was not recorded, or does not fit."""

    @property
    def direction(self) -> Literal["up", "down"]:
        """The direction of the data."""
        return "down" if self.sender == "server" else "up"

    @property
    def end_s(self) -> float:
        """The last moment of which anything is known."""
        times = [crossing.sent_s for crossing in self.crossings]
        times += [crossing.arrived_s for crossing in self.crossings]
        times += [rows.t_s for rows in self.congestion]
        times += [
            times_s for rows in self.repair for times_s in (rows.sent_s, rows.received_s, rows.rebuilt_s)
        ]
        moments = np.concatenate([*times, [self.completed_s or 0.0]])
        return float(np.nanmax(moments))


def of_record(trial: StoredTrial, series: Iterable[SeriesTable]) -> Course:
    """Return the course of a trial as a database has it. Times of series are those of each endpoint's own
    clock."""
    series = list(series)
    record = trial.record
    congestion, repair = congestion_of(series), repair_of(series)
    lacking = ["packets, and when they were lost"]
    lacking += [] if congestion else ["congestion control over time"]
    lacking += [] if repair else ["repair over time"]
    return Course(
        detail=detail_of(trial),
        sender=sender_of(record),
        completed_s=completed_s(record),
        verdicts=tuple(record.verdicts),
        congestion=congestion,
        repair=repair,
        notes=[f"not recorded of this trial: {'; '.join(lacking)}"],
    )


def detail_of(trial: StoredTrial) -> str:
    """Return the line that says which trial it is."""
    key = trial.record.key
    return (
        f"trial {trial.id} · {key.variant} · {key.workload} · point {key.point} · repetition {key.repetition}"
    )


def sender_of(record: TrialRecord) -> Literal["server", "client"]:
    """Return the endpoint that sent more bytes, by the bytes that the links took in of each direction."""
    bytes_in = {"up": 0, "down": 0}
    for report in record.links.values():
        for direction, counted in report.get("directions", {}).items():
            bytes_in[direction] += counted["bytes_in"] if "bytes_in" in counted else counted["frames_in"]
    return "client" if bytes_in["up"] > bytes_in["down"] else "server"


def completed_s(record: TrialRecord) -> float | None:
    """Return the time at which the client had all that it waited for."""
    name = str(record.task.get("completion", ""))
    return record.metrics.get("client", {}).get(name)


def congestion_of(series: Iterable[SeriesTable], begun_s: dict[str, float] | None = None) -> list[Congestion]:
    """Return the congestion control of each connection, at both ends of the measured pair.

    `begun_s`: the times at which the clocks of series began, by endpoint.
    """
    return [
        Congestion(
            endpoint,
            rows["t_s"],
            rows["congestion_window_bytes"],
            rows["bytes_in_flight"],
            np.where(rows["smoothed_rtt_ms"] > 0, rows["smoothed_rtt_ms"], np.nan),
        )
        for endpoint, rows in _rows(series, CONGESTION, begun_s or {})
    ]


def repair_of(series: Iterable[SeriesTable], begun_s: dict[str, float] | None = None) -> list[Repair]:
    """Return the times of repair packets that were sent and received, and of rebuilt ones, by each end
    that reports them.

    The series counts: each step up is so many events at its time.
    """
    names = SERIES[REPAIR]
    steps_of: dict[str, list[list[Numbers]]] = {}
    for endpoint, rows in _rows(series, REPAIR, begun_s or {}):
        steps = (np.diff(rows[name], prepend=0).astype(np.int64) for name in names)
        steps_of.setdefault(endpoint, []).append([np.repeat(rows["t_s"], step) for step in steps])
    endpoints = [table.endpoint for table in series_named(series, REPAIR)]
    nothing = [[np.empty(0)] * len(names)]
    return [
        Repair(endpoint, *(np.sort(np.concatenate(times)) for times in zip(*parts, strict=True)))
        for endpoint in endpoints
        for parts in [steps_of.get(endpoint, nothing)]
    ]


def series_named(series: Iterable[SeriesTable], name: str) -> list[SeriesTable]:
    """The tables of that name of both ends of the measured pair, the server's first. One with other columns
    is an implementation's own."""
    return [
        table
        for end in _ENDS
        for table in series
        if (table.endpoint, table.name) == (end, name) and is_read(name, table.columns)
    ]


def is_read(name: str, columns: Iterable[str]) -> bool:
    """Whether a course reads a series with these columns."""
    return name in SERIES and {"t_s", "connection", *SERIES[name]} <= set(columns)


def _rows(
    series: Iterable[SeriesTable], name: str, begun_s: dict[str, float]
) -> list[tuple[str, dict[str, Numbers]]]:
    """The columns of a series, for each end and each of its connections."""
    rows_by_endpoint = []
    for table in series_named(series, name):
        columns = {
            column: values.to_numpy()
            for column, values in zip(table.columns, unpack(table.data).columns, strict=True)
        }
        columns["t_s"] = columns["t_s"] + begun_s.get(table.endpoint, 0.0)
        for connection in np.unique(columns["connection"]):
            of_it = columns["connection"] == connection
            rows_by_endpoint.append(
                (table.endpoint, {name: values[of_it] for name, values in columns.items()})
            )
    return rows_by_endpoint


def fates(arrived: NDArray[np.bool_], log: VerdictLog, dropped_by_link: int) -> Numbers:
    """Return the fate of each packet that was sent into a link, in the order of sending.

    `arrived`: whether it came out behind the loss model; `log`: the verdicts of those that reached the model;
    `dropped_by_link`: the number that the link's queue and outages took. A packet that neither took was still
    under way. Between two packets that arrived, those that the model took are put first: nothing tells them
    apart. Where the record does not fit, those that never came are MISSING.
    """
    became = np.full(arrived.size, ARRIVED)
    missing = np.flatnonzero(~arrived)
    if missing.size == log.dropped:
        became[missing] = LOST
        return became
    took = np.unpackbits(np.frombuffer(log.bitmap, np.uint8), bitorder="little")[: log.packets]
    # The numbers taken before the first that passed, between each two, and after the last one.
    of_model = np.bincount(np.cumsum(took == 0)[took == 1], minlength=np.count_nonzero(took == 0) + 1)
    gap = np.cumsum(arrived)[missing]
    of_gap = np.bincount(gap, minlength=np.count_nonzero(arrived) + 1)
    if of_model.size != of_gap.size or (of_model > of_gap).any():
        became[missing] = MISSING
        return became
    place = np.arange(missing.size) - (np.cumsum(of_gap) - of_gap)[gap]
    became[missing] = np.where(place < of_model[gap], LOST, UNDER_WAY)
    others = missing[place >= of_model[gap]]
    became[others[:dropped_by_link]] = DROPPED
    return became
