"""The networks where a promise is kept: enough messages are whole in time.

A median over points hides those that matter: a telephone that works in half of the networks does not work. So
points are counted.
"""

from __future__ import annotations

import pandas as pd

from fecbench.results.analysis import outcomes
from fecbench.results.analysis.point_statistic import by_group
from fecbench.results.analysis.summary import of_whole_groups
from fecbench.results.metrics import of
from fecbench.results.store.records import CampaignInfo

LEAST = 0.99  # of messages
LOSSES = "losses"


def kept(frame: pd.DataFrame, campaign: CampaignInfo, metric: str, least: float = LEAST) -> pd.DataFrame:
    """One row a (workload, variant, point) with a trial of a whole group (`summary.of_whole_groups`) that
    measured the metric, a share, failed or timed out, and with enough of them for a p95: `share`, the
    design's statistic over repetitions (0 for the latter two), and `kept`, whether that is `least` or
    more."""
    place = ["workload", "variant", "point"]
    shares_of_trials = outcomes.shares(frame, of(metric))
    counted = frame[place].assign(share=shares_of_trials)[of_whole_groups(frame, shares_of_trials.notna())]
    shares = by_group(counted, place, "share", campaign.statistic, more_is_better=True).dropna().reset_index()
    return shares.assign(kept=shares["share"] >= least)


def losses(frame: pd.DataFrame, campaign: CampaignInfo) -> pd.DataFrame:
    """One row a (workload, point): `losses`, the share of packets that was lost on the way that messages
    took, over all links, in all its trials that are ok, failed or timed out: a network in which no trial is
    ok is one that does not keep the promise, and must not be missing."""
    counted_trials, shares = frame[frame["state"].isin(outcomes.COUNTED)], []
    for workload in campaign.workloads:
        rows = counted_trials[counted_trials["workload"] == workload["label"]]
        direction = workload["parameters"].get("direction", "down")
        counted = {
            what: [name for name in map(str, rows) if name.endswith(f".{direction}.{what}")]
            for what in ("lost", "packets")
        }
        sums = {what: rows.groupby("point")[names].sum().sum(axis=1) for what, names in counted.items()}
        share = (sums["lost"] / sums["packets"]).rename(LOSSES).reset_index()
        shares.append(share.assign(workload=workload["label"]))
    return pd.concat(shares, ignore_index=True)
