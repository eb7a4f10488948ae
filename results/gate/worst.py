"""The networks in which a new build is slowest beside an old one, with a pair of trials of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from fecbench.results.analysis.pairing import PAIR
from fecbench.results.gate.overall import NEW, OLD, ratio_of
from fecbench.results.store.records import CampaignInfo

MOST = 3
_LEVEL = 0.05


@dataclass(frozen=True)
class Worst:
    """A network, with a workload."""

    workload: str
    point: int
    factors: Mapping[str, object]
    ratio: float
    """The geometric mean of its pairs."""
    low: float | None
    high: float | None
    """The ends of its interval of 95 %, as if no other network had been looked at; None for a single pair."""
    pairs: int
    old_trial: int
    new_trial: int
    """The numbers of the trials of the pair that differ most."""
    pair_ratio: float
    """The ratio of these two."""


def worst_of(pairs: pd.DataFrame, frame: pd.DataFrame, campaign: CampaignInfo) -> list[Worst]:
    """Return the worst workload of each network, the worst networks first: MOST of them, and only where new
    took longer.

    `pairs` are `overall.pairs_of` the trials in `frame`.
    """
    means = pairs.groupby(["workload", "point"], observed=True)["log"].mean()
    slowest = means[means > 0].sort_values(ascending=False, kind="stable")
    one_each = slowest[~slowest.index.get_level_values("point").duplicated()].index[:MOST]
    trials = frame.set_index([*PAIR, "variant"])["id"]
    return [_worst(pairs, trials, campaign, str(workload), int(point)) for workload, point in one_each]


def _worst(
    pairs: pd.DataFrame, trials: pd.Series, campaign: CampaignInfo, workload: str, point: int
) -> Worst:
    own = pairs[(pairs["workload"] == workload) & (pairs["point"] == point)].reset_index(drop=True)
    ratio = ratio_of(own, _LEVEL)
    most = own.iloc[int(own["log"].to_numpy().argmax())]
    old, new = (int(trials.loc[(workload, point, most["repetition"], arm)]) for arm in (OLD, NEW))
    has_interval = ratio.low == ratio.low  # not NaN
    return Worst(
        workload=workload,
        point=point,
        factors=dict(campaign.points[point]),
        ratio=ratio.value,
        low=ratio.low if has_interval else None,
        high=ratio.high if has_interval else None,
        pairs=len(own),
        old_trial=old,
        new_trial=new,
        pair_ratio=float(most[NEW] / most[OLD]),
    )
