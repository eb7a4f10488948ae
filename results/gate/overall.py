"""How much longer a new build takes than an old one, over all networks of a design.

The number is the geometric mean of paired ratios: each pair met the same losses, each network and workload
has the same weight, and two arms exchanged give its inverse. A median over repetitions would not see a change
that only matters in the one trial of five whose last packets are lost.

The networks are those of the design, so what is by chance is the repetitions within each network (stratified
sampling: Cochran, "Sampling Techniques", 1977, §5.3 and, for the degrees of freedom, §5.4). The workloads of
a repetition meet the same losses, those of the handshake for one, so they are no independent samples: the
repetition is the unit, with all its workloads (a cluster: ibid., §9A). Where a network has a single pair,
nobody knows its spread; then the unit is the network, which makes the interval wider.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray

from fecbench.results import metrics
from fecbench.results.analysis import frames
from fecbench.results.analysis.intervals import FEWEST, LEVEL
from fecbench.results.analysis.pairing import PAIR, values_of
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo

OLD, NEW = "old", "new"
"""The labels of the two arms."""
_PLACE = ["workload", "point"]
_PER_SECOND = {"s": 1.0, "ms": 1e3, "µs": 1e6}

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Ratio:
    """New divided by old, with its interval; NaN where there is none."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Measured:
    """What a campaign of two builds has come to."""

    overall: Ratio
    workloads: dict[str, Ratio]
    """By label; one that is alone is the overall one."""
    pairs: int
    """That are in these ratios."""


def pairs_of(frame: pd.DataFrame, campaign: CampaignInfo, limit_s: float) -> pd.DataFrame:
    """One row a (workload, point, repetition) that both arms have run: the values `old` and `new`, and `log`,
    the logarithm of new / old.

    A trial that failed or timed out counts as one that took `limit_s`, the time that a trial may take.
    Without that, a build would gain by failing where it is slow.
    """
    parts = []
    for name, labels in metrics.labels_of_metrics(metrics.of_workloads(campaign)).items():
        metric = metrics.of(name)
        of_workloads = frame[frame["workload"].isin(labels)]
        old, new = (values_of(of_workloads, label, metric)[[*PAIR, "value"]] for label in (OLD, NEW))
        both = old.merge(new, on=PAIR, suffixes=("_old", "_new")).rename(
            columns={"value_old": OLD, "value_new": NEW}
        )
        longest = limit_s * _PER_SECOND[metric.unit]
        both[[OLD, NEW]] = both[[OLD, NEW]].clip(upper=longest)
        parts.append(both)
    table: pd.DataFrame = pd.concat(parts, ignore_index=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        table["log"] = np.log(table[NEW] / table[OLD])
    known: pd.DataFrame = table[np.isfinite(table["log"])]
    return known.sort_values(PAIR, ignore_index=True)


def measured(pairs: pd.DataFrame, share: float) -> Measured:
    """The ratio over all networks, and that of each workload, of `pairs_of`.

    The results are looked at several times, and this look may err in `share` of LEVEL. Where all shares come
    to 1, all intervals of all looks together miss what is true in no more than LEVEL of cases: the overall
    ones in a half of these, and those of workloads in the other.
    """
    level = LEVEL * share
    labels = [str(label) for label in pairs["workload"].unique()]
    if len(labels) < 2:
        overall = ratio_of(pairs, level)
        return Measured(overall, dict.fromkeys(labels, overall), len(pairs))
    workloads = {
        label: ratio_of(pairs[pairs["workload"] == label], level / 2 / len(labels)) for label in labels
    }
    return Measured(ratio_of(pairs, level / 2), workloads, len(pairs))


def ratio_of(pairs: pd.DataFrame, level: float) -> Ratio:
    """The geometric mean of the ratios, each place with the same weight, and its interval of confidence
    1 - `level`."""
    if pairs.empty:
        return Ratio(math.nan, math.nan, math.nan)
    places = pairs.groupby(_PLACE, observed=True)["log"].agg(["size", "mean"])
    if (places["size"] > 1).all():
        parts, freedoms = _of_repetitions(pairs, len(places))
    else:
        of_networks = places.groupby("point", observed=True)["mean"].sum() / len(places)
        count = len(of_networks)
        if count < FEWEST:
            return Ratio(math.exp(places["mean"].mean()), math.nan, math.nan)
        parts, freedoms = np.array([count * of_networks.var()]), np.array([count - 1.0])
    mean, half = places["mean"].mean(), _half_width(parts, freedoms, level)
    return Ratio(*(math.exp(end) for end in (mean, mean - half, mean + half)))


def _of_repetitions(pairs: pd.DataFrame, places: int) -> tuple[Floats, Floats]:
    """The variance that each network brings to the mean over all places, and its degrees of freedom.

    A repetition moves the mean by its distances from the means of its places, all its workloads together.
    """
    of_places = pairs.groupby(_PLACE, observed=True)["log"]
    moves = (pairs["log"] - of_places.transform("mean")) / of_places.transform("size") / places
    of_repetitions = moves.groupby([pairs["point"], pairs["repetition"]], observed=True).sum()
    of_networks = (of_repetitions**2).groupby("point", observed=True).agg(["size", "sum"])
    count = of_networks["size"].to_numpy(np.float64)
    return of_networks["sum"].to_numpy(np.float64) * count / (count - 1), count - 1


def _half_width(parts: Floats, freedoms: Floats, level: float) -> float:
    """Of the interval of a sum of independent means, of which `parts` are the variances."""
    variance = parts.sum()
    if not variance:
        return 0.0
    freedom = variance**2 / (parts**2 / freedoms).sum()  # Satterthwaite's
    return float(scipy.stats.t.ppf(1 - level / 2, freedom)) * math.sqrt(variance)


def read(database: Database, campaign: CampaignInfo) -> pd.DataFrame:
    """The frame of a campaign's trials that all this needs."""
    return frames.trials(database, campaign, set(metrics.of_workloads(campaign).values()))
