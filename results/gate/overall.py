"""The ratio of the times of a new build to those of an old one, over all networks of a design.

The number is the geometric mean of paired ratios: each pair met the same losses, each network and workload
has the same weight, and two arms exchanged give its inverse. A median over repetitions would not see a change
that only matters in the one trial of five whose last packets are lost. A geometric mean hardly sees a rare
long stall, so the ratio of the mean times stands beside it, with the same weights.

A pair is in a ratio when both of its trials are ok, on one host. Failed pairs are judged by themselves
(`failing`).

The networks are those of the design; only the repetitions within each network are random. This is stratified
sampling (Cochran, "Sampling Techniques", 1977, §5.3, and §5.4 for the degrees of freedom). The workloads of a
repetition meet the same losses, such as those of the handshake, so they are not independent. The unit is a
repetition with all its workloads (a cluster: ibid., §9A). The spread of a network with a single pair is
unknown. Then the unit is the network, which makes the interval wider.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fecbench.results import metrics
from fecbench.results.analysis import frames, outcomes
from fecbench.results.analysis.intervals import FEWEST, LEVEL
from fecbench.results.analysis.one_host import of_several_hosts
from fecbench.results.analysis.pairing import PAIR
from fecbench.results.analysis.quantiles import normal_quantile, t_quantile
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo

OLD, NEW = "old", "new"
"""The labels of the two arms."""
Floats = NDArray[np.float64]
Whole = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Ratio:
    """New divided by old, with its interval; NaN where there is none."""

    value: float
    low: float
    high: float
    """Ends of an interval that holds jointly with all others of the answer."""
    at_least: float = math.nan
    at_most: float = math.nan
    """Ends of the interval of this ratio alone; by default the ends above. Where several ratios must
    all be within a margin, each may be tested alone: "all are" is wrong only if one of them is not (the
    intersection-union test: Berger, Technometrics 24, 1982)."""

    error: float = math.nan
    """Standard error of the logarithm: 1.96 of them are half of the interval of 95 % of this ratio alone."""

    def __post_init__(self) -> None:
        for name, end in (("at_least", self.low), ("at_most", self.high)):
            if math.isnan(getattr(self, name)):
                object.__setattr__(self, name, end)


UNKNOWN = Ratio(math.nan, math.nan, math.nan)


def is_of_two_builds(campaign: CampaignInfo) -> bool:
    """Return whether a campaign compares two builds of one implementation."""
    arms = [(variant["label"], variant["implementation"].rpartition(".")[2]) for variant in campaign.variants]
    return arms == [(OLD, OLD), (NEW, NEW)]


def read(database: Database, campaign: CampaignInfo) -> pd.DataFrame:
    """Return the frame of a campaign's trials with what the gate compares."""
    return frames.trials(database, campaign, set(metrics.of_workloads(campaign).values()))


def pairs_of(frame: pd.DataFrame, campaign: CampaignInfo) -> pd.DataFrame:
    """Return a row for each (workload, point, repetition) in which both arms are ok: the values `old` and
    `new`, and `log`, the logarithm of new / old."""
    values = values_of(frame, campaign)
    old, new = rows_of_pairs(frame, ["ok"])
    table = frame[PAIR].iloc[old].assign(**{OLD: values[old], NEW: values[new]})
    with np.errstate(divide="ignore", invalid="ignore"):
        table["log"] = np.log(table[NEW] / table[OLD])
    finite: pd.DataFrame = table[np.isfinite(table["log"])]
    return finite.sort_values(PAIR, ignore_index=True)


def values_of(frame: pd.DataFrame, campaign: CampaignInfo) -> Floats:
    """Return the value of each trial by the metric of its workload: infinite for one that failed, timed out
    or lacks a time that is longer than any (`outcomes.values`)."""
    values = np.full(len(frame), math.nan)
    for name, labels in metrics.labels_of_metrics(metrics.of_workloads(campaign)).items():
        is_compared = frame["workload"].isin(labels).to_numpy()
        values[is_compared] = outcomes.values(frame[is_compared], metrics.of(name))
    return values


def rows_of_pairs(frame: pd.DataFrame, states: Sequence[str]) -> tuple[Whole, Whole]:
    """Return the rows of old and of new of each (workload, point, repetition) in which both arms have one of
    these states, on one host, in this order.

    A campaign is looked at many times, and to merge two frames takes ten times as long.
    """
    places = frame["workload"].astype("category").cat.codes.to_numpy(np.int64)
    for name in ("point", "repetition"):
        numbers = frame[name].to_numpy(np.int64)
        places = places * (int(numbers.max(initial=0)) + 1) + numbers
    counted = frame["state"].isin(states).to_numpy()
    if len(elsewhere := of_several_hosts(frame, (OLD, NEW))):
        counted = counted & ~pd.MultiIndex.from_frame(frame[PAIR]).isin(elsewhere)
    old, new = (np.flatnonzero(counted & (frame["variant"] == arm).to_numpy()) for arm in (OLD, NEW))
    _, of_old, of_new = np.intersect1d(places[old], places[new], assume_unique=True, return_indices=True)
    return old[of_old], new[of_new]


