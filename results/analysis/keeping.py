"""Where a promise is kept: enough messages are whole in time.

A median over points hides those that matter: a telephone that works in half of the networks does not work.
So points are counted.
"""

from __future__ import annotations

import pandas as pd

from results.store.records import CampaignInfo

LEAST = 0.99  # of messages
LOSSES = "losses"


def kept(frame: pd.DataFrame, campaign: CampaignInfo, metric: str, least: float = LEAST) -> pd.DataFrame:
    """One row a (workload, variant, point) with a trial that measured the metric, a share, or ran into its
    time limit: `share`, the design's statistic over repetitions (0 for a time limit), and `kept`, whether
    that is `least` or more."""
    told = frame[(frame["state"] == "timeout") | ((frame["state"] == "ok") & frame[metric].notna())]
    values = told[metric].where(told["state"] == "ok", 0.0)
    groups = values.groupby([told[name] for name in ("workload", "variant", "point")], observed=True)
    shares = groups.agg(campaign.statistic).rename("share").reset_index()
    return shares.assign(kept=shares["share"] >= least)


def losses(frame: pd.DataFrame, campaign: CampaignInfo) -> pd.DataFrame:
    """One row a (workload, point): `losses`, the share of packets that was lost on the way that messages
    took, over all links, in all its trials that are ok or ran into their time limit: a network in which every
    trial did is one that does not keep the promise, and must not be missing."""
    told, shares = frame[frame["state"].isin(("ok", "timeout"))], []
    for workload in campaign.workloads:
        rows = told[told["workload"] == workload["label"]]
        direction = workload["parameters"].get("direction", "down")
        counted = {
            what: [name for name in map(str, rows) if name.endswith(f".{direction}.{what}")]
            for what in ("lost", "packets")
        }
        sums = {what: rows.groupby("point")[names].sum().sum(axis=1) for what, names in counted.items()}
        share = (sums["lost"] / sums["packets"]).rename(LOSSES).reset_index()
        shares.append(share.assign(workload=workload["label"]))
    return pd.concat(shares, ignore_index=True)
