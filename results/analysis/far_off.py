"""The trials of a cross-check that are far off: more on one side than on the other, and on either side.

Where chance alone puts trials far off, they are as many on both sides. So the first says whether a simulator
is wrong in one direction, and the second whether its values spread more than a run of the same again would.
"""

from __future__ import annotations

import math

from fecbench.results.analysis.criterion import (
    Z_POWER,
    Criterion,
    Differences,
    Interval,
    Z,
    fewest,
    more_than,
)
from fecbench.results.analysis.intervals import FEWEST
from fecbench.results.analysis.quantiles import heads_at_least, normal_below, normal_beyond
from fecbench.results.analysis.tolerances import FAR_SHARE


def far(differences: Differences) -> Criterion:
    """The share of trials far above their tolerance, less that of those far below."""
    above, below, n = _counts(differences)
    most, least = max(above, below), min(above, below)
    is_enough = n >= FEWEST
    p_value = normal_beyond(_score(most, least, n, FAR_SHARE)) if is_enough else 1.0
    p_value += normal_below(_score(least, most, n, FAR_SHARE)) if is_enough else 0.0
    return Criterion(
        stratum="all",
        statistic="far",
        n=n,
        value=(above - below) / n if n else math.nan,
        interval=excess_interval(above, below, n) if is_enough else (math.nan, math.nan),
        tolerance=(-FAR_SHARE, FAR_SHARE),
        p_value=min(p_value, 1.0),
        more=_more_for_far(most, least, n),
    )


def either(differences: Differences) -> Criterion:
    """The share of trials far above or far below."""
    count, n, bound = sum(_counts(differences)[:2]), len(differences.y), differences.far_either
    is_enough = n >= FEWEST
    return Criterion(
        stratum="all",
        statistic="either",
        n=n,
        value=count / n if n else math.nan,
        interval=score_interval(count, n) if is_enough else (math.nan, math.nan),
        tolerance=(0.0, bound),
        p_value=heads_at_least(count, n, bound) if is_enough else 1.0,
        more=_more_for_either(count, n, bound),
    )


def _counts(differences: Differences) -> tuple[int, int, int]:
    """Trials far above, far below, and all."""
    above = int((differences.y > differences.high + differences.far).sum())
    below = int((differences.y < differences.low - differences.far).sum())
    return above, below, len(differences.y)


def score_interval(count: float, n: float) -> Interval:
    """The interval of a share (Wilson, Journal of the American Statistical Association 22, 1927)."""
    share, weight = count / n, Z**2 / n
    half = Z * math.sqrt(max(share * (1 - share), 0.0) / n + Z**2 / (4 * n**2))
    return max(share + weight / 2 - half, 0.0) / (1 + weight), (share + weight / 2 + half) / (1 + weight)


def _more_for_either(count: int, n: int, bound: float) -> int | None:
    """Return the number of further trials that tell with POWER, if this share of trials is far off."""
    share = count / n if n >= FEWEST else 0.0

    def tells(trials: float) -> bool:
        shift = Z_POWER * math.sqrt(share * (1 - share) / trials)
        if share <= bound:  # and even an unlucky sample shows it
            return score_interval(min(share + shift, 1.0) * trials, trials)[1] <= bound
        return share - shift - bound > Z * math.sqrt(bound * (1 - bound) / trials)

    return more_than(n, fewest(tells, max(n, FEWEST)))


def excess_interval(above: int, below: int, n: int) -> Interval:
    """The interval of the share of trials that are `above`, less that of those `below`, of n trials (Tango,
    Statistics in Medicine 17, 1998)."""
    return -_most_excess(below, above, n), _most_excess(above, below, n)


def _most_excess(above: float, below: float, n: float) -> float:
    """The greatest excess that its score does not reject."""
    accepted, rejected = (above - below) / n, 1.0
    while rejected - accepted > 1e-9:
        middle = (accepted + rejected) / 2
        if _score(above, below, n, middle) < -Z:
            rejected = middle
        else:
            accepted = middle
    return accepted


def _score(above: float, below: float, n: float, excess: float) -> float:
    """Return the distance, in standard deviations, of the excess of n trials from a true one of `excess`."""
    if excess < 0:
        return -_score(below, above, n, -excess)
    b = (2 * n - above + below) * excess - above - below
    c = -below * excess * (1 - excess)
    share_below = (math.sqrt(b * b - 8 * n * c) - b) / (4 * n)
    variance = n * (2 * share_below + excess * (1 - excess))
    return (above - below - n * excess) / math.sqrt(variance) if variance > 0 else 0.0


def _more_for_far(most: int, least: int, n: int) -> int | None:
    """Return the number of further trials that tell with POWER, if these shares are far off: `most` on one
    side, `least` on the other."""
    shares = (most / n, least / n) if n >= FEWEST else (0.0, 0.0)
    excess = shares[0] - shares[1]
    deviation = math.sqrt(max(sum(shares) - excess**2, 0.0))

    def tells(trials: float) -> bool:
        shift = Z_POWER * deviation / math.sqrt(trials)
        if excess <= FAR_SHARE:  # and even an unlucky sample rejects more than that
            return _score((shares[0] + shift) * trials, shares[1] * trials, trials, FAR_SHARE) < -Z
        return _score(max(shares[0] - shift, 0.0) * trials, shares[1] * trials, trials, FAR_SHARE) > Z

    return more_than(n, fewest(tells, max(n, FEWEST)))
