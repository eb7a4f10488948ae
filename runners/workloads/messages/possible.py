"""Whether what both ends noted of messages is possible: beside the links, the other end, and the delivery.

- No part is handed over before its message is due, and messages are handed over in their order, none left
  out; with a deadline, none is after it.
- Nothing arrives that was not sent, before its link can have carried it, or in another order than its stream
  has.
- Over streams without a deadline, all arrives. A datagram is lost in a packet that was dropped, or an
  endpoint says that its stack has discarded it.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fecbench.runners.tasks.outcome import Outcome
from fecbench.runners.tasks.packets import UDP_HEADER_BYTES, datagram_bytes, header_bytes
from fecbench.runners.tasks.task import Task
from fecbench.runners.workloads.messages.noted import WHOLE, Messages, Parts
from fecbench.runners.workloads.timed import ends
from fecbench.topologies.link import Direction
from fecbench.topologies.rate import in_series, together

HEADER_OF_PART_BYTES = 6
"""Bytes before a part's content in a DATAGRAM frame: the numbers of message and part."""
DEADLINE_SLACK_S = 0.001
"""Time between reading the clock and recording the time."""


def problems(task: Task, outcome: Outcome, messages: Messages) -> Iterator[str]:
    """Yield what is impossible in these messages, a sentence each."""
    sender, receiver = ends(task.pairs[0])
    for problem in _of_sender(task, messages):
        yield f"{sender}: {problem}"
    for problem in (
        *_of_receiver(messages),
        *(_too_early(task, messages) if task.links else ()),
        *_not_all(messages),
        *(_lost_without_loss(task, outcome, messages) if task.links else ()),
    ):
        yield f"{receiver}: {problem}"


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


def _numbers(messages: Messages, parts: Parts) -> "np.typing.NDArray[np.int64]":
    return messages.timetable.first_part[parts.message] + parts.part


def _of_sender(task: Task, messages: Messages) -> Iterator[str]:
    sent, timetable = messages.sent, messages.timetable
    if (early := np.flatnonzero(sent.at_s < timetable.due_s[sent.message] - 1e-6)).size:
        row = early[0]
        early_ms = 1e3 * (timetable.due_s[sent.message[row]] - sent.at_s[row])
        yield f"{_part(sent, row)} was sent {early_ms:.3f} ms before it was due"
    if (back := np.flatnonzero(np.diff(sent.at_s) < 0)).size:
        yield f"{_part(sent, back[0] + 1)} was sent before the part that is noted before it"
    numbers = _numbers(messages, sent)
    if (back := np.flatnonzero(np.diff(numbers) < 0)).size:
        yield f"{_part(sent, back[0] + 1)} was sent after a later one: messages have an order"
    elif messages.delivery != "deadline" and len(numbers) < timetable.first_part[-1]:
        yield f"{len(numbers)} parts were sent of {timetable.first_part[-1]}: none may be left out"
    if messages.delivery == "deadline":
        deadline_s = task.pairs[0].workload["deadline_ms"] / 1e3 + DEADLINE_SLACK_S
        if (late := np.flatnonzero(sent.at_s > timetable.due_s[sent.message] + deadline_s)).size:
            yield f"{_part(sent, late[0])} was sent after its deadline"


def _of_receiver(messages: Messages) -> Iterator[str]:
    arrived = messages.arrived
    if (back := np.flatnonzero(np.diff(arrived.at_s) < 0)).size:
        yield f"{_part(arrived, back[0] + 1)} arrived before the part that is noted before it"
    if messages.delivery == "datagram":
        return
    order = np.argsort(arrived.message, kind="stable") if messages.delivery != "reliable" else slice(None)
    numbers = _numbers(messages, arrived)[order]
    if (back := np.flatnonzero(np.diff(numbers) < 0)).size:
        row = np.arange(len(numbers))[order][back[0] + 1]
        yield f"{_part(arrived, row)} became whole after a later one of its stream: a stream has an order"


