"""Gives rights up and becomes a simulator: python -m fecbench.runners.engines.launcher ORDER

It is a process of its own, so that a harness with threads does not fork. Why it could not become one stands
in a pipe that the program does not get: nobody takes the harness's fault for the program's.
"""

import errno
import os
import sys
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from fecbench.runners.trial import confinement

_OF_THE_PROGRAM = (errno.ENOENT, errno.ENOEXEC)
"""Errors of starting a program that was built wrongly, wherever it is started."""


class Order(BaseModel):
    """The simulator that is to be started."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    command: list[str]
    implementation: Path
    """Folder of the implementation, which it can read wherever it lies."""
    folder: Path
    """The only one that it can write to, and where it begins."""
    cgroup: str
    """Beginning of the name of its cgroup."""
    papers: list[Path] = []
    """The files that it is given to read."""
    harness: int
    """The process with which it ends."""
    complaint: int | None = None
    """The pipe in which it says why the harness could not start it; None: nobody asks."""


def main() -> None:
    order = Order.model_validate_json(sys.argv[1])
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
