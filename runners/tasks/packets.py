"""The sizes of what carries content, as the judge counts them: Ethernet, IPv4 and UDP."""

from fecbench.topologies.link import MTU

HEADER_BYTES = 14 + 20
"""Headers of a frame: Ethernet, and IPv4 without options."""
UDP_HEADER_BYTES = 8
FRAME_BYTES = 14 + MTU
"""Length of the largest frame."""
DATAGRAM_BYTES = MTU - 20 - UDP_HEADER_BYTES
"""Length of the largest UDP payload."""
