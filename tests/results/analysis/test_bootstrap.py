import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

from fecbench.results.analysis import bootstrap


def arm(random: np.random.Generator, points: int, pairs: int) -> np.ndarray:
    """Values that tie, and timeouts."""
    values = random.integers(1, 4, (points, pairs)).astype(np.float64)
    values[random.random(values.shape) < 0.2] = math.inf
    return values


def test_medians_of_resamples_are_those_of_the_values_that_each_has_drawn() -> None:
    for pairs in (6, 7, 15):
        random = np.random.default_rng(pairs)
        values = arm(random, 30, pairs)
        drawing = random.integers(pairs, size=(100, pairs))
        counts = np.stack([(drawing == pair).sum(axis=1) for pair in range(pairs)])
        possible, which = bootstrap.possible_quantiles(values, counts, (pairs - 1) // 2, pairs // 2)
        medians = np.take_along_axis(possible, which, axis=1)
        np.testing.assert_array_equal(medians, np.median(values[:, drawing], axis=2))


def test_counted_ratios_have_the_percentiles_of_the_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    for pairs in (6, 7, 8, 21):
        random = np.random.default_rng(pairs)
        of_arms = arm(random, 40, pairs), arm(random, 40, pairs)
        middle = (pairs - 1) // 2, pairs // 2
        intervals_drawn = []
        for most_counted in (10**9, 0):
            monkeypatch.setattr(bootstrap, "_MOST_COUNTED", most_counted)
            intervals_drawn.append(bootstrap.quantile_ratio_intervals(*of_arms, 0.05, *middle))
        np.testing.assert_array_equal(*intervals_drawn)


def test_intervals_end_at_places_of_all_resamples_in_order() -> None:
    for pairs, has_ties in product((6, 7, 8, 30), (True, False)):
        random = np.random.default_rng(pairs)
        variant, baseline = (
            arm(random, 40, pairs) if has_ties else random.lognormal(size=(40, pairs)) for _ in range(2)
        )
        draws = np.random.default_rng(0).integers(pairs, size=(2000, pairs))
        with np.errstate(invalid="ignore"):
            ratios = np.median(variant[:, draws], axis=2) / np.median(baseline[:, draws], axis=2)
        place = math.floor(stats.norm.cdf(stats.t.ppf(0.025, pairs - 1)) * 1999)
        # A resample in which both medians are timeouts may be anything.
        low = np.sort(np.where(np.isnan(ratios), 0, ratios), axis=1)[:, place]
        high = np.sort(np.where(np.isnan(ratios), math.inf, ratios), axis=1)[:, 1999 - place]
        middle = (pairs - 1) // 2, pairs // 2
        intervals = bootstrap.quantile_ratio_intervals(baseline, variant, 0.05, *middle)
        np.testing.assert_array_equal(intervals, np.stack([low, high], axis=1))
