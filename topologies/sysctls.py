"""Settings of the kernel in a network namespace."""

import errno
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path

from fecbench.topologies.tcp import TCP_SYSCTLS

QUIET_SYSCTLS = {
    # Neighbour discovery and multicast reports would be frames of the link that no endpoint sent. Networks of
    # IPv6 switch it on at each interface, once it can send none (network.py).
    "net/ipv6/conf/all/disable_ipv6": "1",
    "net/ipv6/conf/default/disable_ipv6": "1",
    **TCP_SYSCTLS,
}
ROUTER_SYSCTLS = {**QUIET_SYSCTLS, "net/ipv4/ip_forward": "1"}
IPV6_FORWARDING = {"net/ipv6/conf/all/forwarding": "1"}


def ipv6_sysctls(interfaces: Iterable[str]) -> dict[str, str]:
    """Return what switches IPv6 on at interfaces that have it off, without an address of the link or
    advertisements of routers."""
    own = {"addr_gen_mode": "1", "accept_ra": "0", "accept_dad": "0", "disable_ipv6": "0"}
    return {
        f"net/ipv6/conf/{interface}/{name}": value for interface in interfaces for name, value in own.items()
    }


_IPV6 = Path("/proc/sys/net/ipv6")


def write_sysctls(values: Mapping[str, str]) -> None:
    """Write sysctls in the network namespace of the calling thread."""
    has_ipv6()
    for name, value in values.items():
        path = Path("/proc/sys") / name
        if path.exists():  # a kernel without IPv6 has nothing to switch off
            path.write_text(value, encoding="ascii")


def has_ipv6() -> bool:
    """Whether the kernel has IPv6, which is loaded where it is a module: it must be there to be switched off.

    Else the first program that asks for it, such as ping, loads it, and it sends frames of its own.
    """
    if not _IPV6.exists():
        _load_ipv6()
    return _IPV6.exists()


def _load_ipv6() -> None:
    try:
        socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).close()
    except OSError as error:
        if error.errno != errno.EAFNOSUPPORT:
            raise
