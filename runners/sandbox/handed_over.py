"""Folders and files that a program of another user is to read: their modes are from here, whatever the umask.

Hardened machines give root a umask that takes reading from all others (027, 077). It is for what a person
makes, and says nothing of what one program of ours makes for another.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from fecbench.whole_files import naming


class Unreadable(OSError):
    """Raised when files that the harness handed over cannot be read by their reader."""


def make_folder(path: Path) -> None:
    """Make a folder that everybody can enter and list, and we alone can write to."""
    path.mkdir()
    path.chmod(0o755)


def make_own_folder(path: Path) -> None:
    """Make a folder for its owner alone, who may be changed afterwards."""
    path.mkdir()
    path.chmod(0o700)


def write_file(path: Path, content: bytes) -> None:
    """Write a file that everybody can read who can enter its folder."""
    with naming(path):
        path.write_bytes(content)
        path.chmod(0o644)


def require_readable(paths: Iterable[Path]) -> None:
    """Raise Unreadable unless this process, by its user of now, can read these files."""
    for path in paths:
        if not os.access(path, os.R_OK):
            raise Unreadable(f"{path} cannot be read by user {os.geteuid()}, for whom it was made")
