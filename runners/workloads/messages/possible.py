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

from fecbench.runners.tasks.outcome import Outcome
from fecbench.runners.tasks.packet_sizes import datagram_bytes
from fecbench.runners.tasks.task import Task
from fecbench.runners.workloads.messages.noted import WHOLE, Messages, Parts
from fecbench.runners.workloads.timed import direction_of, ends, too_early

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
