"""How sure a comparison is: bootstrap intervals, ECDF bands, and the share of points with gain and harm.

The unit of resampling is what was drawn independently. Within a point that is a repetition: it has seeds of
its own, and both variants of a pair meet the same losses, so a pair is resampled whole. Over points it is a
point: its workloads meet the same losses, so they stay together. An interval over points is about networks
drawn from the ranges of the design, and not about those that people use.

Fewer than FEWEST units give no interval (NaN): even when all of five lie on one side, that happens by chance
in 2 · 2⁻⁵ > LEVEL of cases. One repetition says what happened, not how sure it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from results import metrics
from results.analysis.pairing import Pairing, in_order, median_ratio

LEVEL = 0.05  # intervals and bands have the confidence 1 - LEVEL
FEWEST = 6
VERDICTS = ("gain", "harm", "undecided")

_RESAMPLES = 2000
_SEED = 0  # the same data gives the same interval
_MOST_VALUES = 10_000_000  # resampled at once: bounds the memory

Floats = NDArray[np.float64]
Interval = tuple[float, float]


def ratio_intervals(pairing: Pairing, statistic: str = "median") -> pd.DataFrame:
    """The rows of `pairing.ratios`, how sure each ratio is, and what it says.

    Columns added: `low` and `high`, the percentile bootstrap interval (Efron 1979) of the ratio of the
    statistics ("median" or "mean") over the repetitions, NaN below FEWEST pairs, and NaN where an arm timed
    out in any; and `verdict`: "gain" (the whole
    interval is on the better side of 1: below it, but for a metric of which more is better), "harm" (on the
    worse side), "undecided" (it contains 1, or there is none). Of equal arms, about the share LEVEL of points
    is decided all the same; with the mean of times with timeouts among them up to 2.5 LEVEL, since such means
    are far from normal.
    """
    ratios = pairing.ratios.assign(low=math.nan, high=math.nan)
    groups = pairing.matched.groupby(["workload", "point"], observed=True)  # in the order of the ratios
    for pairs in sorted(set(ratios.loc[ratios["pairs"] >= FEWEST, "pairs"])):
        alike = pairing.matched[groups["ratio"].transform("size") == pairs]
        baseline, variant = (alike[arm].to_numpy().reshape(-1, pairs) for arm in ("baseline", "variant"))
        ratios.loc[ratios["pairs"] == pairs, ["low", "high"]] = _of_points(baseline, variant, statistic)
    ratios.loc[ratios["timeouts"] > 0, ["low", "high"]] = math.nan
    more_is_better = ratios["metric"].map(lambda name: metrics.of(name).more_is_better).astype(bool)
    return ratios.assign(verdict=verdicts(ratios["low"], ratios["high"], more_is_better))


def _of_points(baseline: Floats, variant: Floats, statistic: str) -> Floats:
    """The intervals (points × 2) of the ratios of two arms, each points × pairs."""
    points, pairs = baseline.shape
    drawn = np.random.default_rng(_SEED).integers(pairs, size=(_RESAMPLES, pairs))
    tail = _tail_of_means(pairs) if statistic == "mean" else LEVEL / 2
    at_once = max(1, _MOST_VALUES // drawn.size)
    intervals = []
    for first in range(0, points, at_once):
        part = slice(first, first + at_once)
        arms = [_over_repetitions(arm[part][:, drawn], statistic) for arm in (variant, baseline)]
        with np.errstate(divide="ignore", invalid="ignore"):  # 0/0 in a resample leaves no interval, NaN
            ratios = arms[0] / arms[1]
            intervals.append(np.quantile(ratios, [tail, 1 - tail], axis=1).T)
    return np.concatenate(intervals)


def _tail_of_means(pairs: int) -> float:
    """The quantile at which the bootstrap interval of a mean of few values ends, instead of LEVEL / 2.

    The percentile interval is as much too narrow as one that takes the normal distribution for Student's and
    divides by n for n - 1; this undoes both (Hesterberg, "What teachers should know about the bootstrap", The
    American Statistician 69, 2015, §4.1).
    """
    return float(stats.norm.cdf(math.sqrt(pairs / (pairs - 1)) * stats.t.ppf(LEVEL / 2, pairs - 1)))


def _over_repetitions(values: Floats, statistic: str) -> Floats:
    """Points × resamples, of points × resamples × pairs."""
    reduced: Floats = values.mean(axis=2) if statistic == "mean" else np.median(values, axis=2)
    return reduced


def verdicts(low: pd.Series, high: pd.Series, more_is_better: pd.Series | bool = False) -> pd.Series:
    """Of intervals of ratios: "gain" on the better side of 1, "harm" on the other, else "undecided";
    a categorical."""
    below, above = high < 1, low > 1
    gain = np.where(more_is_better, above, below)
    harm = np.where(more_is_better, below, above)
    words = np.select([gain, harm], ["gain", "harm"], "undecided")
    return pd.Series(pd.Categorical(words, VERDICTS), low.index, name="verdict")


def shares(intervals: pd.DataFrame) -> pd.DataFrame:
    """Of `ratio_intervals`, one row a workload.

    Columns: `points` compared, the share of them in each of VERDICTS (0 to 1), their `median` ratio, and its
    interval `low` to `high` over points.
    """
    rows = []
    for workload, of_workload in intervals.groupby("workload", observed=True):
        median, low, high = median_ratio_interval(of_workload, of_workload["point"])
        rows.append(
            {
                "workload": workload,
                "points": len(of_workload),
                **{verdict: float((of_workload["verdict"] == verdict).mean()) for verdict in VERDICTS},
                "median": median,
                "low": low,
                "high": high,
            }
        )
    return pd.DataFrame(rows, columns=["workload", "points", *VERDICTS, "median", "low", "high"])


def median_ratio_interval(rows: pd.DataFrame, units: Sequence[Any] | pd.Series) -> tuple[float, float, float]:
    """`pairing.median_ratio` of rows that have a ratio, and the ends of its `median_interval`, which may be 0
    or ∞, too."""
    low, high = median_interval(in_order(rows), units)
    return median_ratio(rows), max(low, 0.0), max(high, 0.0)


def median_interval(values: Sequence[float] | pd.Series, units: Sequence[Any] | pd.Series) -> Interval:
    """The percentile bootstrap interval of the median of `values`, resampling whole units; NaN below FEWEST.

    `units[i]` names what value i belongs to: the point of a ratio, or the seed of a time. Values may be -∞ or
    ∞, and so may the ends.
    """
    data = np.asarray(values, dtype=np.float64)
    codes, names = pd.factorize(np.asarray(units))
    if len(names) < FEWEST:
        return math.nan, math.nan
    order = np.argsort(data)
    random = np.random.default_rng(_SEED)
    at_once = max(1, _MOST_VALUES // len(data))
    medians = np.concatenate(
        [
            _weighted_medians(
                data[order],
                _times_drawn(random, min(at_once, _RESAMPLES - done), len(names))[:, codes[order]],
            )
            for done in range(0, _RESAMPLES, at_once)
        ]
    )
    return _ends(medians)


def _ends(resampled: Floats) -> Interval:
    """The quantiles of what was computed of resamples. Between an infinite one and its neighbour there is no
    number, and NaN (-∞ and ∞ at once) may be anything: then the interval is the wider one."""
    if np.isfinite(resampled).all():
        low, high = np.quantile(resampled, [LEVEL / 2, 1 - LEVEL / 2])
        return float(low), float(high)
    place = LEVEL / 2 * (len(resampled) - 1)
    lowest, highest = (
        np.sort(np.nan_to_num(resampled, nan=end, posinf=math.inf, neginf=-math.inf))
        for end in (-math.inf, math.inf)
    )
    return float(lowest[math.floor(place)]), float(highest[-1 - math.floor(place)])


def _times_drawn(random: np.random.Generator, resamples: int, units: int) -> NDArray[np.int64]:
    """How often each unit is in each resample (resamples × units)."""
    return random.multinomial(units, np.full(units, 1 / units), size=resamples)


def _weighted_medians(ascending: Floats, times: NDArray[np.int64]) -> Floats:
    """The median of each row of `times` (resamples × values): value i is counted `times[:, i]` times."""
    until = times.cumsum(axis=1)
    total = until[:, -1:]
    below = np.argmax(2 * until >= total, axis=1)
    above = np.argmax(2 * until > total, axis=1)
    with np.errstate(invalid="ignore"):  # -∞ and ∞
        medians: Floats = (ascending[below] + ascending[above]) / 2
    return medians


def ecdf(values: Sequence[float] | pd.Series) -> pd.DataFrame:
    """The empirical distribution function of independent values (one a point), with a band.

    One row for what is left of all values (`value` is -inf), and one a distinct value, ascending. Each holds
    until the next: `share` of values at most it, and `low` and `high`, between which the whole true function
    lies with confidence 1 - LEVEL: share ± √(ln(2/LEVEL) / 2n), by the inequality of Dvoretzky, Kiefer and
    Wolfowitz with Massart's constant (Annals of Probability 18, 1990). Points of a space-filling design are
    spread more evenly than independent ones, for which this holds: of them, the band is rather too wide. No
    values have no rows.
    """
    data = np.asarray(values, dtype=np.float64)
    if not len(data):
        return pd.DataFrame(columns=["value", "share", "low", "high"], dtype=np.float64)
    distinct, counts = np.unique(data, return_counts=True)
    share = np.concatenate([[0], counts.cumsum() / len(data)])
    half = math.sqrt(math.log(2 / LEVEL) / (2 * len(data)))
    return pd.DataFrame(
        {
            "value": np.concatenate([[-math.inf], distinct]),
            "share": share,
            "low": np.clip(share - half, 0, 1),
            "high": np.clip(share + half, 0, 1),
        }
    )
