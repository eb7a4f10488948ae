"""The temporary folder of a running harness. Its lock tells the living from the dead, so that `clean` can
remove what a killed harness left, and nothing else.

A harness can be killed before it has the lock. Its folder is then empty, and the name says who made it.
"""

import fcntl
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PREFIX = "fecbench-"
LOCK = "in-use"
OF_PROCESS = re.compile(rf"{PREFIX}(?P<process>[0-9]+)-[a-z0-9_]{{8}}")


@contextmanager
def folder(*, of_others: bool = False) -> Iterator[Path]:
    """A temporary folder of our own, removed at the end.

    `of_others`: programs that are not ours write into it, and may leave what cannot be removed. That is left.
    """
    path = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))
    with (path / LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=of_others)


def abandoned() -> list[Path]:
    """Folders of ours whose harness has ended without removing them."""
    named = (path for path in Path(tempfile.gettempdir()).iterdir() if OF_PROCESS.fullmatch(path.name))
    ours = filter(_is_ours, sorted(named))
    return [path for path in ours if _is_unlocked(path) or _never_got_its_lock(path)]


def _is_ours(path: Path) -> bool:
    """Whether it is a folder as `folder` makes it: of this user, and nobody else may write into it.

    Everybody may put something else of that name there, such as a link to a folder of ours.
    """
    try:
        found = path.lstat()
    except FileNotFoundError:  # its harness has ended meanwhile
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022


def _is_unlocked(path: Path) -> bool:
    if not (path / LOCK).is_file():
        return False
    with (path / LOCK).open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def _never_got_its_lock(path: Path) -> bool:
    made = OF_PROCESS.fullmatch(path.name)
    if made is None or any(path.iterdir()):
        return False
    return not Path(f"/proc/{made['process']}").exists()


def remove_abandoned() -> list[Path]:
    """Remove what killed harnesses left, and say what that was."""
    paths = abandoned()
    for path in paths:
        shutil.rmtree(path)
    return paths
