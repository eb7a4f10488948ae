"""What a campaign found, one row for each workload and variant of its design."""

from __future__ import annotations

import pandas as pd

from results import metrics
from results.analysis.pairing import Pairing, baselines_of, comparisons, median_ratio
from results.store.records import CampaignInfo


def summary(frame: pd.DataFrame, campaign: CampaignInfo) -> pd.DataFrame:
    """What a campaign found, one row a (workload, variant) of its design.

    Columns: `workload`, `variant`, `trials` that were run, `ok` of them, the `metric` that is compared and
    its `median` over `whole_groups`; and against its baseline: `points` that have a ratio, `planned_points`,
    `median_ratio` over those that have one (`pairing.median_ratio`); `decided_points`, with those at which
    the baseline is 0 (`Pairing.decided`), and `faster`, the share of them at which the variant was better
    (NaN where there is none); `whole_groups`: how many; `compared_with`: the baseline's label, "" where there
    is none. Where all workloads compare the default metric, one column stands for two: `median_dct_s`.
    """
    of_workloads, pairings = metrics.of_workloads(campaign), comparisons(frame, campaign)
    baselines = baselines_of(campaign)
    whole = whole_groups(frame, campaign)
    rows = []
    for workload, metric in of_workloads.items():
        values = frame[metric] if metric in frame else pd.Series(float("nan"), frame.index)
        for variant in (variant["label"] for variant in campaign.variants):
            run = (frame["workload"] == workload) & (frame["variant"] == variant)
            ok = run & (frame["state"] == "ok")
            ratios, faster = _of_workload(pairings.get(variant), workload)
            rows.append(
                {
                    "workload": workload,
                    "variant": variant,
                    "trials": int(run.sum()),
                    "ok": int(ok.sum()),
                    "metric": metric,
                    "median": values[ok & whole].median(),
                    "points": len(ratios),
                    "planned_points": len(campaign.points) if variant in pairings else 0,
                    "median_ratio": median_ratio(ratios),
                    "decided_points": len(faster),
                    "faster": faster.mean(),
                    "whole_groups": int((ok & whole).sum()),
                    "compared_with": baselines.get(variant, ""),
                }
            )
    table, column = pd.DataFrame(rows), median_column(campaign)
    return table if column == "median" else table.drop(columns="metric").rename(columns={"median": column})


def median_column(campaign: CampaignInfo) -> str:
    """The column of `summary` that has the medians."""
    default_alone = set(metrics.of_workloads(campaign).values()) == {metrics.DEFAULT}
    return f"median_{metrics.DEFAULT.partition('.')[2]}" if default_alone else "median"


def whole_groups(frame: pd.DataFrame, campaign: CampaignInfo) -> pd.Series:
    """Whether each trial is of a whole group: in that workload, point and repetition, all variants measured
    what the workload compares, but those that never did in this workload.

    So values of one variant are of the networks and losses of another's, and not of those that it got
    through. They are still of different networks: only a ratio compares.
    """
    measured = frame["state"] == "ok"
    for metric, labels in metrics.labels_of_metrics(metrics.of_workloads(campaign)).items():
        has_value = frame[metric].notna() if metric in frame else pd.Series(False, frame.index)
        measured &= has_value | ~frame["workload"].isin(labels)
    ok = frame[measured]
    variants = ok.groupby("workload", observed=True)["variant"].nunique()
    in_group = ok.groupby(["workload", "point", "repetition"], observed=True)["variant"].transform("nunique")
    whole = in_group == ok["workload"].astype(str).map(variants)
    return whole.reindex(frame.index, fill_value=False)


def _of_workload(pairing: Pairing | None, workload: str) -> tuple[pd.DataFrame, pd.Series]:
    """The points that have a ratio, and whether the variant was better at each that is decided."""
    if pairing is None:
        return pd.DataFrame(columns=["ratio", "censored"], dtype="float64"), pd.Series(dtype="float64")
    ratios, decided = (table[table["workload"] == workload] for table in (pairing.ratios, pairing.decided))
    return ratios, decided["faster"]
