"""Whether the numbers of endpoints are possible: beside the harness's clock, the links' counters, the other
end's numbers, and what their options promise.

Each law here holds of any implementation, whether it speaks QUIC or not:

- A transfer has not taken longer than its program ran, and its handshake not longer than the transfer.
- A link carries a bit no sooner than its rate allows, and not before its one-way delay. A transfer
  is requested or confirmed at the other end, so it takes a round trip at least. (QUIC takes a second one for
  its handshake, but an implementation need not have one.)
- Pseudo-random content cannot be compressed: so many bytes have crossed, in packets that the loss model
  judged.
- A packet travels in a frame, and only those of handshakes share one.
- Nobody receives what was not sent, or recovers what was not protected. Links keep the order of packets, so
  what never came by itself was dropped by the loss model or the queue.
- A segment of TCP is a frame (`segments`).
- With FEC on, there are source and repair symbols. With FEC off, there is no repair symbol.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from fecbench.runners.implementations.declaration import PATHS
from fecbench.runners.tasks.demand import Demand
from fecbench.runners.tasks.outcome import DropperOutcome, Outcome
from fecbench.runners.tasks.packet_sizes import (
    DATAGRAM_BYTES,
    UDP_HEADER_BYTES,
    datagram_bytes,
    header_bytes,
)
from fecbench.runners.tasks.task import RELAY, ROLES, EndpointTask, PairTask, Role, Task, endpoint_name
from fecbench.runners.tasks.validity import Validity
from fecbench.runners.trial.judging import tcp_segments
from fecbench.topologies.link import DIRECTIONS, Direction
from fecbench.topologies.link_report import DirectionReport
from fecbench.topologies.rate import in_series, together

HANDSHAKE = "handshake_s"
Metrics = Mapping[str, float]

COUNTERS = (
    *("packets_sent", "packets_lost", "packets_received", "bytes_sent", "bytes_received"),
    *("spurious_losses", "source_sent", "repair_sent", "source_received", "repair_received"),
    *("packets_recovered", "repair_useless", "recovered_late", "recovered_in_time", "losses_declared"),
    "recovered_spurious",
)
OF_SOME_CODES = (
    *("repair_shared_sent", "repair_shared_received"),
    *("source_symbols_sent", "source_symbols_received", "repair_symbols_sent", "repair_symbols_received"),
)
"""Counters of codes whose repair symbols travel with data, or whose symbols are smaller than packets."""
# Counters of received or recovered packets, and the counters of what the other end must have sent.
OF_PEER = (
    ("packets_received", "packets_sent"),
    ("source_received", "source_sent"),
    ("repair_received", "repair_sent"),
    ("packets_recovered", "source_sent"),
    ("repair_track_received", "repair_track_sent"),
)
# Parts of what the same end has counted.
OF_ITSELF = (
    ("packets_lost", "packets_sent"),
    ("spurious_losses", "packets_lost"),
    ("packets_lost", "losses_declared"),
    ("repair_useless", "repair_received"),
    ("packets_recovered", "repair_received"),
    ("source_sent", "packets_sent"),
    # Packets that carry repair symbols and data.
    ("repair_shared_sent", "repair_sent"),
    ("repair_shared_received", "repair_received"),
    ("repair_shared_sent", "packets_sent"),
    # A packet has at least one symbol, even where symbols are smaller than packets.
    ("source_sent", "source_symbols_sent"),
    ("source_received", "source_symbols_received"),
    ("repair_sent", "repair_symbols_sent"),
    ("repair_received", "repair_symbols_received"),
    ("packets_recovered", "repair_symbols_received"),
    # Repair above QUIC: a symbol recovers one part at most.
    ("parts_recovered", "repair_track_received"),
)
OF_WHOLE_SYMBOLS = ("repair_received", "packets_recovered")
"""Two counters that cannot be compared where symbols are smaller than packets: one repair packet may then
rebuild several packets, or several may be needed for one."""
# Sums that are equal, of an end that counts all that stands in them: each repair packet has a count, and each
# packet that was rebuilt.
SUMS = (
    (("repair_received",), ("packets_recovered", "recovered_spurious", "repair_useless")),
    (("packets_recovered", "recovered_spurious"), ("recovered_in_time", "recovered_late")),
)


@dataclass(frozen=True)
class Hop:
    """Two endpoints that talk to each other in a pair, and the links between them."""

    client: str
    """The name of the endpoint that dials."""
    server: str
    of_client: Metrics
    of_server: Metrics
    ends: Mapping[Role, EndpointTask]
    links: tuple[str, ...]


def hops(task: Task, number: int, metrics: Mapping[str, Metrics]) -> tuple[Hop, ...]:
    """Return the hops of a pair: one, or those on both sides of a relay, whose metrics begin with the names
    of the links."""
    pair = task.pairs[number]
    whole = hop_of(pair, number, metrics, tuple(task.links))
    if not task.has_relay:
        return (whole,)
    access, backbone = task.links
    near, far = (
        {
            name.removeprefix(f"{link}."): value
            for name, value in metrics.get(RELAY, {}).items()
            if name.startswith(f"{link}.")
        }
        for link in (access, backbone)
    )
    return (
        replace(
            whole,
            server=RELAY,
            of_server=near,
            ends={"client": pair.client, "server": pair.client},
            links=(access,),
        ),
        replace(
            whole,
            client=RELAY,
            of_client=far,
            ends={"client": pair.server, "server": pair.server},
            links=(backbone,),
        ),
    )


def hop_of(pair: PairTask, number: int, metrics: Mapping[str, Metrics], links: tuple[str, ...] = ()) -> Hop:
    """Return a pair whose ends talk to each other."""
    client, server = (endpoint_name(number, role) for role in ROLES)
    ends: dict[Role, EndpointTask] = {"client": pair.client, "server": pair.server}
    return Hop(client, server, metrics.get(client, {}), metrics.get(server, {}), ends, links)


@dataclass(frozen=True)
class Way:
    """A direction of a hop of the measured transfer: its sender, its receiver, and its links."""

    direction: Direction
    sender: str
    """The name of the endpoint."""
    receiver: str
    sent: Metrics
    received: Metrics
    content_bytes: int
    links: tuple[str, ...] = ()

    def reports(self, outcome: Outcome) -> list[DirectionReport]:
        """Return what its links count."""
        return [outcome.links[link].directions[self.direction] for link in self.links]

    def droppers(self, outcome: Outcome) -> list[DropperOutcome]:
        return [outcome.droppers[link][self.direction] for link in self.links]


def problems(task: Task, outcome: Outcome) -> Iterator[str]:
    """Yield what is impossible in a transfer that both ends call a success, a sentence each."""
    metrics = _metrics(outcome)
    if not task.timed_by_harness:
        yield from _problems_of_clock(task, outcome, metrics["client"])
    all_hops = _hops(task, metrics)
    ways = list(_ways(task, all_hops[0]))
    yield from _problems_between(task, all_hops, ways)
    if not outcome.links:  # a path that is not ours counts nothing
        return
    for way in ways:
        yield from _not_carried(task, outcome, way)
        yield from _not_framed(task.validity, outcome, way)
        yield from _not_lost(task, outcome, way)
        yield from _not_marked(task, outcome, way)
    if not _copies(task):
        for up, down in zip(ways[::2], ways[1::2], strict=True):
            yield from _not_counted(task, outcome, up, down)
            yield from _not_counted(task, outcome, down, up)
    yield from tcp_segments.problems(task, outcome, metrics)


def _copies(task: Task) -> bool:
    """Whether links copy packets: a copy was not sent, and has an acknowledgement of its own."""
    return any(link.settings.has_duplicates for link in task.links.values())


def problems_between_ends(task: Task, outcome: Outcome) -> Iterator[str]:
    """Yield contradictions among the counters of both ends, and FEC that they should have sent but did
    not."""
    all_hops = _hops(task, _metrics(outcome))
    yield from _problems_between(task, all_hops, list(_ways(task, all_hops[0])))


def _problems_between(task: Task, all_hops: Sequence[Sequence[Hop]], ways: Sequence[Way]) -> Iterator[str]:
    for hop in (hop for of_pair in all_hops for hop in of_pair):
        yield from problems_of_counters(hop.client, hop.of_client)
        yield from problems_of_counters(hop.server, hop.of_server)
    for way in ways if not _copies(task) else ():
        yield from problems_of_peers(task.validity.closing_packets, way)
    for pair, of_pair in zip(task.pairs, all_hops, strict=True):
        for hop in of_pair:
            yield from problems_of_fec(pair.demand, hop, task.validity.short_packets)


def _metrics(outcome: Outcome) -> dict[str, Metrics]:
    return {name: endpoint.metrics or {} for name, endpoint in outcome.endpoints.items()}


def _hops(task: Task, metrics: Mapping[str, Metrics]) -> list[tuple[Hop, ...]]:
    """Return the hops of each pair."""
    return [hops(task, number, metrics) for number in range(len(task.pairs))]


def _ways(task: Task, measured_hops: Sequence[Hop]) -> Iterator[Way]:
    demand = task.pairs[0].demand
    up_bytes, down_bytes = demand.arriving_bytes("up"), demand.arriving_bytes("down")
    for hop in measured_hops:
        client, server = hop.of_client, hop.of_server
        yield Way("up", hop.client, hop.server, client, server, up_bytes, hop.links)
        yield Way("down", hop.server, hop.client, server, client, down_bytes, hop.links)


def doubts_of_clock(task: Task, outcome: Outcome) -> Iterator[str]:
    """Yield impossible times among those that the harness itself measured."""
    most_s = task.timeout_s + task.validity.overrun_s
    if outcome.client_s is not None and not 0 <= outcome.client_s <= most_s:
        yield f"the client ran for {outcome.client_s:g} s, and its time limit is {task.timeout_s:g} s"
    client = outcome.endpoints.get("client")
    if task.timed_by_harness and client and task.completion in (client.metrics or {}):
        yield from _problems_of_clock(task, outcome, client.metrics or {})


def _problems_of_clock(task: Task, outcome: Outcome, client: Metrics) -> Iterator[str]:
    lasted_s = task.timeout_s if outcome.client_s is None else outcome.client_s
    for problem in problems_of_times(client, task.completion, lasted_s + task.validity.clock_s):
        yield f"client: {problem}"
    if task.links:
        yield from _too_soon(task, client.get(task.completion, 0.0))


def problems_of_times(metrics: Metrics, completion: str, lasted_s: float) -> Iterator[str]:
    """Yield impossible times of a client that ran for `lasted_s`."""
    completion_s, handshake_s = metrics.get(completion, lasted_s), metrics.get(HANDSHAKE, 0.0)
    if not 0 < completion_s <= lasted_s:
        bounds = f"must be above 0 and at most {lasted_s:.3f}, as long as it ran"
        yield f"{completion} = {completion_s:g}: {bounds}"
    elif not 0 <= handshake_s <= completion_s:
        yield f"{HANDSHAKE} = {handshake_s:g}: must be between 0 and {completion_s:g}, its {completion}"


def least_s(task: Task) -> float:
    """The least time that the measured transfer can take: by the fastest of all implementations, over all
    links at once, or one after the other where a relay is between them."""
    demand, links = task.pairs[0].demand, [link.settings for link in task.links.values()]
    round_trips_ms = [link.rtt_ms for link in links]
    round_trip_s = (sum(round_trips_ms) if task.has_relay else min(round_trips_ms)) / 1e3
    joined = in_series if task.has_relay else together
    up_s, down_s = (
        joined(link.of(direction).rate for link in links).least_time_s(demand.arriving_bytes(direction))
        for direction in DIRECTIONS
    )
    waiting_s = demand.round_trips * round_trip_s + demand.pauses_s
    carrying_s = max(up_s, down_s) + min(demand.round_trips, 1) * round_trip_s
    return max(waiting_s, carrying_s)


def _too_soon(task: Task, completion_s: float) -> Iterator[str]:
    soonest_s = task.once(least_s)
    if 0 < completion_s < task.validity.least_share * soonest_s:
        yield (
            f"client: {task.completion} = {completion_s:g}: the links carry what was asked for"
            f" in {soonest_s:.6g} s at the soonest"
        )


def problems_of_counters(name: str, counted: Metrics) -> Iterator[str]:
    """Yield impossible counters of one end."""
    if counted and min(counted.values()) < 0:
        for counter in (*COUNTERS, *OF_SOME_CODES):
            if counted.get(counter, 0) < 0:
                yield f"{name}: {counter} = {counted[counter]:g}: must be at least 0"
    in_parts = "repair_symbols_received" in counted
    for part, whole in OF_ITSELF:
        if in_parts and {part, whole} == {*OF_WHOLE_SYMBOLS}:
            continue
        if part in counted and whole in counted and counted[part] > counted[whole]:
            yield f"{name}: {part} = {counted[part]:g}: must be at most {counted[whole]:g}, its {whole}"
    for sums in SUMS:
        names = [counter for side in sums for counter in side]
        if in_parts and {*OF_WHOLE_SYMBOLS} <= {*names}:
            continue
        if all(counter in counted for counter in names):
            left_sum, right_sum = (sum(counted[counter] for counter in side) for side in sums)
            if left_sum != right_sum:
                left_names, right_names = (" + ".join(side) for side in sums)
                yield f"{name}: {left_names} = {left_sum:g}: must be {right_names} = {right_sum:g}"


def _not_carried(task: Task, outcome: Outcome, way: Way) -> Iterator[str]:
    """Yield bytes that were transferred, sent or received, but that the links did not carry."""
    headers, most = header_bytes(task.family), datagram_bytes(task.family)
    reports = way.reports(outcome)
    carried = sum(report.bytes_out - headers * report.frames_out for report in reports)
    counters = [recorded.counters for recorded in way.droppers(outcome)]
    judged = sum(of_link.seen + of_link.shorter for of_link in counters)
    content, received = way.content_bytes, way.received.get("bytes_received")
    if content > carried:
        yield f"{content} bytes were transferred {way.direction}, but the links carried {carried}"
    elif content > judged * most:
        yield (
            f"{content} bytes were transferred {way.direction}, but the loss model judged {judged} packets:"
            f" they hold {judged * most} bytes at most"
        )
    if received is not None and not content <= received <= carried:
        yield (
            f"{way.receiver}: bytes_received = {received:g}: must be between {content}, the content,"
            f" and {carried}, what the links carried {way.direction}"
        )
    entered, sent = _entered(reports, headers), way.sent.get("bytes_sent")
    if sent is not None and entered is not None and sent > entered:
        yield f"{way.sender}: bytes_sent = {sent:g}: but {entered} bytes came to the links {way.direction}"
    for link, report in zip(way.links, reports, strict=True):
        name, place = f"{link}.bytes_sent", f"{link}/{way.direction}"
        entered = _entered([report], headers)
        sent = way.sent.get(name)
        if sent is not None and entered is not None and sent > entered:
            yield f"{way.sender}: {name} = {sent:g}: but {entered} bytes came to {place}"


def _entered(reports: list[DirectionReport], headers: int) -> int | None:
    """Return the bytes that came to the links, without so many of headers for each frame; None if a backend
    does not know."""
    entered = 0
    for report in reports:
        if report.bytes_in is None:
            return None
        entered += report.bytes_in - headers * report.frames_in
    return entered


def problems_of_peers(closing: int, way: Way) -> Iterator[str]:
    """Yield what one end received but the other did not send. A difference of `closing` last packets is
    allowed."""
    of_bytes = ("bytes_received", "bytes_sent")
    for received_as, sent_as in (*OF_PEER, of_bytes):
        slack = closing * DATAGRAM_BYTES if (received_as, sent_as) == of_bytes else closing
        received, sent = way.received.get(received_as), way.sent.get(sent_as)
        if received is not None and sent is not None and received > sent + slack:
            yield f"{way.receiver}: {received_as} = {received:g}: but {sent_as} of {way.sender} is {sent:g}"


def _not_framed(validity: Validity, outcome: Outcome, way: Way) -> Iterator[str]:
    """Packets that were sent, or came, in no frame. Several of a handshake may share one."""
    reports = way.reports(outcome)
    frames_in, frames_out = (
        sum(report.frames_in for report in reports),
        sum(report.frames_out for report in reports),
    )
    sent = packets_sent(way.sent)
    if sent.total > frames_in + validity.coalesced_packets:
        yield (
            f"{way.sender}: {sent.names} = {sent.total:g}:"
            f" but {frames_in} frames came to the links {way.direction}"
        )
    received = packets_received(way.received)
    if received.total > frames_out + validity.coalesced_packets:
        yield (
            f"{way.receiver}: {received.names} = {received.total:g}:"
            f" but {frames_out} frames left the links {way.direction}"
        )
    lost = sum(report.frames_in - report.frames_out for report in reports)
    lost += sum(recorded.counters.dropped for recorded in way.droppers(outcome))
    protected = way.sent.get("source_sent", 0)
    if way.received.get("source_received") == 0 and protected > lost + validity.closing_packets:
        yield (
            f"{way.receiver}: source_received = 0: but source_sent of {way.sender} is {protected:g},"
            f" and {lost} packets were lost {way.direction}"
        )


def _not_counted(task: Task, outcome: Outcome, way: Way, back: Way) -> Iterator[str]:
    """Yield packets and bytes that came to the links, and that their sender has not counted.

    Let off are what follows its last look at its counters: what closes the connection on each path, and an
    acknowledgement of each packet that comes later; and what is no traffic of endpoints. Each of
    several pairs has counted a part. Bytes of TCP are without its headers.
    """
    (pair, *others), reports = task.pairs, way.reports(outcome)
    if others:
        return
    unjudged = sum(recorded.counters.other for recorded in way.droppers(outcome))
    closing = task.validity.closing_packets * max(
        end.options.get(PATHS, 1) for end in (pair.client, pair.server)
    )
    late = max(0.0, packets_sent(back.sent).total - packets_received(back.received).total)
    let_off, frames_in = closing + unjudged + late, sum(report.frames_in for report in reports)
    counted, of_bytes = packets_sent(way.sent), way.sent.get("bytes_sent")
    if "packets_sent" in way.sent and frames_in > counted.total + let_off:
        yield (
            f"{way.sender}: {counted.names} = {counted.total:g}:"
            f" but {frames_in} frames came to the links {way.direction}"
        )
    entered = _entered(reports, header_bytes(task.family) + UDP_HEADER_BYTES)
    if (
        of_bytes is None
        or entered is None
        or any(end.transport == "tcp" for end in (pair.client, pair.server))
    ):
        return
    if entered > of_bytes + let_off * DATAGRAM_BYTES:
        yield (
            f"{way.sender}: bytes_sent = {of_bytes:g}: but {entered} bytes came to the links {way.direction}"
        )


class Packets(NamedTuple):
    """Packets that an end counted, those with repair symbols, too, each once."""

    total: float
    repair: float
    """Packets among them with repair symbols alone."""
    counted: Metrics
    of_data: Sequence[str]
    """The counter of packets with data, and those of packets among them that are not meant."""
    deed: str

    @property
    def names(self) -> str:
        return " ".join(f"{sign}{name}" for sign, name in self._terms())

    @property
    def values(self) -> str:
        packets, *others = self.of_data
        default = {packets: sum(self.counted.get(name, 0) for name in others)}
        return " ".join(
            f"{sign}{self.counted.get(name, default.get(name, 0)):g}" for sign, name in self._terms()
        )

    def _terms(self) -> Iterator[tuple[str, str]]:
        """Yield the sign and the name of each counter that is added up."""
        packets, *others = self.of_data
        yield "", packets
        yield from (("- ", name) for name in others)
        if (repair := f"repair_{self.deed}") in self.counted:
            yield "+ ", repair
        if (shared := f"repair_shared_{self.deed}") in self.counted:
            yield "- ", shared


def packets_sent(counted: Metrics) -> Packets:
    """Return the number of packets that an end reports as sent."""
    repair = counted.get("repair_sent", 0) - counted.get("repair_shared_sent", 0)
    return Packets(counted.get("packets_sent", 0) + repair, repair, counted, ("packets_sent",), "sent")


def packets_received(counted: Metrics) -> Packets:
    """Return the number of packets that an end reports as received, without those that it recovered."""
    repair = counted.get("repair_received", 0) - counted.get("repair_shared_received", 0)
    recovered = counted.get("packets_recovered", 0)
    total = counted.get("packets_received", recovered) - recovered + repair
    return Packets(total, repair, counted, ("packets_received", "packets_recovered"), "received")


def _not_lost(task: Task, outcome: Outcome, way: Way) -> Iterator[str]:
    """Yield recovered packets that no link lost.

    Several links, or one that reorders, are not checked: packets overtake each other there, so a recovered
    packet may still be on its way.
    """
    recovered = way.received.get("packets_recovered", 0)
    if len(way.links) != 1 or task.settings_of(*way.links).of(way.direction).overtakes:
        return
    (link,), (report,), (recorded,) = way.links, way.reports(outcome), way.droppers(outcome)
    lost = recorded.counters.dropped + report.lost
    if recovered > lost:
        yield (
            f"{way.receiver}: packets_recovered = {recovered:g}:"
            f" but {lost} packets were lost on {link}/{way.direction}"
        )


def _not_marked(task: Task, outcome: Outcome, way: Way) -> Iterator[str]:
    """Yield marks that the receiver counted and no queue set, and marks that queues set and it never saw.

    Other pairs' packets are marked as well. A marked packet that is lost behind the queue, or that comes when
    the receiver has reported, is not counted.
    """
    received = way.received.get("ecn_marks_received")
    if received is None or len(task.pairs) > 1:
        return
    reports = way.reports(outcome)
    marked = sum(report.marked for report in reports)
    dropped = sum(recorded.counters.dropped for recorded in way.droppers(outcome))
    unseen = dropped + sum(report.unreadable for report in reports) + task.validity.closing_packets
    if not marked - unseen <= received <= marked:
        yield f"{way.receiver}: ecn_marks_received = {received:g}: but queues marked {marked} {way.direction}"


def problems_of_fec(demand: Demand, hop: Hop, short_packets: int) -> Iterator[str]:
    """Yield counters of FEC that contradict the options of both ends of a hop."""
    names: dict[Role, str] = {"client": hop.client, "server": hop.server}
    counted = {hop.client: hop.of_client, hop.server: hop.of_server}
    for role, name in names.items():
        repair = counted[name].get("repair_sent", 0)
        if hop.ends[role].fec is False and repair > 0:
            yield f"{name}: FEC is off, but repair_sent = {repair:g}"
    content_bytes = max(demand.up_bytes, demand.down_bytes)
    if not (all(end.fec for end in hop.ends.values()) and content_bytes):
        return
    sender: Role = "client" if demand.up_bytes > demand.down_bytes else "server"
    name, end = names[sender], hop.ends[sender]
    # The peer may have all of a short content before there was room for a repair symbol of it, or from loss
    # probes alone, which are no source symbols: then the request was one. Losses make the window smaller.
    windows = 2 if counted[name].get("losses_declared", 0) > 0 else 1
    is_short = content_bytes <= windows * short_packets * DATAGRAM_BYTES
    senders = list(names.values()) if is_short else [name]
    if end.owes_source and not sum(counted[other].get("source_sent", 0) for other in senders) > 0:
        yield f"{' and '.join(senders)}: FEC is on, but no source symbol was sent (source_sent)"
    if end.owes_repair and not sum(counted[other].get("repair_sent", 0) for other in senders) > 0:
        yield f"{' and '.join(senders)}: FEC is on, but no repair symbol was sent (repair_sent)"
