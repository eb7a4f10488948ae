"""Measurements of the messages of a trial, computed from the records of both ends: one place for all of them
(quic-impls/contract/messages.md).

`read` takes the two files, in which an endpoint may have written anything, and refuses rows that contradict
the timetable. `measure` computes the metrics. All latencies count from the time at which a message was due,
not from the time at which its sender handed it over. A message is *whole* when its last part has arrived.

The reader of Michel's thesis (2018, §5.1.5) reads the first message as soon as the first bytes of the fourth
can have arrived, and reads on at the rate of the messages. So it reads each message at its due time, plus the
least latency of any message's first bytes, plus three intervals between messages. A message that is not whole
by then is a re-buffering of one interval, even if it arrives later (§5.1.6.1): the reader's clock does not
wait for it. Over streams the reader blocks until the message is whole, and gets all its bytes. Without
streams it goes on when bytes of a later message arrive, and gets the bytes of the message that are there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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
    ends,
    latencies,
    table,
    times,
    whole,
)

if TYPE_CHECKING:
    import pyarrow as pa

SERIES = "messages"
"""The series that both ends always record: the harness computes all metrics from it."""
WHOLE = ("stream", "reliable")
"""Deliveries with which all bytes arrive, however late."""
SENT_COLUMNS = ("t_s", "connection", "message", "part", "due_s", "sent_s", "bytes")
ARRIVED_COLUMNS = ("t_s", "connection", "message", "part", "arrived_s", "bytes")
BUFFER_MESSAGES, LOW_BUFFER_MESSAGES = 4, 2
"""The desynchronization buffer of §5.1.5, and that of §5.7."""
SENT_LATE_S = 0.005
"""A message whose last part is handed over later than this after its time was not sent in time."""
FREEZE_FRAMES = 30
"""W3C, webrtc-stats: a frame's duration is held against the mean of the last 30."""


