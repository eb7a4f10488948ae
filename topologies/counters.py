"""Counters of the kernel in the network namespace of a process: packets that arrived, and those that it
discarded."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

SOFTNET = Path("/proc/net/softnet_stat")
RECEIVE_BUFFER = "UDP receive buffer"
"""The place where datagrams are lost that find the buffer of their socket full."""
TCP_BUFFER = "TCP receive buffer"
"""The place of segments that find no room in the buffer of their connection, or in a listener's queue."""

CHECKSUMS = ("UDP checksum", "TCP checksum")
"""The places of packets with a wrong checksum."""

# The place of each UDP counter in /proc/net/snmp. InErrors counts the errors of all kinds together.
_UDP_PLACES = {
    "RcvbufErrors": RECEIVE_BUFFER,
    "InCsumErrors": "UDP checksum",
    "MemErrors": "UDP memory of the machine",
}
_OTHER_UDP = "UDP input"
# TCP counters in /proc/net/netstat of segments that arrived and were thrown away.
_TCP_BUFFERS = (
    *("TCPBacklogDrop", "TCPRcvQDrop", "TCPOFODrop", "RcvPruned", "OfoPruned", "TCPZeroWindowDrop"),
    *("ListenDrops", "TCPReqQFullDrop"),
)
_INTERFACE_PLACES = {
    "receive errs": "receive errors",
    "receive drop": "receive drops",
    "receive fifo": "receive FIFO errors",
    "transmit errs": "send errors",
    "transmit drop": "send drops",
    "transmit fifo": "send FIFO errors",
}


def bytes_of(process: int, interface: str) -> tuple[int, int]:
    """Return the bytes of the frames that came in and went out at an interface of the process's network
    namespace; (0, 0) without it."""
    counts = _interfaces(process).get(interface, {})
    return counts.get("receive bytes", 0), counts.get("transmit bytes", 0)


def received_bytes(process: int, interfaces: Iterable[str]) -> int:
    """Bytes of the Ethernet frames that came in at these interfaces of the process's network namespace."""
    received = {name: counts["receive bytes"] for name, counts in _interfaces(process).items()}
    total = 0
    for interface in interfaces:
        if interface not in received:
            raise ValueError(f"process {process} has no interface {interface}; it has {', '.join(received)}")
        total += received[interface]
    return total


def discarded(process: int) -> Counter[str]:
    """Return the numbers of frames and datagrams discarded in the process's network namespace, by place.

    A datagram that an attached BPF program drops is not counted.
    """
    counted = Counter(
        {
            f"{interface}: {place}": counts[name]
            for interface, counts in _interfaces(process).items()
            for name, place in _INTERFACE_PLACES.items()
        }
    )
    for errors in (_table(process, "snmp", "Udp"), _udp6(process)):
        by_place = {place: errors.get(name, 0) for name, place in _UDP_PLACES.items()}
        counted.update(by_place)
        counted[_OTHER_UDP] += max(0, errors.get("InErrors", 0) - sum(by_place.values()))
    of_tcp = _table(process, "netstat", "TcpExt")
    counted[TCP_BUFFER] += sum(of_tcp.get(name, 0) for name in _TCP_BUFFERS)
    counted["TCP checksum"] += _table(process, "snmp", "Tcp").get("InCsumErrors", 0)
    return counted


def backlog_drops() -> int:
    """Return the frames that the CPUs of the whole machine have discarded because too many waited for them.

    The kernel does not say in which namespace they were, but the interface at which they arrived counts them,
    too.
    """
    lines = SOFTNET.read_text(encoding="utf-8").splitlines()
    return sum(int(line.split()[1], 16) for line in lines)


def _interfaces(process: int) -> dict[str, dict[str, int]]:
    """The counters of each interface, by name: "receive drop"."""
    _, heading, *lines = Path(f"/proc/{process}/net/dev").read_text(encoding="utf-8").splitlines()
    _, received, sent = heading.split("|")
    names = [f"receive {name}" for name in received.split()] + [f"transmit {name}" for name in sent.split()]
    interfaces = {}
    for line in lines:
        name, _, counts = line.partition(":")
        interfaces[name.strip()] = dict(zip(names, map(int, counts.split()), strict=True))
    return interfaces


def _table(process: int, file: str, protocol: str) -> dict[str, int]:
    """The counters of a protocol, by the kernel's names: a line of names, and one of values."""
    rows = [
        line.split() for line in Path(f"/proc/{process}/net/{file}").read_text(encoding="utf-8").splitlines()
    ]
    names, values = (row[1:] for row in rows if row[0] == f"{protocol}:")
    return dict(zip(names, map(int, values), strict=True))


def _udp6(process: int) -> dict[str, int]:
    """Return the UDP counters of IPv6, as those of IPv4; none where the kernel has no IPv6."""
    path = Path(f"/proc/{process}/net/snmp6")
    return dict(_entries(path.read_text(encoding="utf-8"), "Udp6")) if path.exists() else {}


def _entries(text: str, prefix: str) -> Iterator[tuple[str, int]]:
    for line in text.splitlines():
        name, value = line.split()
        if name.startswith(prefix):
            yield name.removeprefix(prefix), int(value)
