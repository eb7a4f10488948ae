"""The temporary folder of a running harness. Its lock tells the living from the dead, so that `clean` can
remove what a killed harness left, and nothing else."""

import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PREFIX = "fecbench-"
LOCK = "in-use"


@contextmanager
def folder() -> Iterator[Path]:
    """A temporary folder of our own, removed at the end."""
    path = Path(tempfile.mkdtemp(prefix=PREFIX))
    with (path / LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield path
        finally:
            shutil.rmtree(path)


def abandoned() -> list[Path]:
    """Folders whose harness has ended without removing them."""
    found = []
    for lock_path in sorted(Path(tempfile.gettempdir()).glob(f"{PREFIX}*/{LOCK}")):
        with lock_path.open() as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            found.append(lock_path.parent)
    return found


def remove_abandoned() -> list[Path]:
    """Remove what killed harnesses left, and say what that was."""
    paths = abandoned()
    for path in paths:
        shutil.rmtree(path)
    return paths