@dataclass(frozen=True)
class Timetable:
    """The messages that a sender has to send."""

    due_s: Floats
    """Time at which each message is due, since the sender began."""
    sizes: Integers
    part_bytes: int

    @classmethod
    def of(cls, pair: PairTask) -> Timetable:
        """Return the timetable of a pair's workload."""
        table = np.array(pair.workload["timetable"], dtype=np.int64).reshape(-1, 2)
        return cls(table[:, 0] / 1e6, table[:, 1], int(pair.workload["part_bytes"]))

    @cached_property
    def parts(self) -> Integers:
        """Number of parts of each message."""
        return -(-self.sizes // self.part_bytes)

    @cached_property
    def first_part(self) -> Integers:
        """Number of the first part of each message, counted over all messages; the last entry is the
        total."""
        return np.concatenate(([0], np.cumsum(self.parts)))

    @property
    def messages(self) -> int:
        return len(self.sizes)

    @property
    def interval_s(self) -> float:
        """The mean time between messages; 0 of a single one."""
        return float(self.due_s[-1] - self.due_s[0]) / max(1, self.messages - 1)

    def bytes_of(self, message: Integers, part: Integers) -> Integers:
        """Return the right sizes of these parts."""
        size: Integers = np.minimum(self.part_bytes, self.sizes[message] - part * self.part_bytes)
        return size


@dataclass(frozen=True)
class Parts:
    """Records of one end in the order in which it wrote them: a row for each part."""

    message: Integers
    part: Integers
    bytes: Integers
    at_s: Floats
    """Time at which the part was handed over, or became whole: seconds since the sender began."""


@dataclass(frozen=True)
class Messages:
    """The messages of a trial, sent and received."""

    timetable: Timetable
    delivery: str
    sent: Parts
    arrived: Parts

    @cached_property
    def handed_over_s(self) -> Floats:
        """Time at which the last part of each message was handed over; −∞ for a message without any."""
        at_s = np.full(self.timetable.messages, -math.inf)
        np.maximum.at(at_s, self.sent.message, self.sent.at_s)
        return at_s

    @cached_property
    def first_s(self) -> Floats:
        """Time at which the first part of each message arrived; ∞ for a message without any."""
        at_s = np.full(self.timetable.messages, math.inf)
        np.minimum.at(at_s, self.arrived.message, self.arrived.at_s)
        return at_s

    @cached_property
    def arrived_parts(self) -> Integers:
        """Number of parts of each message that arrived."""
        return np.bincount(self.arrived.message, minlength=self.timetable.messages)

    @cached_property
    def whole_s(self) -> Floats:
        """Time at which each message was whole; ∞ for a message that never was."""
        last_s = np.full(self.timetable.messages, -math.inf)
        np.maximum.at(last_s, self.arrived.message, self.arrived.at_s)
        return np.where(self.arrived_parts == self.timetable.parts, last_s, math.inf)

    @property
    def latency_s(self) -> Floats:
        """Time from when each message was due until it was whole; ∞ for a message that never was."""
        return self.whole_s - self.timetable.due_s


def read(task: Task, outcome: Outcome) -> Messages:
    """Return the messages that both ends recorded. Raises SeriesError with the end and the first impossible
    row."""
    pair = task.pairs[0]
    sender, receiver = ends(pair)
    timetable = Timetable.of(pair)
    noted = table(SERIES, sender, outcome, int(timetable.first_part[-1]), SENT_COLUMNS)
    due_s = times(SERIES, sender, noted, "due_s") - ahead_s(sender, outcome)
    message, part, size = _rows(sender, noted, timetable)
    began_s = float(due_s[0] - timetable.due_s[message[0]]) if len(due_s) else 0.0
    if (wrong := np.flatnonzero(np.abs(due_s - began_s - timetable.due_s[message]) > CLOCK_S)).size:
        raise _problem(
            sender,
            message[wrong[0]],
            part[wrong[0]],
            f"due_s = {due_s[wrong[0]]:.9f}: is not by the timetable",
        )
    sent = Parts(
        message, part, size, times(SERIES, sender, noted, "sent_s") - ahead_s(sender, outcome) - began_s
    )
    noted = table(SERIES, receiver, outcome, int(timetable.first_part[-1]), ARRIVED_COLUMNS)
    message, part, size = _rows(receiver, noted, timetable)
    arrived = Parts(
        message,
        part,
        size,
        times(SERIES, receiver, noted, "arrived_s") - ahead_s(receiver, outcome) - began_s,
    )
    return Messages(timetable, str(pair.workload["delivery"]), sent, arrived)


def _rows(end: Role, table: pa.Table, timetable: Timetable) -> tuple[Integers, Integers, Integers]:
    """Return the message, the part and the bytes of each row: each part is in the timetable, and occurs
    once."""
    message = whole(SERIES, end, table, "message", timetable.messages - 1)
    part = whole(SERIES, end, table, "part", int(timetable.parts.max()) - 1)
    size = whole(SERIES, end, table, "bytes", timetable.part_bytes)
    if (wrong := np.flatnonzero(part >= timetable.parts[message])).size:
        row = wrong[0]
        most = timetable.parts[message[row]]
        raise SeriesError(
            f"{end}: series {SERIES}: message {message[row]} has {most} parts, and part {part[row]} is noted"
        )
    if (wrong := np.flatnonzero(size != timetable.bytes_of(message, part))).size:
        row = wrong[0]
        right = timetable.bytes_of(message[row : row + 1], part[row : row + 1])[0]
        raise _problem(end, message[row], part[row], f"bytes = {size[row]}: must be {right}")
    number = timetable.first_part[message] + part
    distinct, counts = np.unique(number, return_counts=True)
    if len(distinct) < len(number):
        row = int(np.flatnonzero(number == distinct[np.argmax(counts > 1)])[1])
        raise _problem(end, message[row], part[row], "is noted twice")
    return message, part, size


def _problem(end: Role, message: int, part: int, problem: str) -> SeriesError:
    return SeriesError(f"{end}: series {SERIES}: message {message}, part {part}: {problem}")


def measure(messages: Messages, playout_ms: Sequence[float], sent_bytes: int | None) -> dict[str, float]:
    """Return every metric of messages, by its name.

    `sent_bytes` is everything that the sender sent on the wire, as UDP payload; None: unknown. A percentile
    that falls on a message that was never whole is omitted: it is infinite, and comparisons treat it so
    (results/analysis/outcomes.py).
    """
    timetable, latency_s = messages.timetable, messages.latency_s
    metrics = dict(latencies(latency_s))
    for playout in playout_ms:
        metrics[f"on_time_ratio_{playout:g}ms"] = float(np.mean(latency_s <= playout / 1e3))
    for buffer, of_buffer in ((BUFFER_MESSAGES, ""), (LOW_BUFFER_MESSAGES, f"_{LOW_BUFFER_MESSAGES}")):
        read_s = _read_s(messages, buffer)
        late = int(np.count_nonzero(messages.whole_s > read_s + CLOCK_S))
        metrics[f"rebuffering{of_buffer}_s"] = late * timetable.interval_s
        metrics[f"received{of_buffer}_bytes"] = float(_received_bytes(messages, buffer, read_s))
    whole = np.isfinite(messages.whole_s)
    metrics["messages_lost"] = float(np.count_nonzero(~whole))
    metrics["messages_partial"] = float(np.count_nonzero(~whole & (messages.arrived_parts > 0)))
    metrics["messages_late"] = float(
        np.count_nonzero(whole & (messages.whole_s > _read_s(messages, BUFFER_MESSAGES) + CLOCK_S))
    )
    metrics["freezes"], metrics["freeze_s"] = _freezes(messages)
    lag_s = messages.handed_over_s - timetable.due_s
    metrics["messages_sent_late"] = float(np.count_nonzero(lag_s > SENT_LATE_S))
    metrics["send_lag_max_ms"] = 1e3 * max(0.0, float(lag_s.max()))
    if sent_bytes is not None:
        metrics["overhead"] = sent_bytes / int(timetable.sizes.sum())
    return metrics


def _read_s(messages: Messages, buffer: int) -> Floats:
    """Return when the reader with a buffer of so many messages reads each message."""
    timetable = messages.timetable
    least_s = float(np.min(messages.first_s - timetable.due_s))
    waits_s = (buffer - 1) * timetable.interval_s
    # Nothing has arrived at all: then it reads nothing, whenever that is.
    return timetable.due_s + waits_s + (least_s if math.isfinite(least_s) else 0.0)


def _received_bytes(messages: Messages, buffer: int, read_s: Floats) -> int:
    """Return the bytes that the reader gets, including those of messages that are not whole."""
    arrived = messages.arrived
    if messages.delivery in WHOLE:
        return int(arrived.bytes.sum())
    # It waits for bytes of the last message that its buffer takes, or of a later one; behind the last one for
    # whatever comes.
    later_s = np.minimum.accumulate(messages.first_s[::-1])[::-1]
    threshold_s = np.concatenate((later_s[buffer - 1 :], np.full(buffer - 1, math.inf)))
    goes_on_s = np.maximum(read_s, threshold_s[: len(read_s)])
    return int(arrived.bytes[arrived.at_s <= goes_on_s[arrived.message] + CLOCK_S].sum())


def _freezes(messages: Messages) -> tuple[float, float]:
    """Return how often and for how long the picture froze, as W3C's webrtc-stats counts it; a message is a
    frame.

    The player shows a frame when the thesis' reader would read it, or as soon as it is whole, unless it has
    shown a later one. A frame was frozen if the next one follows only after max(3 · mean, mean + 150 ms). The
    mean is that of the durations of the 30 frames before it; for the first frame it is the mean time between
    messages. At 30 Hz the bound is 183 ms: a single lost message is not a freeze.

    A viewer who sees nothing is not better off: the time before the first frame counts from when the first
    message should have been shown. The last frame stands until the end, one mean interval after the last
    message should have been shown. So a stream that dies freezes until the end, and a stream of which nothing
    arrives freezes all the time.
    """
    interval_s, read_s = messages.timetable.interval_s, _read_s(messages, BUFFER_MESSAGES)
    whole = np.isfinite(messages.whole_s)
    shown_s = np.maximum(read_s, messages.whole_s)[whole]
    # From behind: a frame is left out that a later one is shown before.
    shown_s = shown_s[shown_s <= np.minimum.accumulate(shown_s[::-1])[::-1]]
    changes_s = np.concatenate((read_s[:1], shown_s))
    if not whole[-1]:
        changes_s = np.append(changes_s, max(read_s[-1] + interval_s, changes_s[-1]))
    wait_s, durations_s = changes_s[1] - changes_s[0], np.diff(changes_s[1:])
    sums_s = np.concatenate(([0.0], np.cumsum(durations_s)))
    place = np.arange(1, len(durations_s))
    first = np.maximum(0, place - FREEZE_FRAMES)
    means_s = np.concatenate(([interval_s] * 2, (sums_s[place] - sums_s[first]) / (place - first)))
    stood_s = np.append(wait_s, durations_s)
    least_s = np.maximum(3 * means_s, means_s + 0.15)[: len(stood_s)]
    frozen_s = stood_s[stood_s >= least_s]
    return float(len(frozen_s)), float(frozen_s.sum())


def rows(messages: Messages) -> pa.Table:
    """Return a row for each message, as a campaign stores the series of a trial: times are seconds since the
    sender began, or −1 if there is none."""
    import pyarrow as pa

    timetable = messages.timetable
    columns: Mapping[str, Floats | Integers] = {
        "t_s": timetable.due_s,
        "connection": np.zeros(timetable.messages, dtype=np.int64),
        "message": np.arange(timetable.messages),
        "size_bytes": timetable.sizes,
        "parts": timetable.parts,
        "parts_arrived": messages.arrived_parts,
        "sent_s": _finite_or_minus_one(messages.handed_over_s),
        "first_s": _finite_or_minus_one(messages.first_s),
        "whole_s": _finite_or_minus_one(messages.whole_s),
    }
    return pa.table(dict(columns))


def _finite_or_minus_one(at_s: Floats) -> Floats:
    return np.where(np.isfinite(at_s), at_s, -1.0)
