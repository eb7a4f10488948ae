"""The metrics of both ends of a connection, counted anew from the captures of both.

The rules are those of the contract (quic-impls/contract/metrics.md), RFC 9000, RFC 9001 and RFC 9002.
"""

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fecbench.dropper import recordings
from tests.support.quic_packets import (
    ACK,
    CRYPTO,
    HANDSHAKE_DONE,
    SOURCE,
    STREAM,
    SYMBOL_ACK,
    Packet,
    names_of,
    numbers,
)

ENDS = {"client": "server", "server": "client"}
"""Each end, and its peer."""


def bytes_of(capture: Path, end: str) -> dict[str, float]:
    sums = {"client": 0, "server": 0}
    for datagram in recordings.packets(capture):
        sums["server" if datagram.source.endswith(":4433") else "client"] += datagram.length
    return {"bytes_sent": sums[end], "bytes_received": sums[ENDS[end]]}


def recount(
    name: str, end: str, captured: dict[str, list[Packet]], counted: dict[str, float], is_transfer: bool
) -> dict[str, float]:
    """Return those of the metrics of an end that follow from the captures of both ends."""
    packets = list(decryptable(captured[end]))
    own = [packet for packet in packets if packet.sender == end]
    arrived = [packet for packet in packets if packet.sender != end]
    received = {packet.identity: packet for packet in reversed(arrived)}.values()  # QUIC drops copies
    counts: dict[str, float] = {"packets_sent": sum(not packet.is_repair for packet in own)}
    recovered = counted.get("packets_recovered", 0)
    # quic-go takes a packet that is rebuilt very late for one that it had.
    if "packets_received" in counted and not (name == "rquic" and recovered):
        counts["packets_received"] = sum(not packet.is_repair for packet in received) + recovered
    if "repair_sent" in counted:
        counts |= {
            "repair_sent": sum(packet.is_repair for packet in own),
            # Below QUIC, a copy of a source packet counts.
            "repair_received": sum(packet.is_repair for packet in received),
        }
        names_sent, names_received = names_of(own), names_of(received)
        if not names_sent and "sent_beyond_window" not in counted:
            counts["source_sent"] = sum(packet.is_source for packet in own)
        if "source_received" in counted:
            numbers_of = {packet.number for packet in received if packet.space == "data"}
            sources = arrived if name == "rquic" else received
            counts["source_received"] = sum(packet.is_source for packet in sources) + sum(
                number in numbers_of for number in names_received.values()
            )
    if "recovered_by_peer" in counted:
        counts["recovered_by_peer"] = count_news(carriers_of(own), arrived)
        counts |= recoveries(end, captured, list(received), counted)
    if name != "rquic" and not counted.get("spurious_losses"):  # quic-go has a rule of its own
        counts |= smoothed_rtt(end, packets)
        assert ("smoothed_rtt_ms" in counts) == ("smoothed_rtt_ms" in counted)
    return counts | (times(name, packets, list(received), counted, is_transfer) if end == "client" else {})


def decryptable(packets: Iterable[Packet]) -> Iterator[Packet]:
    """The packets without those that came when their keys were gone (RFC 9001, §4.9)."""
    has_handshake = is_confirmed = False
    for packet in packets:
        has_handshake = has_handshake or (packet.space, packet.sender) == ("handshake", "client")
        if not {"handshake": is_confirmed, "initial": has_handshake}.get(packet.space, False):
            yield packet
        is_confirmed = is_confirmed or packet.has(HANDSHAKE_DONE)


def first_news(packets: Iterable[Packet]) -> dict[int, float]:
    """Return when it was first told of each symbol that it was recovered."""
    times: dict[int, float] = {}
    for packet in packets:
        for frame in packet.frames:
            if frame.kind == SYMBOL_ACK:
                times |= {sid: packet.at_s for sid in numbers(frame.fields) if sid not in times}
    return times


def carriers_of(sent: Iterable[Packet]) -> dict[int, int]:
    """Return the packets of source symbols, by their numbers."""
    sent = list(sent)
    of_frames = ((packet, frame) for packet in sent for frame in packet.frames)
    return {
        frame.fields[0]: packet.number for packet, frame in of_frames if frame.kind == SOURCE
    } or names_of(sent)


