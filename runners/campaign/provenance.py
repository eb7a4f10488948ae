"""What a campaign was run with: revision, kernel, CPU, versions, and the hash of every binary.

A probe never raises and never hangs: what cannot be found out is None.
"""

import hashlib
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import dropper.command
from fecbench.checkout import REPOSITORY
from runners.implementations.finding import Implementation
from topologies.programs import WIRE

PROBE_LIMIT_S = 5.0


def output_of(arguments: Sequence[str]) -> str | None:
    """What a command prints on standard output, or None when it fails, is missing or takes too long."""
    try:
        done = subprocess.run(
            arguments, cwd=REPOSITORY, capture_output=True, text=True, timeout=PROBE_LIMIT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def sha256_of(path: Path) -> str | None:
    """The hash of a file, or None when it cannot be read."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None


def cpu_model(cpuinfo: str) -> str | None:
    """The first model name in the text of /proc/cpuinfo."""
    found = re.search(r"^model name\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    return found[1].strip() if found else None


def libraries() -> dict[str, str]:
    """The versions of the libraries that fecbench requires."""
    required = [re.split(r"[ ;<>=!~\[]", line)[0] for line in metadata.requires("fecbench") or []]
    return {name: metadata.version(name) for name in required if _installed(name)}


def _installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def revision() -> dict[str, Any]:
    """The git revision of this checkout, and whether it has uncommitted changes."""
    changes = output_of(["git", "status", "--porcelain", "--untracked-files=no"])
    return {
        "commit": output_of(["git", "rev-parse", "HEAD"]),
        "changed": None if changes is None else bool(changes),
    }


def binaries(implementations: Iterable[Implementation]) -> dict[str, str | None]:
    """The hash of everything that was built and has a part in a trial, by its path in the repository."""
    programs = [dropper.command.COMMAND, WIRE]
    for implementation in implementations:
        programs += implementation.programs()
    return {str(path.relative_to(REPOSITORY)): sha256_of(path) for path in programs}


def without_password(argument: str) -> str:
    """An argument as it may be kept and shown: the password of a URL is left out."""
    return re.sub(r"(://[^/@:]*):[^@]*@", r"\1:***@", argument)


def collect(implementations: Iterable[Implementation], link: str) -> dict[str, Any]:
    """The provenance of a campaign that uses these implementations and this link backend."""
    cpuinfo = Path("/proc/cpuinfo")
    return {
        "fecbench": metadata.version("fecbench"),
        "revision": revision(),
        "command": [without_password(argument) for argument in sys.argv],
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpu": cpu_model(cpuinfo.read_text()) if cpuinfo.is_file() else None,
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "libraries": libraries(),
        "link": link,
        "binaries": binaries(implementations),
    }
