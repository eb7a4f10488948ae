"""What the kernel has counted at an interface."""

from collections.abc import Iterable
from pathlib import Path


def received_bytes(process: int, interfaces: Iterable[str]) -> int:
    """Bytes of the Ethernet frames that came in at these interfaces of the process's network namespace."""
    received = {}
    for line in Path(f"/proc/{process}/net/dev").read_text().splitlines():
        name, _, counts = line.partition(":")
        if counts:  # not a heading
            received[name.strip()] = int(counts.split()[0])
    total = 0
    for interface in interfaces:
        if interface not in received:
            raise ValueError(f"process {process} has no interface {interface}; it has {', '.join(received)}")
        total += received[interface]
    return total
