"""What a trial needs of the machine that carries it out."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from fecbench.runners.implementations.interop import Bundle
from fecbench.runners.tasks.task import Role

Commands = dict[str, dict[Role, list[str]]]
"""Of each implementation: the argument lists that start its endpoints."""
Bundles = dict[str, Bundle]
"""Of the implementations whose programs are in an OCI runtime bundle."""


class Site(BaseModel):
    """Programs and folders of this machine, by whoever carries out a task here."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    commands: Commands
    implementations: dict[str, Path] = {}
    """The folder of each; of programs that are none, there is none."""
    bundles: Bundles = {}
    certificates: Path
    """The folder that `certificates.write_each` filled."""
    folder: Path
    """Made by the trial, for itself alone."""

    def folders(self, implementation: str) -> list[Path]:
        """What its endpoints can read, wherever it lies."""
        return [self.implementations[implementation]] if implementation in self.implementations else []
