"""Folders and files for a program of another user: this module sets their modes, whatever the umask is.

On hardened machines root has a umask by which nobody else may read its files (027, 077). It is meant for
files of a person, not for files that one program of ours makes for another.
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