def ratio_of(pairs: pd.DataFrame, level: float, alone: float | None = None) -> Ratio:
    """Return the geometric mean of the ratios of `pairs_of`, each place with the same weight, and its
    interval of confidence 1 - `level`. The verdict of the ratio alone errs in `alone` on either side,
    by default in half of `level`."""
    if pairs.empty:
        return UNKNOWN
    places = _places(pairs)
    logs = pairs["log"].to_numpy(np.float64)
    of_places = places.mean(logs)
    return _ratio(of_places, logs - of_places[places.of_pairs], pairs, places, (level, alone))


def ratio_of_means(pairs: pd.DataFrame, level: float, alone: float | None = None) -> Ratio:
    """Return the same of the ratios of each place's mean times (by the delta method: ibid., §6.3)."""
    if pairs.empty:
        return UNKNOWN
    places = _places(pairs)
    old, new = (pairs[arm].to_numpy(np.float64) for arm in (OLD, NEW))
    of_old, of_new = places.mean(old), places.mean(new)
    moves = new / of_new[places.of_pairs] - old / of_old[places.of_pairs]
    return _ratio(np.log(of_new / of_old), moves, pairs, places, (level, alone))


@dataclass(frozen=True)
class _Places:
    """The places of pairs, each a workload at a point."""

    of_pairs: Whole
    """The place of each pair."""
    sizes: Floats
    """Number of pairs at each place."""
    points: Whole
    """Point of each place."""

    def mean(self, values: Floats) -> Floats:
        """Return the mean over the pairs of each place."""
        means: Floats = np.bincount(self.of_pairs, values) / self.sizes
        return means


def _places(pairs: pd.DataFrame) -> _Places:
    points = pairs["point"].to_numpy(np.int64)
    first, of_pairs = numbered(pairs["workload"].factorize()[0], points)
    return _Places(of_pairs, np.bincount(of_pairs).astype(np.float64), points[first])


def numbered(one: Whole, other: Whole) -> tuple[Whole, Whole]:
    """Return the numbers of the different pairs of whole numbers, from 0 in order: where each is first, and
    the number at each place."""
    _, first, numbers = np.unique(
        one.astype(np.int64) * (int(other.max()) + 1) + other, return_index=True, return_inverse=True
    )
    return first, numbers


def _ratio(
    logs: Floats, moves: Floats, pairs: pd.DataFrame, places: _Places, levels: tuple[float, float | None]
) -> Ratio:
    """Return the ratio whose logarithm is the mean over the places. A pair moves the logarithm of its place
    by `moves`, divided by the number of pairs there."""
    mean = float(logs.mean())
    if (places.sizes > 1).all():
        share = moves / places.sizes[places.of_pairs] / len(logs)
        parts, freedoms = of_repetitions(share, pairs)
    else:
        _, of_points = np.unique(places.points, return_inverse=True)
        of_networks = np.bincount(of_points, logs) / len(logs)
        count = len(of_networks)
        if count < FEWEST:
            return Ratio(math.exp(mean), math.nan, math.nan)
        parts, freedoms = np.array([count * of_networks.var(ddof=1)]), np.array([count - 1.0])
    level, alone = levels
    halves = [half_width(parts, freedoms, error) for error in (level, level if alone is None else 2 * alone)]
    low, high, at_least, at_most = (math.exp(end) for half in halves for end in (mean - half, mean + half))
    error = half_width(parts, freedoms, LEVEL) / normal_quantile(1 - LEVEL / 2)
    return Ratio(math.exp(mean), low, high, at_least, at_most, error)


def of_repetitions(moves: Floats, pairs: pd.DataFrame) -> tuple[Floats, Floats]:
    """Return the variance that each network brings to a mean, and its degrees of freedom, in the order of the
    points: `moves` is by how much each pair moves it, all workloads of a repetition together."""
    points, repetitions = (pairs[name].to_numpy(np.int64) for name in ("point", "repetition"))
    first, repetitions = numbered(points, repetitions)
    _, networks = np.unique(points[first], return_inverse=True)
    count = np.bincount(networks).astype(np.float64)
    squares = np.bincount(networks, np.bincount(repetitions, moves) ** 2)
    return squares * count / (count - 1), count - 1


def half_width(parts: Floats, freedoms: Floats, level: float) -> float:
    """Return the half width of the interval of a sum of independent means with the variances `parts`."""
    variance = float(parts.sum())
    if not variance:
        return 0.0
    freedom = variance**2 / float((parts**2 / freedoms).sum())  # Satterthwaite's
    return t_quantile(1 - level / 2, freedom) * math.sqrt(variance)
