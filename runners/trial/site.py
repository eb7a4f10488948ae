"""Things of the machine that a trial needs."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from fecbench.runners.implementations.interop import Bundle
from fecbench.runners.tasks.task import Role

Commands = dict[str, dict[Role, list[str]]]
"""Argument lists that start the endpoints of each implementation."""
Bundles = dict[str, Bundle]
"""The implementations whose programs are in an OCI runtime bundle."""


class Site(BaseModel):
    """Programs and folders of this machine for tasks that are run here."""

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
        """Return the folders that endpoints of an implementation can read, besides their own."""
        return [self.implementations[implementation]] if implementation in self.implementations else []
