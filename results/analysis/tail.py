"""Whether the slowest twentieth of a cross-check's trials takes as long in virtual time as emulated.

A mean of logarithms hardly moves with a tail, and campaigns conclude from it: by the 95th percentile, and in
"the slowest gain most". With fewer than FEWEST_OF_TAIL trials, fewer than five are beyond that percentile,
and nothing is asked.
"""

from __future__ import annotations

import numpy as np

from fecbench.results.analysis.criterion import Z_POWER, Criterion, Differences, Floats, Z, more_than
from fecbench.results.analysis.intervals import LEVEL
from fecbench.results.analysis.tolerances import TAIL_BY

QUANTILE = 0.95
FEWEST_OF_TAIL = 100

_RESAMPLES = 999
_SEED = 95


def is_asked(differences: Differences) -> bool:
    """Whether there are values, and enough of them."""
    return differences.times is not None and len(differences.y) >= FEWEST_OF_TAIL


def tail(differences: Differences, farthest: float) -> Criterion:
    """The logarithm of the virtual percentile / the emulated one. Its interval is of 999 samples of the
    trials, drawn again with their twins (the percentile bootstrap: Efron and Tibshirani, "An Introduction to
    the Bootstrap", 1993, chapter 13)."""
    assert differences.times is not None
    n = len(differences.y)
    draws = np.random.default_rng(_SEED).integers(n, size=(_RESAMPLES, n))
    ratios = np.clip(_ratios(*(times[draws] for times in differences.times)), -farthest, farthest)
    value = float(np.clip(_ratios(*(times[None] for times in differences.times)), -farthest, farthest)[0])
    tolerance = (
        float(differences.low.mean()) - differences.mean_by - TAIL_BY,
        float(differences.high.mean()) + differences.mean_by + TAIL_BY,
    )
    interval = np.quantile(ratios, [LEVEL / 2, 1 - LEVEL / 2])
    outside = max(tolerance[0] - value, value - tolerance[1])
    inside = (ratios >= tolerance[0]).sum() if value < tolerance[0] else (ratios <= tolerance[1]).sum()
    p_value = min(1.0, 2 * (1 + int(inside)) / (_RESAMPLES + 1)) if outside > 0 else 1.0
    error = float(ratios.std())
    needed = n * ((Z + Z_POWER) * error / outside) ** 2 if outside else float("inf")
    return Criterion(
        stratum="all",
        statistic="tail",
        n=n,
        value=value,
        interval=(float(interval[0]), float(interval[1])),
        tolerance=tolerance,
        p_value=p_value,
        more=more_than(n, max(n, needed)),
    )


def _ratios(virtual: Floats, emulated: Floats) -> Floats:
    """Return the logarithm of the ratio of the percentiles of each row: 0 where both are timeouts."""
    percentiles = _percentiles(virtual), _percentiles(emulated)
    with np.errstate(invalid="ignore"):
        ratios: Floats = np.where(percentiles[0] == percentiles[1], 0.0, percentiles[0] - percentiles[1])
    return ratios


def _percentiles(rows: Floats) -> Floats:
    """Return the percentile of each row: one of its values, so that it may be infinite."""
    place = int(np.ceil(QUANTILE * rows.shape[1])) - 1
    percentiles: Floats = np.partition(rows, place, axis=1)[:, place]
    return percentiles
