"""What tests of virtual time share: an implementation whose simulator is made up, and designs that use it."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import designs
from results.store.records import TrialKey
from runners.campaign.experiment import Experiment
from runners.campaign.order import trial_keys
from runners.engines.engine import Finished
from runners.engines.virtual import VirtualEngine
from runners.implementations.finding import Implementations
from runners.trial.task import VIRTUAL, Task

HERE = Path(__file__).parent
"""The folder that holds the implementation `made-up`."""

VARIANTS = """
[[variants]]
label = "good"
implementation = "made-up"
baseline = true
[[variants]]
label = "other"
implementation = "made-up"
options = {{ manner = "{manner}", one_in = {one_in} }}
"""

WriteDesign = Callable[..., Path]
Tasks = list[tuple[TrialKey, Task]]


@pytest.fixture
def made_up(write_design: Any, tmp_path: Path) -> WriteDesign:
    """Writes the little design with two variants of `made-up`: the second answers in some manner."""

    def written(manner: str = "good", one_in: int = 1, more: str = "") -> Path:
        path: Path = write_design(tmp_path, more + VARIANTS.format(manner=manner, one_in=one_in))
        return path

    return written


def experiment_of(path: Path) -> Experiment:
    """The design resolved, with the implementation of this folder."""
    design = designs.load(path)
    return Experiment(design, design.plan().points, Implementations([HERE]))


def tasks_of(experiment: Experiment) -> Tasks:
    """Every trial of it, in order."""
    keys = trial_keys(experiment.design, len(experiment.points))
    return [(key, experiment.task(key, VIRTUAL)) for key in keys]


Play = Callable[[Sequence[tuple[TrialKey, Task]]], list[Finished]]


@pytest.fixture
def play(made_up: WriteDesign) -> Iterator[Play]:
    """Has tasks played by one simulator at a time."""
    experiment = experiment_of(made_up())
    with VirtualEngine(1, experiment.simulators, experiment.folders) as engine:

        def play(tasks: Sequence[tuple[TrialKey, Task]]) -> list[Finished]:
            finished = []
            for each in engine.run(tasks):
                finished.append(each)
                engine.judged(each, valid=True)
            return finished

        yield play
