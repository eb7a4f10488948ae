"""The questions of a cross-check about differences between virtual and emulated trials, and their answers.

`y` is the difference of a trial: the logarithm of virtual / emulated, or of shares the difference itself. It
has a tolerance, `low` to `high`. The questions are:

- `median`: is the median of y within the tolerance?
- `mean`: is the mean, or no more than MEAN_BY beyond it? Of logarithms, it is that of a geometric mean. A
  median sees nothing of what happens to less than a half of the trials;
- `far`: the share of trials that are far above their tolerance, less that of those far below: is it within ±
  FAR_SHARE? Under losses, a trial may be far off by chance, in both directions alike;
- `either`: how many are far off on either side, no more than a run of the same again would give? Errors that
  go both ways are in no mean (`results.analysis.far_off`);
- `tail`: is the 95th percentile of times within the tolerance (`results.analysis.tail`)?

All are asked of all trials; mean, far and either of those that met a loss and of those that met none; mean
and far of those with high losses. Most downloads over a lossy link lose nothing, and the others are what
tests the recovery from losses.

An answer agrees where its 95 % interval lies within the tolerance. A comparison differs if it is not true
that every answer is within its tolerance, by Simes' test at LEVEL (Biometrika 73, 1986): one of K questions
is answered beyond it with a p-value of LEVEL / K, two with 2 LEVEL / K, and so on. So however many questions
are asked, a right simulator differs in the share LEVEL of comparisons at most. The p-value is the greatest
that any value within the tolerance has (Hodges and Lehmann, Journal of the Royal Statistical Society B 16,
1954).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fecbench.results.analysis.criterion import (
    STRATA,
    Z_POWER,
    Criterion,
    Differences,
    Floats,
    Interval,
    Verdict,
    Z,
    more_than,
)
from fecbench.results.analysis.far_off import either, far
from fecbench.results.analysis.intervals import FEWEST, LEVEL, median_interval
from fecbench.results.analysis.quantiles import (
    false_discoveries,
    heads_at_least,
    t_beyond,
    t_quantile,
)
from fecbench.results.analysis.tail import is_asked, tail

FARTHEST = math.log(10)
"""No trial is farther off in a mean: a timeout, or a value where the other is 0, is infinitely far."""


def asked(differences: Differences) -> list[Criterion]:
    """All questions that can be asked of them, answered. A stratum that has all trials is not asked twice."""
    criteria = [ask(differences) for ask in (_median, _mean, far, either)]
    if is_asked(differences):
        criteria.append(tail(differences, FARTHEST))
    if 0 < differences.met_a_loss.sum() < len(differences.y):
        strata = {stratum: differences.of(stratum) for stratum in STRATA[1:3]}
    else:
        strata = {}
    for stratum, of_stratum in strata.items():
        criteria += [replace(ask(of_stratum), stratum=stratum) for ask in (_mean, far, either)]
    if len((high := differences.of("high losses")).y):
        # Under bursts of losses chance puts more than half of these far off, so `either` is not asked.
        criteria += [replace(ask(high), stratum="high losses") for ask in (_mean, far)]
    return judged(criteria)


def judged(criteria: Sequence[Criterion]) -> list[Criterion]:
    """The answers, of which those differ that Simes' test finds."""
    false = false_discoveries([criterion.p_value for criterion in criteria])
    return [
        replace(criterion, differs=bool(p_value <= LEVEL))
        for criterion, p_value in zip(criteria, false, strict=True)
    ]


def verdict(criteria: Sequence[Criterion]) -> Verdict:
    """Return the verdict of a comparison."""
    if any(criterion.differs for criterion in criteria):
        return "differs"
    if all(criterion.verdict == "agrees" for criterion in criteria if criterion.is_needed):
        return "agrees"
    return "cannot tell"


def more_trials(criteria: Sequence[Criterion]) -> int | None:
    """Return the number of further trials, of all strata in the shares that they have here, that would
    decide a comparison; None where no number would."""
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
    tolerance = (median_of(differences.low), median_of(differences.high))
    beyond = [int((y < tolerance[0]).sum()), int((y > tolerance[1]).sum())]
    interval = median_interval(y, range(n))
    # The sign test, of either end of the tolerance.
    p_value = min(1.0, 2 * min(heads_at_least(count, n) for count in beyond))
    return Criterion(
        stratum="all",
        statistic="median",
        n=n,
        value=median_of(y),
        interval=interval,
        tolerance=tolerance,
        p_value=p_value if n >= FEWEST else 1.0,
        more=_more_for_median(n, max(beyond) / n if n >= FEWEST else 0.0),
    )


def _more_for_median(n: int, beyond: float) -> int | None:
    """The sign test, with POWER, if the share `beyond` of trials is beyond one end of the tolerance."""
    if beyond == 0.5:
        return None
    spread = Z / 2 + Z_POWER * math.sqrt(beyond * (1 - beyond))
    return more_than(n, max(FEWEST, (spread / (0.5 - beyond)) ** 2))


def _mean(differences: Differences) -> Criterion:
    tolerance = (
        _mean_of(differences.low) - differences.mean_by,
        _mean_of(differences.high) + differences.mean_by,
    )
    return mean_within(differences.y, tolerance)


def mean_within(y: Floats, tolerance: Interval) -> Criterion:
    """Ask whether the mean of differences is within a tolerance."""
    y = np.clip(y, -FARTHEST, FARTHEST)
    n = len(y)
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
    needed = ((Z + Z_POWER) * deviation / outside) ** 2 if outside else math.inf
    return Criterion(
        stratum="all",
        statistic="mean",
        n=n,
        value=value,
        interval=(value - half, value + half),
        tolerance=tolerance,
        p_value=min(p_value, 1.0),
        more=more_than(n, max(FEWEST, needed)),
    )


def median_of(values: Floats) -> float:
    """Return the median; NaN of no value, and between -∞ and ∞."""
    with np.errstate(invalid="ignore"):
        return float(np.median(values)) if len(values) else math.nan


def _mean_of(values: Floats) -> float:
    return float(values.mean()) if len(values) else math.nan
