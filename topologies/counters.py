"""What the kernel has counted at an interface."""

from pathlib import Path


def received_bytes(process: int, interface: str) -> int:
    """Bytes of the Ethernet frames that came in at an interface of the process's network namespace."""
    lines = Path(f"/proc/{process}/net/dev").read_text().splitlines()
    for line in lines:
        name, _, counts = line.partition(":")
        if name.strip() == interface:
            return int(counts.split()[0])
    raise ValueError(f"process {process} has no interface {interface}")
