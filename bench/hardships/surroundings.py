"""Things that a command could leave behind on a machine: processes, network namespaces, interfaces, control
groups, BPF programs and maps with a name, and files in its temporary folder."""

import contextlib
import os
import signal
import socket
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, fields
from pathlib import Path

PROC = Path("/proc")
CGROUPS = Path("/sys/fs/cgroup")
PINS = Path("/sys/fs/bpf")
SETTLE_S = 10.0
"""Processes of a killed command end by themselves, and the kernel needs a moment for what they held."""


@dataclass(frozen=True)
class Surroundings:
    """Names of all that a command could leave, by kind."""

    processes: frozenset[str]
    namespaces: frozenset[str]
    interfaces: frozenset[str]
    cgroups: frozenset[str]
    pins: frozenset[str]
    temporary_files: frozenset[str]

    def left(self, before: "Surroundings") -> list[str]:
        """A line for each thing that was not there before."""
        return [
            f"{field.name.replace('_', ' ')} left: {', '.join(sorted(new))}"
            for field in fields(self)
            if (new := getattr(self, field.name) - getattr(before, field.name))
        ]


def look(mark: Path, harnesses: Collection[int] = ()) -> Surroundings:
    """Return what there is now of commands whose TMPDIR is `mark`, and of the processes `harnesses`."""
    own = processes_of(mark)
    return Surroundings(
        processes=frozenset(f"{process} {words}" for process, words in own.items()),
        namespaces=_names(Path("/run/netns")),
        interfaces=frozenset(name for _, name in socket.if_nameindex()),
        cgroups=frozenset(_cgroups_of(harnesses)),
        pins=_names(PINS),
        temporary_files=_names(mark),
    )


def await_end(mark: Path, harnesses: Collection[int], before: Surroundings) -> list[str]:
    """Return what is left although it had time to end."""
    deadline = time.monotonic() + SETTLE_S
    while (remains := look(mark, harnesses).left(before)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return remains


def await_no_process(mark: Path) -> list[str]:
    """A line for each process of a killed command that does not end by itself."""
    deadline = time.monotonic() + SETTLE_S
    while (running := processes_of(mark)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return [f"still running: {process} {words}" for process, words in running.items()]


def descendants(process: int) -> dict[int, str]:
    """The command lines of the processes below this one."""
    processes: dict[int, str] = {}
    for thread in PROC.glob(f"{process}/task/*"):
        try:
            children = [int(child) for child in (thread / "children").read_text().split()]
            for child in children:
                words = (PROC / str(child) / "cmdline").read_bytes()
                processes[child] = words.replace(b"\0", b" ").decode(errors="replace")
                processes |= descendants(child)
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended
    return processes


def processes_of(mark: Path) -> dict[int, str]:
    """The processes that were given this TMPDIR, or name it, with their command lines."""
    processes = {}
    for folder in PROC.iterdir():
        try:
            if folder.name.isdigit() and int(folder.name) != os.getpid():
                words = (folder / "cmdline").read_bytes()
                if str(mark).encode() in words + (folder / "environ").read_bytes():
                    processes[int(folder.name)] = words.replace(b"\0", b" ").decode(errors="replace")[:120]
        except (PermissionError, FileNotFoundError, ProcessLookupError):
            continue  # it has ended, or is no child of ours
    return processes


def end_all_of(mark: Path) -> None:
    """Kill the commands that still run here, when nobody judges them any more."""
    for process in processes_of(mark):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def _names(folder: Path) -> frozenset[str]:
    return frozenset(path.name for path in folder.iterdir()) if folder.is_dir() else frozenset()


def _cgroups_of(harnesses: Collection[int]) -> Iterator[str]:
    """Yield the cgroups that are named after one of them."""
    named = tuple(f"fecbench-{harness}-" for harness in harnesses)
    for _, folders, _ in os.walk(CGROUPS):  # which bears that others remove theirs meanwhile
        yield from (name for name in folders if name.startswith(named))
