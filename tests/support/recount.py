"""The metrics of both ends of a connection, counted anew from the captures of both.

The rules are those of the contract (quic-impls/contract/metrics.md), RFC 9000, RFC 9001 and RFC 9002.
The captures do not tell:

- what congestion control made of it: `congestion_window_bytes`, `window_reductions`, `window_restorations`
  and `sent_beyond_window`; nor `useless_retransmissions`, nor how many packets might have been named;
- when exactly a stack declares a loss: `packets_lost`, `losses_declared` and `spurious_losses` have bounds;
- which packets rquic rebuilt, before it acknowledges them: they have bounds. Its `recovered_late`,
  `recovered_out_of_order` and counters of generations are not checked;
- which packets QUIC never took that rquic held, or that quic-go dropped: `packets_received` has bounds where
  packets came late or before their keys;
- what happens above QUIC: objects and processing of pages, stalls of video, frames of live media.

A packet to a connection ID that was retired is answered by a stateless reset, which is no packet of the
connection. That is rare, and not drawn.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from fecbench.dropper import recordings
from tests.support.quic_packets import (
    ACK,
    CLOSE,
    CRYPTO,
    DATAGRAM,
    HANDSHAKE_DONE,
    RESET,
    SOURCE,
    STREAM,
    SYMBOL_ACK,
    Identity,
    Packet,
    link_of,
    names_of,
    numbers,
)

ENDS = {"client": "server", "server": "client"}
"""Each end, and its peer."""


def bytes_of(capture: Path, end: str, counted: dict[str, float]) -> dict[str, float]:
    sums: Counter[str] = Counter({"bytes_sent": 0, "bytes_received": 0})
    for datagram in recordings.packets(capture):
        sender = "server" if datagram.source.endswith(":4433") else "client"
        sums["bytes_sent" if sender == end else "bytes_received"] += datagram.length
        if sender == end:
            sums[f"path{link_of(datagram, sender)}.bytes_sent"] += datagram.length
    return {metric: value for metric, value in sums.items() if metric in counted}


def recount(
    name: str,
    end: str,
    captured: dict[str, list[Packet]],
    counted: dict[str, float],
    assignment: Mapping[str, Any],
) -> dict[str, float]:
    """Return those of the metrics of an end that follow from the captures of both ends."""
    workload = assignment["workload"]
    packets = list(decryptable(captured[end], name))
    own = [packet for packet in packets if packet.sender == end]
    arrived = [packet for packet in packets if packet.sender != end]
    received = {packet.identity: packet for packet in reversed(arrived)}.values()  # QUIC drops copies
    sent = [packet for packet in captured[ENDS[end]] if packet.sender != end]
    unread = list(perhaps_unread(own, received, sent, hold_s(assignment))) if name == "rquic" else []
    counts: dict[str, float] = {}
    if "packets_sent" in counted:  # quic-go does not tell those of a connection without a handshake
        counts["packets_sent"] = sum(not packet.is_repair for packet in own)
    if "packets_received" in counted:
        of_wire = sum(not packet.is_repair for packet in received)
        most = of_wire + counted.get("packets_recovered", 0)
        counts["packets_received"] = within(counted["packets_received"], most - len(unread), most)
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
            identities = {packet.identity for packet in received}
            sources = (
                (packet for packet in captured[end] if packet.sender != end) if name == "rquic" else received
            )
            counts["source_received"] = sum(packet.is_source for packet in sources) + sum(
                name in identities for name in names_received.values()
            )
    if "recovered_by_peer" in counted:
        counts["recovered_by_peer"] = count_news(carriers_of(own), arrived)
        counts |= recoveries(end, captured, list(received), counted)
    for link in range(1, 4):
        if f"path{link}.packets_sent" in counted:
            counts |= of_path(link, own, arrived, "sent_beyond_window" in counted)
    # quic-go has a rule of its own. So have noq and quinn where an ACK's largest packet was lost for them.
    if name != "rquic" and not counted.get("spurious_losses") and not came_after_all(own, arrived):
        samples = list(round_trips(end, packets))
        paths = {f"path{n}.": n for n in range(1, 4) if f"path{n}.packets_sent" in counted}
        first = packets[0].link if packets else 0
        for prefix, link in {"": first, **paths}.items():
            rtt = f"{prefix}smoothed_rtt_ms"
            of_link = [sample for sample in samples if sample.link == link]
            assert bool(of_link) == (rtt in counted)
            counts |= {rtt: pytest.approx(1e3 * smoothed_rtt_s(of_link), abs=2e-3)} if of_link else {}
    if workload["name"] == "messages":
        counts |= of_messages(end, own, arrived, counted, workload)
    if name == "rquic":
        counts |= of_rquic(own, arrived, unread, counted)
        check_rebuilt(end, captured[end], counted)
    if "repair_useless" in counted:
        rebuilt = counted["packets_recovered"] + counted["recovered_spurious"]
        counts["repair_useless"] = counted["repair_received"] - rebuilt
    is_transfer = workload["name"] in ("download", "upload") and not unread
    return counts | (times(name, packets, list(received), counted, is_transfer) if end == "client" else {})


def within(value: float, least: float, most: float) -> float:
    """Return the value, or the bound that it is beyond."""
    return min(max(value, least), most)


def of_messages(
    end: str, own: list[Packet], arrived: list[Packet], counted: dict[str, float], workload: Mapping[str, Any]
) -> dict[str, float]:
    frames = [frame for packet in own for frame in packet.frames]
    counts: dict[str, float] = {}
    if "messages_reset" in counted:
        resets = {
            frame.fields[0]: packet
            for packet in reversed(own)
            for frame in packet.frames
            if frame.kind == RESET
        }
        # A copy of what was acknowledged may be on its way: rquic resets its stream, and does not count it.
        whole = sum(is_acknowledged(stream, packet, own, arrived) for stream, packet in resets.items())
        counts["messages_reset"] = within(counted["messages_reset"], len(resets) - whole, len(resets))
    if "datagrams_unsent" in counted:
        sender = "client" if workload["direction"] == "up" else "server"
        has_datagrams = workload["delivery"] == "datagram" and end == sender
        parts = sum(math.ceil(size / workload["part_bytes"]) for _, size in workload["timetable"])
        unsent = parts - sum(frame.kind == DATAGRAM for frame in frames)
        counts["datagrams_unsent"] = unsent if has_datagrams else 0
    return counts


def is_acknowledged(stream: int, reset: Packet, own: list[Packet], arrived: list[Packet]) -> bool:
    """Whether all of a stream was acknowledged before it was reset."""
    acknowledged = acknowledged_by(packet for packet in arrived if packet.datagram < reset.datagram)
    frames = [(packet, frame) for packet in own for frame in packet.frames if frame.fields[:1] == (stream,)]
    sent = sorted(
        (frame.fields[1], sum(frame.fields[1:3]))
        for packet, frame in frames
        if frame.kind == STREAM and packet.identity in acknowledged
    )
    (size,) = {frame.fields[2] for _, frame in frames if frame.kind == RESET}
    end = 0
    for first, last in sent:
        end = max(end, last) if first <= end else end
    return end == size


def of_rquic(
    own: list[Packet], arrived: list[Packet], unread: list[Packet], counted: dict[str, float]
) -> dict[str, float]:
    """Return the counters that rquic alone has, and the ratios of its counters."""
    source, repair = counted["source_sent"], counted["repair_sent"]
    delivered, lost = counted["protected_delivered"], counted["protected_lost"]
    counts = {"overhead": repair / max(source + repair, 1)}
    # Of packets that are rebuilt long after a key update, QUIC has the keys no more.
    most = counted["repair_received"] if len({packet.phase for packet in arrived}) > 1 else 0
    counts["malformed_received"] = within(counted["malformed_received"], 0, most)
    counts |= {"code_rate_mean": source / repair} if repair else {}
    counts |= {"residual_loss": lost / delivered} if delivered else {}
    is_heard = source or counted["source_received"]  # without a code, quic-go's events are not heard
    is_told = "spurious_losses" in counted and counted.get("packets_recovered") == 0
    if is_heard and is_told:  # a rebuilt packet may acknowledge others
        of_data = {packet.identity for packet in own if packet.space == "data" and packet.asks_for_ack}
        most = len(of_data & acknowledged_by(arrived)) - counted["spurious_losses"]
        surely = acknowledged_by(packet for packet in arrived if packet not in unread)
        least = len(of_data & surely) - counted["spurious_losses"]
        most += count_late_in_handshake(arrived)
        counts["protected_delivered"] = within(counted["protected_delivered"], least, most)
    return counts


def count_late_in_handshake(arrived: list[Packet]) -> int:
    """Return how many packets of the handshake were acknowledged after newer ones: losses of these may be
    spurious."""
    largest: dict[str, int] = {}
    acknowledged: set[Identity] = set()
    late = 0
    for packet in arrived:
        for frame in packet.frames:
            if frame.kind == ACK and packet.space != "data":
                new = set(packet.acknowledged(frame)) - acknowledged
                late += sum(number < largest.get(space, 0) for space, _, number in new)
                acknowledged |= new
                largest[packet.space] = max(largest.get(packet.space, 0), frame.fields[2])
    return late


def check_rebuilt(end: str, packets: list[Packet], counted: dict[str, float]) -> None:
    """Check that packets that are acknowledged before they come, or never come, were rebuilt."""
    arrivals: dict[Identity, float] = {}
    tellings: dict[Identity, float] = {}
    for packet in packets:
        if packet.sender != end:
            arrivals.setdefault(packet.identity, packet.at_s)
        else:
            of_packet = (
                one for frame in packet.frames if frame.kind == ACK for one in packet.acknowledged(frame)
            )
            tellings |= {one: packet.at_s for one in of_packet if one not in tellings}
    if "packets_recovered" in counted:
        assert sum(one not in arrivals for one in tellings) <= counted["packets_recovered"]
        early = sum(at_s < arrivals.get(one, 0.0) for one, at_s in tellings.items())
        assert early <= counted["recovered_spurious"]


def hold_s(assignment: Mapping[str, Any]) -> float:
    """Return how long rQUIC's receiver holds a packet at most."""
    options = assignment["options"]
    return math.inf if options["bto_rtt"] else options["bto_ms"] / 1e3


