"""The path of a TCP connection in one capture, wherever it was made: at the sender, the receiver, or between.

- **Losses**: a segment is lost that is sent again. At the sender the same bytes are seen twice. Behind
  the loss there is a hole in the sequence, which is filled later. A hole that is filled by a segment with
  an older timestamp, or within a quarter of the least round-trip time, was a segment out of order. Bytes
  that the receiver says it had (DSACK, RFC 2883) were sent again for nothing.
- **Round-trip time**: the least from data to its ACK, and the least from an ACK to the data that echoes its
  timestamp (RFC 7323), or of the handshake. Their sum is the round trip, wherever the capture was made.
- **Rate, queue**: at the sender as of a log of the sender (`packets`). At the receiver the fastest that data
  came in two round-trip times, which is a lower bound.

Refuses captures without such a connection.
"""

import bisect
import math
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path as File
from typing import NamedTuple

import numpy as np

from fecbench.dropper.recordings import Packet, Recording
from fecbench.dropper.recordings.course import Course
from fecbench.dropper.recordings.flow import Flow, at_one_point, text_of
from fecbench.errors import BadInput
from fecbench.runners.paths import packets
from fecbench.runners.paths.path import Estimate, Path

FEWEST = 20
"""Segments with data."""
_SYN, _ACK = 0x02, 0x10
_MODULUS = 1 << 32
_HEADERS_BYTES = 52
_EARLY_S = 0.003
"""A hole that is filled so soon was no loss, if nothing else is known."""
_MOST_SEGMENTS = 10_000_000


class _Segment(NamedTuple):
    at_s: float
    number: int
    """Number of its first byte, from the first of the connection on."""
    length: int
    acknowledged: int
    flags: int
    stamp: int | None
    echo: int | None
    blocks: tuple[tuple[int, int], ...]
    """Ranges of SACK."""


@dataclass
class _Sent:
    """A packet of data as it was sent first, or again."""

    at_s: float
    number: int
    length: int
    lost: bool = False


def path(file: File, flows: dict[Flow, list[Packet]], notes: list[str]) -> Path:
    """Return the path of the TCP connection with most data. Raises BadInput, which names the file."""
    of_tcp = {
        flow: at_one_point(of_flow)
        for flow, of_flow in flows.items()
        if not of_flow[0].is_udp and any(packet.length for packet in of_flow)
    }
    if not of_tcp:
        raise BadInput(f"{file}: has no data of TCP")
    flow, there = max(of_tcp.items(), key=lambda item: sum(packet.length for packet in item[1]))
    back = at_one_point(flows.get(flow[::-1], []))
    data = list(_segments(there, _first(there, back)))
    acks = list(_segments(back, _first(back, there)))
    carrying = [segment for segment in data if segment.length]
    if any(math.isnan(segment.at_s) for segment in data):
        raise BadInput(f"{file}: its packets have no times")
    largest = _largest_bytes(there, carrying)
    parts = list(_split(carrying, largest))
    if len(parts) < FEWEST:
        raise BadInput(
            f"{file}: {text_of(flow)} has {len(parts)} segments with data: must have {FEWEST} or more"
        )
    rtt_s, half_s = _rtt_s(data, acks)
    is_sender = half_s is not None and rtt_s is not None and half_s > rtt_s / 2
    sent, spurious = _transmissions(parts, acks, rtt_s)
    lost = np.array([packet.lost for packet in sent])
    recording = Recording(lost, text_of(flow), course=_course(sent, acks) if is_sender else None)
    found = packets.path_of(recording, "capture of TCP")
    rate = found.bandwidth_mbps if is_sender else _fastest_mbps(parts, rtt_s)
    remarks = [*notes]
    if spurious:
        remarks.append(f"{spurious} segments were sent again for nothing, or came out of order: no losses.")
    if not acks:
        remarks.append("It has no packet of the other direction.")
    if others := len(of_tcp.keys() - {flow, flow[::-1]}):
        remarks.append(f"{others} other flows of TCP with data are left out.")
    if not is_sender:
        remarks.append("A full queue's losses cannot be told apart here: TCP fills queues.")
    return replace(
        found,
        rtt_ms=None if rtt_s is None else _rtt_ms(rtt_s, rate),
        bandwidth_mbps=rate,
        lasts_s=carrying[-1].at_s - carrying[0].at_s,
        notes=tuple(remarks),
    )


