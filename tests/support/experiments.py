"""Designs resolved with the implementations of this checkout, and the tasks of their trials."""

from pathlib import Path
from typing import Any

import pytest

from fecbench import designs
from fecbench.designs import Design
from fecbench.results.store.records import TrialKey
from fecbench.runners.campaign.experiment import Experiment
from fecbench.runners.engines.engine import Finished
from fecbench.runners.implementations.finding import ours
from fecbench.runners.tasks.task import ROLES, Task
from fecbench.runners.trial.judge import Judgement
from fecbench.runners.trial.site import Commands
from tests.support import tasks
from tests.support.patience import carried_out
from tests.support.trials import Trials


def experiment_of(design: Design | Path, documents: dict[str, Any] | None = None) -> Experiment:
    """Return a design resolved, or the one of a file."""
    if isinstance(design, Path):
        design = designs.load(design)
    return Experiment(design, design.plan().points, ours(), documents)


def experiment_of_text(folder: Path, text: str) -> Experiment:
    """Return a design resolved, of which a file in the folder has the text."""
    path = folder / "design.toml"
    path.write_text(text)
    return experiment_of(path)


def task_of(experiment: Experiment, variant: str = "it", point: int = 0, **changes: Any) -> Task:
    """Return the emulated task of a variant on the only workload, for a slow machine, with these changes."""
    (workload,) = experiment.activities
    task = experiment.task(TrialKey(variant, workload, point, 0), "wire")
    return task.model_copy(update={"validity": tasks.SLOW_MACHINE, **changes})


def commands_of(name: str) -> Commands:
    """Return the commands of an implementation of this checkout; skip the test if it is not built."""
    implementation = ours().find(name, "tests")
    if implementation.missing_programs():
        pytest.skip(f"{name} is not built")
    return {name: {role: implementation.command(role) for role in ROLES}}


def trial_by(name: str, trials: Trials, task: Task, *is_right: Any) -> tuple[Finished, Judgement]:
    """Return what an implementation makes of a task, and the judgement; skip the test if it is not built."""
    commands = commands_of(name)
    return carried_out(trials, task, commands, {name: ours().find(name, "tests").folder}, *is_right)