def perhaps_unread(
    own: list[Packet], received: Iterable[Packet], sent: list[Packet], hold_s: float
) -> Iterator[Packet]:
    """Yield the packets that came and that QUIC may not have taken.

    rQUIC's receiver may hold packets behind a gap. quic-go drops packets that are older than all gaps that it
    knows of, and those that have no room while they wait for their keys. What it acknowledges, it has taken.
    """
    acknowledged = acknowledged_by(own)
    first_s = min((packet.at_s for packet in own if packet.space == "data" and packet.has(ACK)), default=0.0)
    gaps = list(gaps_of(sent, received, hold_s))
    newest = -1
    for packet in sorted(received, key=lambda packet: packet.datagram):
        if packet.space == "data" and packet.identity not in acknowledged:
            is_held = packet.is_source and any(begin_s <= packet.at_s <= end_s for begin_s, end_s in gaps)
            if is_held or packet.number < newest or packet.at_s <= first_s:
                yield packet
        newest = max(newest, packet.number)


def gaps_of(sent: list[Packet], received: Iterable[Packet], hold_s: float) -> Iterator[tuple[float, float]]:
    """Yield when rQUIC's receiver may hold packets: until one comes that is missing, but not for long."""
    arrivals = {packet.identity: packet.at_s for packet in received}
    next_s = math.inf
    for packet in reversed(sent):
        if packet.is_source:
            at_s = arrivals.get(packet.identity, math.inf)
            if next_s < at_s:
                yield next_s, min(at_s, next_s + hold_s)
            next_s = min(next_s, at_s)


