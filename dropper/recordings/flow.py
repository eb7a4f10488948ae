"""Flows: the packets of one source, address and port, to one destination."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from fecbench.dropper.recordings.packet import Packet, place_of
from fecbench.dropper.recordings.recording import Direction

Flow = tuple[str, str]
_FIRST_EPHEMERAL_PORT = 32768
"""Ports of clients begin there on Linux, and at 49152 elsewhere."""


def by_flow(packets: Iterable[Packet]) -> dict[Flow, list[Packet]]:
    """Return the packets of each flow, the flow with most bytes first."""
    flows = defaultdict[Flow, list[Packet]](list)
    for packet in packets:
        flows[packet.flow].append(packet)
    return dict(sorted(flows.items(), key=lambda item: -sum(packet.length for packet in item[1])))


def at_one_point(packets: list[Packet]) -> list[Packet]:
    """Return the packets as one interface saw them, where several saw the same ones."""
    points = Counter(packet.point for packet in packets)
    if len(points) < 2:
        return packets
    (main_point, _), (_, second) = points.most_common(2)
    seen_at = defaultdict[bytes, set[tuple[int, ...]]](set)
    for packet in packets:
        seen_at[packet.content].add(packet.point)
    again = sum(1 for places in seen_at.values() if len(places) > 1)
    return [packet for packet in packets if packet.point == main_point] if 2 * again >= second else packets


def direction_of(flow: Flow) -> Direction | None:
    """Return the direction by the ports: one below those of clients is a server's. None: they do not tell."""
    source, destination = (int(end.rpartition(":")[2]) for end in flow)
    if source < _FIRST_EPHEMERAL_PORT <= destination:
        return "down"
    return "up" if destination < _FIRST_EPHEMERAL_PORT <= source else None


def text_of(flow: Flow) -> str:
    """Return a flow as people write it."""
    source, destination = flow
    return f"{place_of(source)} to {place_of(destination)}"
