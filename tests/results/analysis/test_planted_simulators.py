"""Simulators that are wrong by design: how often a cross-check finds each, and takes it for right.

`make test-slow` prints the table, which docs/virtual-time.md has.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from fecbench.results.analysis import crosscheck_questions, pooled, tolerances
from fecbench.results.analysis.agreement import Agreement, Comparison
from fecbench.results.analysis.criterion import Differences, Verdict
from fecbench.results.metrics import DEFAULT

Floats = NDArray[np.float64]
Random = np.random.Generator
WORKLOADS = {"download-5000": True, "download-10000": True, "download-50000": False}
"""Whether each is a short transfer."""
SIZES = (16, 40, 200)
CAMPAIGNS = 100
A_THIRD = 1 / 3


class Trials:
    """The trials of both arms with one workload: logarithms of virtual / emulated, which a simulator
    changes."""

    def __init__(self, random: Random, n: int, workload: str) -> None:
        self.random, self.n, self.workload = random, n, workload
        place = random.random(n)
        self.loss_share: Floats = np.where(place > 0.6, place, 0.0)
        self.network: Floats = random.normal(-1, 0.8, n)
        self.baseline, self.variant = self._right(), self._right()

    def _right(self) -> Floats:
        """The endpoints' time of a processor; one in 25 trials that met a loss is off by 10 to 30 %."""
        y = self.random.normal(-0.005, 0.003, self.n)
        off = (self.loss_share > 0) & (self.random.random(self.n) < 0.04)
        right: Floats = np.where(off, y - self.random.uniform(0.1, 0.3, self.n), y)
        return right

    def some(self, share: float) -> NDArray[np.bool_]:
        some: NDArray[np.bool_] = self.random.random(self.n) < share
        return some

    @property
    def highest_losses(self) -> NDArray[np.bool_]:
        highest: NDArray[np.bool_] = self.loss_share > 0.9
        return highest

    @property
    def slowest(self) -> NDArray[np.bool_]:
        slowest: NDArray[np.bool_] = self.network > np.quantile(self.network, 0.9)
        return slowest


Plant = Callable[[Trials], tuple[Any, Any]]
"""The error of a simulator, added to the logarithms of baseline and variant: a number, or one of each
trial."""


def variant_alone(share: float, factor: float) -> Plant:
    return lambda trials: (0.0, trials.some(share) * math.log(factor))


def in_turn(share: float, factor: float) -> Plant:
    """Make so many trials of each arm longer, or shorter, by this factor."""

    def of_arm(trials: Trials) -> Any:
        return trials.some(share) * np.where(trials.some(0.5), 1, -1) * math.log(factor)

    return lambda trials: (of_arm(trials), of_arm(trials))


def both(where: Callable[[Trials], NDArray[np.bool_]], factor: float) -> Plant:
    def moved(trials: Trials) -> tuple[Any, Any]:
        by = where(trials) * math.log(factor)
        return by, by

    return moved


class Simulator(NamedTuple):
    """The error of a simulator, and the number of trials of a workload and arm from which it is found in 95
    of 100 campaigns; None where no such number is known."""

    plant: Plant
    found_from: int | None = None


RIGHT = "right"
SIMULATORS: Mapping[str, Simulator] = {
    "a third of trials × 2, both arms": Simulator(both(lambda trials: trials.some(A_THIRD), 2), 40),
    "a third × 1.1, both arms": Simulator(both(lambda trials: trials.some(A_THIRD), 1.1)),
    "a third × 1.2, both arms": Simulator(both(lambda trials: trials.some(A_THIRD), 1.2), 200),
    "a third × 2 or / 2 in turn, each arm": Simulator(in_turn(A_THIRD, 2), 200),
    "half × 2 or / 2 in turn, each arm": Simulator(in_turn(0.5, 2), 40),
    "variant: a third × 1.5": Simulator(variant_alone(A_THIRD, 1.5), 40),
    "variant: all × 0.96": Simulator(variant_alone(1, 0.96), 16),
    "variant: all × 0.98": Simulator(variant_alone(1, 0.98), 16),
    "variant: all × 0.98 above 10 kB": Simulator(
        lambda trials: (0.0, 0.0 if WORKLOADS[trials.workload] else math.log(0.98)), 200
    ),
    "variant: 10 % of trials × 0.6": Simulator(variant_alone(0.1, 0.6), 200),
    "variant: 5 % of trials × 0.5": Simulator(variant_alone(0.05, 0.5), 200),
    "variant: 20 % of trials × 0.8": Simulator(variant_alone(0.2, 0.8), 200),
    "variant: 2 % of trials × 10": Simulator(variant_alone(0.02, 10)),
    "variant: 2 % of trials / 10": Simulator(variant_alone(0.02, 0.1)),
    "variant: 1 % of trials × 100": Simulator(variant_alone(0.01, 100)),
    "both arms: the tenth with most losses × 2": Simulator(
        both(lambda trials: trials.highest_losses, 2), 200
    ),
    "variant: the tenth with most losses × 0.5": Simulator(
        lambda trials: (0.0, trials.highest_losses * math.log(0.5)), 200
    ),
    "variant: the tenth with most losses × 0.7": Simulator(
        lambda trials: (0.0, trials.highest_losses * math.log(0.7)), 200
    ),
    "both arms: the slowest tenth × 0.8": Simulator(both(lambda trials: trials.slowest, 0.8)),
    "variant: 30 % of trials with a loss × 0.7": Simulator(
        lambda trials: (0.0, (trials.loss_share > 0) * trials.some(0.3) * math.log(0.7)), 200
    ),
}


