"""Builds implementations as their impl.toml says: those of quic-impls/, or those of other folders.

    python -m fecbench.runners.implementations.build [--all] [NAME …] [DIR …]

A NAME is one of quic-impls/, also one that is built on demand. It alone is built then.
Implementations that are built on demand, by impl.toml, are left out, unless all are asked for.
Failed builds are listed at the end with their reasons, and do not stop the others. The exit status is 1 if
one of them was named, is in a named folder, or is of this project.
"""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TextIO

from fecbench.runners.implementations.finding import OWN, Implementations, checked, ours
from fecbench.runners.implementations.implementation import NO_BUILD, Implementation, is_file
from fecbench.runners.implementations.toolchains import TOOLCHAINS, build_path
from fecbench.runners.refusal import Refusal

ALL = "--all"
"""Option that also builds the implementations that are built on demand."""
_MASK = 0o022
"""Mask of modes for builds: every user may read them, for endpoints have a user of their own."""
AT_ONCE = 2
"""Builds that run beside each other, since each often waits for what one core compiles."""


def build(implementation: Implementation, output: TextIO | None = None) -> None:
    """Run the build command of an implementation in its folder; what it prints goes to `output`.

    Raises Refusal when it cannot be built.
    """
    name, command = implementation.declaration.name, implementation.build_command()
    toolchain = implementation.declaration.toolchain
    if toolchain is not None and not TOOLCHAINS[toolchain].is_recent:
        raise Refusal(f"{name}: {TOOLCHAINS[toolchain].problem}")
    if lacking := implementation.lacking_for_build():
        raise Refusal(f"{name}: its build needs {', '.join(lacking)}; install what is missing")
    if not is_file(Path(command[0])):
        needed = (implementation.declaration.build or NO_BUILD)[0]
        raise Refusal(f"{name}: its build needs {needed}, which is not installed")
    print(f"building {name}", file=output, flush=True)  # before what the build itself says
    words = " ".join(implementation.declaration.build or NO_BUILD)
    environment = {**os.environ, "PATH": build_path(), "CGO_ENABLED": "0"}
    try:
        results = subprocess.run(
            command, cwd=implementation.folder, env=environment, stdout=output, umask=_MASK
        )
    except OSError as error:
        raise Refusal(f"{name}: {words} cannot be started: {error.strerror}") from error
    if results.returncode != 0:
        raise Refusal(f"{name}: {words} ended with {results.returncode}")
    for path in implementation.missing_programs():
        raise Refusal(f"{name}: {words} succeeded, but {path} is missing")


def build_all(implementations: Implementations, *, on_demand: bool = False) -> dict[str, str]:
    """Build each of them, or all but those that are built on demand; of those that could not be built, why,
    in one line."""
    builders = ThreadPoolExecutor(AT_ONCE)
    try:
        building = {
            name: builders.submit(_problem, implementation)
            for name, implementation in implementations.all().items()
            if isinstance(implementation, Refusal) or on_demand or not implementation.declaration.on_demand
        }
        results = {name: build.result() for name, build in building.items()}
    finally:
        builders.shutdown(wait=False, cancel_futures=True)  # after an interrupt, no other build begins
    return {name: problem for name, problem in results.items() if problem is not None}


def _problem(implementation: Implementation | Refusal) -> str | None:
    """Build it; why it could not be built, in one line."""
    try:
        if isinstance(implementation, Refusal):
            raise implementation
        build(implementation)
    except Refusal as refusal:
        return str(refusal)
    return None


def main() -> None:
    words = [word for word in sys.argv[1:] if word != ALL]
    on_demand = len(words) < len(sys.argv) - 1
    own = ours()
    names = [word for word in words if word in own.names() or not ("/" in word or Path(word).is_dir())]
    folders = [Path(word) for word in words if word not in names]
    problems = {}
    try:
        for name in names:
            if problem := _problem(own.find(name, "build")):
                problems[name] = problem
        if folders or not names:
            implementations = Implementations(checked("build", folders)) if folders else own
            problems |= build_all(implementations, on_demand=on_demand)
    except Refusal as refusal:
        sys.exit(str(refusal))
    for problem in problems.values():
        print(f"not built: {problem}", file=sys.stderr)
    if any(names or folders or on_demand or name in OWN for name in problems):
        sys.exit(1)


if __name__ == "__main__":
    main()
