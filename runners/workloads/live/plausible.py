"""Whether what both ends noted of a broadcast is possible: beside the links, and the other end.

- No frame is handed over before it is due; the frames of a track have an order, and none is left out.
- Nothing arrives that was not sent, or before its link can have carried it.
- The frames of a stream arrive in their order. A group that is cut has lost its last frames, no other.
- A datagram is lost in a packet that was dropped, or its sender says that its stack has discarded it.
"""

from collections.abc import Iterator

import numpy as np

from fecbench.runners.tasks.outcome import Outcome
from fecbench.runners.tasks.packet_sizes import DATAGRAM_BYTES
from fecbench.runners.tasks.task import Task
from fecbench.runners.workloads.live.noted import Broadcast, Noted
from fecbench.runners.workloads.timed import Integers, direction_of, ends, too_early

LEAST_PART_BYTES = 500
"""Parts of a frame are as few as can be, and as long as each other: of several, each fills most of half a
packet, and packets have 1200 bytes or more."""


def problems(task: Task, outcome: Outcome, broadcast: Broadcast) -> Iterator[str]:
    """Yield what is impossible in this broadcast, a sentence each."""
    sender, receiver = ends(task.pairs[0])
    for problem in _of_sender(broadcast):
        yield f"{sender}: {problem}"
    for problem in (
        *_of_receiver(broadcast),
        *(_too_early(task, broadcast) if task.links else ()),
        *(_lost_without_loss(task, outcome, broadcast) if task.links else ()),
    ):
        yield f"{receiver}: {problem}"


def _of_sender(broadcast: Broadcast) -> Iterator[str]:
    sent, timetable = broadcast.sent, broadcast.timetable
    if (early := np.flatnonzero(sent.at_s < timetable.due_s[sent.number] - 1e-6)).size:
        row = early[0]
        early_ms = 1e3 * (timetable.due_s[sent.number[row]] - sent.at_s[row])
        yield f"{timetable.place(sent.number[row])} was sent {early_ms:.3f} ms before it was due"
    for track in range(len(timetable.tracks)):
        yield from _in_order(broadcast, sent, _of_track(broadcast, sent, track), "was sent")
    if len(sent.number) < timetable.frames:
        yield f"{len(sent.number)} frames were sent of {timetable.frames}: none may be left out"


def _of_receiver(broadcast: Broadcast) -> Iterator[str]:
    timetable = broadcast.timetable
    has_arrived = np.isfinite(broadcast.arrived_s)
    for track, delivery in enumerate(timetable.deliveries):
        if delivery != "group":
            continue
        rows = _of_track(broadcast, broadcast.arrived, track)
        groups = timetable.group[broadcast.arrived.number[rows]]
        yield from _in_order(broadcast, broadcast.arrived, rows[np.argsort(groups, kind="stable")], "arrived")
        place = timetable.of_track(track)
        group, here = timetable.group[place], has_arrived[place]
        back = np.flatnonzero((np.diff(group) == 0) & ~here[:-1] & here[1:])
        if back.size:
            yield (
                f"{timetable.place(place.start + back[0] + 1)} arrived, and the one before it in its group"
                " never did: a stream has an order"
            )


def _of_track(broadcast: Broadcast, noted: Noted, track: int) -> Integers:
    """Return the rows of a track."""
    first = broadcast.timetable.first
    return np.flatnonzero((noted.number >= first[track]) & (noted.number < first[track + 1]))


def _in_order(broadcast: Broadcast, noted: Noted, rows: Integers, did: str) -> Iterator[str]:
    if (back := np.flatnonzero(np.diff(noted.number[rows]) < 0)).size:
        place = broadcast.timetable.place(noted.number[rows[back[0] + 1]])
        yield f"{place} {did} after a later one of its stream: a stream has an order"


def _too_early(task: Task, broadcast: Broadcast) -> Iterator[str]:
    """Yield a frame that arrived although it was not sent, or sooner than any link can carry it."""
    sent, arrived, timetable = broadcast.sent, broadcast.arrived, broadcast.timetable
    sent_s = np.full(timetable.frames, np.nan)
    sent_s[sent.number] = sent.at_s
    takes_s = arrived.at_s - sent_s[arrived.number]
    if (never := np.flatnonzero(np.isnan(takes_s))).size:
        yield f"{timetable.place(arrived.number[never[0]])} arrived, but was not sent"
    elif (early := too_early(task, takes_s, timetable.sizes[arrived.number])) is not None:
        row, least_ms = early
        yield (
            f"{timetable.place(arrived.number[row])} arrived {1e3 * takes_s[row]:.3f} ms after it was sent:"
            f" the links carry it in {least_ms:.3f} ms at the soonest"
        )


def _lost_without_loss(task: Task, outcome: Outcome, broadcast: Broadcast) -> Iterator[str]:
    """Yield frames in datagrams that never came although neither a link nor an endpoint says that it lost
    them."""
    timetable, direction = broadcast.timetable, direction_of(task)
    tracks = [track for track, of in enumerate(timetable.deliveries) if of in ("datagram", "parts")]
    if not tracks:
        return
    places = [timetable.of_track(track) for track in tracks]
    lost = sum(int(np.count_nonzero(~np.isfinite(broadcast.arrived_s[place]))) for place in places)
    smallest = min(int(timetable.sizes[place].min()) for place in places)
    if "parts" in timetable.deliveries:
        smallest = min(smallest, LEAST_PART_BYTES)
    reports = [link.directions[direction] for link in outcome.links.values()]
    packets = sum(directions[direction].counters.dropped for directions in outcome.droppers.values())
    packets += sum(report.lost + report.in_flight for report in reports)
    sender, _ = ends(task.pairs[0])
    unsent = (outcome.endpoints[sender].metrics or {}).get("datagrams_unsent", 0)
    if lost > max(1, DATAGRAM_BYTES // smallest) * packets + max(0, unsent):
        yield (
            f"{lost} frames in datagrams never came, but {packets} packets were lost on their way, and"
            f" {unsent:g} datagrams were not sent"
        )
