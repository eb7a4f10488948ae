"""Settings of the kernel in a network namespace."""

import errno
import socket
from collections.abc import Mapping
from pathlib import Path

from fecbench.topologies.tcp import TCP_SYSCTLS

QUIET_SYSCTLS = {
    # Neighbour discovery and multicast reports would be frames of the link that no endpoint sent.
    "net/ipv6/conf/all/disable_ipv6": "1",
    "net/ipv6/conf/default/disable_ipv6": "1",
    **TCP_SYSCTLS,
}
ROUTER_SYSCTLS = {**QUIET_SYSCTLS, "net/ipv4/ip_forward": "1"}


_IPV6 = Path("/proc/sys/net/ipv6")


def write_sysctls(values: Mapping[str, str]) -> None:
    """Write sysctls in the network namespace of the calling thread."""
    if not _IPV6.exists():
        _load_ipv6()
    for name, value in values.items():
        path = Path("/proc/sys") / name
        if path.exists():  # a kernel without IPv6 has nothing to switch off
            path.write_text(value, encoding="ascii")


def _load_ipv6() -> None:
    """Load IPv6 where it is a module: it must be there to be switched off.

    Else the first program that asks for it, such as ping, loads it, and it sends frames of its own.
    """
    try:
        socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).close()
    except OSError as error:
        if error.errno != errno.EAFNOSUPPORT:
            raise
