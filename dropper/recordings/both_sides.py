"""Losses between two packet captures: what the sender's has, and the receiver's lacks.

A packet is known by its payload, so that addresses may be translated between the two, and clocks may differ.
Datagrams that an offload of one side joined are split as the other side has them. Frames that are cut
(snaplen) are compared up to there.

Refuses captures that have no packet in common, and says why: times, addresses, contents, frames that are
cut, or segmentation offload.
"""

import math
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from fecbench.dropper.recordings.course import Course
from fecbench.dropper.recordings.flow import Flow, at_one_point, by_flow, direction_of, text_of
from fecbench.dropper.recordings.packet import Packet, Seen, packets
from fecbench.dropper.recordings.recording import Recording
from fecbench.errors import BadInput
from fecbench.quantities import counted

_LEAST_CUT_BYTES = 8
"""A packet is not known by a payload of which less is left."""
_TELLING_BYTES, _LEAST_SHARE = 16, 0.1
"""A payload that is shorter may be alike by chance, such as a keep-alive of zeros. By so many of the others,
packets are known behind an address translator."""
_SIZES, _LEAST_SEGMENT_BYTES, _MOST_SEGMENTS = 8, 64, 128
"""Sizes that are tried to split a datagram, and what an offload joins at most."""
_MANY = 10
"""Losses in a row at the beginning that are remarked on."""
_CLOCKS_APART_S = 60.0
_MOST_BYTES = 1500
"""The largest packet of Ethernet. A longer payload that the other side lacks is several packets; a shorter
one may be a probe of the MTU, which was lost."""

Signature = tuple[int, bytes]
"""The length and the payload of a packet, by which both sides know it."""
Timed = tuple[Signature, float]
"""A packet, and when it was seen (s)."""


@dataclass(frozen=True)
class _Side:
    """The packets of one flow, as one side has them."""

    path: Path
    flow: Flow
    packets: list[Packet]
    cut_bytes: int | None = None
    """Bytes of each payload by which packets are compared; None: all."""

    @property
    def longest(self) -> int:
        return max(packet.length for packet in self.packets)


@dataclass(frozen=True)
class _Alignment:
    """The packets of a sender beside those of its receiver."""

    lost: list[bool]
    came_s: list[float]
    """Time (s) at which each packet came; NaN: it was lost."""
    losses: int
    """The losses between the first and the last packet that came."""
    strangers: int
    """Packets that came between these, and were never sent."""


def read(path: Path, received: Path) -> Recording:
    """Return the losses of the flow with most bytes that `path` has of a sender and `received` has, too.

    Raises BadInput, which names the file.
    """
    remarks_of_sides = Seen(), Seen()
    sent, arrivals = (
        {flow: at_one_point(of_flow) for flow, of_flow in by_flow(packets(file, remarks)).items()}
        for file, remarks in zip((path, received), remarks_of_sides, strict=True)
    )
    if not sent:
        raise BadInput(f"{path}: has no packet of TCP or UDP over IP")
    cut_bytes = _cut_bytes([*sent.values(), *arrivals.values()])
    index = _index(arrivals, cut_bytes)
    turned = None
    for flow in sent:
        other = _counterpart(_Side(path, flow, sent[flow], cut_bytes), arrivals, index)
        if other is None:
            continue
        sender, receiver = _cut_alike(_Side(path, flow, sent[flow]), _Side(received, other, arrivals[other]))
        _require_distinct(sender)
        sender_parts, receiver_parts, notes = _split(sender, receiver)
        alignment = _aligned(sender_parts, receiver_parts)
        if alignment is None:
            continue
        if alignment.strangers > alignment.losses:
            turned = turned or flow
            continue
        notes += [note for remarks in remarks_of_sides for note in remarks.notes]
        notes += _remarks(sender, receiver, alignment)
        behind = alignment.lost[::-1].index(False)  # the last packets may be under way
        if behind:
            notes.append(
                f"The last {counted(behind, 'packet')} did not come, and are left out: they may have"
                " been under way when"
                f" {received.name} ended."
            )
        lost = np.array(alignment.lost[: len(alignment.lost) - behind])
        least_rtt_s = _least_s(sender_parts, receiver_parts) + _least_s(
            _seen(arrivals.get(other[::-1], ()), cut_bytes), _seen(sent.get(flow[::-1], ()), cut_bytes)
        )
        course = _course(sender_parts, alignment, lost.size, least_rtt_s)
        return Recording(lost, text_of(flow), direction_of(flow), tuple(notes), course)
    raise BadInput(_nothing_in_common(path, received, sent, arrivals, turned))