def acknowledged_by(packets: Iterable[Packet]) -> set[Identity]:
    return {
        one
        for packet in packets
        for frame in packet.frames
        if frame.kind == ACK
        for one in packet.acknowledged(frame)
    }


def came_after_all(own: list[Packet], arrived: list[Packet]) -> bool:
    """Whether a packet was told of as recovered, and as received, too."""
    carriers = carriers_of(own)
    acknowledged = acknowledged_by(arrived)
    return any(carriers[sid] in acknowledged for sid in first_news(arrived))


def of_path(link: int, own: list[Packet], arrived: list[Packet], is_kept: bool) -> dict[str, float]:
    """Return the counters of what was sent over a path."""
    sent = [packet for packet in own if packet.link == link]
    identities = {packet.identity for packet in sent}
    carriers = {sid: carrier for sid, carrier in carriers_of(own).items() if carrier in identities}
    counts: dict[str, float] = {
        "packets_sent": sum(not packet.is_repair for packet in sent),
        "repair_sent": sum(packet.is_repair for packet in sent),
        "recovered": count_news(carriers, arrived),
    }
    if not is_kept:
        counts["source_sent"] = sum(packet.is_source for packet in sent)
    return {f"path{link}.{metric}": value for metric, value in counts.items()}


MOST_EARLY = 32
"""1-RTT packets that quic-go keeps until it has their keys."""


