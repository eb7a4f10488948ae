"""Settings of the kernel's TCP in a host: its congestion control, its buffers, its paths.

Users may choose few controllers (tcp_allowed_congestion_control, one list for the whole machine), but a
connection takes the one that its route names. So a program without rights gets any that the kernel has.
"""

from collections.abc import Iterable
from pathlib import Path

BUFFER_BYTES = 64 << 20
"""The limit of a TCP connection's buffers: the link, not they, shall limit a transfer."""

TCP_SYSCTLS = {
    # A TCP that remembers the path would let a trial depend on the ones before it.
    "net/ipv4/tcp_no_metrics_save": "1",
    "net/ipv4/tcp_fastopen": "0",
    # Least, initial and largest size. The initial one is the kernel's default.
    "net/ipv4/tcp_rmem": f"4096 131072 {BUFFER_BYTES}",
    "net/ipv4/tcp_wmem": f"4096 16384 {BUFFER_BYTES}",
}

WITH_ECN = {"net/ipv4/tcp_ecn": "1"}
"""Ask for ECN (RFC 3168); by default the kernel only answers who asks. It is for IPv6, too."""

_AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")


def controllers() -> list[str]:
    """The congestion controllers that this kernel has."""
    return _AVAILABLE.read_text(encoding="utf-8").split()


def controlled(routes: Iterable[str], controller: str) -> list[str]:
    """Commands of ip by which connections over these routes get a controller that the kernel has."""
    return [f"route replace {route} congctl {controller}" for route in routes]


def subflows(addresses: Iterable[tuple[str, str]], most: int) -> list[str]:
    """Commands of ip by which Multipath TCP makes a subflow from each of these addresses, given with their
    interfaces, besides that from the address from which a connection begins. `most` is how many are made or
    accepted."""
    return [
        f"mptcp limits set subflow {most} add_addr_accepted 0",
        *(f"mptcp endpoint add {address} dev {interface} subflow" for address, interface in addresses),
    ]
