"""The time that a design takes, by a few trials that are run now: in virtual time, and emulated.

Points are measured from the fastest to the slowest by what their links carry, at equal steps, and what lies
between is interpolated.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fecbench import designs
from fecbench.errors import Failed
from fecbench.results.store.records import TrialKey
from fecbench.runners.campaign.checks import check
from fecbench.runners.campaign.experiment import Experiment
from fecbench.runners.engines.admission import CPU_S
from fecbench.runners.engines.engine import Finished
from fecbench.runners.engines.programs import engine_for
from fecbench.runners.refusal import Refusal
from fecbench.runners.tasks.task import VIRTUAL, Task

BUDGET_S = 2.5
"""Time after which no more trials are start_s."""
_RANKS = (1.0, 0.0, 0.5, 0.25, 0.75)
"""The ranks of the points that are measured, the slowest first: of few points, the nearest one's."""
_MOST_AT_POINT = 6


@dataclass(frozen=True)
class Estimate:
    """The time of one trial, and the least and the most of the points that were measured, in seconds."""

    virtual_s: tuple[float, float, float]
    """Mean, least and most of a processor, in virtual time."""
    emulated_s: float
    """Mean of an emulated trial: the time in the trial, and that of its set-up."""
    trials: int
    """Number of trials that were measured."""
    processors: int
    """Number of processors that are free to this process."""


def estimate(experiment: Experiment) -> Estimate | None:
    """Return an estimate; None where an implementation has no simulator that is built, or the design asks for
    what no simulator has."""
    try:
        check(experiment, "virtual", VIRTUAL)
    except Refusal:
        return None
    try:
        ranked = list(_measured(experiment))
    except Failed:  # a campaign will say why its simulators do not run
        return None
    if not ranked:
        return None
    return _estimate([rank for rank, _ in ranked], [trial for _, trial in ranked], len(experiment.points))


def _measured(experiment: Experiment) -> Iterator[tuple[float, Finished]]:
    """Yield trials that were run, each with the rank of its point."""
    with engine_for("virtual", experiment.implementations, 1) as engine:
        samples = list(_samples(experiment))
        start_s = time.monotonic()
        list(engine.run([_with_task(experiment, samples[-1][1])]))  # to start the simulators
        for rank, key in samples:
            if time.monotonic() - start_s > BUDGET_S:
                break
            for trial in engine.run([_with_task(experiment, key)]):
                if trial.outcome.virtual_s is not None:  # else its simulator gave no answer
                    yield rank, trial


def _estimate(ranks: Sequence[float], finished: Sequence[Finished], points: int) -> Estimate:
    places = sorted(set(ranks))
    of_ranks = [
        [trial for rank, trial in zip(ranks, finished, strict=True) if rank == place] for place in places
    ]
    real = [float(np.mean([trial.duration_s for trial in trials])) for trials in of_ranks]
    virtual = [float(np.mean([trial.outcome.virtual_s or 0.0 for trial in trials])) for trials in of_ranks]
    everywhere = np.linspace(0, 1, points)
    return Estimate(
        virtual_s=(float(np.interp(everywhere, places, real).mean()), min(real), max(real)),
        emulated_s=CPU_S + float(np.interp(everywhere, places, virtual).mean()),
        trials=len(finished),
        processors=len(os.sched_getaffinity(0)),
    )


def _samples(experiment: Experiment) -> Iterator[tuple[float, TrialKey]]:
    """Yield trials to measure, each with the rank of its point, 0 for the fastest to 1 for the slowest: one
    of each point first."""
    order = sorted(
        range(len(experiment.points)), key=lambda point: _rate_mbps(experiment, point), reverse=True
    )
    chance = random.Random(designs.seed(experiment.design.seed, "estimate"))
    last = len(order) - 1
    kinds = [(arm, workload) for workload in experiment.activities for arm in experiment.arms]
    of_places = [
        (place, chance.sample(kinds, min(len(kinds), _MOST_AT_POINT)))
        for place in dict.fromkeys(round(rank * last) for rank in _RANKS)
    ]
    for turn in range(_MOST_AT_POINT):
        for place, sample in of_places:
            if turn < len(sample):
                yield place / max(last, 1), TrialKey(*sample[turn], order[place], 0)


def _rate_mbps(experiment: Experiment, point: int) -> float:
    """Return the rate at which the links of a point carry data; without a parameter of it, all are alike."""
    value = experiment.values(point).get("bandwidth_mbps", 0.0)
    return float(value) if isinstance(value, int | float) else 0.0


def _with_task(experiment: Experiment, key: TrialKey) -> tuple[TrialKey, Task]:
    return key, experiment.task(key, VIRTUAL)
