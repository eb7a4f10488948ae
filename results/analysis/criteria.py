"""What a cross-check asks of differences between virtual and emulated trials, and what each answer is worth.

`y` is the difference of a trial: the logarithm of virtual / emulated, or of shares the difference itself. It
has a tolerance, `low` to `high`. There are three questions:

- `median`: is the median of y within the tolerance?
- `mean`: is the mean, or no more than MEAN_BY beyond it? Of logarithms, it is that of a geometric mean. A
  median sees nothing of what happens to less than a half of the trials;
- `far`: the share of trials that are far above their tolerance, less that of those far below: is it within
  ± FAR_SHARE? Under losses, a trial may be far off by chance, in both directions alike.

All are asked of all trials, and the last two of those that met a loss and of those that met none: most
downloads over a lossy link lose nothing, and the others are what tests the recovery from losses.

An answer agrees where its 95 % interval lies within the tolerance. A comparison differs if it is not true
that every answer is within its tolerance, by Simes' test at LEVEL (Biometrika 73, 1986): one of K questions
is answered beyond it with a p-value of LEVEL / K, two with 2 LEVEL / K, and so on. So however many questions
are asked, a right simulator differs in the share LEVEL of comparisons at most. The p-value is the greatest
that any value within the tolerance has (Hodges and Lehmann, Journal of the Royal Statistical Society B 16,
1954).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fecbench.results.analysis.distributions import (
    false_discoveries,
    heads_at_least,
    normal_below,
    normal_beyond,
    normal_quantile,
    t_beyond,
    t_quantile,
)
from fecbench.results.analysis.intervals import FEWEST, LEVEL, median_interval
from fecbench.results.analysis.tolerances import FAR_SHARE

Verdict = Literal["agrees", "differs", "cannot tell"]
Statistic = Literal["median", "mean", "far"]
Stratum = Literal["all", "met a loss", "met none"]
STRATA: tuple[Stratum, ...] = ("all", "met a loss", "met none")
ENOUGH = 20
"""Trials that show that no more than FAR_SHARE are far off, though one of them is. A stratum of fewer may
differ, and need not agree: the whole bounds what it could hide."""
FARTHEST = math.log(10)
"""No trial is farther off in a mean: a timeout, or a value where the other is 0, is infinitely far."""
POWER = 0.8

_Z = normal_quantile(1 - LEVEL / 2)
_Z_POWER = normal_quantile(POWER)
_MOST = 1_000_000  # trials: an estimate of more is none

Floats = NDArray[np.float64]
Interval = tuple[float, float]


@dataclass(frozen=True)
class Differences:
    """Those of some trials: one value each."""

    y: Floats
    """-∞ and ∞ for a timeout of one of the two, and where one of the two alone is 0."""
    low: Floats
    high: Floats
    far: float
    """How far beyond `low` and `high` a trial is far off."""
    mean_by: float
    """How far beyond them the mean may be."""
    met_a_loss: NDArray[np.bool_]

    def of(self, stratum: Stratum) -> Differences:
        """Those of the trials of a stratum."""
        if stratum == "all":
            return self
        chosen = self.met_a_loss if stratum == "met a loss" else ~self.met_a_loss
        return replace(
            self,
            y=self.y[chosen],
            low=self.low[chosen],
            high=self.high[chosen],
            met_a_loss=self.met_a_loss[chosen],
        )


@dataclass(frozen=True)
class Criterion:
    """One question, and its answer."""

    stratum: Stratum
    statistic: Statistic
    n: int
    value: float
    interval: Interval
    """Of confidence 1 - LEVEL; NaN for too few trials."""
    tolerance: Interval
    p_value: float
    """That the value is within the tolerance; 1 for too few trials."""
    more: int | None
    """How many more trials of the stratum would tell, with POWER, if they were as these: 0 where these do,
    None where no number does."""
    differs: bool = False
    """Whether it is by this answer that the comparison differs."""

    @property
    def verdict(self) -> Verdict:
        if self.differs:
            return "differs"
        (low, high), (least, greatest) = self.interval, self.tolerance
        return "agrees" if least <= low and high <= greatest else "cannot tell"

    @property
    def is_needed(self) -> bool:
        """Whether a comparison agrees only if this answer does."""
        return self.stratum == "all" or self.n >= ENOUGH


def asked(differences: Differences) -> list[Criterion]:
    """All questions that can be asked of them, answered. A stratum that has all trials is not asked twice."""
    criteria = [ask(differences) for ask in (_median, _mean, _far)]
    if 0 < differences.met_a_loss.sum() < len(differences.y):
        for stratum in STRATA[1:]:
            of_stratum = differences.of(stratum)
            criteria += [replace(ask(of_stratum), stratum=stratum) for ask in (_mean, _far)]
    return _judged(criteria)


def _judged(criteria: Sequence[Criterion]) -> list[Criterion]:
    false = false_discoveries([criterion.p_value for criterion in criteria])
    return [
        replace(criterion, differs=bool(p_value <= LEVEL))
        for criterion, p_value in zip(criteria, false, strict=True)
    ]


def verdict(criteria: Sequence[Criterion]) -> Verdict:
    """That of a comparison."""
    if any(criterion.differs for criterion in criteria):
        return "differs"
    if all(criterion.verdict == "agrees" for criterion in criteria if criterion.is_needed):
        return "agrees"
    return "cannot tell"


def more_trials(criteria: Sequence[Criterion]) -> int | None:
    """How many more trials would decide a comparison, of all strata, in the shares that they have here; None
    where no number would."""
    if verdict(criteria) != "cannot tell":
        return 0
    n = criteria[0].n
    needed = 0
    for criterion in criteria:
        if criterion.is_needed and criterion.verdict == "cannot tell":
            if criterion.more is None:
                return None
            needed = max(needed, math.ceil(criterion.more * (n / criterion.n if n else 1)))
    return needed


def _median(differences: Differences) -> Criterion:
    y, n = differences.y, len(differences.y)
    tolerance = (_median_of(differences.low), _median_of(differences.high))
    beyond = [int((y < tolerance[0]).sum()), int((y > tolerance[1]).sum())]
    interval = median_interval(y, range(n))
    # The sign test, of either end of the tolerance.
    p_value = min(1.0, 2 * min(heads_at_least(count, n) for count in beyond))
    return Criterion(
        stratum="all",
        statistic="median",
        n=n,
        value=_median_of(y),
        interval=interval,
        tolerance=tolerance,
        p_value=p_value if n >= FEWEST else 1.0,
        more=_more_for_median(n, max(beyond) / n if n >= FEWEST else 0.0),
    )


def _more_for_median(n: int, beyond: float) -> int | None:
    """The sign test, with POWER, if the share `beyond` of trials is beyond one end of the tolerance."""
    if beyond == 0.5:
        return None
    spread = _Z / 2 + _Z_POWER * math.sqrt(beyond * (1 - beyond))
    return _more(n, max(FEWEST, (spread / (0.5 - beyond)) ** 2))


def _mean(differences: Differences) -> Criterion:
    y = np.clip(differences.y, -FARTHEST, FARTHEST)
    n = len(y)
    tolerance = (
        _mean_of(differences.low) - differences.mean_by,
        _mean_of(differences.high) + differences.mean_by,
    )
    value = _mean_of(y)
    if n < FEWEST:
        return Criterion("all", "mean", n, value, (math.nan, math.nan), tolerance, 1.0, FEWEST - n)
    deviation = float(y.std(ddof=1))
    error = deviation / math.sqrt(n)
    half = t_quantile(1 - LEVEL / 2, n - 1) * error
    outside = max(tolerance[0] - value, value - tolerance[1])
    if error:
        width = tolerance[1] - tolerance[0]
        p_value = t_beyond(outside / error, n - 1)
        p_value += t_beyond((outside + width) / error, n - 1)
    else:
        p_value = float(outside <= 0)
    needed = ((_Z + _Z_POWER) * deviation / outside) ** 2 if outside else math.inf
    return Criterion(
        stratum="all",
        statistic="mean",
        n=n,
        value=value,
        interval=(value - half, value + half),
        tolerance=tolerance,
        p_value=min(p_value, 1.0),
        more=_more(n, max(FEWEST, needed)),
    )


def _far(differences: Differences) -> Criterion:
    above = int((differences.y > differences.high + differences.far).sum())
    below = int((differences.y < differences.low - differences.far).sum())
    n = len(differences.y)
    most, least = max(above, below), min(above, below)
    known = n >= FEWEST
    p_value = normal_beyond(_score(most, least, n, FAR_SHARE)) if known else 1.0
    p_value += normal_below(_score(least, most, n, FAR_SHARE)) if known else 0.0
    return Criterion(
        stratum="all",
        statistic="far",
        n=n,
        value=(above - below) / n if n else math.nan,
        interval=excess_interval(above, below, n) if known else (math.nan, math.nan),
        tolerance=(-FAR_SHARE, FAR_SHARE),
        p_value=min(p_value, 1.0),
        more=_more_for_far(most, least, n),
    )


def excess_interval(above: int, below: int, n: int) -> Interval:
    """The interval of the share of trials that are `above`, less that of those `below`, of n trials (Tango,
    Statistics in Medicine 17, 1998)."""
    return -_most_excess(below, above, n), _most_excess(above, below, n)


def _most_excess(above: float, below: float, n: float) -> float:
    """The greatest excess that its score does not reject."""
    kept, rejected = (above - below) / n, 1.0
    while rejected - kept > 1e-9:
        middle = (kept + rejected) / 2
        if _score(above, below, n, middle) < -_Z:
            rejected = middle
        else:
            kept = middle
    return kept


def _score(above: float, below: float, n: float, excess: float) -> float:
    """How far, in standard deviations, the excess of n trials is from a true one of `excess`."""
    if excess < 0:
        return -_score(below, above, n, -excess)
    b = (2 * n - above + below) * excess - above - below
    c = -below * excess * (1 - excess)
    share_below = (math.sqrt(b * b - 8 * n * c) - b) / (4 * n)
    variance = n * (2 * share_below + excess * (1 - excess))
    return (above - below - n * excess) / math.sqrt(variance) if variance > 0 else 0.0


def _more_for_far(most: int, least: int, n: int) -> int | None:
    """As many as tell with POWER, if these shares are far off: `most` on one side, `least` on the other."""
    shares = (most / n, least / n) if n >= FEWEST else (0.0, 0.0)
    excess = shares[0] - shares[1]
    deviation = math.sqrt(max(sum(shares) - excess**2, 0.0))

    def tells(trials: float) -> bool:
        shift = _Z_POWER * deviation / math.sqrt(trials)
        if excess <= FAR_SHARE:  # and even an unlucky sample shows it
            return _most_excess((shares[0] + shift) * trials, shares[1] * trials, trials) <= FAR_SHARE
        return _score(max(shares[0] - shift, 0.0) * trials, shares[1] * trials, trials, FAR_SHARE) > _Z

    return _more(n, _fewest(tells, max(n, FEWEST)))


def _fewest(tells: Callable[[float], bool], first: int) -> float:
    """The least number from `first` on that tells; ∞ where none up to _MOST does."""
    few, many = first, first
    while not tells(many):
        few, many = many, 2 * many
        if many > _MOST:
            return math.inf
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if tells(middle) else (middle, many)
    return many


def _more(n: int, needed: float) -> int | None:
    return None if needed > _MOST else max(0, math.ceil(needed) - n)


def _median_of(values: Floats) -> float:
    return float(np.median(values)) if len(values) else math.nan


def _mean_of(values: Floats) -> float:
    return float(values.mean()) if len(values) else math.nan
