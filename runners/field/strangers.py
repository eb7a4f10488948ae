"""Lets packets of the client alone in to a server's socket: others get nothing, not even a handshake.

The endpoint opened the socket itself, so a copy of it is taken (pidfd_getfd), and a filter is attached to
that (SO_ATTACH_FILTER, which needs no rights). It goes by the address from which the client's probes came: a
NAT may give each socket another port.
"""

import contextlib
import ctypes
import ipaddress
import os
import re
import socket
import struct
from collections.abc import Collection
from pathlib import Path

_PIDFD_GETFD = 438
_SO_ATTACH_FILTER = 26
_LOAD, _IF_EQUAL, _RETURN = 0x20, 0x15, 0x06  # linux/bpf_common.h
_NETWORK_HEADER = 0xFFF00000  # SKF_NET_OFF of linux/filter.h, from the end
_SOURCE_4, _SOURCE_6 = 12, 8
"""Place of the source in the headers of IPv4 and IPv6."""
_WHOLE = 0xFFFFFFFF
_libc = ctypes.CDLL(None, use_errno=True)


def shut_out(process: int, port: int, allowed: Collection[str]) -> int:
    """Attach the filter to each UDP socket of a process group at this port; return how many there are.

    Raises OSError where the kernel does not allow that.
    """
    inodes = _sockets_at(port)
    program = _program(allowed)
    count = 0
    for member in _session(process):
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):  # it has ended
            pidfd = os.pidfd_open(member)
            try:
                for number, inode in _open_sockets(member):
                    if inode in inodes:
                        _attach(pidfd, number, program)
                        count += 1
            finally:
                os.close(pidfd)
    return count


def _attach(pidfd: int, number: int, program: bytes) -> None:
    copy = _libc.syscall(_PIDFD_GETFD, pidfd, number, 0)
    if copy < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"taking a copy of a socket: {os.strerror(error)}")
    with socket.socket(fileno=copy) as opened:
        instructions = ctypes.create_string_buffer(program, len(program))
        form = struct.pack("HL", len(program) // 8, ctypes.addressof(instructions))
        opened.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, form)


def _program(allowed: Collection[str]) -> bytes:
    """Return the filter: a packet is let in whole if its source is one of these addresses."""
    parts = []
    for text in sorted(allowed):
        address = ipaddress.ip_address(text)
        address = getattr(address, "ipv4_mapped", None) or address
        words = struct.unpack(f"!{len(address.packed) // 4}I", address.packed)
        first = _SOURCE_4 if address.version == 4 else _SOURCE_6
        for place, word in enumerate(words):
            rest = 2 * (len(words) - place - 1)
            parts.append(_instruction(_LOAD, _NETWORK_HEADER + first + 4 * place))
            # Another word: past what is left of this address, and past its return.
            parts.append(_instruction(_IF_EQUAL, word, otherwise=rest + 1))
        parts.append(_instruction(_RETURN, _WHOLE))
    parts.append(_instruction(_RETURN, 0))
    return b"".join(parts)


def _instruction(code: int, value: int, *, then: int = 0, otherwise: int = 0) -> bytes:
    """Return a struct sock_filter: a jump skips so many instructions."""
    return struct.pack("HBBI", code, then, otherwise, value & _WHOLE)


def _session(process: int) -> list[int]:
    """Return the processes of a session."""
    members = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if os.getsid(int(entry.name)) == process:
                    members.append(int(entry.name))
            except (ProcessLookupError, PermissionError):
                continue
    return members


def _open_sockets(process: int) -> list[tuple[int, str]]:
    sockets = []
    for entry in Path(f"/proc/{process}/fd").iterdir():
        try:
            match = re.fullmatch(r"socket:\[(\d+)\]", str(entry.readlink()))
        except FileNotFoundError:
            continue
        if match:
            sockets.append((int(entry.name), match[1]))
    return sockets


def _sockets_at(port: int) -> set[str]:
    """Return the inodes of the UDP sockets at a port."""
    inodes = set()
    for name in ("udp", "udp6"):
        path = Path(f"/proc/net/{name}")
        if path.exists():
            for line in path.read_text(encoding="ascii").splitlines()[1:]:
                fields = line.split()
                if int(fields[1].rpartition(":")[2], 16) == port:
                    inodes.add(fields[9])
    return inodes
