"""The variance that covariates take out: as much as they explain, and none where they explain nothing."""

import numpy as np
import pytest

from bench.fewer_trials import factors, left_by_regression

REPETITIONS, NETWORKS = 60, 200


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(5)


def test_what_covariates_explain_is_taken_out(random: np.random.Generator) -> None:
    variances = []
    for _ in range(NETWORKS):
        covariates = random.normal(size=(REPETITIONS, 2))
        values = covariates @ [3, 0] + random.normal(size=REPETITIONS)
        variances.append(left_by_regression(values, covariates))
    # The noise has variance 1; three coefficients that are estimated from 60 values cost about 3/60 twice.
    assert 1 < np.mean(variances) < 1.2


def test_covariates_that_explain_nothing_cost_what_their_estimates_cost(random: np.random.Generator) -> None:
    values = random.normal(size=(NETWORKS, REPETITIONS))
    unrelated = random.normal(size=(NETWORKS, REPETITIONS, 6))
    none = np.mean([left_by_regression(one, np.empty((REPETITIONS, 0))) for one in values])
    six = np.mean([left_by_regression(*pair) for pair in zip(values, unrelated, strict=True)])
    assert 1.1 < six / none < 1.5


def test_a_covariate_that_never_changes_is_no_fault(random: np.random.Generator) -> None:
    values = random.normal(size=REPETITIONS)
    alone = left_by_regression(values, np.empty((REPETITIONS, 0)))
    assert left_by_regression(values, np.ones((REPETITIONS, 1))) == pytest.approx(alone)


def test_arms_that_meet_the_same_losses_differ_less(random: np.random.Generator) -> None:
    losses, own = random.normal(size=1000), random.normal(size=(2, 1000))
    independent, common, _ = factors(losses + 0.1 * own[0], losses + 0.1 * own[1], losses[:, np.newaxis])
    assert independent / common == pytest.approx(2 * 1.01 / 0.02, rel=0.15)
