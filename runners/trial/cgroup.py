"""Limits of a whole trial by the kernel's control groups: its memory, and its number of processes.

A worker is in cgroups of its own, and so is the trial that it runs. Moving a process into a cgroup takes up
to 14 ms, so each worker does that only once. Our own part of a trial counts, too. The kernel kills endpoints
first when memory is short, because they volunteer for it (`confinement`).

Our cgroups are below those of the harness, so that limits of the harness apply, too. The machine chooses
where memory and processes are counted: both in one tree (version 2), or each in its own (version 1).
A container may not allow any cgroup: then only the limits of single processes apply.

Nobody can remove a cgroup that has processes. Only this shows that a cgroup is in use. The number of a
process does not: its maker may be in another PID namespace, or another process may have the number by now.
Every harness removes an empty cgroup that it meets, and makes a removed one again before it enters it.
"""

import contextlib
import errno
import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Literal

Controller = Literal["memory", "pids"]
CONTROLLERS: tuple[Controller, ...] = ("memory", "pids")

PROCESSES = 8192
"""Most processes of a trial, threads included: more than its endpoints can start by their own limits."""
MEMORY_BYTES = min(4 << 30, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2)
"""Most memory of a trial: 4 GiB, or half of the machine's memory."""

OF_SWAP = ("memory.memsw.limit_in_bytes", "memory.swap.max")
"""Files that a kernel without swap does not have."""

REMOVE_LIMIT_S = 5.0
LEAVE_LIMIT_S = 0.2
"""Time for the processes of a killed harness, which end with it, to leave their cgroups."""
# After the harness's folder, whose name says which process made it: it is not asked whether that lives.
OURS = re.compile(r"fecbench-(?P<process>[0-9]+)-[a-z0-9_]{8}\.[a-z0-9-]+")


@dataclass(frozen=True)
class Place:
    """A cgroup in which others can be made."""

    version: Literal[1, 2]
    folder: Path
    controllers: tuple[Controller, ...]
    """Our controllers that count here."""

    def limits(self) -> dict[str, int]:
        """Return the limits of one of our cgroups: the text of each of its files."""
        limits: dict[tuple[int, Controller], dict[str, int]] = {
            (1, "memory"): {
                "memory.limit_in_bytes": MEMORY_BYTES,
                "memory.memsw.limit_in_bytes": MEMORY_BYTES,
            },
            (2, "memory"): {"memory.max": MEMORY_BYTES, "memory.swap.max": 0},
            (1, "pids"): {"pids.max": PROCESSES},
            (2, "pids"): {"pids.max": PROCESSES},
        }
        return {
            name: value
            for controller in self.controllers
            for name, value in limits[self.version, controller].items()
        }


@dataclass(frozen=True)
class Mount:
    """A mounted tree of cgroups."""

    version: Literal[1, 2]
    root: Path
    """The cgroup that is seen at `point`."""
    point: Path
    options: frozenset[str]
    """The controllers are among them, in version 1."""

    def folder(self, cgroup: str) -> Path:
        """Return the folder at which this mount shows a cgroup."""
        path = Path(cgroup)
        return self.point / path.relative_to(self.root) if path.is_relative_to(self.root) else self.point


def mounts(mountinfo: str) -> list[Mount]:
    """The trees of cgroups in the text of /proc/PID/mountinfo."""
    trees = []
    for line in mountinfo.splitlines():
        where, _, what = line.partition(" - ")
        kind, _, options = what.split(" ", 2)
        if kind in ("cgroup", "cgroup2"):
            root, point = where.split(" ")[3:5]
            version: Literal[1, 2] = 1 if kind == "cgroup" else 2
            trees.append(Mount(version, Path(root), Path(point), frozenset(options.split(","))))
    return trees


