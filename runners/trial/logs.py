"""The log folder, which an endpoint may write to: while the trial runs, a small file system in memory.

Afterwards its files are copied to the disk. An endpoint is not trusted, and something that it started may
still write: only regular files are copied, and nothing is ever opened through a link that it made.
"""

import os
import stat
from pathlib import Path

from fecbench.runners.sandbox import handed_over, kernel
from fecbench.runners.sandbox.view import INODES
from fecbench.whole_files import naming

SIZE_BYTES = 512 << 20
DEPTH = 8
"""Depth of nested folders that are copied."""
_BLOCK_BYTES = 1 << 20


def mount(folder: Path, user: int) -> None:
    """Make it, for this user alone."""
    folder.mkdir(parents=True)
    options = f"mode=700,uid={user},gid={user},size={SIZE_BYTES},nr_inodes={INODES}"
    kernel.mount("tmpfs", folder, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, options)


def keep(folder: Path) -> None:
    """Copy what is in there to the folder on the disk that it was mounted over, and unmount it."""
    mounted = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        kernel.unmount(folder)
        _Copy().copy(mounted, folder, DEPTH)
    finally:
        os.close(mounted)


def copy(source: Path, target: Path) -> None:
    """Copy a folder that somebody else may still write to into a new folder of our own."""
    handed_over.make_own_folder(target)
    opened = os.open(source, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        _Copy().copy(opened, target, DEPTH)
    finally:
        os.close(opened)


class _Copy:
    """Copies as much as a log folder can hold: a file with holes is longer than what it takes there."""

    def __init__(self) -> None:
        self._left_bytes = SIZE_BYTES

    def copy(self, source: int, target: Path, depth: int) -> None:
        """Copy the regular files and folders of the open folder `source`."""
        with os.scandir(source) as entries:
            names = sorted(entry.name for entry in entries)
        for name in names:
            try:
                # A FIFO or a device would have to be waited for; a link is not followed.
                flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                descriptor = os.open(name, flags, dir_fd=source)
            except OSError:  # a link or a socket, or nothing any more
                continue
            try:
                self._copy_open(descriptor, target / name, depth)
            finally:
                os.close(descriptor)

    def _copy_open(self, source: int, target: Path, depth: int) -> None:
        status = os.fstat(source)
        if stat.S_ISDIR(status.st_mode) and depth > 1:
            handed_over.make_own_folder(target)
            self.copy(source, target, depth - 1)
        elif stat.S_ISREG(status.st_mode) and status.st_nlink <= 1 and status.st_size <= self._left_bytes:
            self._copy_file(source, target, status.st_size)

    def _copy_file(self, source: int, target: Path, size_bytes: int) -> None:
        """Copy as many bytes as the file had when it was opened."""
        self._left_bytes -= size_bytes
        with naming(target), target.open("xb") as copied:
            while size_bytes and (block := os.read(source, min(_BLOCK_BYTES, size_bytes))):
                copied.write(block)
                size_bytes -= len(block)
