"""The temporary folder of a running harness. Its lock tells the living from the dead: the next harness, and
`clean`, remove what a killed one left, and nothing else. The number of a process would not tell: one in
another PID namespace is not seen, and another process may have the number by now.

A harness can be killed before it has the lock. Its folder is then empty. An empty folder is removed by every
harness that meets it, and a harness that was about to lock it makes another one.
"""

import contextlib
import fcntl
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

PREFIX = "fecbench-"
LOCK = "in-use"
MEMORY = Path("/dev/shm")
"""Linux's file system in memory. Files there cost the kernel a fifth of what they cost on a disk."""
ROOM_BYTES = 1 << 30
"""Bytes that have to be free in memory. In many containers it has 64 MiB in all."""
OF_PROCESS = re.compile(rf"{PREFIX}[0-9]+-[a-z0-9_]{{8}}")


@contextmanager
def folder(within: Path | None = None, *, of_others: bool = False) -> Iterator[Path]:
    """A temporary folder of our own, removed at the end; `within` another folder than that for such files.

    `of_others`: programs that are not ours write into it, and may leave what cannot be removed. That is left.
    """
    remove_abandoned(within, ignore_errors=True)
    path, lock = _make_locked(within)
    with lock:
        try:
            yield path
        finally:
            _remove_tree(path, ignore_errors=of_others)


def memory() -> Path | None:
    """Return a folder in memory, for small files that live as long as a trial.

    None if it has too little room, or if somebody chose another place for temporary files, as by TMPDIR.
    """
    if not _is_by_default() or not os.access(MEMORY, os.W_OK | os.X_OK):
        return None
    status = os.statvfs(MEMORY)
    return MEMORY if status.f_bavail * status.f_frsize >= ROOM_BYTES else None


def _is_by_default() -> bool:
    """Whether temporary files go where Linux has them."""
    return tempfile.gettempdir() == "/tmp"


def _make_locked(within: Path | None) -> tuple[Path, TextIO]:
    """Make a new folder, and return it with its lock, which we hold."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=within))
        try:
            path.chmod(0o700)  # a umask may have taken from it that we can go there
            lock = (path / LOCK).open("w", encoding="ascii")
        except FileNotFoundError:  # another harness took it for abandoned
            continue
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (path / LOCK).exists():
            return path, lock
        lock.close()


def abandoned(within: Path | None = None) -> list[Path]:
    """Folders of ours whose harness has ended without removing them: all, or those in `within`."""
    places = [Path(tempfile.gettempdir())] if within is None else [within]
    if within is None and _is_by_default() and MEMORY.is_dir():
        places.append(MEMORY)
    candidates = (path for place in places for path in place.iterdir() if is_named(path))
    ours = filter(_is_ours, sorted(candidates))
    return [path for path in ours if _is_unlocked(path) or _is_empty(path)]


def is_in_use(path: Path) -> bool:
    """Whether a harness that lives has this folder."""
    return (path / LOCK).is_file() and not _is_unlocked(path)


def is_named(path: Path) -> bool:
    """Whether it has the name of such a folder."""
    return OF_PROCESS.fullmatch(path.name) is not None


def _is_ours(path: Path) -> bool:
    """Whether it is a folder as `folder` makes it: of this user, and nobody else may write into it.

    Everybody may put something else of that name there, such as a link to a folder of ours.
    """
    try:
        status = path.lstat()
    except FileNotFoundError:  # its harness has ended meanwhile
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022


def _is_unlocked(path: Path) -> bool:
    lock = _try_lock(path)
    if lock is not None:
        lock.close()
    return lock is not None


def _try_lock(path: Path) -> TextIO | None:
    """Return the locked lock of a folder; None if it has none, or if a harness holds it."""
    if not (path / LOCK).is_file():
        return None
    try:
        lock = (path / LOCK).open(encoding="ascii")
    except FileNotFoundError:  # removed meanwhile
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return lock


def _is_empty(path: Path) -> bool:
    try:
        return not any(path.iterdir())
    except FileNotFoundError:  # removed meanwhile
        return False


def remove_abandoned(within: Path | None = None, *, ignore_errors: bool = False) -> list[Path]:
    """Remove what killed harnesses left, and return its paths."""
    return [path for path in abandoned(within) if _remove(path, ignore_errors)]


def _remove(path: Path, ignore_errors: bool) -> bool:
    """Whether it is gone by us. We hold the lock meanwhile, so that no harness begins to use it."""
    lock = _try_lock(path)
    if lock is None:
        try:
            path.rmdir()
        except OSError:  # a harness uses it after all
            return False
        return True
    with lock:
        _remove_tree(path, ignore_errors)
    return not path.exists()


def _remove_tree(path: Path, ignore_errors: bool) -> None:
    """Remove a folder, its lock last: a harness that is killed meanwhile leaves a folder that is known to be
    abandoned."""
    errors = [OSError] if ignore_errors else []
    with contextlib.suppress(*errors):
        for inner in path.iterdir():
            if inner.is_dir() and not inner.is_symlink():
                shutil.rmtree(inner, ignore_errors=ignore_errors)
            elif inner.name != LOCK:
                inner.unlink()
    with contextlib.suppress(FileNotFoundError):  # another harness met it when it was empty
        shutil.rmtree(path, ignore_errors=ignore_errors)
