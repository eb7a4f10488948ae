"""The networks in which a new build is surely slower, whatever it is elsewhere.

One question is asked of each network with all its workloads, and of each workload in it: is the geometric
mean of the ratios above the margin of single networks? Student's one-sided test answers, with all workloads
of a repetition as one sample. At most the share LEVEL of all answers "yes" is expected to be wrong
(`false_discoveries`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from fecbench.results.analysis.intervals import LEVEL
from fecbench.results.analysis.margins import margins_of
from fecbench.results.analysis.quantiles import false_discoveries, t_beyond
from fecbench.results.store.records import CampaignInfo

SUSPECTED = 0.5
"""P-value, divided by the number of questions, below which a place is looked at once more. Equal builds have
such a place in no more than that share of looks."""


@dataclass(frozen=True)
class Slower:
    """The networks in which a new build is surely slower."""

    points: tuple[int, ...]
    suspected: bool
    """Whether one more repetition might add to them."""


NOWHERE = Slower((), False)


def slower_networks(pairs: pd.DataFrame, campaign: CampaignInfo, share: float) -> Slower:
    """Return the slower networks among `overall.pairs_of`; this look may err in `share` of LEVEL."""
    if pairs.empty:
        return NOWHERE
    margins = {label: math.log1p(margin) for label, margin in margins_of(campaign).items()}
    beyond = pairs.assign(log=pairs["log"] - pairs["workload"].map(margins).astype("float64"))
    of_repetitions = beyond.groupby(["point", "repetition"], observed=True)["log"].mean()
    families = (
        of_repetitions.groupby("point").agg(["mean", "std", "size"]).reset_index(),
        beyond.groupby(["point", "workload"], observed=True)["log"]
        .agg(["mean", "std", "size"])
        .reset_index(),
    )
    cases = pd.concat(families, ignore_index=True)
    cases = cases[cases["size"] > 1]
    if cases.empty:
        return NOWHERE
    p_values = np.array([_above_0(*row) for row in cases[["mean", "std", "size"]].itertuples(index=False)])
    is_slower = false_discoveries(p_values) <= LEVEL * share
    suspected = (p_values < SUSPECTED / len(p_values)) & ~is_slower
    return Slower(tuple(sorted(set(cases.loc[is_slower, "point"].astype(int)))), bool(suspected.any()))


def _above_0(mean: float, deviation: float, count: int) -> float:
    """Return the p-value that the mean of so many values with this deviation is not above 0."""
    if deviation == 0:
        return 0.0 if mean > 0 else 1.0
    return t_beyond(mean / deviation * math.sqrt(count), count - 1)
