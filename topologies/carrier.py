"""Makes sure that interfaces carry frames before the first one is sent.

An interface that is set up before its peer gets its queue only when a worker of the kernel has seen that it
has a carrier: until then it discards every frame silently. Asking for its carrier makes the kernel do it
now.
"""

import struct
from collections.abc import Iterable

from fecbench.topologies.ethtool import control_socket, ethtool
from fecbench.topologies.link import LinkError

_GET_LINK = 0x0A


def ensure_carrier(interfaces: Iterable[str]) -> None:
    """Check that both ends are up, in the namespace of the calling thread. Raises LinkError for an
    interface without carrier."""
    with control_socket() as control:
        for interface in interfaces:
            # struct ethtool_value
            _, carrier = struct.unpack("=II", ethtool(control, interface, struct.pack("=II", _GET_LINK, 0)))
            if not carrier:
                raise LinkError(f"{interface} has no carrier")
