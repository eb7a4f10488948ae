"""The one ratio over networks, by the statistic that a design names, and what it means to a user: time saved,
and bytes sent more.

A design with the statistic `mean` asks for the expected time. Its ratio in a network is that of mean times,
and its ratio over networks is the geometric mean of these. A design with the statistic `median` or `p95`
has the median over networks. Rules, tables, figures and sentences take the ratio from here, so that no two
of them say different things of the same trials.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fecbench.results.analysis.intervals import FEWEST, LEVEL, median_interval, median_ratio_interval
from fecbench.results.analysis.pairing import median_ratios
from fecbench.results.analysis.quantiles import t_quantile

Average = Literal["mean", "median"]
Floats = NDArray[np.float64]
SENT = ("client.bytes_sent", "server.bytes_sent")


@dataclass(frozen=True)
class Estimate:
    """A number and the ends of its interval; NaN where there is none."""

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan


UNKNOWN = Estimate()


def average_of(rows: pd.DataFrame, statistic: str) -> Average:
    """Return which average of these ratios is taken: the mean where the design asks for means, and each ratio
    is above 0, finite and not censored; else the median, which bears timeouts."""
    values = rows["ratio"].to_numpy(np.float64)
    has_mean = len(values) > 0 and (np.isfinite(values) & (values > 0)).all() and not rows["censored"].any()
    return "mean" if statistic == "mean" and has_mean else "median"


def ratio_over(
    rows: pd.DataFrame, units: Sequence[Any] | pd.Series, average: Average, level: float = LEVEL
) -> Estimate:
    """Return the average of ratios with its interval; the unit is the network (`units`), whose workloads meet
    the same losses. Below FEWEST units it has no interval."""
    if average == "median":
        return Estimate(*median_ratio_interval(rows, units, level))
    logs = np.log(rows["ratio"].to_numpy(np.float64))
    of_units = pd.Series(logs).groupby(np.asarray(units)).mean().to_numpy(np.float64)
    mean = _mean(of_units, level)
    return Estimate(*(math.exp(end) for end in (mean.value, mean.low, mean.high)))


def averages_of(rows: pd.DataFrame, by: list[str], average: Average) -> pd.Series:
    """Return the average of the ratios in each group of rows that have the same values in the columns `by`,
    without its interval. Each unit of a group has one ratio."""
    if average == "median":
        return median_ratios(rows, by)
    logs = rows.assign(log=np.log(rows["ratio"].astype(np.float64)))
    means: pd.Series = np.exp(logs.groupby(by, observed=True)["log"].mean())
    return means


def saved(
    decided: pd.DataFrame,
    pairs: pd.DataFrame,
    statistic: str,
    average: Average,
    level: float = LEVEL,
    *,
    one_network: bool,
    in_blocks: bool = False,
) -> Estimate:
    """Return by how much less a variant has of a metric than its baseline, in the metric's unit: the
    average over networks of the difference of their statistics. `decided` and `pairs`: `Pairing.decided` and
    `Pairing.matched` of one workload. A baseline of 0 has no ratio, but a difference: without it, equal arms
    would seem to save. In a design with one network the interval is over its pairs, of confidence
    1 - `level`, and of means alone; `in_blocks`: these follow one another over a path, and may depend on each
    other."""
    difference = decided["baseline"].to_numpy(np.float64) - decided["variant"].to_numpy(np.float64)
    if not len(difference) or not np.isfinite(difference).all():
        return UNKNOWN
    if not one_network and average == "median":
        return Estimate(float(np.median(difference)), *median_interval(difference, decided["point"]))
    if not one_network:
        return _mean(difference)
    if statistic != "mean" or pairs.empty:
        return UNKNOWN
    of_pairs = _mean((pairs["baseline"] - pairs["variant"]).to_numpy(np.float64), level, in_blocks)
    return Estimate(float(difference[0]), of_pairs.low, of_pairs.high)


def more_bytes(
    frame: pd.DataFrame,
    workload: str,
    variant: str,
    baseline: str,
    level: float = LEVEL,
    *,
    one_network: bool,
    in_blocks: bool = False,
) -> Estimate:
    """Return the share of bytes that both endpoints of a variant send more than those of its baseline, on
    average over networks; its interval is over these. In a design with one network the average and the
    interval, of confidence 1 - `level`, are over repetitions (`in_blocks`: as in `saved`). The trials are
    those that are ok in both arms; the share is unknown where an endpoint did not count its bytes."""
    if not set(SENT) <= set(frame.columns):
        return UNKNOWN
    is_ok = (frame["workload"] == workload) & (frame["state"] == "ok")
    point, repetition = (frame[name].to_numpy(np.int64) for name in ("point", "repetition"))
    key = point * (repetition.max(initial=0) + 1) + repetition
    sent = np.sum([frame[name].to_numpy(np.float64) for name in SENT], axis=0)
    of_variant, of_baseline = (
        np.flatnonzero(is_ok & (frame["variant"] == arm)) for arm in (variant, baseline)
    )
    _, first, second = np.intersect1d(
        key[of_variant], key[of_baseline], assume_unique=True, return_indices=True
    )
    both = np.stack([sent[of_variant[first]], sent[of_baseline[second]]])
    is_counted = ~np.isnan(both).any(axis=0)
    both, points = both[:, is_counted], point[of_variant[first]][is_counted]
    if not both.size or not (both > 0).all():
        return UNKNOWN
    if not one_network:
        _, firsts, counts = np.unique(points, return_index=True, return_counts=True)
        both = np.add.reduceat(both, firsts, axis=1) / counts
    mean = _mean(np.log(both[0] / both[1]), level if one_network else LEVEL, one_network and in_blocks)
    return Estimate(*(math.exp(end) - 1 for end in (mean.value, mean.low, mean.high)))


def _mean(values: Floats, level: float = LEVEL, in_blocks: bool = False) -> Estimate:
    """The mean of independent values with Student's interval; `in_blocks`: of values in the order of time,
    which may depend on each other, with an interval that bears this."""
    mean = float(values.mean())
    if in_blocks:
        from fecbench.results.analysis import dependent  # which few campaigns need

        is_enough = len(values) >= dependent.FEWEST
        return Estimate(mean, *dependent.mean_of(values).interval(level)) if is_enough else Estimate(mean)
    if len(values) < FEWEST:
        return Estimate(mean)
    half = t_quantile(1 - level / 2, len(values) - 1) * float(values.std(ddof=1)) / math.sqrt(len(values))
    return Estimate(mean, mean - half, mean + half)
