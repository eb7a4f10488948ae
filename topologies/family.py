"""The family of addresses of a network: the layouts are written in IPv4, and each has a twin in IPv6.

10.0.1.2/24 becomes fd00:fec:a00:1::2/64 (RFC 4193): the third and fourth words name the network, the last
one the host. MAC addresses, names, routes and rules stay what they are.
"""

from collections.abc import Iterable
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Interface, IPv6Interface
from typing import Final, Literal, get_args

from fecbench.complaint import wrong_value
from fecbench.topologies.layout import Cable, EmulatedLink, Layout, Port, Route
from fecbench.topologies.link import TopologyError

Family = Literal["ipv4", "ipv6"]
FAMILIES: Final[tuple[Family, ...]] = get_args(Family)
_PREFIX, _NETWORK_BITS = "fd00:fec", 64


def check_family(value: object) -> Family:
    """Return a family by its name. Raises TopologyError for another value."""
    for family in FAMILIES:
        if value == family:
            return family
    raise TopologyError(wrong_value("family", value, " or ".join(FAMILIES)))


def in_family(layout: Layout, family: Family) -> Layout:
    """Return the same network with addresses of a family."""
    if family == "ipv4":
        return layout
    return replace(
        layout,
        cables=tuple(Cable(_port(cable.near), _port(cable.far)) for cable in layout.cables),
        links=tuple(EmulatedLink(link.name, _port(link.near), _port(link.far)) for link in layout.links),
        routes={node: _routes(routes) for node, routes in layout.routes.items()},
        rules={
            node: {_address(source): _routes(routes) for source, routes in rules.items()}
            for node, rules in layout.rules.items()
        },
    )


def _port(port: Port) -> Port:
    return replace(port, address=IPv6Interface(f"{_address(str(port.address.ip))}/{_NETWORK_BITS}"))


def _routes(routes: Iterable[Route]) -> tuple[Route, ...]:
    return tuple((_network(network), _address(hop)) for network, hop in routes)


def _network(network: str) -> str:
    if network == "default":
        return network
    return str(IPv6Interface(f"{_address(str(IPv4Interface(network).ip))}/{_NETWORK_BITS}").network)


def _address(address: str) -> str:
    first, second, third, last = IPv4Address(address).packed
    return str(IPv6Interface(f"{_PREFIX}:{first << 8 | second:x}:{third:x}::{last:x}").ip)