def _too_early(task: Task, messages: Messages) -> Iterator[str]:
    """Yield parts that arrived although they were not sent, or sooner than any link can carry them."""
    sent, arrived, timetable = messages.sent, messages.arrived, messages.timetable
    sent_at_s = np.full(timetable.first_part[-1], np.nan)
    sent_at_s[_numbers(messages, sent)] = sent.at_s
    takes_s = arrived.at_s - sent_at_s[_numbers(messages, arrived)]
    if (never := np.flatnonzero(np.isnan(takes_s))).size:
        yield f"{_part(arrived, never[0])} arrived, but was not sent"
        return
    if (early := too_early(task, takes_s, arrived.bytes)) is not None:
        row, least_ms = early
        yield (
            f"{_part(arrived, row)} arrived {1e3 * takes_s[row]:.3f} ms after it was sent:"
            f" the links carry it in {least_ms:.3f} ms at the soonest"
        )


def too_early(task: Task, takes_s: NDArray[np.float64], sizes: NDArray[np.int64]) -> tuple[int, float] | None:
    """Return the first of these parts of the smallest size that took less time than the links need, with the
    least time in ms; None: all took as long."""
    links = [link.settings for link in task.links.values()]
    directions = [link.up if direction_of(task) == "up" else link.down for link in links]
    hops, rates = [direction.least_owd_ms for direction in directions], [way.rate for way in directions]
    # A relay's links are one behind the other, those of paths side by side.
    owd_s = (sum(hops) if task.has_relay else min(hops)) / 1e3
    rate = in_series(rates) if task.has_relay else together(rates)

    def is_early(size_bytes: float, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return which of these rows arrived sooner than so many bytes can."""
        least_s = owd_s + rate.least_time_s(size_bytes)
        return takes_s[rows] < task.validity.least_share * least_s - 1e-6

    # On links that change, the least time is long to find. Few arrived sooner than the largest part can.
    rows = np.arange(len(takes_s))
    doubtful = rows[is_early(float(sizes.max(initial=0)), rows)]
    for size in np.unique(sizes[doubtful]):
        of_size = doubtful[sizes[doubtful] == size]
        if (early := of_size[is_early(float(size), of_size)]).size:
            return int(early[0]), 1e3 * (owd_s + rate.least_time_s(float(size)))
    return None


def _not_all(messages: Messages) -> Iterator[str]:
    arrived, parts = len(messages.arrived.message), messages.timetable.first_part[-1]
    if messages.delivery in WHOLE and arrived < parts:
        yield f"{arrived} parts arrived of {parts}: with delivery {messages.delivery} all of them must"


def _lost_without_loss(task: Task, outcome: Outcome, messages: Messages) -> Iterator[str]:
    if messages.delivery != "datagram":
        return
    direction, (sender, receiver) = direction_of(task), ends(task.pairs[0])
    reports = [link.directions[direction] for link in outcome.links.values()]
    dropped = sum(directions[direction].counters.dropped for directions in outcome.droppers.values())
    packets = dropped + sum(report.lost + report.in_flight for report in reports)
    smallest = int(messages.timetable.bytes_of(messages.sent.message, messages.sent.part).min())
    in_one = max(1, datagram_bytes(task.family) // (smallest + HEADER_OF_PART_BYTES))
    kept_back = [
        (sender, "datagrams_dropped"),
        (sender, "datagrams_unsent"),
        (receiver, "datagrams_overflowed"),
    ]
    discarded = sum((outcome.endpoints[end].metrics or {}).get(name, 0) for end, name in kept_back)
    lost = len(messages.sent.message) - len(messages.arrived.message)
    unsent = (outcome.endpoints[sender].metrics or {}).get("datagrams_unsent", 0)
    if not 0 <= unsent <= lost:
        yield f"{lost} parts never came, but datagrams_unsent = {unsent:g} of the {sender}"
    if lost > in_one * packets + discarded:
        yield (
            f"{lost} parts never came, but {packets} packets were lost on their way, each with at most"
            f" {in_one} parts, and {discarded:g} parts were discarded or not sent by the endpoints"
        )


def _part(parts: Parts, row: int) -> str:
    return f"message {parts.message[row]}, part {parts.part[row]}"
