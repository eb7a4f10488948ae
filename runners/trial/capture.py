"""Records the packets of all hosts that have endpoints, with tcpdump."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from fecbench.topologies.topology import Host

LIMIT_S = 5.0
_LONGEST_BYTES = 4096
_BUFFER_KIB = 16384
"""A place in the buffer has room for the longest packet, by default 256 KiB: of 2 MiB, 8 packets would be
all that a burst may have, and what comes besides is in no capture."""


def start(hosts: Sequence[tuple[Host, Path]], port: int) -> list[subprocess.Popen[bytes]]:
    """Record each host's packets into its file. When this returns, the recordings run."""
    return [_capture(host, file, port) for host, file in hosts]


def _capture(host: Host, file: Path, port: int) -> subprocess.Popen[bytes]:
    what = ["-i", "any", "-n", "port", str(port)]
    # Each packet is written as it comes: none is in a buffer when the recording is ended.
    room = ["-s", str(_LONGEST_BYTES), "-B", str(_BUFFER_KIB)]
    arguments = ["tcpdump", "--immediate-mode", "-U", *room, "-Z", "root", "-w", str(file), *what]
    process: subprocess.Popen[bytes] = host.popen(arguments, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr
    _await_line(process.stderr, b"listening on", f"tcpdump in {host.name}")
    return process


def _await_line(stream: IO[bytes], part: bytes, who: str) -> None:
    lines = []
    for line in stream:
        if part in line:
            return
        lines.append(line.decode(errors="replace").strip())
    raise RuntimeError(f"{who} ended before it recorded: {' '.join(lines)}")


def stop(captures: Sequence[subprocess.Popen[bytes]]) -> None:
    """Stop the captures. Their files then hold every packet that came in."""
    for process in captures:
        process.terminate()
    for process in captures:
        process.wait(LIMIT_S)
