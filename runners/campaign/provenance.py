"""What a campaign was run with: revision, kernel, CPU, versions, and the hash of every binary.

A probe never raises and never hangs: what cannot be found out is None.
"""

import os
import platform
import re
import sys
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

from fecbench.checkout import REPOSITORY
from runners.implementations.implementation import Implementation
from runners.probe import output_of, sha256_of

DROPPER = REPOSITORY / "dropper" / "build" / "dropper"
WIRE = REPOSITORY / "topologies" / "wire" / "build" / "wire"


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
    programs = [DROPPER, WIRE, *(program for each in implementations for program in each.programs())]
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