def count_news(carriers: dict[int, int], arrived: Iterable[Packet]) -> int:
    """Return how many symbols were recovered, as was told before their packets were acknowledged."""
    recovered: set[int] = set()
    acknowledged: set[int] = set()
    for packet in arrived:
        for frame in packet.frames:
            if frame.kind == SYMBOL_ACK:
                recovered |= {sid for sid in numbers(frame.fields) if carriers[sid] not in acknowledged}
            elif frame.kind == ACK and packet.space == "data":
                acknowledged |= set(numbers(frame.fields[1:]))
    return len(recovered)


def recoveries(
    end: str, captured: dict[str, list[Packet]], received: list[Packet], counted: dict[str, float]
) -> dict[str, float]:
    """Return what became of the symbols that an end recovered, if it had the time to tell of all of them."""
    recovered = first_news(packet for packet in captured[end] if packet.sender == end)
    if len(recovered) != counted["packets_recovered"] + counted["recovered_spurious"]:
        # The last ones were recovered when the connection was being closed.
        assert len(recovered) < counted["packets_recovered"] + counted["recovered_spurious"]
        return {}
    sent = [packet for packet in captured[ENDS[end]] if packet.sender != end and packet.space == "data"]
    carriers = carriers_of(sent)
    arrivals = {packet.number for packet in received if packet.space == "data"}
    spurious = [sid for sid in recovered if carriers[sid] in arrivals]
    counts: dict[str, float] = {
        "recovered_spurious": len(spurious),
        "packets_recovered": len(recovered) - len(spurious),
    }
    samples = list(round_trips(end, list(decryptable(captured[end]))))
    if "recovered_late" not in counted or not samples:
        return counts
    by_number = {packet.number: packet for packet in sent}
    rebuilt = {sid: parts_of(by_number[carriers[sid]], at_s) for sid, at_s in recovered.items()}
    parts = [part for packet in received for part in parts_of(packet, packet.at_s)]
    late = sum(
        sid not in spurious
        and bool(rebuilt[sid])
        and saves_nothing(
            rebuilt[sid],
            [*parts, *(part for other, of in rebuilt.items() if other != sid for part in of)],
            min(sample_s for news_s, sample_s, _ in samples if news_s <= max(at_s, samples[0][0])) / 2,
        )
        for sid, at_s in recovered.items()
    )
    counts["recovered_late"] = len(spurious) + late
    counts["recovered_in_time"] = len(recovered) - len(spurious) - late
    return counts


Part = tuple[int, int, int, float]
"""A part of a stream: its stream, where it begins and ends, and when it came; a stream ends with a byte."""


def parts_of(packet: Packet, at_s: float) -> list[Part]:
    fields = (frame.fields for frame in packet.frames if frame.kind == STREAM)
    return [(stream, offset, offset + size + end, at_s) for stream, offset, size, end in fields]


def saves_nothing(own: list[Part], others: list[Part], one_way_s: float) -> bool:
    """Whether all of these parts were there when they were rebuilt, or some were on their way."""

    def is_there(stream: int, begin: int, end: int, at_s: float) -> bool:
        for _, first, last, _ in sorted(part for part in others if part[0] == stream and part[3] <= at_s):
            begin = max(begin, last) if first <= begin else begin
        return begin >= end

    def is_on_its_way(stream: int, begin: int, end: int, at_s: float) -> bool:
        return any(
            of == stream and first < end and begin < last and at_s < arrival_s <= at_s + one_way_s
            for of, first, last, arrival_s in others
        )

    return all(is_there(*part) for part in own) or any(is_on_its_way(*part) for part in own)


def round_trips(end: str, packets: list[Packet]) -> Iterator[tuple[float, float, float]]:
    """The samples of RFC 9002, §5.1: when an ACK came, the time since its packet left, and the delay that the
    peer tells."""
    is_confirmed = False
    open_: dict[tuple[str, int], Packet] = {}
    for packet in packets:
        if packet.sender == end:
            open_[packet.identity] = packet
        for frame in packet.frames if packet.sender != end else ():
            if frame.kind != ACK:
                continue
            new = {(packet.space, number) for number in numbers(frame.fields[1:])} & open_.keys()
            largest = packet.space, frame.fields[2]
            if largest in new and any(open_[one].asks_for_ack for one in new):
                delay_s = 8e-6 * frame.fields[0] if packet.space == "data" else 0.0
                delay_s = min(delay_s, 0.025) if is_confirmed else delay_s
                yield packet.at_s, packet.at_s - open_[largest].at_s, delay_s
            for one in new:
                del open_[one]
        is_confirmed = is_confirmed or packet.has(HANDSHAKE_DONE)


