"""What a trial needs of the machine that carries it out."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from runners.trial.task import Role

Commands = dict[str, dict[Role, list[str]]]
"""Of each implementation: the argument lists that start its endpoints."""


class Site(BaseModel):
    """Programs and folders of this machine, by whoever carries out a task here."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    commands: Commands
    certificates: Path
    """The folder that `certificates.write` filled."""
    folder: Path
    """Made by the trial, for itself alone."""
