"""The course of a trial that was run again with everything recorded: its packets and its series.

A host's own capture has what it sent, and its peer's capture has what arrived there. The verdicts of the loss
model and the counters of the link show which of them dropped a packet that never arrived.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

import numpy as np

from fecbench.dropper import recordings
from fecbench.quantities import counted
from fecbench.results.analysis import trial_course
from fecbench.results.analysis.trial_course import Course, Crossing
from fecbench.results.store.records import SeriesTable, TrialRecord
from fecbench.results.store.stored_series import of_endpoint
from fecbench.runners.campaign.replay import Replay
from fecbench.runners.tasks.series import LIMIT_BYTES, read_left, table
from fecbench.runners.tasks.task import ROLES, Task, pair_name
from fecbench.topologies.link import DIRECTIONS, Direction
from fecbench.topologies.link_report import DROPS
from fecbench.topologies.topology import layout_of

_CAPTURES = (".pcapng", ".pcap")


@dataclass(frozen=True)
class _Sent:
    """A packet of a pair, from its sender's capture, and when its peer's has it."""

    pair: int
    link: str
    direction: Direction
    at_s: float
    payload_bytes: int
    arrived_s: float
    """NaN: never."""


def course_of(again: Replay, folder: Path) -> Course:
    """Return the course of a trial that was run again, from its folder.

    Raises BadInput for a capture that cannot be read.
    """
    assert again.task is not None
    record = again.replayed.record
    packets = sorted(_packets(again.task, folder), key=lambda packet: packet.at_s)
    ours = [packet for packet in packets if packet.pair == 0]
    begun_at = min((packet.at_s for packet in ours), default=0.0)
    of_server = list(again.task.links)[-1:] if again.task.has_relay else again.task.links
    reached = [packet.arrived_s for packet in ours if packet.direction == "up" and packet.link in of_server]
    begun_s = {"server": float(np.nanmin([*reached, np.inf])) - begun_at} if ours else {}
    crossings, notes = [], [] if record.state == "ok" else [f"this run is {record.state}: {record.reason}"]
    for link in again.task.links:
        for direction in DIRECTIONS:
            crossing = _crossing(record, link, direction, packets, begun_at)
            crossings += [crossing] if crossing.sent_s.size else []
            if missing := int(np.count_nonzero(crossing.fates == trial_course.MISSING)):
                notes.append(
                    f"{link}/{direction}: {counted(missing, 'packet', 'is/are')} drawn as never"
                    " come: no capture has them, and"
                    " neither the losses nor the link dropped them; their receiver may have ended before"
                )
    series = list(_series(folder))
    congestion, repair = trial_course.congestion_of(series, begun_s), trial_course.repair_of(series, begun_s)
    notes += [] if ours else ["packets were not captured: losses are drawn by number, without their times"]
    notes += [] if congestion else ["the implementation tells nothing of congestion control over time"]
    notes += [] if repair else ["the implementation tells nothing of repair over time"]
    return Course(
        detail=trial_course.detail_of(again.replayed)
        + ("" if record.state == "ok" else f" · {record.state}"),
        sender=trial_course.sender_of(record),
        completed_s=trial_course.completed_s(record),
        crossings=crossings,
        verdicts=() if ours else tuple(record.verdicts),
        congestion=congestion,
        repair=repair,
        notes=notes,
    )


def _crossing(
    record: TrialRecord, link: str, direction: Direction, packets: list[_Sent], begun_at: float
) -> Crossing:
    """The measured pair's packets of one direction of a link; others that share it have a part in fates."""
    of_direction = [packet for packet in packets if (packet.link, packet.direction) == (link, direction)]
    arrived_at = np.array([packet.arrived_s for packet in of_direction])
    log = next(log for log in record.verdicts if (log.link, log.direction) == (link, direction))
    counted = record.links[link]["directions"][direction]
    by_link = sum(counted.get(name, 0) for name in DROPS)
    fates = trial_course.fates(~np.isnan(arrived_at), log, by_link)
    ours = np.array([packet.pair == 0 for packet in of_direction], dtype=np.bool_)
    return Crossing(
        link,
        direction,
        sent_s=np.array([packet.at_s for packet in of_direction])[ours] - begun_at,
        arrived_s=arrived_at[ours] - begun_at,
        payload_bytes=np.array([packet.payload_bytes for packet in of_direction], dtype=np.int64)[ours],
        fates=fates[ours],
    )


