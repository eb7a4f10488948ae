"""The sizes of what carries content, as the judge counts them: Ethernet, IP without options, and UDP."""

from fecbench.topologies.family import Family
from fecbench.topologies.link import MTU

_IP_BYTES: dict[Family, int] = {"ipv4": 20, "ipv6": 40}
UDP_HEADER_BYTES = 8
ETHERNET_HEADER_BYTES = 14
FRAME_BYTES = ETHERNET_HEADER_BYTES + MTU
"""Length of the largest frame."""


def header_bytes(family: Family) -> int:
    """Return the length of a frame's headers: Ethernet and IP."""
    return ETHERNET_HEADER_BYTES + _IP_BYTES[family]


def datagram_bytes(family: Family) -> int:
    """Return the length of the largest UDP payload."""
    return MTU - _IP_BYTES[family] - UDP_HEADER_BYTES


DATAGRAM_BYTES = datagram_bytes("ipv4")
"""The largest UDP payload of any family."""
