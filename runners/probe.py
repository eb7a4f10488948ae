"""Facts about this machine and its files.

A probe never raises and never hangs: a fact that cannot be found is None.
"""

import hashlib
import subprocess
from collections.abc import Sequence
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
    """The hash of a file, or None when it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None