def smoothed_rtt(end: str, packets: list[Packet]) -> dict[str, Any]:
    """Return QUIC's estimate by RFC 9002, §5.3, where there is a sample."""
    smoothed, least = math.nan, math.inf
    for _, sample_s, delay_s in round_trips(end, packets):
        least = min(least, sample_s)
        adjusted = sample_s - delay_s if sample_s - delay_s >= least else sample_s
        smoothed = adjusted if math.isnan(smoothed) else (7 * smoothed + adjusted) / 8
    return {} if math.isnan(smoothed) else {"smoothed_rtt_ms": pytest.approx(1e3 * smoothed, abs=2e-3)}


def times(
    name: str, packets: list[Packet], received: list[Packet], counted: dict[str, float], is_transfer: bool
) -> dict[str, Any]:
    """Return when the handshake was complete, and when all of a transfer's only stream had come."""
    begin_s = packets[0].at_s
    handshake_s = max(
        whole_s(
            [
                (*frame.fields, packet.at_s)
                for packet in received
                if packet.space == space
                for frame in packet.frames
                if frame.kind == CRYPTO
            ]
        )
        for space in ("initial", "handshake")
    )
    streams = [
        (packet.at_s, frame)
        for packet in received
        for frame in packet.frames
        if frame.kind == STREAM and frame.fields[0] == 0
    ]
    metrics = {"handshake_s": pytest.approx(handshake_s - begin_s, abs=2e-6)}
    rebuilt = counted.get("packets_recovered", 0) + counted.get("recovered_spurious", 0)
    is_held = name == "rquic" and counted["source_received"] > 0  # behind a gap, for a while
    if is_transfer and not rebuilt and not is_held:
        ends = [at_s for at_s, frame in streams if frame.fields[3]]
        data_s = whole_s([(*frame.fields[1:3], at_s) for at_s, frame in streams])
        metrics["dct_s"] = pytest.approx(max(data_s, min(ends)) - begin_s, abs=2e-6)
    return metrics


def whole_s(parts: list[tuple[int, int, float]]) -> float:
    """Return when all bytes had come, of parts by their offset, length and time."""
    first_s = np.full(max(offset + length for offset, length, _ in parts), math.inf)
    for offset, length, at_s in sorted(parts, key=lambda part: -part[2]):
        first_s[offset : offset + length] = at_s
    return float(first_s.max())


def check_losses(name: str, end: str, packets: list[Packet], counted: dict[str, float]) -> None:
    """Check that the losses are packets in flight that no ACK is of, and all of those before three others."""
    if "packets_lost" not in counted:
        return
    sent, acknowledged = [], set()
    for packet in decryptable(packets):
        if packet.sender == end:
            sent.append(packet)
        for frame in packet.frames if packet.sender != end else ():
            if frame.kind == ACK:
                acknowledged |= {(packet.space, number) for number in numbers(frame.fields[1:])}
    in_spaces = [
        [packet for packet in sent if packet.space == space] for space in ("initial", "handshake", "data")
    ]
    least = most = most_with_repair = 0
    for space in in_spaces:
        place = max((n for n, packet in enumerate(space) if packet.identity in acknowledged), default=-1)
        for n, packet in enumerate(space[:place]):
            is_lost = packet.asks_for_ack and packet.identity not in acknowledged and not packet.is_repair
            most += is_lost
            most_with_repair += is_lost or packet.is_repair
            # quic-go forgets packets whose data a probe sends again; those of a handshake go with their keys.
            least += is_lost and place - n >= 3 and packet.space == "data" and name != "rquic"
    lost = counted["packets_lost"] - counted["spurious_losses"]
    assert least - counted.get("recovered_by_peer", 0) <= lost <= most
    declared = counted["losses_declared"]
    assert counted["packets_lost"] <= declared <= most_with_repair + counted["spurious_losses"]
