"""Builds whose truth is known: equal ones are seldom called different, and no harm is called none."""

from collections import Counter

import numpy as np
import pytest

from tests.results.gate import planted_builds as planted
from tests.results.gate.planted_builds import Builds, Plan

RECOVERY = Plan(points=60, workloads=6, repetitions=48)
SMALL = Plan(points=20, workloads=3, repetitions=24)
EQUAL = planted.everywhere(1)
GREEN = {"faster", "no difference that matters"}
DIFFERENT = {"fails", "slower", "faster"}

NOT_GREEN = {
    "one workload is slower": Builds(planted.in_workloads({2: 1.03})),
    "one workload is slower and another faster": Builds(planted.in_workloads({0: 0.95, 2: 1.03})),
    "a little slower, and a little faster": Builds(planted.in_workloads({0: 0.96, 2: 1.02})),
    "half slower, half faster": Builds(planted.in_workloads({0: 0.97, 1: 1.02, 2: 1.02})),
    "one workload is slower, and the time is over": Builds(planted.in_workloads({2: 1.03}), over_at=0),
    "all are slower": Builds(planted.everywhere(1.05)),
    "never ends in 0.1 %": Builds(EQUAL, planted.fails_alone(0.001)),
    "never ends in 0.3 %, emulated": Builds(EQUAL, planted.fails_alone(0.003), engine="local"),
    "ten times as long in 0.2 %": Builds(planted.in_rare_trials(0.002, 10)),
    "a hundred times as long in 0.1 %": Builds(planted.in_rare_trials(0.001, 100)),
    "a third longer in 6 %": Builds(planted.in_rare_trials(0.06, 1.33)),
    "one network is ruined": Builds(planted.in_one_network(1.5)),
    "both fail in 8 %": Builds(EQUAL, planted.fails_in_both(0.08)),
    "both always fail": Builds(EQUAL, planted.fails_in_both(1)),
    "slow trials stay invalid": Builds(planted.in_rare_trials(0.1, 1.5), engine="local", invalid=0.9),
    "half of the slow trials stay invalid": Builds(
        planted.in_rare_trials(0.1, 1.5), engine="local", invalid=0.5
    ),
}
SURELY = {
    "all are slower": {"slower"},
    "one network is ruined": {"slower"},
    "both fail in 8 %": {"undecided"},
    "both always fail": {"undecided"},
    "slow trials stay invalid": {"undecided"},
}
NOT_DIFFERENT = {
    "equal": Builds(EQUAL),
    "equal, emulated": Builds(EQUAL, engine="local"),
    "equal, and both fail now and then, emulated": Builds(
        EQUAL, planted.fails_as_often(0.01), engine="local"
    ),
    "equal, and both fail in 2 %": Builds(EQUAL, planted.fails_in_both(0.02)),
    "as much slower as the margin": Builds(planted.everywhere(1.01)),
    "as much faster as the margin": Builds(planted.everywhere(1 / 1.01)),
}


def verdicts(builds: Builds, plan: Plan, campaigns: int) -> Counter[str]:
    random = np.random.default_rng(7)
    return Counter(builds.verdict(random, plan) for _ in range(campaigns))


@pytest.mark.parametrize("name", NOT_GREEN)
def test_a_harm_is_never_called_none(name: str) -> None:
    """Small campaigns: what they cannot decide is undecided."""
    counts = verdicts(NOT_GREEN[name], SMALL, 6)
    assert sum(counts[verdict] for verdict in GREEN) <= (1 if "0." in name else 0), counts
    if name in SURELY:
        assert counts.keys() == SURELY[name], counts


@pytest.mark.parametrize("name", NOT_DIFFERENT)
def test_equal_builds_are_not_called_different(name: str) -> None:
    counts = verdicts(NOT_DIFFERENT[name], SMALL, 10)
    assert sum(counts[verdict] for verdict in DIFFERENT) <= 1, counts


def test_a_build_that_is_faster_everywhere_is_faster() -> None:
    assert verdicts(Builds(planted.everywhere(0.95)), SMALL, 4).keys() == {"faster"}


@pytest.mark.slow
@pytest.mark.parametrize("name", NOT_GREEN)
def test_in_campaigns_of_recovery_a_harm_is_called_none_in_5_of_100_at_most(name: str) -> None:
    counts = verdicts(NOT_GREEN[name], RECOVERY, 100)
    assert sum(counts[verdict] for verdict in GREEN) <= 5, counts


@pytest.mark.slow
@pytest.mark.parametrize("name", NOT_DIFFERENT)
def test_in_campaigns_of_recovery_equal_builds_are_called_different_in_5_of_100_at_most(name: str) -> None:
    counts = verdicts(NOT_DIFFERENT[name], RECOVERY, 100)
    assert sum(counts[verdict] for verdict in DIFFERENT) <= 5, counts
