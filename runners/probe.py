"""Facts about this machine and its files.

A probe never raises and never hangs: a fact that cannot be found is None.
"""

import hashlib
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from fecbench.checkout import REPOSITORY

PROBE_LIMIT_S = 5.0


def output_of(arguments: Sequence[str]) -> str | None:
    """Return the standard output of a command, or None if it fails, is missing or takes too long."""
    try:
        process = subprocess.run(
            arguments, cwd=REPOSITORY, capture_output=True, text=True, timeout=PROBE_LIMIT_S, check=True
        )
    except (OSError, ValueError, subprocess.SubprocessError):  # ValueError: what it prints is no text
        return None
    return process.stdout.strip()


def sha256_of(path: Path) -> str | None:
    """The hash of a file, or None when it cannot be read. A file that stays as it is is read once."""
    try:
        now = path.stat()
        return _sha256_of(path, now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns)
    except OSError:
        return None


@cache
def _sha256_of(path: Path, *_state: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