def _course(sent: list[Timed], alignment: _Alignment, count: int, least_rtt_s: float) -> Course | None:
    """The course of the first `count` packets; None where a capture has no times."""
    sent_s = np.array([at_s for _, at_s in sent[:count]])
    came_s = np.array(alignment.came_s[:count])
    if np.isnan(sent_s).any() or np.isnan(came_s[~np.array(alignment.lost[:count])]).any():
        return None
    return Course(
        sent_s=sent_s,
        sizes_bytes=np.array([float(length) for (length, _), _ in sent[:count]]),
        came_s=came_s,
        rtt_s=np.full(count, math.nan),
        received=np.empty((0, 2)),
        is_of_acks=False,
        least_rtt_s=least_rtt_s,
    )


def _seen(of_flow: Iterable[Packet], cut_bytes: int | None) -> list[Timed]:
    return [(_signature(packet, cut_bytes), packet.at_s) for packet in of_flow]


def _least_s(sent: list[Timed], came: list[Timed]) -> float:
    """Return the least time (s) from one side to the other, by the clocks of both; NaN: none came.

    The sum of both directions is a round-trip time, whatever the clocks say.
    """
    first = dict(reversed(sent))
    times = [at_s - first[signature] for signature, at_s in came if signature in first]
    return min((time for time in times if not math.isnan(time)), default=math.nan)


def _cut_bytes(flows: Iterable[list[Packet]]) -> int | None:
    """Return the least that frames were cut to, in bytes of a payload by which packets may be known."""
    sizes = (len(_body(packet)) for of_flow in flows for packet in of_flow if packet.is_cut)
    return min((size for size in sizes if size >= _LEAST_CUT_BYTES), default=None)


def _cut_alike(sender: _Side, receiver: _Side) -> tuple[_Side, _Side]:
    """Return both sides with the bytes of a payload that both have. Raises BadInput if these are too few."""
    sizes = [len(_body(packet)) for side in (sender, receiver) for packet in side.packets if packet.is_cut]
    if sizes and min(sizes) < _LEAST_CUT_BYTES:
        raise BadInput(
            f"{sender.path}, {receiver.path}: frames are cut (snaplen) to {min(sizes)} bytes of a payload,"
            " which is too little to know packets by: capture whole frames"
        )
    cut_bytes = min(sizes, default=None)
    return replace(sender, cut_bytes=cut_bytes), replace(receiver, cut_bytes=cut_bytes)


def _body(packet: Packet) -> bytes:
    """Return what an address translator does not change: the payload, and of TCP its header without ports."""
    return packet.payload if packet.is_udp else packet.header[4:] + packet.payload


def _signature(packet: Packet, cut_bytes: int | None) -> Signature:
    return packet.length, _body(packet)[:cut_bytes]


def _index(arrivals: dict[Flow, list[Packet]], cut_bytes: int | None) -> dict[Signature, Flow]:
    return {_signature(packet, cut_bytes): flow for flow, of_flow in arrivals.items() for packet in of_flow}


def _counterpart(
    sender: _Side, arrivals: dict[Flow, list[Packet]], index: dict[Signature, Flow]
) -> Flow | None:
    """The flow of the other side that has most of these packets; by name, if no packet is the same."""
    telling = [packet for packet in sender.packets if len(_body(packet)) >= _TELLING_BYTES]
    hits = Counter(index.get(_signature(packet, sender.cut_bytes)) for packet in telling)
    hits.pop(None, None)
    likest, count = max(hits.items(), key=lambda hit: (hit[1], hit[0] == sender.flow), default=(None, 0))
    if likest is not None and count >= max(2, _LEAST_SHARE * len(telling)):
        return likest
    return sender.flow if sender.flow in arrivals else None


