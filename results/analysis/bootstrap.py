"""Intervals of the ratio of a quantile of two arms, by resampling their pairs: the percentile bootstrap
(Efron 1979).

A quantile of few values can be few things: the value at one place of all in order, or the mean of those at
two places. So the ratios of most campaigns are computed once for each two of these things, and the resamples
that have them are counted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fecbench.results.analysis.quantiles import normal_below, t_quantile

_RESAMPLES = 2000
_MOST_RESAMPLES = 200_000  # where a level is so small that 2,000 have no value beyond the interval
_SEED = 0  # the same data gives the same interval
_MOST_VALUES = 1_000_000  # resampled at once: bounds the memory
_FEW_PAIRS = 7  # of which many resamples are alike
_MOST_COUNTED = 500  # different ratios of a point: sorting more of them takes longer than resampling

Floats = NDArray[np.float64]
Places = NDArray[np.intp]


def quantile_ratio_intervals(
    baseline: Floats, variant: Floats, level: float, lower: int, upper: int
) -> Floats:
    """The intervals (points × 2) of the ratios of a quantile of two arms, each points × pairs.

    The quantile is the mean of the values at the places `lower` and `upper`, from 0, of the pairs in order:
    both are in the middle for the median.

    It takes Student's quantile for the normal distribution's: without that, the interval of seven values ends
    at the second of them, and holds the median in 88 % of cases. A timeout is an infinite value; a resample
    of which both quantiles are may be anything. NaN where there are too few pairs for so small a `level`.
    """
    points, pairs = baseline.shape
    beyond = normal_below(t_quantile(level / 2, pairs - 1))
    # All of so few pairs may lie on one side of the truth by chance.
    if 2.0 ** (1 - pairs) > level or beyond * (_MOST_RESAMPLES - 1) < 1:
        return np.full((points, 2), math.nan)
    resamples = max(_RESAMPLES, math.ceil(1 / beyond) + 1)
    draws = np.random.default_rng(_SEED).integers(pairs, size=(resamples, pairs))
    times_drawn = np.stack([(draws == pair).sum(axis=1) for pair in range(pairs)])
    # The smaller the numbers are, the more of them a processor adds at once.
    times_drawn, times = _different(times_drawn.astype(np.min_scalar_type(pairs)))
    place = max(1, math.floor(beyond * (resamples - 1)))
    at_once = max(1, _MOST_VALUES // len(times))
    intervals = []
    for first in range(0, points, at_once):
        of_variant, of_baseline = (
            possible_quantiles(arm[first : first + at_once], times_drawn, lower, upper)
            for arm in (variant, baseline)
        )
        intervals.append(_percentiles(of_variant, of_baseline, times, place))
    return np.concatenate(intervals)


def _different(times_drawn: NDArray[np.integer]) -> tuple[NDArray[np.integer], NDArray[np.intp]]:
    """Return the different resamples, and how often each of them is there. Six pairs can be drawn in 462 ways
    only."""
    if times_drawn.shape[0] > _FEW_PAIRS:  # hardly two of them are alike
        return times_drawn, np.ones(times_drawn.shape[1], dtype=np.intp)
    different, times = np.unique(times_drawn, axis=1, return_counts=True)
    return different, times


def possible_quantiles(
    arm: Floats, times_drawn: NDArray[np.integer], first: int, second: int
) -> tuple[Floats, Places]:
    """The values that a quantile can take in resamples of an arm (points × pairs), and which of them each
    resample has.

    The quantile is the mean of the values at the places `first` and `second` in order. The values are
    points × possibilities, and a resample has one of them (points × resamples). `times_drawn`: pairs ×
    resamples, how often each resample has drawn each pair. So the values of a point are sorted once, and not
    with each resample.
    """
    pairs = arm.shape[1]
    order = np.argsort(arm, axis=1)
    ascending = np.take_along_axis(arm, order, axis=1)
    of_point: slice | Places = slice(None)
    if pairs <= _FEW_PAIRS:  # many points have them in the same order
        order, of_point = np.unique(order, axis=0, return_inverse=True)
    lower, upper, draws = (
        np.zeros((len(order), times_drawn.shape[1]), dtype=times_drawn.dtype) for _ in range(3)
    )
    for place in range(pairs):
        draws += times_drawn[order[:, place]]
        lower += draws <= first
        if first != second:
            upper += draws <= second
    if first == second:
        return ascending, lower.astype(np.intp)[of_point]
    above, below = np.tril_indices(pairs)  # (0, 0), (1, 0), (1, 1), (2, 0), …
    with np.errstate(invalid="ignore"):  # the mean of -∞ and ∞
        means: Floats = (ascending[:, below] + ascending[:, above]) / 2
    row = upper.astype(np.intp)
    return means, (row * (row + 1) // 2 + lower)[of_point]


def _percentiles(
    variant: tuple[Floats, Places], baseline: tuple[Floats, Places], times: NDArray[np.intp], place: int
) -> Floats:
    """The ratios (points × 2) at this place from both ends of all resamples in order; both arms as
    `possible_quantiles` has them. `times`: how often each resample is there."""
    (above, of_above), (below, of_below) = (
        (np.where(np.isneginf(quantiles), 0, quantiles), which) for quantiles, which in (variant, baseline)
    )
    points, different, resamples = len(above), above.shape[1] * below.shape[1], int(times.sum())
    with np.errstate(divide="ignore", invalid="ignore"):
        if different > _MOST_COUNTED or len(times) < resamples:
            resampled = np.take_along_axis(above, of_above, axis=1)
            resampled /= np.take_along_axis(below, of_below, axis=1)
            if len(times) < resamples:
                low = _repeated_at(place, _unknown_as(0, resampled), times)
                high = -_repeated_at(place, -_unknown_as(math.inf, resampled), times)
                return np.stack([low, high], axis=1)
            low = np.partition(_unknown_as(0, resampled), place, axis=1)[:, place]
            high = np.partition(_unknown_as(math.inf, resampled), -1 - place, axis=1)[:, -1 - place]
            return np.stack([low, high], axis=1)
        ratios = (above[:, :, np.newaxis] / below[:, np.newaxis, :]).reshape(points, different)
    of_points = np.arange(points)[:, np.newaxis] * different
    cells = of_points + of_above * below.shape[1] + of_below
    weights = np.broadcast_to(times.astype(np.float64), cells.shape).ravel()
    counts = np.bincount(cells.ravel(), weights, points * different).reshape(points, different)
    ends = place, resamples - 1 - place
    if not np.isnan(ratios).any():
        return _counted_at(ends, ratios, counts)
    low = _counted_at(ends[:1], _unknown_as(0, ratios), counts)
    return np.hstack([low, _counted_at(ends[1:], _unknown_as(math.inf, ratios), counts)])


def _repeated_at(place: int, values: Floats, times: NDArray[np.intp]) -> Floats:
    """The value at this place, from 0, of each row in order, where each column is there so many times. It is
    among as many of the least values, so no more have to be in order."""
    least = np.argpartition(values, min(place, values.shape[1] - 1), axis=1)[:, : place + 1]
    among = np.take_along_axis(values, least, axis=1)
    order = np.argsort(among, axis=1)
    at_most = times[np.take_along_axis(least, order, axis=1)].cumsum(axis=1)
    column = np.argmax(at_most > place, axis=1)[:, np.newaxis]
    at_place: Floats = np.take_along_axis(among, np.take_along_axis(order, column, axis=1), axis=1)[:, 0]
    return at_place


def _unknown_as(value: float, ratios: Floats) -> Floats:
    bounded: Floats = np.where(np.isnan(ratios), value, ratios)
    return bounded


def _counted_at(places: Sequence[int], values: Floats, counts: NDArray[Any]) -> Floats:
    """The values (points × places) at these places, from 0, of each row in order, where each value is there
    so often."""
    order = np.argsort(values, axis=1)
    at_most = np.take_along_axis(counts, order, axis=1).cumsum(axis=1)
    columns = np.stack([np.argmax(at_most > place, axis=1) for place in places], axis=1)
    quantiles: Floats = np.take_along_axis(values, np.take_along_axis(order, columns, axis=1), axis=1)
    return quantiles
