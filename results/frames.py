"""Tidy data frames of a campaign, and the comparison of variants that they allow.

Only trials in state ok ever enter a comparison; what is left out is counted with its reason.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from results.database import STATES, CampaignInfo, Database

DCT = "client.dct_s"

_TRIAL = ["id", "variant", "workload", "point", "repetition", "state", "attempt", "duration_s"]
_PAIR = ["workload", "point", "repetition"]
_METRIC_PAGE = 20_000  # trials whose metrics are read at once


@dataclass(frozen=True)
class Pairing:
    """A variant compared with a baseline that met the same losses.

    ratios: one row a (workload, point): `pairs` (repetitions compared), `baseline` and `variant` (the
    metric's statistic over these repetitions), and `ratio` = variant / baseline.
    unpaired: one row a (workload, reason): `repetitions` that could not be compared.
    """

    ratios: pd.DataFrame
    unpaired: pd.DataFrame


def trials(
    database: Database, campaign: CampaignInfo, metrics: Collection[str] | None = None
) -> pd.DataFrame:
    """One row a trial, sorted by variant, workload, point and repetition, in the order of the design.

    Columns: those of the trial, the factors of its point (`bandwidth_mbps`, `loss.p`, …), the parameters of
    its workload (`size_bytes`, …) and its metrics (`client.dct_s`, …), NaN where a trial has none. `metrics`
    names the metrics to read; None reads all.
    """
    frame = pd.DataFrame.from_records(database.trial_rows(campaign.id), columns=_TRIAL)
    factors = pd.DataFrame(campaign.points, index=range(len(campaign.points)))
    parameters = pd.DataFrame(
        [workload["parameters"] for workload in campaign.workloads],
        index=[workload["label"] for workload in campaign.workloads],
    )
    frame = frame.join(factors, on="point").join(parameters, on="workload")
    frame = frame.join(_metric_columns(database, frame["id"].tolist(), metrics), on="id")
    frame["variant"] = _in_order(frame["variant"], [variant["label"] for variant in campaign.variants])
    frame["workload"] = _in_order(frame["workload"], [workload["label"] for workload in campaign.workloads])
    frame["state"] = _in_order(frame["state"], STATES)
    return frame.sort_values(["variant", *_PAIR], ignore_index=True)


def _in_order(column: pd.Series, values: Collection[str]) -> pd.Series:
    return column.astype(pd.CategoricalDtype(list(values), ordered=True))


def _metric_columns(database: Database, ids: list[int], metrics: Collection[str] | None) -> pd.DataFrame:
    """One column a metric, one row a trial, indexed by its id; `ids` are ascending."""
    row_of = {trial_id: row for row, trial_id in enumerate(ids)}
    columns: defaultdict[str, NDArray[np.float64]] = defaultdict(lambda: np.full(len(ids), np.nan))
    for start in range(0, len(ids), _METRIC_PAGE):
        page = ids[start : start + _METRIC_PAGE]
        for trial_id, metric, value in database.metric_rows(page[0], page[-1], metrics):
            if trial_id in row_of:  # ids between ours belong to other campaigns and to superseded runs
                columns[metric][row_of[trial_id]] = value
    return pd.DataFrame({metric: columns[metric] for metric in sorted(columns)}, index=ids)


def paired(
    frame: pd.DataFrame, baseline: str, variant: str, metric: str = DCT, statistic: str = "median"
) -> Pairing:
    """Compare two variants in each workload and point, over the repetitions in which both are ok.

    The ratio is that of the statistics ("median" or "mean") over these repetitions (Networking 2019, §IV-A:
    the median DCT of the runs of a configuration is considered), not the statistic of ratios.
    """
    pairs = _arm(frame, baseline, metric).merge(
        _arm(frame, variant, metric), how="outer", on=_PAIR, suffixes=("_baseline", "_variant")
    )
    missing_baseline = pairs["missing_baseline"].fillna(f"{baseline}: not run")
    missing_variant = pairs["missing_variant"].fillna(f"{variant}: not run")
    pairs["reason"] = (missing_baseline + "; " + missing_variant).str.strip("; ")
    complete = pairs["reason"] == ""
    by_point = pairs[complete].groupby(["workload", "point"], observed=True)
    ratios = pd.DataFrame(
        {
            "pairs": by_point.size(),
            "baseline": by_point["value_baseline"].agg(statistic),
            "variant": by_point["value_variant"].agg(statistic),
        }
    )
    ratios["ratio"] = ratios["variant"] / ratios["baseline"]
    unpaired = pairs[~complete].groupby(["workload", "reason"], observed=True).size()
    return Pairing(ratios.reset_index(), unpaired.rename("repetitions").reset_index())


def _arm(frame: pd.DataFrame, label: str, metric: str) -> pd.DataFrame:
    """The metric's value in each trial of a variant, and why it cannot be compared ("" when it can)."""
    arm = frame[frame["variant"] == label]
    value = arm[metric] if metric in arm else pd.Series(float("nan"), arm.index)
    ok = arm["state"] == "ok"
    missing = (f"{label}: " + arm["state"].astype(str)).mask(ok, "")
    return arm[_PAIR].assign(value=value, missing=missing.mask(ok & value.isna(), f"{label}: no {metric}"))


def baseline_of(campaign: CampaignInfo) -> str | None:
    """The label of the variant that the others are compared with, if the design names one."""
    return next((variant["label"] for variant in campaign.variants if variant["baseline"]), None)


def comparisons(frame: pd.DataFrame, campaign: CampaignInfo) -> dict[str, Pairing]:
    """The DCT of each variant compared with the baseline's; empty without a baseline or another variant."""
    baseline = baseline_of(campaign)
    if baseline is None:
        return {}
    others = (variant["label"] for variant in campaign.variants if variant["label"] != baseline)
    return {label: paired(frame, baseline, label, DCT, campaign.statistic) for label in others}


def summary(frame: pd.DataFrame, campaign: CampaignInfo) -> pd.DataFrame:
    """What a campaign found, one row a (workload, variant) of its design.

    Columns: `workload`, `variant`, `trials` that were run, `ok` of them, `median_dct_s` of the ok ones; and
    against the baseline: `points` compared, `median_ratio` of the DCT over them, and `faster`, the share of
    them with a ratio below 1 (both NaN where no point is compared).
    """
    ratios = {
        (variant, workload): of_workload["ratio"]
        for variant, pairing in comparisons(frame, campaign).items()
        for workload, of_workload in pairing.ratios.groupby("workload", observed=True)
    }
    dct = frame[DCT] if DCT in frame else pd.Series(float("nan"), frame.index)
    rows = []
    for workload in (workload["label"] for workload in campaign.workloads):
        for variant in (variant["label"] for variant in campaign.variants):
            run = (frame["workload"] == workload) & (frame["variant"] == variant)
            ok = run & (frame["state"] == "ok")
            ratio = ratios.get((variant, workload), pd.Series(dtype="float64"))
            rows.append(
                {
                    "workload": workload,
                    "variant": variant,
                    "trials": int(run.sum()),
                    "ok": int(ok.sum()),
                    "median_dct_s": dct[ok].median(),
                    "points": len(ratio),
                    "median_ratio": ratio.median(),
                    "faster": (ratio < 1).mean(),
                }
            )
    return pd.DataFrame(rows)
