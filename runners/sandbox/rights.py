"""The rights of a program of somebody else: a user of its own, and limits of its processes."""

import resource
from collections.abc import Iterable, Mapping
from pathlib import Path

from fecbench.runners.sandbox import fence, kernel

FIRST_USER = 0x70000000
"""systemd's table of users has nobody from here to 0x7FFEFFFF; other systems have fewer users."""
USERS = 10
"""The programs that a process has run at once at most: the endpoints of a trial."""

LIMITS = {
    resource.RLIMIT_CORE: 0,
    resource.RLIMIT_NOFILE: 4096,
    resource.RLIMIT_NPROC: 512,
    # Real-time priority and a negative nice value, which some systems allow to some groups.
    resource.RLIMIT_RTPRIO: 0,
    resource.RLIMIT_NICE: 0,
}
"""Limits of each process; NPROC applies to the whole user, so to each program."""
OPEN_FILES = 1024
"""Initial limit of open files; a program may raise it up to its hard limit."""


def first_user(process: int) -> int:
    """The first user of the programs that this process runs: no other has it, for as long as it lives."""
    return FIRST_USER + USERS * process


def own_user(process: int) -> int | None:
    """Return the user as whom this process runs a program; None: as its own user, since it may not become
    another."""
    user = first_user(process)
    return user if kernel.may_administer() and kernel.has_user(user) else None


def limit(limits: Mapping[int, int]) -> None:
    """Set the limits of this process, none above what it has already."""
    for name, value in limits.items():
        _, most = resource.getrlimit(name)
        bound = value if most == resource.RLIM_INFINITY else min(value, most)
        resource.setrlimit(name, (min(OPEN_FILES, bound) if name == resource.RLIMIT_NOFILE else bound, bound))


def keep_as_same_user(
    limits: Mapping[int, int], readable: Iterable[Path], writable: Path, *, network: bool = False
) -> None:
    """Confine a program that has no user of its own: it gains no rights, sees only these folders and those of
    the system, and has no network unless it needs it, if the kernel can enforce that."""
    # The limit of processes is one of a user's, who may run others.
    limit({name: value for name, value in limits.items() if name != resource.RLIMIT_NPROC})
    kernel.gain_nothing()
    if fence.is_offered():
        fence.enter(fence.without_home(readable), [writable], network=network)


def offer_to_be_killed() -> None:
    """Offer this process to be killed before any of ours when memory runs out."""
    Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def prefixes(program: Path) -> list[Path]:
    """The folders with what a program needs beside itself, such as the libraries of an interpreter: that
    which has its `bin`, of the name that it is called by and of its own."""
    return [
        path.parent.parent if path.parent.name == "bin" else path.parent
        for path in (program, program.resolve())
        if path.is_absolute()
    ]