def _require_distinct(side: _Side) -> None:
    """Refuse cut frames that cannot be distinguished. Whole ones that are alike are counted."""
    if side.cut_bytes is None:
        return
    alike = Counter(_signature(packet, side.cut_bytes) for packet in side.packets if packet.is_cut)
    if any(count > 1 for count in alike.values()):
        raise BadInput(
            f"{side.path}: frames are cut (snaplen), and up to there, packets of {text_of(side.flow)} are"
            " alike: capture whole frames"
        )


# Segmentation offloads


def _split(sender: _Side, receiver: _Side) -> tuple[list[Timed], list[Timed], list[str]]:
    """The packets of both sides, with datagrams that one side has joined as the other has them.

    Raises BadInput where they cannot be split.
    """
    sent = [_signature(packet, sender.cut_bytes) for packet in sender.packets]
    arrivals = [_signature(packet, receiver.cut_bytes) for packet in receiver.packets]
    known_sent, known_came = set(sent), set(arrivals)
    split_sent, parted = _parted(sender, receiver, known_came)
    split_came, joined = _parted(receiver, sender, known_sent)
    notes = [
        f"{count} datagrams of {side.path.name} are several packets each, joined by segmentation offload:"
        " they were split."
        for side, count in ((sender, parted), (receiver, joined))
        if count
    ]
    return split_sent, split_came, notes


def _parted(side: _Side, other: _Side, signatures: set[Signature]) -> tuple[list[Timed], int]:
    """The packets of a side, those that are joined in parts; and how many were joined."""
    lengths = Counter(packet.length for packet in other.packets)
    sizes = [size for size, _ in lengths.most_common(_SIZES) if size]
    longest, parts, joined = other.longest, list[Timed](), 0
    usual = Counter[int]()
    for packet in side.packets:
        signature = _signature(packet, side.cut_bytes)
        if signature in signatures:
            parts.append((signature, packet.at_s))
            continue
        size = _segment_bytes(packet, sizes, signatures, side.cut_bytes)
        is_joined = packet.length > max(longest, _MOST_BYTES)
        if size is None and is_joined and usual:
            size = usual.most_common(1)[0][0]  # all of its parts were lost
        if size is None and is_joined:
            raise BadInput(
                f"{side.path}: has packets of {text_of(side.flow)} with {packet.length} bytes, and"
                f" {other.path} has none above {longest}: segmentation offload joined them;"
                " capture with it off (ethtool --offload DEVICE gso off tso off gro off)"
            )
        if size is None:
            parts.append((signature, packet.at_s))
        else:
            usual[size] += 1
            joined += 1
            parts += ((part, packet.at_s) for part in _segments(packet, size, side.cut_bytes))
    return parts, joined


def _segment_bytes(
    packet: Packet, sizes: list[int], signatures: set[Signature], cut_bytes: int | None
) -> int | None:
    """The size of the parts of a datagram of which the other side has some; None: it has none."""
    if not packet.is_udp or packet.is_cut:
        return None
    hits = {
        size: sum(part in signatures for part in _segments(packet, size, cut_bytes))
        for size in sizes
        if _LEAST_SEGMENT_BYTES <= size < packet.length <= size * _MOST_SEGMENTS
    }
    best = max(hits, key=lambda size: hits[size], default=0)
    return best if hits.get(best) else None


def _segments(packet: Packet, size: int, cut_bytes: int | None) -> list[Signature]:
    payload = packet.payload
    parts = [payload[at : at + size] for at in range(0, len(payload), size)]
    return [(len(part), part[:cut_bytes]) for part in parts]


# Sent packets that arrived