def _rtt_ms(rtt_s: float, rate: Estimate | None) -> Estimate:
    """The round-trip time without that in which a packet is sent each way."""
    sending_s = 0.0 if rate is None else 2 * 1500 * 8 / (1e6 * rate.value)
    return Estimate(1e3 * rtt_s, 1e3 * max(rtt_s - sending_s, rtt_s / 2), 1e3 * rtt_s)


# What is read


def _first(seen: list[Packet], others: list[Packet]) -> tuple[int, int]:
    """The first sequence numbers of a flow, and of the flow that it acknowledges."""
    numbers = [_words(packet)[0] for packet in seen[:1]] or [_words(packet)[1] for packet in others[:1]]
    acknowledged = [_words(packet)[0] for packet in others[:1]] or [_words(packet)[1] for packet in seen[:1]]
    return (numbers or [0])[0], (acknowledged or [0])[0]


def _words(packet: Packet) -> tuple[int, int]:
    """The sequence number and the acknowledged one."""
    number, acknowledged = struct.unpack_from(">II", packet.header, 4)
    return number, acknowledged


def _segments(seen: list[Packet], first: tuple[int, int]) -> Iterator[_Segment]:
    """The segments of a flow, with numbers that do not wrap."""
    near = [0, 0]
    for packet in seen:
        words = _words(packet)
        unwrapped = []
        for place in (0, 1):
            offset = (words[place] - first[place] - near[place] + _MODULUS // 2) % _MODULUS - _MODULUS // 2
            unwrapped.append(near[place] + offset)
        flags = packet.header[13]
        near[0] = max(near[0], unwrapped[0])
        if flags & _ACK:
            near[1] = max(near[1], unwrapped[1])
        stamp, echo, blocks = _options(packet.header, words[1], unwrapped[1])
        yield _Segment(
            packet.at_s, unwrapped[0], packet.length, unwrapped[1], flags, stamp, echo, tuple(blocks)
        )


def _options(
    header: bytes, base: int, unwrapped: int
) -> tuple[int | None, int | None, list[tuple[int, int]]]:
    """The timestamp, its echo and the ranges of SACK. The header lacks the two bytes of its checksum."""
    stamp = echo = None
    blocks: list[tuple[int, int]] = []
    at = 18
    while at < len(header):
        kind = header[at]
        if kind == 0:
            break
        if kind == 1:
            at += 1
            continue
        size = header[at + 1] if at + 1 < len(header) else 0
        if size < 2 or at + size > len(header):
            break
        body = header[at + 2 : at + size]
        if kind == 8 and len(body) == 8:
            stamp, echo = struct.unpack(">II", body)
        elif kind == 5 and len(body) % 8 == 0:
            words = struct.unpack(f">{len(body) // 4}I", body)
            ends = [unwrapped + (word - base + _MODULUS // 2) % _MODULUS - _MODULUS // 2 for word in words]
            blocks = list(zip(ends[::2], ends[1::2], strict=True))
        at += size
    return stamp, echo, blocks


def _largest_bytes(seen: list[Packet], carrying: list[_Segment]) -> int:
    """The data of a packet on the path: segmentation offload joins several at a capturing host."""
    for packet in seen:
        header = packet.header
        if header[13] & _SYN:
            at = 18
            while at + 3 < len(header) and header[at] != 0:
                if header[at] == 2:
                    (most,) = struct.unpack_from(">H", header, at + 2)
                    own = 12 if any(segment.stamp is not None for segment in carrying) else 0
                    return max(1, int(most) - own)
                at += 1 if header[at] == 1 else max(2, header[at + 1])
    usual = Counter(segment.length for segment in carrying).most_common(1)
    return max(1, min(usual[0][0], 1460)) if usual else 1460


def _split(carrying: list[_Segment], largest: int) -> Iterator[_Segment]:
    count = 0
    for segment in carrying:
        for at in range(0, segment.length, largest):
            count += 1
            if count > _MOST_SEGMENTS:
                raise BadInput(f"has more than {_MOST_SEGMENTS} segments")
            yield segment._replace(number=segment.number + at, length=min(largest, segment.length - at))


# The round-trip time


def _rtt_s(data: list[_Segment], acks: list[_Segment]) -> tuple[float | None, float | None]:
    """The least round-trip time, and the part of it between the capture and the receiver; None: not known."""
    to_receiver = _least_to_ack(data, acks)
    to_sender = _least_to_echo(acks, data)
    if to_sender is None:
        to_sender = _of_handshake(acks, data)
    if to_receiver is None or to_sender is None:
        return None, to_receiver
    return to_receiver + to_sender, to_receiver


def _least_to_ack(data: list[_Segment], acks: list[_Segment]) -> float | None:
    """The least time from data that was sent once to the first ACK of it."""
    ends, times, reached = list[int](), list[float](), -1
    for segment in data:
        size = segment.length + bool(segment.flags & _SYN)
        if not size:
            continue
        end = segment.number + size
        if end > reached:
            ends.append(end)
            times.append(segment.at_s)
            reached = end
        else:  # sent again, or late: an ACK of it is no sample (Karn's algorithm)
            place = bisect.bisect_left(ends, end)
            if place < len(times):
                times[place] = math.nan
    least, before = math.inf, 0
    for ack in acks:
        if not ack.flags & _ACK or ack.acknowledged <= before:
            continue
        before = ack.acknowledged
        place = bisect.bisect_left(ends, ack.acknowledged)
        if place < len(ends) and ends[place] == ack.acknowledged and ack.at_s > times[place]:
            least = min(least, ack.at_s - times[place])
    return least if math.isfinite(least) else None


def _least_to_echo(asked: list[_Segment], answered: list[_Segment]) -> float | None:
    """The least time from a packet to the first one of the other side that echoes its timestamp."""
    first = dict[int, float]()
    for segment in asked:
        if segment.stamp is not None:
            first.setdefault(segment.stamp, segment.at_s)
    least, seen = math.inf, set[int]()
    for segment in answered:
        if segment.echo is None or segment.echo in seen or segment.echo not in first:
            continue
        seen.add(segment.echo)
        if segment.at_s >= first[segment.echo]:
            least = min(least, segment.at_s - first[segment.echo])
    return least if math.isfinite(least) else None


def _of_handshake(asked: list[_Segment], answered: list[_Segment]) -> float | None:
    """The time from a SYN, or from the answer to one, to the first packet behind it."""
    begin = next((segment.at_s for segment in asked if segment.flags & _SYN), None)
    if begin is None:
        return None
    return next((s.at_s - begin for s in answered if s.flags & _ACK and s.at_s >= begin), None)


# Losses


def _transmissions(
    parts: list[_Segment], acks: list[_Segment], rtt_s: float | None
) -> tuple[list[_Sent], int]:
    """The packets in the order in which they were sent, and how many were no losses though they seem so."""
    early_s = _EARLY_S if rtt_s is None else max(_EARLY_S, rtt_s / 4)
    unneeded = {block for ack in acks for block in ack.blocks[:1] if block[1] <= ack.acknowledged}
    starts = sorted(begin for begin, _ in unneeded)
    sent, by_number = list[_Sent](), dict[int, _Sent]()
    reached, spurious = parts[0].number, 0
    holes = list[tuple[int, int, float, int | None, int]]()
    """Begin, end, since when, the timestamp of what came behind, the place in the list of what was sent."""
    for part in parts:
        end = part.number + part.length
        if part.number >= reached:
            if part.number > reached:
                holes.append((reached, part.number, part.at_s, part.stamp, len(sent)))
                for begin in range(reached, part.number, max(1, part.length)):
                    missing = _Sent(part.at_s, begin, min(part.length, part.number - begin), lost=True)
                    sent.append(missing)
                    by_number[begin] = missing
                    if len(sent) > _MOST_SEGMENTS:
                        raise BadInput(f"has more than {_MOST_SEGMENTS} segments")
            packet = _Sent(part.at_s, part.number, part.length)
            sent.append(packet)
            by_number[part.number] = packet
            reached = end
            continue
        first = by_number.get(part.number)
        hole = next((hole for hole in reversed(holes) if hole[0] <= part.number < hole[1]), None)
        if hole is not None:
            is_older = part.stamp is not None and hole[3] is not None and _is_before(part.stamp, hole[3])
            is_early = part.at_s - hole[2] < early_s and (part.stamp is None or part.stamp == hole[3])
            if first is not None and first.lost and (is_older or is_early):
                first.lost = False
                spurious += 1
            continue
        place = bisect.bisect_left(starts, part.number)
        if place < len(starts) and starts[place] < end:
            spurious += 1
        elif first is not None:
            first.lost = True
        again = _Sent(part.at_s, part.number, part.length)
        sent.append(again)
        by_number[part.number] = again
    return sent, spurious


def _is_before(stamp: int, other: int) -> bool:
    return 0 < (other - stamp) % _MODULUS < _MODULUS // 2


# The rate


def _course(sent: list[_Sent], acks: list[_Segment]) -> Course:
    """The course of packets at their sender: a packet came when an ACK or a range of SACK had it first."""
    order = sorted(range(len(sent)), key=lambda place: sent[place].number)
    numbers = [sent[place].number for place in order]
    came_s, rtt_s = np.full(len(sent), math.nan), np.full(len(sent), math.nan)
    counts = Counter(packet.number for packet in sent)
    acknowledged, known = 0, frozenset[tuple[int, int]]()
    for ack in acks:
        if not ack.flags & _ACK:
            continue
        last = -1
        for begin, end in ((acknowledged, ack.acknowledged), *sorted({*ack.blocks} - known)):
            for at in range(bisect.bisect_left(numbers, begin), bisect.bisect_left(numbers, end)):
                place = order[at]
                if math.isnan(came_s[place]) and not sent[place].lost and sent[place].at_s < ack.at_s:
                    came_s[place] = ack.at_s
                    last = max(last, place)
        acknowledged, known = max(acknowledged, ack.acknowledged), frozenset(ack.blocks)
        if last >= 0 and counts[sent[last].number] == 1:
            rtt_s[last] = ack.at_s - sent[last].at_s
    more = _HEADERS_BYTES - packets.HEADERS_BYTES
    return Course(
        sent_s=np.array([packet.at_s for packet in sent]),
        sizes_bytes=np.array([float(packet.length + more) for packet in sent]),
        came_s=came_s,
        rtt_s=rtt_s,
        received=np.empty((0, 2)),
        is_of_acks=True,
    )


def _fastest_mbps(parts: list[_Segment], rtt_s: float | None) -> Estimate:
    """The most that came in two round-trip times; at the receiver."""
    arrivals = np.array(sorted((part.at_s, float(part.length + _HEADERS_BYTES)) for part in parts))
    times, total = arrivals[:, 0], np.concatenate(([0.0], np.cumsum(arrivals[:, 1])))
    window_s = max(min(2 * max(rtt_s or 0.1, 0.01), float(times[-1] - times[0])), 1e-3)
    ends = np.searchsorted(times, times + window_s, side="left")
    fastest = float((total[ends] - total[: len(times)]).max() * 8 / window_s / 1e6)
    return Estimate(fastest, 0.9 * fastest, math.inf)
