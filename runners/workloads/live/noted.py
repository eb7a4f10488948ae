"""Measurements of a live broadcast, computed from the records of both ends (quic-impls/contract/live.md).

All latencies count from the time at which a frame was due, which is when it was captured, until its last
byte had arrived. A frame of video is *usable* at a playout delay when it and all frames before it in
its group have arrived by then; a frame of audio needs no other. A player with that delay shows each frame at
its time plus the delay, or not at all: each run of frames that it cannot show is a stall.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fecbench.runners.tasks.outcome import Outcome
from fecbench.runners.tasks.series import SeriesError
from fecbench.runners.tasks.task import PairTask, Role, Task
from fecbench.runners.workloads.timed import (
    CLOCK_S,
    Floats,
    Integers,
    ahead_s,
    column,
    ends,
    latencies,
    table,
    times,
    whole,
)

if TYPE_CHECKING:
    import pyarrow as pa

SERIES = "live"
"""The series that both ends always record: the harness computes all metrics from it."""
SENT_COLUMNS = ("t_s", "connection", "track", "frame", "due_s", "sent_s", "bytes")
ARRIVED_COLUMNS = ("t_s", "connection", "track", "frame", "arrived_s", "bytes")
VIDEO = "video"


@dataclass(frozen=True)
class Timetable:
    """The frames of all tracks, one track after the other: an entry for each in every array."""

    tracks: tuple[str, ...]
    deliveries: tuple[str, ...]
    first: Integers
    """Number of the first frame of each track, counted over all; the last entry is the total."""
    due_s: Floats
    sizes: Integers
    group: Integers
    """Number of the group of each frame, counted over all tracks."""

    @classmethod
    def of(cls, pair: PairTask) -> Timetable:
        """Return the timetable of a pair's workload."""
        tracks = pair.workload["tracks"]
        table = np.array([frame for track in tracks for frame in track["frames"]], dtype=np.int64)
        lengths = [len(track["frames"]) for track in tracks]
        return cls(
            tuple(track["name"] for track in tracks),
            tuple(track["delivery"] for track in tracks),
            np.concatenate(([0], np.cumsum(lengths))),
            table[:, 0] / 1e6,
            table[:, 1],
            np.cumsum(table[:, 2]) - 1,
        )

    @property
    def frames(self) -> int:
        return len(self.sizes)

    def of_track(self, number: int) -> slice:
        """Return the frames of a track."""
        return slice(int(self.first[number]), int(self.first[number + 1]))

    def place(self, number: int) -> str:
        """Name a frame, counted over all tracks."""
        track = int(np.searchsorted(self.first, number, side="right")) - 1
        return f"track {self.tracks[track]}, frame {number - self.first[track]}"


@dataclass(frozen=True)
class Noted:
    """Records of one end in the order in which it wrote them: a row for each frame."""

    number: Integers
    """The frame, counted over all tracks."""
    at_s: Floats
    """Time at which it was handed over, or had arrived: seconds since the sender began."""


@dataclass(frozen=True)
class Broadcast:
    """The frames of a trial, sent and received."""

    timetable: Timetable
    sent: Noted
    arrived: Noted
    first_frame_s: float
    """Time from the start of the receiver's connection until its first frame; ∞: none arrived."""

    @cached_property
    def arrived_s(self) -> Floats:
        """Time at which each frame arrived; ∞ for a frame that never did."""
        at_s = np.full(self.timetable.frames, math.inf)
        at_s[self.arrived.number] = self.arrived.at_s
        return at_s

    @property
    def latency_s(self) -> Floats:
        """Time from when each frame was due until it had arrived; ∞ for a frame that never did."""
        return self.arrived_s - self.timetable.due_s

    def usable(self, track: int, playout_s: float) -> np.typing.NDArray[np.bool_]:
        """Return which frames of a track are usable at a playout delay."""
        rows = self.timetable.of_track(track)
        in_time = self.latency_s[rows] <= playout_s
        if self.timetable.tracks[track] != VIDEO:
            return in_time
        # A frame is usable as long as the number of late frames has not grown since its group began.
        group, late = self.timetable.group[rows], np.cumsum(~in_time)
        begins = np.concatenate(([True], np.diff(group) > 0))
        before = np.concatenate(([0], late[:-1]))[begins]
        usable: np.typing.NDArray[np.bool_] = late == before[np.cumsum(begins) - 1]
        return usable


def read(task: Task, outcome: Outcome) -> Broadcast:
    """Return the frames that both ends recorded. Raises SeriesError with the end and the first impossible
    row."""
    pair = task.pairs[0]
    sender, receiver = ends(pair)
    timetable = Timetable.of(pair)
    noted = table(SERIES, sender, outcome, timetable.frames, SENT_COLUMNS)
    number = _numbers(sender, noted, timetable)
    due_s = times(SERIES, sender, noted, "due_s") - ahead_s(sender, outcome)
    began_s = float(due_s[0] - timetable.due_s[number[0]]) if len(due_s) else 0.0
    if (wrong := np.flatnonzero(np.abs(due_s - began_s - timetable.due_s[number]) > CLOCK_S)).size:
        row = wrong[0]
        raise _problem(sender, timetable, number[row], f"due_s = {due_s[row]:.9f}: is not by the timetable")
    sent = Noted(number, times(SERIES, sender, noted, "sent_s") - ahead_s(sender, outcome) - began_s)
    noted = table(SERIES, receiver, outcome, timetable.frames, ARRIVED_COLUMNS)
    number = _numbers(receiver, noted, timetable)
    arrived_s = times(SERIES, receiver, noted, "arrived_s") - ahead_s(receiver, outcome) - began_s
    first_frame_s = float(column(noted, "t_s")[0]) if len(number) else math.inf
    return Broadcast(timetable, sent, Noted(number, arrived_s), first_frame_s)