def places(mountinfo: str, own: str) -> list[Place]:
    """Return the places for cgroups with limits, from the texts of /proc/PID/mountinfo and
    /proc/PID/cgroup."""
    # A line is NUMBER:CONTROLLERS:PATH; version 2 has no controllers.
    lines = [line.split(":", 2) for line in own.splitlines()]
    cgroups = {controller: path for _, listed, path in lines for controller in listed.split(",")}
    candidates: list[Place] = []
    for mount in mounts(mountinfo):
        if mount.version == 2 and "" in cgroups:
            folder = mount.folder(cgroups[""])
            candidates += [Place(2, *delegating) for delegating in _delegating(folder, mount.point)]
        elif mount.version == 1:
            controllers = tuple(one for one in CONTROLLERS if one in mount.options and one in cgroups)
            if controllers:
                candidates.append(Place(1, mount.folder(cgroups[controllers[0]]), controllers))
    return candidates


def _delegating(folder: Path, top: Path) -> Iterator[tuple[Path, tuple[Controller, ...]]]:
    """The nearest cgroup of version 2, from `folder` upwards, whose children have a controller of ours.

    A cgroup with processes has no such children, so it is seldom that of the harness itself.
    """
    for candidate in (folder, *folder.parents):
        if not candidate.is_relative_to(top):
            return
        passed_on = candidate / "cgroup.subtree_control"
        words = passed_on.read_text(encoding="utf-8").split() if passed_on.is_file() else []
        controllers = tuple(controller for controller in CONTROLLERS if controller in words)
        if controllers:
            yield candidate, controllers
            return


@cache
def usable() -> tuple[Place, ...]:
    """The places of this machine where a cgroup can be made: it is tried."""
    proc = Path("/proc/self")
    mountinfo, own = (os.fsdecode((proc / name).read_bytes()) for name in ("mountinfo", "cgroup"))
    candidates = places(mountinfo, own)
    return tuple(place for place in candidates if _can_make(place))


def _can_make(place: Place) -> bool:
    folder = place.folder / f"{new_name()}.try"
    try:
        _make(place, folder)
        _remove(folder)
    except OSError:
        return False
    return True


def new_name() -> str:
    """Return a prefix for the names of a harness's cgroups, where it has no folder."""
    return f"fecbench-{os.getpid()}-{os.urandom(4).hex()}"


def enter(name: str) -> None:
    """Make a cgroup of this name in each usable place. This process and everything that it starts count there
    from now on."""
    for place in usable():
        _make(place, place.folder / name, {"cgroup.procs": 0})  # whoever writes this


def counts_memory() -> bool:
    """Whether a cgroup bounds the memory of endpoints here."""
    return any("memory" in place.controllers for place in usable())


def _make(place: Place, folder: Path, then: Mapping[str, int] = MappingProxyType({})) -> None:
    """Make a cgroup with its limits, and write `then` there."""
    while True:
        folder.mkdir(exist_ok=True)
        try:
            for file, value in {**place.limits(), **then}.items():
                if (folder / file).exists() or file not in OF_SWAP:
                    (folder / file).write_text(str(value), encoding="ascii")
            return
        except OSError as error:
            # It is gone where another harness met it while it was empty.
            if error.errno not in (errno.ENOENT, errno.ENODEV) or folder.exists():
                with contextlib.suppress(OSError):
                    folder.rmdir()
                raise


def _remove(folder: Path, limit_s: float | None = None) -> None:
    """The kernel may need a moment after the last process has ended; another harness may have been faster."""
    deadline = time.monotonic() + (REMOVE_LIMIT_S if limit_s is None else limit_s)
    while True:
        try:
            folder.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.001)


def remove(name: str) -> None:
    """Remove the cgroups whose names begin with this one and a dot; everything in them has ended.

    A cgroup that processes are still leaving after REMOVE_LIMIT_S stays: the next harness will
    `remove_abandoned`.
    """
    for place in usable():
        for folder in place.folder.glob(f"{name}.*/"):
            with contextlib.suppress(OSError):
                _remove(folder)


def remove_abandoned() -> list[Path]:
    """Remove the empty cgroups of harnesses, and return their folders."""
    removed = []
    for place in usable():
        for folder in sorted(place.folder.glob("fecbench-*/")):
            if match := OURS.fullmatch(folder.name):
                # A maker that is not visible may have been killed just now: then wait a moment.
                is_seen = Path(f"/proc/{match['process']}").exists()
                with contextlib.suppress(OSError):  # somebody is in there
                    _remove(folder, 0.0 if is_seen else LEAVE_LIMIT_S)
                    removed.append(folder)
    return removed
