"""The engine that runs the programs of implementations on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fecbench.runners.engines.admission import Jobs
from fecbench.runners.implementations.engine_name import EngineName
from fecbench.runners.implementations.implementation import Implementation
from fecbench.runners.tasks.task import ROLES

if TYPE_CHECKING:
    from fecbench.runners.engines.namespaces import NamespaceEngine
    from fecbench.runners.engines.virtual import VirtualEngine


def engine_for(
    name: EngineName, implementations: Mapping[str, Implementation], jobs: Jobs = 1, *, ahead: bool = False
) -> NamespaceEngine | VirtualEngine:
    """The engine of this name for `implementations`, by their names. Emulated endpoints run `ahead` of
    ordinary programs, where that is granted.

    Raises Refusal where an implementation has no simulator for trials in virtual time.
    """
    folders = {label: implementation.folder for label, implementation in implementations.items()}
    if name == "virtual":
        from fecbench.runners.engines.virtual import VirtualEngine

        simulators = {label: one.simulator_command() for label, one in implementations.items()}
        return VirtualEngine(jobs, simulators, folders)
    from fecbench.runners.engines.namespaces import (
        NamespaceEngine,  # Mininet, which virtual time does not need
    )

    commands = {
        label: {role: implementation.command(role) for role in ROLES}
        for label, implementation in implementations.items()
    }
    bundles = {label: one.bundle for label, one in implementations.items() if one.bundle is not None}
    return NamespaceEngine(jobs, commands, folders, bundles, ahead=ahead)
