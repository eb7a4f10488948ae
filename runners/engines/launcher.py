"""Gives rights up and becomes a simulator: python -m runners.engines.launcher ORDER

It is a process of its own, so that a harness with threads does not fork.
"""

import os
import sys
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from runners.implementations.implementation import environment
from runners.trial import confinement
from runners.trial.isolation import die_with_parent


class Order(BaseModel):
    """The simulator that is to be started."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    command: list[str]
    implementation: Path
    """Its folder, which it can read wherever it lies."""
    folder: Path
    """The only one that it can write to, and where it begins."""
    user: int | None
    """One of its own; None: that of the harness."""
    harness: int
    """The process with which it ends."""


def main() -> None:
    order = Order.model_validate_json(sys.argv[1])
    program = order.command[0]
    try:
        confinement.confine_simulator(program, order.folder, order.user, order.implementation)
        os.chdir(order.folder)
        die_with_parent(order.harness)  # a change of user forgets it
        os.execve(program, order.command, environment(order.folder))
    except OSError as error:
        sys.exit(f"{program} cannot be started: {error}")


if __name__ == "__main__":
    main()