def verdicts(plant: Plant | None, n: int, campaigns: Iterable[int]) -> Counter[Verdict]:
    """Count the verdicts of so many campaigns with their own seeds, each with n trials of a workload and
    arm."""
    return Counter(_agreement(plant, n, np.random.default_rng([n, seed])).verdict for seed in campaigns)


def _agreement(plant: Plant | None, n: int, random: Random) -> Agreement:
    comparisons, of_workload = [], {}
    for workload, short in WORKLOADS.items():
        trials = Trials(random, n, workload)
        added = plant(trials) if plant else (0.0, 0.0)
        arms = [arm + by for arm, by in zip((trials.baseline, trials.variant), added, strict=True)]
        time = (-0.031, 0.01)  # at a round-trip time of 100 ms
        ratio = tolerances.of_ratio(is_share=False, short=short)
        comparisons += [_compared(arm, time, trials, short, trials.network) for arm in arms]
        of_workload[workload] = arms[1] - arms[0]
        of_ratio = (-ratio.below, ratio.above)
        comparisons.append(_compared(of_workload[workload], of_ratio, trials, short, None))
    metrics = dict.fromkeys(WORKLOADS, DEFAULT)
    return Agreement(
        campaign="x",
        sample="x-crosscheck",
        share=0.5,
        arms=(),
        groups=n,
        planned=6 * n,
        pairs=6 * n,
        left_out={},
        other_losses=[],
        is_clocked=False,
        other_states=[],
        met_a_loss=0,
        comparisons=comparisons,
        pooled=list(pooled.of_ratios("variant", "baseline", of_workload, metrics)),
    )


def _compared(
    y: Floats, tolerance: tuple[float, float], trials: Trials, short: bool, times: Floats | None
) -> Comparison:
    low, high = (np.full(len(y), math.log1p(end)) for end in tolerance)
    differences = Differences(
        y=y,
        low=low,
        high=high,
        far=math.log1p(tolerances.FAR),
        mean_by=math.log1p(tolerances.MEAN_BY),
        met_a_loss=trials.loss_share > 0,
        far_either=tolerances.far_either(short=short),
        loss_share=trials.loss_share,
        times=None if times is None else (times + y, times),
    )
    answers = crosscheck_questions.asked(differences)
    return Comparison("x", trials.workload, DEFAULT, None, len(y), {}, (0, 0), (0, 0), "", answers)


def test_a_right_simulator_never_differs_and_agrees_with_enough_trials() -> None:
    for n in SIZES:
        assert verdicts(None, n, range(10))["differs"] == 0, n
    assert verdicts(None, 400, range(10))["agrees"] >= 8


@pytest.mark.parametrize("name", SIMULATORS)
def test_a_wrong_simulator_is_not_taken_for_right(name: str) -> None:
    plant, found_from = SIMULATORS[name]
    for n in SIZES:
        counts = verdicts(plant, n, range(6))
        assert counts["agrees"] == 0, n
        if found_from and n >= found_from:
            assert counts["differs"] >= 5, n


@pytest.mark.slow
def test_how_often_simulators_are_found() -> None:
    print("\ndiffers / cannot tell / agrees, in % of campaigns, by trials of a workload and arm")
    for name, (plant, found_from) in {RIGHT: Simulator(lambda _: (0.0, 0.0)), **SIMULATORS}.items():
        cells = []
        for n in SIZES:
            counts = verdicts(plant, n, range(CAMPAIGNS))
            cells.append(" / ".join(str(counts[verdict]) for verdict in ("differs", "cannot tell", "agrees")))
            if name == RIGHT:
                assert counts["differs"] <= 0.05 * CAMPAIGNS, n
            else:
                assert counts["agrees"] <= 0.05 * CAMPAIGNS, (name, n)
                assert not found_from or n < found_from or counts["differs"] >= 0.95 * CAMPAIGNS, (name, n)
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