def decryptable(packets: list[Packet], name: str = "") -> Iterator[Packet]:
    """The packets but for those that came before their keys or after these (RFC 9001, §4.9 and §5.7).

    1-RTT packets that overtake the end of the handshake are kept; by quic-go Handshake packets, too.
    """
    has_hello = has_handshake = has_finished = is_confirmed = False
    is_complete = any(map(is_finished, packets))
    acknowledged = acknowledged_by(packet for packet in packets if packet.sender == "server")
    early = 0
    for packet in packets:
        is_hello = packet.sender == "server" and packet.space == "initial" and packet.has(CRYPTO)
        has_hello, has_finished = has_hello or is_hello, has_finished or is_finished(packet)
        has_handshake = has_handshake or (packet.space, packet.sender) == ("handshake", "client")
        early += packet.space == "data" and packet.sender == "client" and not has_finished
        has_keys = {
            "initial": not has_handshake,
            "handshake": (has_hello or name == "rquic") and not is_confirmed,
            "data": packet.sender == "server"
            or (
                is_complete
                and (
                    has_finished or early <= MOST_EARLY or name != "rquic" or packet.identity in acknowledged
                )
            ),
        }
        if has_keys.get(packet.space, True):
            yield packet
        # RFC 9001, §4.1.2: a client may take an ACK of 1-RTT for that, and quic-go does.
        is_told = name == "rquic" and (packet.space, packet.sender) == ("data", "server") and packet.has(ACK)
        is_confirmed = is_confirmed or packet.has(HANDSHAKE_DONE) or is_told


def is_finished(packet: Packet) -> bool:
    """Whether it has the end of the client's handshake."""
    return (packet.space, packet.sender) == ("handshake", "client") and packet.has(CRYPTO)


def first_news(packets: Iterable[Packet]) -> dict[int, float]:
    """Return when it was first told of each symbol that it was recovered."""
    times: dict[int, float] = {}
    for packet in packets:
        for frame in packet.frames:
            if frame.kind == SYMBOL_ACK:
                times |= {sid: packet.at_s for sid in numbers(frame.fields) if sid not in times}
    return times


def carriers_of(sent: Iterable[Packet]) -> dict[int, Identity]:
    """Return the packets of source symbols, by the numbers of these."""
    sent = list(sent)
    of_frames = ((packet, frame) for packet in sent for frame in packet.frames)
    return {
        frame.fields[0]: packet.identity for packet, frame in of_frames if frame.kind == SOURCE
    } or names_of(sent)


def count_news(carriers: dict[int, Identity], arrived: Iterable[Packet]) -> int:
    """Return how many symbols were recovered, as was told before their packets were acknowledged."""
    recovered: set[int] = set()
    acknowledged: set[Identity] = set()
    for packet in arrived:
        for frame in packet.frames:
            if frame.kind == SYMBOL_ACK:
                news = carriers.keys() & numbers(frame.fields)
                recovered |= {sid for sid in news if carriers[sid] not in acknowledged}
            elif frame.kind == ACK:
                acknowledged |= set(packet.acknowledged(frame))
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
    arrivals = {packet.identity for packet in received}
    spurious = [sid for sid in recovered if carriers[sid] in arrivals]
    counts: dict[str, float] = {
        "recovered_spurious": len(spurious),
        "packets_recovered": len(recovered) - len(spurious),
    }
    samples = list(round_trips(end, list(decryptable(captured[end]))))
    if "recovered_late" not in counted or not samples:
        return counts
    by_identity = {packet.identity: packet for packet in sent}
    rebuilt = {sid: parts_of(by_identity[carriers[sid]], at_s) for sid, at_s in recovered.items()}
    parts = [part for packet in received for part in parts_of(packet, packet.at_s)]

    def is_before(other: int, sid: int) -> bool:
        """Whether a symbol was there first: of two that are alike, rebuilt at once, one saves something."""
        return other != sid and (recovered[other] != recovered[sid] or other < sid)

    late = sum(
        sid not in spurious
        and bool(rebuilt[sid])
        and saves_nothing(
            rebuilt[sid],
            parts,
            [part for other, of in rebuilt.items() if is_before(other, sid) for part in of],
            samples,
        )
        for sid in recovered
    )
    counts["recovered_late"] = len(spurious) + late
    counts["recovered_in_time"] = len(recovered) - len(spurious) - late
    return counts


class Part(NamedTuple):
    """A part of a stream; a stream ends with a byte."""

    stream: int
    begin: int
    end: int
    at_s: float
    """The time at which it came."""
    link: int


def parts_of(packet: Packet, at_s: float) -> list[Part]:
    fields = (frame.fields for frame in packet.frames if frame.kind == STREAM)
    return [
        Part(stream, offset, offset + size + end, at_s, packet.link) for stream, offset, size, end in fields
    ]