def _aligned(sent: list[Timed], arrivals: list[Timed]) -> _Alignment | None:
    """Return the packets that came beside those that were sent; None if not one came."""
    unmatched, lost, came_s = defaultdict[Signature, deque[float]](deque), list[bool](), list[float]()
    for signature, at_s in arrivals:
        unmatched[signature].append(at_s)
    for signature, _ in sent:
        times = unmatched.get(signature)
        lost.append(not times)
        came_s.append(times.popleft() if times else math.nan)
    if all(lost):
        return None
    first, last = lost.index(False), len(lost) - 1 - lost[::-1].index(False)
    sent_signatures = {signature for signature, _ in sent}
    known_places = [place for place, (signature, _) in enumerate(arrivals) if signature in sent_signatures]
    between = arrivals[known_places[0] : known_places[-1]]
    strangers = sum(signature not in sent_signatures for signature, _ in between)
    return _Alignment(lost, came_s, sum(lost[first:last]), strangers)


def _remarks(sender: _Side, receiver: _Side, alignment: _Alignment) -> Iterator[str]:
    if sender.flow != receiver.flow:
        yield f"{receiver.path.name} has them as {text_of(receiver.flow)}: addresses are translated between."
    for side in (sender, receiver):
        if fragmented := sum(packet.fragments > 1 for packet in side.packets):
            yield (
                f"{fragmented} datagrams of {side.path.name} are in fragments; a datagram is lost when a"
                " fragment is."
            )
    if sender.cut_bytes is not None:
        yield f"Frames are cut (snaplen): payloads are compared by their first {sender.cut_bytes} bytes."
    if alignment.strangers:
        yield (
            f"{counted(alignment.strangers, 'packet')} came that {sender.path.name} lacks: it is not"
            " complete, and they"
            " are left out."
        )
    begins = alignment.lost.index(False)
    if begins >= _MANY:
        yield (
            f"The first {counted(begins, 'packet', 'is/are')} all lost: did {receiver.path.name} begin later?"
        )
    apart_s = _apart_s(sender, receiver)
    if abs(apart_s) > _CLOCKS_APART_S:
        yield f"The clocks of the captures are {abs(apart_s):.0f} s apart, which changes nothing here."


def _apart_s(sender: _Side, receiver: _Side) -> float:
    """Return the time (s) from a packet at the sender to the same at the receiver; 0 if it is not known."""
    first = {_signature(packet, sender.cut_bytes): packet.at_s for packet in reversed(sender.packets)}
    for packet in receiver.packets:
        at_s = first.get(_signature(packet, receiver.cut_bytes), math.nan)
        if not math.isnan(packet.at_s - at_s):
            return packet.at_s - at_s
    return 0.0


def _nothing_in_common(
    path: Path,
    received: Path,
    sent: dict[Flow, list[Packet]],
    arrivals: dict[Flow, list[Packet]],
    turned: Flow | None,
) -> str:
    """Return the reason why losses cannot be determined."""
    if turned is not None:
        return (
            f"{received}: has packets of {text_of(turned)} that {path} lacks, and no other flow is in both:"
            " is the sender's capture the first one?"
        )
    flow = next((flow for flow in sent if flow in arrivals), next(iter(sent)))
    problem = f"{received}: has none of the packets of {text_of(flow)} in {path}"
    if not arrivals:
        return f"{problem}: it has no packet of TCP or UDP over IP"
    spans = [_span(of_flow for of_flow in flows.values()) for flows in (sent, arrivals)]
    if None not in spans and (spans[0][1] < spans[1][0] or spans[1][1] < spans[0][0]):  # type: ignore[index]
        times = (f"{_clock(begin)} to {_clock(end)}" for begin, end in spans)  # type: ignore[misc]
        return f"{problem}: they are of other times ({', and '.join(times)})"
    if flow in arrivals:
        return f"{problem}: it has other packets of that flow; is something between that encrypts anew?"
    return f"{problem}: neither addresses nor contents are the same; is it the other end of that path?"


def _span(flows: Iterable[list[Packet]]) -> tuple[float, float] | None:
    times = [packet.at_s for of_flow in flows for packet in of_flow if not math.isnan(packet.at_s)]
    return (min(times), max(times)) if times else None


def _clock(at_s: float) -> str:
    try:
        return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return f"{at_s:.0f} s"