def _numbers(end: Role, noted: pa.Table, timetable: Timetable) -> Integers:
    """Return the frame of each row, counted over all tracks: each is in the timetable, and occurs once."""
    track = whole(SERIES, end, noted, "track", len(timetable.tracks) - 1)
    frame = whole(SERIES, end, noted, "frame", int(np.diff(timetable.first).max()) - 1)
    if (wrong := np.flatnonzero(frame >= np.diff(timetable.first)[track])).size:
        name = timetable.tracks[track[wrong[0]]]
        raise SeriesError(f"{end}: series {SERIES}: track {name} has no frame {frame[wrong[0]]}")
    number: Integers = timetable.first[track] + frame
    size = column(noted, "bytes")
    if (wrong := np.flatnonzero(size != timetable.sizes[number])).size:
        row = wrong[0]
        right = timetable.sizes[number[row]]
        raise _problem(end, timetable, number[row], f"bytes = {size[row]:g}: must be {right}")
    distinct, counts = np.unique(number, return_counts=True)
    if len(distinct) < len(number):
        raise _problem(end, timetable, int(distinct[np.argmax(counts > 1)]), "is noted twice")
    return number


def _problem(end: Role, timetable: Timetable, number: int, problem: str) -> SeriesError:
    return SeriesError(f"{end}: series {SERIES}: {timetable.place(number)}: {problem}")


def measure(broadcast: Broadcast, playout_ms: Sequence[float], sent_bytes: int | None) -> dict[str, float]:
    """Return every metric of a broadcast, by its name.

    `sent_bytes` is everything that the sender sent on the wire, as UDP payload; None: unknown. A percentile
    that falls on a frame that never arrived is omitted: it is infinite, and comparisons treat it so.
    """
    timetable, lost = broadcast.timetable, ~np.isfinite(broadcast.arrived_s)
    metrics = {
        "frames_lost": float(np.count_nonzero(lost)),
        "groups_cut": float(len(np.unique(timetable.group[lost]))),
    }
    for track, name in enumerate(timetable.tracks):
        latency_s = broadcast.latency_s[timetable.of_track(track)]
        metrics |= {f"{name}_{metric}": value for metric, value in latencies(latency_s)}
        for playout in playout_ms:
            share = float(np.mean(broadcast.usable(track, playout / 1e3)))
            metrics[f"{'' if name == VIDEO else f'{name}_'}on_time_ratio_{playout:g}ms"] = share
    if playout_ms:
        metrics |= dict(_stalls(broadcast, playout_ms[0] / 1e3))
    if math.isfinite(broadcast.first_frame_s):
        metrics["first_frame_s"] = broadcast.first_frame_s
    lag_s = broadcast.sent.at_s - timetable.due_s[broadcast.sent.number]
    metrics["send_lag_max_ms"] = 1e3 * max(0.0, float(lag_s.max(initial=0.0)))
    if sent_bytes is not None:
        metrics["overhead"] = sent_bytes / int(timetable.sizes.sum())
    return metrics


def _stalls(broadcast: Broadcast, playout_s: float) -> Iterator[tuple[str, float]]:
    """Yield how often and for how long the picture of a player with this delay stands still."""
    timetable = broadcast.timetable
    track = timetable.tracks.index(VIDEO)
    usable = broadcast.usable(track, playout_s)
    due_s = timetable.due_s[timetable.of_track(track)]
    interval_s = float(due_s[-1] - due_s[0]) / max(1, len(due_s) - 1)
    yield "stalls", float(np.count_nonzero(np.diff(np.concatenate(([1], usable.astype(np.int8)))) < 0))
    yield "stall_s", interval_s * float(np.count_nonzero(~usable))


def rows(broadcast: Broadcast) -> pa.Table:
    """Return a row for each frame, as a campaign stores the series of a trial: times are seconds since the
    sender began, or −1 if there is none."""
    import pyarrow as pa

    timetable = broadcast.timetable
    lengths = np.diff(timetable.first)
    arrived_s = broadcast.arrived_s
    return pa.table(
        {
            "t_s": timetable.due_s,
            "connection": np.zeros(timetable.frames, dtype=np.int64),
            "track": np.repeat(np.arange(len(lengths)), lengths),
            "frame": np.concatenate([np.arange(length) for length in lengths]),
            "group": timetable.group,
            "size_bytes": timetable.sizes,
            "arrived_s": np.where(np.isfinite(arrived_s), arrived_s, -1.0),
        }
    )
