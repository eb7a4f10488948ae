"""The common parts of tests of virtual time: an implementation with a made-up simulator, and its engine."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from fecbench import designs
from fecbench.results.store.records import TrialKey
from fecbench.runners.campaign.experiment import Experiment
from fecbench.runners.campaign.order import trial_keys
from fecbench.runners.engines.engine import Finished
from fecbench.runners.engines.programs import engine_for
from fecbench.runners.implementations.finding import Implementations
from fecbench.runners.tasks.task import VIRTUAL, Task
from tests.runners.conftest import WriteDesign

HERE = Path(__file__).parent
"""The folder that holds the implementation `made-up`."""

Tasks = list[tuple[TrialKey, Task]]


def experiment_of(path: Path, folder: Path = HERE) -> Experiment:
    """The design resolved, with the implementations of this folder."""
    design = designs.load(path)
    return Experiment(design, design.plan().points, Implementations([folder]))


def tasks_of(experiment: Experiment) -> Tasks:
    """Return every trial of it, in order."""
    keys = trial_keys(experiment.design, len(experiment.points))
    return [(key, experiment.task(key, VIRTUAL)) for key in keys]


Play = Callable[[Sequence[tuple[TrialKey, Task]]], list[Finished]]


@pytest.fixture
def play(made_up: WriteDesign) -> Iterator[Play]:
    """Has tasks played by one simulator at a time."""
    experiment = experiment_of(made_up())
    with engine_for("virtual", experiment.implementations, 1) as engine:

        def play(tasks: Sequence[tuple[TrialKey, Task]]) -> list[Finished]:
            finished = []
            for each in engine.run(tasks):
                finished.append(each)
                engine.judged(each, valid=True)
            return finished

        yield play
