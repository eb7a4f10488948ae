"""What a campaign found, one row for each workload and variant of its design."""

from __future__ import annotations

import pandas as pd

from results import metrics
from results.analysis.pairing import Pairing, comparisons
from results.store.records import CampaignInfo


def summary(frame: pd.DataFrame, campaign: CampaignInfo) -> pd.DataFrame:
    """What a campaign found, one row a (workload, variant) of its design.

    Columns: `workload`, `variant`, `trials` that were run, `ok` of them, the `metric` that is compared and
    its `median` over the ok ones; and against the baseline: `points` that have a ratio, `planned_points`,
    `median_ratio` over those that have one; `decided_points`, with those at which one arm alone timed out
    (`Pairing.decided`), and `faster`, the share of them at which the variant was better (NaN where there is
    none). Where all workloads compare the default metric, one column stands for two: `median_dct_s`.
    """
    of_workloads, pairings = metrics.of_workloads(campaign), comparisons(frame, campaign)
    rows = []
    for workload, metric in of_workloads.items():
        values = frame[metric] if metric in frame else pd.Series(float("nan"), frame.index)
        for variant in (variant["label"] for variant in campaign.variants):
            run = (frame["workload"] == workload) & (frame["variant"] == variant)
            ok = run & (frame["state"] == "ok")
            ratio, faster = _of_workload(pairings.get(variant), workload)
            rows.append(
                {
                    "workload": workload,
                    "variant": variant,
                    "trials": int(run.sum()),
                    "ok": int(ok.sum()),
                    "metric": metric,
                    "median": values[ok].median(),
                    "points": len(ratio),
                    "planned_points": len(campaign.points) if variant in pairings else 0,
                    "median_ratio": ratio.median(),
                    "decided_points": len(faster),
                    "faster": faster.mean(),
                }
            )
    table, column = pd.DataFrame(rows), median_column(campaign)
    return table if column == "median" else table.drop(columns="metric").rename(columns={"median": column})


def median_column(campaign: CampaignInfo) -> str:
    """The column of `summary` that has the medians."""
    default_alone = set(metrics.of_workloads(campaign).values()) == {metrics.DEFAULT}
    return f"median_{metrics.DEFAULT.partition('.')[2]}" if default_alone else "median"


def _of_workload(pairing: Pairing | None, workload: str) -> tuple[pd.Series, pd.Series]:
    """The ratio at each point that has one, and whether the variant was better at each that is decided."""
    if pairing is None:
        return pd.Series(dtype="float64"), pd.Series(dtype="float64")
    ratios, decided = (table[table["workload"] == workload] for table in (pairing.ratios, pairing.decided))
    return ratios["ratio"], decided["faster"]
