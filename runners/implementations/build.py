"""Builds every implementation as its impl.toml says, for `make build`."""

import os
import shutil
import subprocess
import sys

from runners.implementations.finding import ours
from runners.implementations.implementation import Implementation
from runners.implementations.toolchains import TOOLCHAINS
from runners.refusal import Refusal


def build(implementation: Implementation) -> None:
    """Run the build command of an implementation in its folder. Raises Refusal when it cannot be built."""
    name, command = implementation.declaration.name, implementation.declaration.build
    toolchain = implementation.declaration.toolchain
    if toolchain is not None and not TOOLCHAINS[toolchain].is_recent:
        raise Refusal(f"{name}: {TOOLCHAINS[toolchain].problem}")
    if shutil.which(command[0]) is None:
        raise Refusal(f"{name}: its build needs {command[0]}, which is not installed")
    print(f"building {name}", flush=True)  # before what the build itself says
    done = subprocess.run(command, cwd=implementation.folder, env={**os.environ, "CGO_ENABLED": "0"})
    if done.returncode != 0:
        raise Refusal(f"{name}: {' '.join(command)} ended with {done.returncode}")


def main() -> None:
    try:
        known = ours()
        for name in known.names():
            build(known.find(name, "make build"))
    except Refusal as refusal:
        sys.exit(f"make build: {refusal}")


if __name__ == "__main__":
    main()
