"""The mean of values that depend on those before: laws that any interval has, and how often it holds."""

import math

import numpy as np
import pytest
from scipy import signal, stats

from fecbench.results.analysis import dependent

MANY = 400


def series(
    generator: np.random.Generator, count: int, correlation: float
) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """Return values of AR(1) around 0, long after its beginning."""
    noise = generator.normal(size=count + 300)
    values: np.ndarray[tuple[int], np.dtype[np.float64]] = signal.lfilter([1], [1, -correlation], noise)[
        -count:
    ]
    return values


def test_an_interval_moves_and_grows_with_the_values() -> None:
    values = series(np.random.default_rng(1), 40, 0.5)
    low, high = dependent.mean_of(values).interval(0.05)
    assert low < float(values.mean()) < high
    assert dependent.mean_of(3 * values + 7).interval(0.05) == pytest.approx((3 * low + 7, 3 * high + 7))
    assert dependent.mean_of(-values).interval(0.05) == pytest.approx((-high, -low))


def test_values_that_depend_have_a_wider_interval_than_the_same_values_shuffled() -> None:
    generator = np.random.default_rng(2)
    values = series(generator, 60, 0.9)
    low, high = dependent.mean_of(values).interval(0.05)
    shuffled_low, shuffled_high = dependent.mean_of(generator.permutation(values)).interval(0.05)
    assert high - low > 2 * (shuffled_high - shuffled_low)
    of_student = stats.t.interval(0.95, 59, values.mean(), stats.sem(values))
    assert shuffled_high - shuffled_low == pytest.approx(of_student[1] - of_student[0], rel=0.3)


def test_a_drift_is_found_and_a_level_is_none() -> None:
    generator, along = np.random.default_rng(3), np.linspace(-0.5, 0.5, 60)
    design = np.column_stack([np.ones(60), along])
    level = dependent.coefficient(generator.normal(size=60), design)
    drifting = dependent.coefficient(generator.normal(size=60) + 4 * along, design)
    assert level.p_value() > 0.05 > 1e-3 > drifting.p_value()
    low, high = drifting.interval(0.05)
    assert low < 4 < high


def test_values_that_are_all_alike_leave_nothing_uncertain() -> None:
    assert dependent.mean_of(np.full(30, 0.25)).interval(0.05) == pytest.approx((0.25, 0.25), abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_93_to_97_of_100_intervals_hold_the_truth(correlation: float) -> None:
    generator, level = np.random.default_rng(4), 0.05
    for count in (40, 100):
        shares = [
            dependent.mean_of(series(generator, count, correlation)).below(0.0) for _ in range(3 * MANY)
        ]
        count_held = sum(level / 2 <= share <= 1 - level / 2 for share in shares)
        chance = 3 * math.sqrt(0.95 * 0.05 / (3 * MANY))  # of so many, by three standard errors
        assert 0.93 - chance / 3 <= count_held / (3 * MANY) <= 0.97 + chance / 3, (
            count,
            count_held / (3 * MANY),
        )


def test_most_intervals_of_blocks_that_depend_hold_the_truth() -> None:
    generator = np.random.default_rng(5)
    shares = [dependent.mean_of(series(generator, 30, 0.9)).below(0.0) for _ in range(60)]
    assert sum(0.025 <= share <= 0.975 for share in shares) >= 52  # of 60; Student's would hold some 25
