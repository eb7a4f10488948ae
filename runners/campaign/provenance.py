"""The provenance of a campaign: revision, kernel, CPU, versions, and the hash of every binary.

A probe never raises and never hangs: what cannot be found out is None.
"""

import hashlib
import os
import platform
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from types import MappingProxyType
from typing import Any

from fecbench.checkout import COMMIT, REPOSITORY, is_whole
from fecbench.dropper.command import COMMAND
from fecbench.runners.implementations.engine_name import EngineName
from fecbench.runners.implementations.implementation import DECLARATION, Implementation
from fecbench.runners.probe import output_of, sha256_of
from fecbench.runners.trial import confinement
from fecbench.topologies.programs import CLOCK, WIRE

_SOURCES = {
    **{name: (name,) for name in ("dropper", "topologies", "designs")},
    **{
        f"runners/{name}": (f"runners/{name}",)
        for name in ("trial", "sandbox", "workloads", "engines", "implementations")
    },
    "runners/campaign": tuple(
        f"runners/campaign/{name}.py" for name in ("experiment", "links", "processors", "record")
    ),
}
"""The folders and files that decide what a trial is and how it is judged, by the part of the harness."""
_LANGUAGES = (".py", ".c", ".h")
_BUILT = "build"


def harness() -> dict[str, Any]:
    """Return the version of the harness, and a hash of the sources of each part that decides about trials.

    Files that only describe parts, such as a README, are not included.
    """
    return {
        "version": metadata.version("fecbench"),
        "sources": {part: _hash_of_sources(places) for part, places in _SOURCES.items()},
    }


def _hash_of_sources(places: Iterable[str]) -> str:
    digest = hashlib.sha256()
    sources = (name for place in places for name in _sources_in(place))
    for path in sorted(sources, key=lambda name: name.split("/")):
        digest.update(f"{path}\0{sha256_of(REPOSITORY / path)}\n".encode())
    return digest.hexdigest()


def _sources_in(place: str) -> Iterator[str]:
    """Yield the names of a folder's sources, or of the one file. Paths take several times as long."""
    if (REPOSITORY / place).is_file():
        yield place
    for folder, folders, files in os.walk(REPOSITORY / place):
        folders[:] = [name for name in folders if name != _BUILT]
        inside = folder.removeprefix(f"{REPOSITORY}/")
        yield from (f"{inside}/{name}" for name in files if name.endswith(_LANGUAGES))


def cpu_model(cpuinfo: str) -> str | None:
    """The first model name in the text of /proc/cpuinfo."""
    match = re.search(r"^model name\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    return match[1].strip() if match else None


@cache
def libraries() -> Mapping[str, str]:
    """Return the versions of the libraries that fecbench requires, which this process keeps."""
    required = {re.split(r"[ ;<>=!~\[]", line)[0]: None for line in metadata.requires("fecbench") or []}
    versions = {name: _version(name) for name in required}
    return MappingProxyType({name: version for name, version in versions.items() if version is not None})


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def host() -> str:
    """The name of this machine; empty when it has none."""
    return platform.node()


def revision() -> dict[str, Any]:
    """Return the git revision of this checkout, and whether it has uncommitted changes; of a wheel, what it
    was made of."""
    if not is_whole():
        made_of = COMMIT.read_text().split() if COMMIT.is_file() else []
        return {"commit": made_of[0] if made_of else None, "changed": len(made_of) > 1 if made_of else None}
    changes = output_of(["git", "status", "--porcelain", "--untracked-files=no"])
    return {
        "commit": output_of(["git", "rev-parse", "HEAD"]),
        "changed": None if changes is None else bool(changes),
    }


def revision_of(folder: Path) -> dict[str, Any]:
    """The git revision of the folder of an implementation, and whether anything in it differs from that.

    Both are None where git does not know its impl.toml.
    """
    git = ("git", "-C", str(folder))
    if not output_of([*git, "ls-files", "--", DECLARATION]):
        return {"commit": None, "changed": None}
    changes = output_of([*git, "status", "--porcelain", "--untracked-files=normal", "--", "."])
    return {
        "commit": output_of([*git, "rev-parse", "HEAD"]),
        "changed": None if changes is None else bool(changes),
    }


def binaries(
    implementations: Iterable[Implementation], engine: EngineName = "local"
) -> dict[str, str | None]:
    """The hash of everything that has a part in a trial: what was built here, and all files of endpoints or
    simulators."""
    ours = [COMMAND, WIRE, CLOCK] if engine == "local" else []
    return hashes(
        [*ours, *(path for implementation in implementations for path in implementation.files(engine))]
    )


def hashes(paths: Iterable[Path]) -> dict[str, str | None]:
    """The hash of each file, by its name here."""
    return {name_of(path): sha256_of(path) for path in paths}


def name_of(path: Path) -> str:
    """A path in the repository where it is inside, else the absolute one."""
    return str(path.relative_to(REPOSITORY) if path.is_relative_to(REPOSITORY) else path)


def of_implementation(implementation: Implementation, engine: EngineName = "local") -> dict[str, Any]:
    """Return an implementation's folder, its revision, its declaration, and the hashes of its files."""
    return {
        "folder": name_of(implementation.folder),
        "revision": revision_of(implementation.folder),
        "declaration": implementation.text,
        "files": hashes(implementation.files(engine)),
    }


def of_programs(implementations: Collection[Implementation], engine: EngineName = "local") -> dict[str, Any]:
    """Return the provenance of the programs that run these implementations' trials: ours and theirs."""
    return {
        "engine": engine,
        "harness": harness(),
        "binaries": binaries(implementations, engine),
        "implementations": {
            implementation.declaration.name: of_implementation(implementation, engine)
            for implementation in implementations
        },
    }


def collect(
    implementations: Collection[Implementation], link: str, engine: EngineName = "local"
) -> dict[str, Any]:
    """The provenance of a campaign that uses these implementations, this engine and this link backend."""
    cpuinfo = Path("/proc/cpuinfo")
    return {
        "fecbench": metadata.version("fecbench"),
        "revision": revision(),
        "command": list(sys.argv),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpu": cpu_model(cpuinfo.read_text(encoding="utf-8")) if cpuinfo.is_file() else None,
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "libraries": dict(libraries()),
        "link": link,
        "confinement": confinement.of_this_machine() if engine == "local" else confinement.of_simulators(),
        **of_programs(implementations, engine),
    }
