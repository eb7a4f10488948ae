"""Rates of a hunt: how often it finds planted harm, how often harm that does not exist, and its intervals'
coverage."""

import pytest

from fecbench.runners.hunt.budget import budget
from fecbench.runners.hunt.hunt import hunt
from fecbench.runners.hunt.hunt_finding import Finding
from fecbench.runners.hunt.space import Network
from tests.runners.hunt import harms
from tests.runners.hunt.planted import Effect, Planted, question_with_seed
from tests.runners.hunt.random_search import random_search

SMALL, LARGE = 2_000, 20_000
"""Trials."""


def findings_of(effect: Effect, seed: int, trials: int) -> list[Finding]:
    asking = question_with_seed(seed)
    return hunt(asking, budget(trials, asking.repetitions), Planted(asking, effect)).findings


def found_by_chance(effect: Effect, seed: int, trials: int) -> list[Finding]:
    asking = question_with_seed(seed)
    return random_search(asking, budget(trials, asking.repetitions), Planted(asking, effect))


def nothing(_: Network) -> float:
    return 1.0


@pytest.mark.slow
def test_nothing_is_found_where_nothing_is_planted_in_19_of_20_seeds() -> None:
    assert sum(bool(findings_of(nothing, seed, SMALL)) for seed in range(20)) <= 1


@pytest.mark.slow
def test_harm_in_a_thousandth_of_the_space_is_found_in_8_of_10_hunts() -> None:
    """Six kinds of harm are tried. Random search with as many trials finds less than half as many."""
    hits, by_chance, seeds = 0, 0, range(5)
    for kind, planted in harms.KINDS.items():
        effect = planted(0.001)
        of_kind = sum(
            any(effect(finding.network) > 1 for finding in findings_of(effect, seed, LARGE)) for seed in seeds
        )
        chance = sum(bool(found_by_chance(effect, seed, LARGE)) for seed in seeds)
        print(f"{kind}: found in {of_kind} of {len(seeds)} seeds, by random search in {chance}")
        hits, by_chance = hits + of_kind, by_chance + chance
    assert hits >= 0.8 * len(seeds) * len(harms.KINDS)
    assert by_chance < hits / 2


@pytest.mark.slow
def test_95_of_100_intervals_hold_the_truth() -> None:
    """The networks under losses are included, although they were chosen because they look bad."""
    effect = harms.under_losses(0.05)
    hits = [
        finding.interval[0] <= effect(finding.network) <= finding.interval[1]
        for seed in range(60)
        for finding in findings_of(effect, seed, SMALL)
    ]
    assert len(hits) >= 40
    assert sum(hits) >= 0.95 * len(hits)
