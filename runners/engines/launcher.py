"""Drops its rights and becomes a simulator: python -m fecbench.runners.engines.launcher ORDER

It is a process of its own, so that a harness with threads does not fork. If it fails, it writes the reason
into a pipe that the program does not inherit, so that a fault of the harness is not blamed on the program.

It loads the standard library alone: a campaign starts it for each simulator.
"""

import errno
import json
import os
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Self

from fecbench.runners.trial import confinement

_OF_THE_PROGRAM = (errno.ENOENT, errno.ENOEXEC)
"""Errors of starting a program that was built wrongly, wherever it is started."""


COMMAND = [sys.executable, "-E", "-S", "-m", "fecbench.runners.engines.launcher"]
"""Command that starts it, in the repository: without packages that are installed."""


@dataclass(frozen=True)
class Order:
    """The simulator that is to be started."""

    command: list[str]
    implementation: Path
    """Folder of the implementation, which it can read wherever it lies."""
    folder: Path
    """The only folder that it can write to, and its working directory."""
    cgroup: str
    """Prefix of the name of its cgroup."""
    harness: int
    """The process whose end also ends it."""
    papers: list[Path] = field(default_factory=list)
    """Files that it may read."""
    complaint: int | None = None
    """Pipe for the reason why the harness could not start it; None: not needed."""

    def written(self) -> str:
        """Return the order as a line of JSON."""
        return json.dumps(asdict(self), default=str)

    @classmethod
    def read(cls, line: str) -> Self:
        """Return the order of such a line."""
        order = json.loads(line)
        papers = [Path(paper) for paper in order["papers"]]
        paths = {name: Path(order[name]) for name in ("implementation", "folder")}
        return cls(**{**order, **paths, "papers": papers})


def main() -> None:
    order = Order.read(sys.argv[1])
    if order.complaint is not None:
        os.set_inheritable(order.complaint, False)
    try:
        confinement.become_simulator(
            order.command, order.folder, order.cgroup, order.implementation, order.papers, order.harness
        )
    except OSError as error:
        why = f"{order.command[0]} cannot be started: {error}"
        if order.complaint is not None and error.errno not in _OF_THE_PROGRAM:
            os.write(order.complaint, why.encode(errors="replace"))
        sys.exit(why)


if __name__ == "__main__":
    main()
