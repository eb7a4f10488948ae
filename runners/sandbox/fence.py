"""Keeps a program within its folders that has no user of its own: its starter has no rights to give away.

Landlock is for what is in files (the kernel's Documentation/userspace-api/landlock.rst), a filter of system
calls for what Landlock leaves open. Both hold for this process and for whatever it starts.

Left out: it sees the names of files and the command lines of processes, as every user does, and before
version 6 of Landlock (Linux 6.12) it can send signals to other processes of its user.
"""

import os
import struct
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from fecbench.runners.sandbox import kernel

SYSTEM = tuple(
    Path(name)
    for name in (
        *("/bin", "/sbin", "/usr", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix", "/gnu"),
        *("/etc", "/proc", "/sys"),
    )
)
"""Folders that a program may read. Homes, /run, /var, /srv, /mnt and folders for temporary files are not
included."""
DEVICES = tuple(Path("/dev", name) for name in ("null", "zero", "full", "random", "urandom"))

# linux/landlock.h: rights to files and folders, in the order of their bits.
_OF_FILES = ("execute", "write_file", "read_file")
_OF_FOLDERS = (
    *("read_dir", "remove_dir", "remove_file"),
    *("make_char", "make_dir", "make_reg", "make_sock", "make_fifo", "make_block", "make_sym"),
)
_LATER = ("refer", "truncate", "ioctl_dev")
_BITS = {name: 1 << place for place, name in enumerate((*_OF_FILES, *_OF_FOLDERS, *_LATER))}
_KNOWN_BY = {1: 13, 2: 14, 3: 15, 4: 15}
"""Number of these rights that each version of Landlock knows; later versions know all."""
_SCOPES_FROM, _SCOPES = 6, 0b11
"""Abstract Unix sockets, and signals, of other processes."""
_READ = sum(_BITS[name] for name in ("execute", "read_file", "read_dir"))
_NEVER = sum(_BITS[name] for name in ("make_char", "make_block"))
_FILE = sum(_BITS[name] for name in (*_OF_FILES, "truncate", "ioctl_dev"))
"""Rights that a rule can grant for a file instead of a folder."""


class Machine(NamedTuple):
    """Numbers of system calls of a kind of machine."""

    architecture: int
    """linux/audit.h"""
    socket: int
    refused: tuple[int, ...]
    """System calls that reach a user's things without opening files."""
    end: int = 1 << 30
    """Numbers from here on are of another architecture that the machine runs, too."""


MACHINES = {
    "x86_64": Machine(
        0xC000003E,
        socket=41,
        refused=(
            *(76, 90, 92, 94, 132, 235, 260, 261, 268, 280),  # truncate, chmod, chown, utime and their like
            *(188, 189, 197, 198),  # setxattr, lsetxattr, removexattr, lremovexattr
            *(29, 30, 31, 64, 65, 66, 68, 69, 70, 71, 220, 240, 241),  # shm*, sem*, msg*, mq_open, mq_unlink
            *(248, 249, 250),  # add_key, request_key, keyctl
        ),
    ),
    "aarch64": Machine(
        0xC00000B7,
        socket=198,
        refused=(
            *(45, 53, 54, 88),
            *(5, 6, 14, 15),
            *(180, 181, 186, 187, 188, 189, 190, 191, 192, 193, 194, 195, 196),
            *(217, 218, 219),
        ),
    ),
}
_REFUSED_EVERYWHERE = (425, 452, 463, 466, 469)
"""io_uring_setup, which opens sockets, too; fchmodat2, setxattrat, removexattrat, file_setattr."""

# linux/bpf_common.h and linux/seccomp.h
_LOAD, _IF_EQUAL, _IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050001  # the latter with EPERM
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16  # places in struct seccomp_data
_AF_UNIX = 1


@cache
def is_offered() -> bool:
    """Whether programs can be fenced in here."""
    return os.uname().machine in MACHINES and kernel.landlock_version() > 0 and kernel.can_filter_calls()


def enter(readable: Iterable[Path], writable: Iterable[Path], *, network: bool = False) -> None:
    """Restrict this process to these folders and those of the system, without capabilities and without
    sockets.

    With `network` it has sockets but those of Unix, by which programs of one user talk. Raises OSError. Call
    it from a process with one thread.
    """
    kernel.gain_nothing()
    kernel.drop_capabilities()
    version = kernel.landlock_version()
    handled = (1 << _KNOWN_BY.get(version, len(_BITS))) - 1
    granted = [(path, _READ) for path in (*SYSTEM, *readable)]
    granted += [(path, handled & ~_NEVER) for path in (*DEVICES, *writable)]
    ruleset = kernel.create_ruleset(handled, _SCOPES if version >= _SCOPES_FROM else 0)
    try:
        for path, access in granted:
            if path.exists():
                kernel.allow_below(ruleset, path, access if path.is_dir() else access & _FILE)
        kernel.restrict_to(ruleset)
    finally:
        os.close(ruleset)
    kernel.filter_calls(_program(MACHINES[os.uname().machine], network=network))


def without_home(folders: Iterable[Path]) -> list[Path]:
    """The folders that a program needs, but for those with the user's home in them: of these their `bin`."""
    home = Path.home()
    return [path / "bin" if home.is_relative_to(path) else path for path in folders]


def _program(machine: Machine, *, network: bool) -> bytes:
    """Return the filter as a BPF program of seccomp(2)."""
    refuse = _instruction(_RETURN, _REFUSE)
    parts = [
        _instruction(_LOAD, _ARCHITECTURE),
        _instruction(_IF_EQUAL, machine.architecture, then=1),
        refuse,
        _instruction(_LOAD, _NUMBER),
        *(_instruction(_IF_AT_LEAST, machine.end, otherwise=1), refuse),
    ]
    for number in (*machine.refused, *_REFUSED_EVERYWHERE):
        parts += [_instruction(_IF_EQUAL, number, otherwise=1), refuse]
    if network:
        parts += [
            _instruction(_IF_EQUAL, machine.socket, otherwise=3),
            _instruction(_LOAD, _FIRST_ARGUMENT),
            *(_instruction(_IF_EQUAL, _AF_UNIX, otherwise=1), refuse),
        ]
    else:
        parts += [_instruction(_IF_EQUAL, machine.socket, otherwise=1), refuse]
    return b"".join((*parts, _instruction(_RETURN, _ALLOW)))


def _instruction(code: int, value: int, *, then: int = 0, otherwise: int = 0) -> bytes:
    """Return a struct sock_filter: a jump skips so many instructions."""
    return struct.pack("HBBI", code, then, otherwise, value)