def saves_nothing(
    own: list[Part], received: list[Part], rebuilt: list[Part], samples: list["Sample"]
) -> bool:
    """Whether all of these parts were there when they were rebuilt, or some were on their way."""
    parts = sorted(received + rebuilt)

    def is_there(part: Part) -> bool:
        begin = part.begin
        for other in parts:
            if other.stream == part.stream and other.at_s <= part.at_s and other.begin <= begin:
                begin = max(begin, other.end)
        return begin >= part.end

    def is_on_its_way(part: Part) -> bool:
        return any(
            (other.stream == part.stream and other.begin < part.end and part.begin < other.end)
            and part.at_s < other.at_s <= part.at_s + one_way_s(samples, other)
            for other in received
        )

    return all(map(is_there, own)) or any(map(is_on_its_way, own))


def one_way_s(samples: list["Sample"], part: Part) -> float:
    """Return half of the least RTT of a part's path, or of any if it has none; 0 before the first sample."""
    earlier = [sample for sample in samples if sample.at_s < part.at_s]
    of_path = [sample for sample in earlier if sample.link == part.link] or earlier
    return min((sample.rtt_s for sample in of_path), default=0.0) / 2


class Sample(NamedTuple):
    """A sample of RFC 9002, §5.1: when an ACK came, the time since its packet left, the delay that the peer
    tells, and the link that the packet took."""

    at_s: float
    rtt_s: float
    delay_s: float
    link: int


def round_trips(end: str, packets: list[Packet]) -> Iterator[Sample]:
    is_confirmed = False
    open_: dict[Identity, Packet] = {}
    for packet in packets:
        if packet.sender == end:
            open_[packet.identity] = packet
        for frame in packet.frames if packet.sender != end else ():
            if frame.kind != ACK:
                continue
            new = set(packet.acknowledged(frame)) & open_.keys()
            largest = packet.space, frame.path, frame.fields[2]
            if largest in new and any(open_[one].asks_for_ack for one in new):
                delay_s = 8e-6 * frame.fields[0] if packet.space == "data" else 0.0
                delay_s = min(delay_s, 0.025)
                sent = open_[largest]
                yield Sample(packet.at_s, packet.at_s - sent.at_s, delay_s, sent.link)
            for one in new:
                del open_[one]
        is_confirmed = is_confirmed or packet.has(HANDSHAKE_DONE)


def smoothed_rtt_s(samples: Iterable[Sample]) -> float:
    """Return QUIC's estimate by RFC 9002, §5.3."""
    smoothed, least = math.nan, math.inf
    for sample in samples:
        least = min(least, sample.rtt_s)
        rest_s = sample.rtt_s - sample.delay_s
        adjusted = rest_s if rest_s >= least - 5e-7 else sample.rtt_s  # times of captures are floats
        smoothed = adjusted if math.isnan(smoothed) else (7 * smoothed + adjusted) / 8
    return smoothed


def times(
    name: str, packets: list[Packet], received: list[Packet], counted: dict[str, float], is_transfer: bool
) -> dict[str, Any]:
    """Return when the handshake was complete, and when all of a transfer had come or the client closed."""
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
    elif closed := [packet.at_s for packet in packets if packet.sender == "client" and packet.has(*CLOSE)]:
        metrics["dct_s"] = pytest.approx(closed[0] - begin_s, abs=2e-6)
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
                acknowledged |= set(packet.acknowledged(frame))
    in_spaces = [
        [packet for packet in sent if (packet.space, packet.path) == space]
        for space in {(packet.space, packet.path) for packet in sent}
    ]
    least = most = most_with_repair = 0
    for space in in_spaces:
        place = max((n for n, packet in enumerate(space) if packet.identity in acknowledged), default=-1)
        for n, packet in enumerate(space[:place]):
            is_lost = packet.is_in_flight and packet.identity not in acknowledged and not packet.is_repair
            most += is_lost
            most_with_repair += is_lost or packet.is_repair
            # quic-go forgets packets whose data a probe sends again; those of a handshake go with their keys.
            is_told = place - n >= 3 and packet.asks_for_ack and packet.space == "data"
            least += is_lost and is_told and name != "rquic"
    lost = counted["packets_lost"] - counted["spurious_losses"]
    assert least - counted.get("recovered_by_peer", 0) <= lost <= most
    declared = counted["losses_declared"]
    assert counted["packets_lost"] <= declared <= most_with_repair + counted["spurious_losses"]
