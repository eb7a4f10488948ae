"""Variants compared in pairs that met the same losses, workload by workload.

Only trials in state ok ever enter a comparison; what is left out is counted with its reason. A trial that
timed out is worse than any that did not, whatever the metric.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import pandas as pd

from results import metrics
from results.metrics import Metric
from results.store.records import CampaignInfo

_POINT = ["workload", "point"]
_PAIR = [*_POINT, "repetition"]


@dataclass(frozen=True)
class Pairing:
    """A variant compared with a baseline that met the same losses."""

    ratios: pd.DataFrame
    """One row a (workload, point): the `metric` that is compared, `pairs` (repetitions compared), `baseline`
    and `variant` (the metric's statistic over these repetitions), and `ratio` = variant / baseline.
    `timeouts` counts the repetitions in which one arm alone timed out: what the ratio does not hold."""
    unpaired: pd.DataFrame
    """One row a (workload, reason): `repetitions` that could not be compared."""
    matched: pd.DataFrame
    """One row a (workload, point, repetition) that was compared, in this order: the metric's values
    `baseline` and `variant`, and their `ratio`, NaN for a baseline of 0."""
    decided: pd.DataFrame
    """One row a (workload, point) of which a repetition tells which arm was better, because both are ok or
    because one alone timed out. `baseline_timeouts` and `variant_timeouts` count the latter. `faster`:
    whether the variant was better, of a time faster, by the statistic over these repetitions when a timeout
    is the worst value."""


def paired(
    frame: pd.DataFrame,
    baseline: str,
    variant: str,
    metric: str | Mapping[str, str] = metrics.DEFAULT,
    statistic: str = "median",
) -> Pairing:
    """Compare two variants in each workload and point, over the repetitions in which both are ok.

    `metric` names the metric for all workloads, or for each by its label. The ratio is that of the statistics
    ("median" or "mean") over these repetitions (Networking 2019, §IV-A: the median DCT of the runs of a
    configuration is considered), not the statistic of ratios. There is none where the baseline's statistic is
    0: such a point is unpaired as a whole, since its other repetitions are those in which the metric was
    greater.
    """
    if isinstance(metric, str):
        return _paired_by(metrics.of(metric), frame, baseline, variant, statistic)
    parts = [
        _paired_by(metrics.of(name), frame[frame["workload"].isin(labels)], baseline, variant, statistic)
        for name, labels in metrics.labels_of_metrics(metric).items()
    ]
    return parts[0] if len(parts) == 1 else _joined(parts)


def _joined(parts: list[Pairing]) -> Pairing:
    """Pairings of different workloads as one, in the order of the design."""
    tables = {}
    for field in fields(Pairing):
        table = pd.concat([getattr(part, field.name) for part in parts], ignore_index=True)
        tables[field.name] = table.sort_values(
            [key for key in (*_PAIR, "reason") if key in table], ignore_index=True
        )
    return Pairing(**tables)


def _paired_by(metric: Metric, frame: pd.DataFrame, baseline: str, variant: str, statistic: str) -> Pairing:
    pairs = _arm(frame, baseline, metric).merge(
        _arm(frame, variant, metric), how="outer", on=_PAIR, suffixes=("_baseline", "_variant")
    )
    missing_baseline = pairs["missing_baseline"].fillna(f"{baseline}: not run")
    missing_variant = pairs["missing_variant"].fillna(f"{variant}: not run")
    pairs["reason"] = (missing_baseline + "; " + missing_variant).str.strip("; ")
    values = {"value_baseline": "baseline", "value_variant": "variant"}
    pairs = pairs.rename(columns=values).sort_values(_PAIR, ignore_index=True)
    both_ok = pairs["reason"] == ""
    of_points = pairs[both_ok].groupby(_POINT, observed=True)["baseline"].agg(statistic)
    at_zero = pairs.set_index(_POINT).index.isin(of_points.index[of_points == 0])
    pairs.loc[both_ok & at_zero, "reason"] = f"{baseline}: {statistic} of {metric.name} is 0"
    complete = pairs["reason"] == ""
    decided = _decided(pairs, metric, statistic)
    matched = pairs.loc[complete, [*_PAIR, *values.values()]].reset_index(drop=True)
    by_point = matched.groupby(_POINT, observed=True)
    arms_by_point = {arm: by_point[arm].agg(statistic) for arm in values.values()}
    ratios = pd.DataFrame({"metric": metric.name, "pairs": by_point.size(), **arms_by_point})
    for table in (matched, ratios):
        table["ratio"] = table["variant"] / table["baseline"].where(table["baseline"] != 0)
    alone = decided["baseline_timeouts"] + decided["variant_timeouts"]
    ratios["timeouts"] = alone.reindex(ratios.index)  # an empty frame would be given the rows of all
    unpaired = pairs[~complete].groupby(["workload", "reason"], observed=True).size()
    return Pairing(
        ratios.reset_index(), unpaired.rename("repetitions").reset_index(), matched, decided.reset_index()
    )


def _arm(frame: pd.DataFrame, label: str, metric: Metric) -> pd.DataFrame:
    """The metric's value in each trial of a variant (the worst for a timeout, NaN for no value), and why it
    cannot be compared ("" when it can)."""
    arm = frame[frame["variant"] == label]
    value = arm[metric.name] if metric.name in arm else pd.Series(float("nan"), arm.index)
    ok = arm["state"] == "ok"
    missing = (f"{label}: " + arm["state"].astype(str)).mask(ok, "")
    return arm[_PAIR].assign(
        value=value.astype("float64").where(ok).mask(arm["state"] == "timeout", metric.worst),
        missing=missing.mask(ok & value.isna(), f"{label}: no {metric.name}"),
    )


def _decided(pairs: pd.DataFrame, metric: Metric, statistic: str) -> pd.DataFrame:
    """`Pairing.decided`, with (workload, point) as its index."""
    timed_out = pairs[["baseline", "variant"]] == metric.worst
    known = pairs["baseline"].notna() & pairs["variant"].notna() & ~timed_out.all(axis=1)
    by_point = (
        pairs.assign(baseline_timeouts=timed_out["baseline"], variant_timeouts=timed_out["variant"])
        .loc[known]
        .groupby(_POINT, observed=True)
    )
    decided = by_point[["baseline_timeouts", "variant_timeouts"]].sum()
    baseline, variant = (by_point[arm].agg(statistic) for arm in ("baseline", "variant"))
    return decided.assign(faster=variant > baseline if metric.more_is_better else variant < baseline)


def baseline_of(campaign: CampaignInfo) -> str | None:
    """The label of the variant that the others are compared with, if the design names one."""
    return next((variant["label"] for variant in campaign.variants if variant["baseline"]), None)


def comparisons(frame: pd.DataFrame, campaign: CampaignInfo) -> dict[str, Pairing]:
    """Each variant compared with the baseline by the metric of each workload; empty without a baseline or
    another variant."""
    baseline = baseline_of(campaign)
    if baseline is None:
        return {}
    others = (variant["label"] for variant in campaign.variants if variant["label"] != baseline)
    of_workloads = metrics.of_workloads(campaign)
    return {label: paired(frame, baseline, label, of_workloads, campaign.statistic) for label in others}


def left_out(pairing: Pairing, campaign: CampaignInfo, baseline: str, variant: str) -> str:
    """What the ratios of a comparison lack of the pairs that were planned, in a sentence; "" for nothing."""
    planned = len(campaign.points) * len(campaign.workloads) * campaign.repetitions
    compared = len(pairing.matched)
    if compared == planned:
        return ""
    by_arm = {arm: int(pairing.decided[f"{arm}_timeouts"].sum()) for arm in ("variant", "baseline")}
    alone = (
        f" {variant} alone timed out in {by_arm['variant']} pairs, {baseline} alone in {by_arm['baseline']}:"
        " these are in no ratio."
    )
    sentence = f"Of {planned} planned pairs of {variant} and {baseline}, {compared} have a ratio."
    return sentence + (alone if any(by_arm.values()) else "")
