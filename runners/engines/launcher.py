"""Gives rights up and becomes a simulator: python -m fecbench.runners.engines.launcher ORDER

It is a process of its own, so that a harness with threads does not fork.
"""

import sys
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from fecbench.runners.trial import confinement


class Order(BaseModel):
    """The simulator that is to be started."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    command: list[str]
    implementation: Path
    """Its folder, which it can read wherever it lies."""
    folder: Path
    """The only one that it can write to, and where it begins."""
    cgroup: str
    """What the name of its cgroup begins with."""
    harness: int
    """The process with which it ends."""


def main() -> None:
    order = Order.model_validate_json(sys.argv[1])
    try:
        confinement.become_simulator(
            order.command, order.folder, order.cgroup, order.implementation, order.harness
        )
    except OSError as error:
        sys.exit(f"{order.command[0]} cannot be started: {error}")


if __name__ == "__main__":
    main()