def _packets(task: Task, folder: Path) -> Iterator[_Sent]:
    """The packets of all pairs whose captures are there."""
    if task.has_relay:
        yield from _relayed(task, folder)
        return
    layout = layout_of(task.topology, task.family)
    for pair, (client, _) in enumerate(layout.pairs):
        files = [_capture(folder / pair_name(pair), role) for role in ("client", "server")]
        if pair >= len(task.pairs) or None in files:
            continue
        of_client, of_server = (list(recordings.packets(file)) for file in files if file is not None)
        paths = _paths(task, layout.addresses(client))
        for link in task.links:
            for direction in DIRECTIONS:
                way = _Way(link, direction, paths, f":{task.port}")
                sent, arrived = (of_client, of_server) if direction == "up" else (of_server, of_client)
                yield from _matched(pair, way, filter(way.has, sent), filter(way.has, arrived))


def _relayed(task: Task, folder: Path) -> Iterator[_Sent]:
    """The packets of both hops, told apart by the address at either end."""
    layout = layout_of(task.topology, task.family)
    ((client, server), *_), relay = layout.pairs, layout.relay
    assert relay is not None
    files = [_capture(folder / pair_name(0), place) for place in task.places]
    captures = [list(recordings.packets(file)) for file in files if file is not None]
    if len(captures) < len(files):
        return
    hosts = [ip_address(layout.addresses(host)[0]).packed.hex() for host in (client, relay, server)]
    for number, link in enumerate(task.links):
        near, far = number, number + 1
        for direction in DIRECTIONS:
            sender, receiver = (near, far) if direction == "up" else (far, near)
            hop = _Hop(link, direction, hosts[sender], hosts[receiver])
            yield from _matched(
                0, hop, filter(hop.has, captures[sender]), filter(hop.has, captures[receiver])
            )


@dataclass(frozen=True)
class _Hop:
    """A direction of a link beside a relay, with the addresses of both hosts."""

    link: str
    direction: Direction
    source: str
    destination: str

    def has(self, packet: recordings.Packet) -> bool:
        """Whether a packet takes it."""
        ends = (packet.source.partition(":")[0], packet.destination.partition(":")[0])
        return ends == (self.source, self.destination)


@dataclass(frozen=True)
class _Way:
    """A direction of a link."""

    link: str
    direction: Direction
    paths: Mapping[str, str]
    """The link of each address of the client; none where there is one link for all."""
    port: str
    """Port of the server, as an address ends."""

    def has(self, packet: recordings.Packet) -> bool:
        """Whether a packet takes it."""
        is_up = packet.destination.endswith(self.port)
        client = (packet.source if is_up else packet.destination).partition(":")[0]
        return is_up == (self.direction == "up") and self.paths.get(client, self.link) == self.link


def _series(folder: Path) -> Iterator[SeriesTable]:
    """The series of both ends of the measured pair, also of a trial that is not ok."""
    for role in ROLES:
        for name in trial_course.SERIES:
            file = folder / role / f"{name}.series.csv"
            if file.is_file():
                content = read_left(file, f"a series {name}", LIMIT_BYTES)
                yield of_endpoint(role, name, table(name, content))


def _paths(task: Task, addresses: tuple[str, ...]) -> dict[str, str]:
    """The link that each address of a client uses, where there are several links."""
    links = list(task.links)
    if len(links) == 1:
        return {}
    return dict(zip((ip_address(address).packed.hex() for address in addresses), links, strict=True))


def _capture(folder: Path, role: str) -> Path | None:
    """The capture of a host, if there is one."""
    files = (folder / f"{role}{suffix}" for suffix in _CAPTURES)
    return next((file for file in files if file.is_file()), None)


def _matched(
    pair: int, way: _Way | _Hop, sent: Iterable[recordings.Packet], arrived: Iterable[recordings.Packet]
) -> Iterator[_Sent]:
    """Yield each sent packet with its arrival time at the other side.

    Packets of the same content are the same packet; of several copies, the first sent arrived first.
    """
    times: defaultdict[bytes, deque[float]] = defaultdict(deque)
    for packet in arrived:
        times[packet.content].append(packet.at_s)
    for packet in sent:
        arrivals = times[packet.content]
        arrived_s = arrivals.popleft() if arrivals else float("nan")
        yield _Sent(pair, way.link, way.direction, packet.at_s, len(packet.payload), arrived_s)
