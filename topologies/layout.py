"""The plan of a network: nodes, the cables and the emulated links between them, and who is reached how.

Plain data: a topology is a Layout, and network.py makes it real.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from ipaddress import IPv4Interface, IPv6Interface

Route = tuple[str, str]
"""A destination network or "default", and the address of the next hop."""


@dataclass(frozen=True)
class Port:
    """An interface of a node, with its address and network."""

    node: str
    interface: str
    address: IPv4Interface | IPv6Interface
    mac: str


@dataclass(frozen=True)
class Cable:
    """A connection that adds no delay and has no limit; `Topology.discarded` counts the frames that it
    loses all the same."""

    near: Port
    far: Port


@dataclass(frozen=True)
class EmulatedLink:
    """A link with LinkSettings; `near` is on the client's side of it."""

    name: str
    near: Port
    far: Port


@dataclass(frozen=True)
class Layout:
    hosts: tuple[str, ...]
    routers: tuple[str, ...]
    cables: tuple[Cable, ...]
    links: tuple[EmulatedLink, ...]
    routes: Mapping[str, tuple[Route, ...]]
    """The routes of each node."""
    pairs: tuple[tuple[str, str], ...]
    """The hosts of each client and its server; the first pair is the one that is measured."""
    rules: Mapping[str, Mapping[str, tuple[Route, ...]]] = field(default_factory=dict)
    """The routes, by node and by one of its addresses, that packets from that address try before `routes`.
    A host with several addresses needs them, or all its packets leave by one port."""
    relay: str | None = None
    """The host between the client and the server of the first pair, each behind a link of its own: the links
    are those of the hops, that of the client first. None: all links lead from clients to servers."""

    @property
    def is_ipv6(self) -> bool:
        """Whether its addresses are those of IPv6."""
        return self.links[0].near.address.version == 6

    @property
    def nodes(self) -> tuple[str, ...]:
        return self.hosts + self.routers

    def ports(self, node: str) -> list[tuple[Port, Port]]:
        """The ports of a node, those of cables first, each with the port at the other end."""
        return [(own, peer) for own, peer in self._ends() if own.node == node]

    def interfaces(self, node: str) -> tuple[str, ...]:
        return tuple(own.interface for own, _ in self.ports(node))

    def addresses(self, node: str) -> tuple[str, ...]:
        """Return the addresses of a node, in the order of its ports."""
        return self._addresses[node]

    @cached_property
    def _addresses(self) -> dict[str, tuple[str, ...]]:
        return {node: tuple(str(own.address.ip) for own, _ in self.ports(node)) for node in self.nodes}

    def _ends(self) -> Iterator[tuple[Port, Port]]:
        connections: tuple[Cable | EmulatedLink, ...] = (*self.cables, *self.links)
        for connection in connections:
            yield connection.near, connection.far
            yield connection.far, connection.near
