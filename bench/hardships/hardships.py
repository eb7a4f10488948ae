"""The hardships: each happens to one run of a deed, and gives a line for whatever is wrong then, or None
where it did not happen.

After each, the same command is given once more, with nothing in its way.
"""

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bench.hardships import judging
from bench.hardships.case import Case
from bench.hardships.judging import Left, Stored
from bench.hardships.surroundings import await_no_process, descendants
from fecbench.checkout import REPOSITORY

AFTER_WRITING_S = 0.02
SMALLEST_DISK, LARGEST_ROOM, SMALLER = 4096, 2 << 20, 4
STOP_S = 1.5
WRONG_BY_S = STOP_S / 2
"""A trial that stood still, and is ok with a time so much longer, has a wrong number."""
CLOCK = REPOSITORY / "tests" / "runners" / "campaign" / "stepped_clock.c"

Hardship = Callable[[Case, random.Random], list[str] | None]


def kill(case: Case, chance: random.Random) -> list[str]:
    """SIGKILL for the command itself: at any moment, or just when it has written."""
    while True:
        before = case.prepare()
        doing = case.begin()
        if case.changes and chance.random() < 0.5:
            doing.count_changes(chance.randint(1, case.changes))
            time.sleep(chance.uniform(0, AFTER_WRITING_S))
        else:
            time.sleep(chance.uniform(0, case.undisturbed.seconds))
        if doing.kill():
            break  # otherwise it had ended before
    running = await_no_process(case.place.temporary)
    stored = judging.stored_in(case.place.database)
    broken = judging.broken_off(before, stored, case.place.output)
    return [*broken, *running, *case.again(stored)]


def full_disk(case: Case, chance: random.Random) -> list[str] | None:
    """A disk of its own for one of the three folders, which is too small; then it grows.

    A disk that was large enough is made smaller and tried again. None if the smallest is large enough.
    """
    which, room = chance.choice(_written(case)), LARGEST_ROOM
    while (wrong := _on_disk(case, which, chance.randint(0, room))) is None and room > SMALLEST_DISK:
        room //= SMALLER
    return wrong


def _on_disk(case: Case, which: str, room: int) -> list[str] | None:
    """The deed on a disk that has so much room besides what is there; None where that was enough."""
    before = case.prepare()
    folder = case.place.folders()[which]
    size = _bytes_of(folder) + room
    with _disk(folder, max(SMALLEST_DISK, size)):
        case.deed.furnish(case.place)
        full = case.begin().end()
        is_carried_out = judging.is_carried_out(case.deed, case.undisturbed, full)
        if is_carried_out:  # and all is there, or it has kept silent
            wrong = judging.finished(case.deed, case.undisturbed, before, full)
        else:
            wrong = judging.refused(full, case.place.root)
        wrong += judging.broken_off(before, full.stored, case.place.output)
        _mount("remount,size=1g", folder)
        wrong += case.again(full.stored)
    if is_carried_out and not wrong:
        return None
    return [f"{which} of {size} bytes: {line}" for line in wrong]


def _written(case: Case) -> list[str]:
    """The folders whose disk may be full."""
    files = {"output": bool(case.undisturbed.files), "database": bool(case.undisturbed.stored.runs)}
    return ["temporary", *(name for name, is_written in files.items() if is_written)]


def _bytes_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*"))


@contextmanager
def _disk(folder: Path, size: int) -> Iterator[None]:
    """Mount a small disk in the mount namespace of this program only."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def _mount(options: str, folder: Path) -> None:
    subprocess.run(["mount", "-o", options, folder], check=True)


def stop(case: Case, chance: random.Random) -> list[str]:
    """SIGSTOP for the harness, a simulator or an endpoint; SIGCONT some time later."""
    who = chance.choice(("harness", "endpoint" if case.deed.emulated else "simulator"))
    while True:
        before = case.prepare()
        doing = case.begin()
        time.sleep(chance.uniform(0, case.undisturbed.seconds))
        there = _await(doing.process.pid, MARKS.get(who))
        if there and _stand_still(chance.choice(there)):
            break
        doing.end()
    after = doing.end()
    wrong = judging.finished(case.deed, case.undisturbed, before, after)
    wrong += wrong_times(case.undisturbed.stored, after.stored)
    return [f"{who}: {line}" for line in [*wrong, *case.again(after.stored)]]


MARKS = {"simulator": "--simulate", "endpoint": "/build/noq-fec"}
"""Marks of processes in their command lines."""


def _await(harness: int, mark: str | None) -> list[int]:
    """The processes below the harness whose command lines have the mark, or itself; none if it ends first."""
    while os.waitid(os.P_PID, harness, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if mark is None:
            return [harness]
        if there := [process for process, words in descendants(harness).items() if mark in words]:
            return there
        time.sleep(0.001)
    return []


def _stand_still(process: int) -> bool:
    try:
        os.kill(process, signal.SIGSTOP)
        time.sleep(STOP_S)
        os.kill(process, signal.SIGCONT)
    except ProcessLookupError:
        return False
    return True


def wrong_times(undisturbed: Stored, stored: Stored) -> list[str]:
    """A line for each trial that is ok and took longer by what stood still."""
    usual = {run.key: run.dct_s for run in undisturbed.runs.values() if run.state == "ok"}
    return [
        f"ok, with {run.dct_s:.3g} s in place of {before:.3g}: {run.key}"
        for run in stored.runs.values()
        if run.state == "ok" and run.dct_s is not None and (before := usual.get(run.key)) is not None
        if run.dct_s - before > WRONG_BY_S
    ]


def clock(case: Case, _: random.Random) -> list[str]:
    """A clock that is off by up to an hour, to and fro, at every look."""
    before = case.prepare()
    library = case.place.ground / "stepped_clock.so"
    if not library.exists():
        subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", library, CLOCK], check=True)
    after = case.begin(LD_PRELOAD=str(library)).end()
    wrong = judging.finished(case.deed, case.undisturbed, before, after)
    wrong += wrong_durations(after)
    return [*wrong, *case.again(after.stored)]


def wrong_durations(remains: Left) -> list[str]:
    return [
        f"a trial took {run.duration_s:.3g} s in a command of {remains.seconds:.3g} s: {run.key}"
        for run in remains.stored.runs.values()
        if not 0 < run.duration_s <= remains.seconds
    ]


HARDSHIPS: Mapping[str, Hardship] = {"kill": kill, "disk": full_disk, "stop": stop, "clock": clock}
