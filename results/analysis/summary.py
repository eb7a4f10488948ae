"""The findings of a campaign, one row for each workload and variant of its design."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd

from fecbench.results import metrics
from fecbench.results.analysis import outcomes
from fecbench.results.analysis.pairing import Pairing, baselines_of, comparisons, median_ratio
from fecbench.results.store.records import CampaignInfo


def summary(
    frame: pd.DataFrame, campaign: CampaignInfo, pairings: Mapping[str, Pairing] | None = None
) -> pd.DataFrame:
    """Return the findings of a campaign, one row a (workload, variant) of its design.

    Columns: `workload`, `variant`, `trials` that were run, `ok` of them, the `metric` that is compared and
    its `median` over `whole_groups`, in which a failure or a timeout is the worst value; of a design with
    several points `median_by_pairs` (`by_pairs`); and against its baseline: `points` that have a ratio,
    `planned_points`,
    `median_ratio` over those that have one (`pairing.median_ratio`); `compared_points`, with those at which
    the baseline is 0 (`Pairing.decided`), and `faster`, the share of them at which the variant was better
    (NaN where there is none); `whole_groups`: how many; `compared_with`: the baseline's label, "" where there
    is none. Where all workloads compare the default metric, one column stands for two: `median_dct_s` or
    `median_dct_s_by_pairs`. `pairings`: `pairing.comparisons`, where they were made before.
    """
    of_workloads = metrics.of_workloads(campaign)
    pairings = comparisons(frame, campaign) if pairings is None else pairings
    baselines = baselines_of(campaign)
    whole, counted = whole_groups(frame, campaign, with_worst=True), frame["state"].isin(outcomes.COUNTED)
    rows = []
    for workload, metric in of_workloads.items():
        values = outcomes.values(frame, metrics.of(metric))
        for variant in (variant["label"] for variant in campaign.variants):
            run = (frame["workload"] == workload) & (frame["variant"] == variant)
            ok = run & (frame["state"] == "ok")
            measured = run & counted & whole
            ratios, faster, points, compared_points = _of_workload(pairings.get(variant), workload)
            rows.append(
                {
                    "workload": workload,
                    "variant": variant,
                    "trials": int(run.sum()),
                    "ok": int(ok.sum()),
                    "metric": metric,
                    "median": values[measured].median(),
                    "points": points,
                    "planned_points": len(campaign.points) if variant in pairings else 0,
                    "median_ratio": median_ratio(ratios),
                    "compared_points": compared_points,
                    "faster": faster.mean(),
                    "whole_groups": int(measured.sum()),
                    "compared_with": baselines.get(variant, ""),
                }
            )
    table = pd.DataFrame(rows)
    if of_many_networks(campaign):
        of_each = (rows.set_index("variant") for _, rows in table.groupby("workload", sort=False))
        table["median"] = [
            median
            for of_workload in of_each
            for median in by_pairs(
                dict(of_workload["median"]),
                dict(_ratios_of_all_points(of_workload)),
                baselines,
                metrics.of(of_workload["metric"].iloc[0]).greatest,
            ).values()
        ]
    table = table.rename(columns={"median": median_column(campaign)})
    return table.drop(columns="metric") if _compares_the_default_alone(campaign) else table


def _ratios_of_all_points(rows: pd.DataFrame) -> pd.Series:
    """The median ratios of the summary; NaN where the baseline is 0 at some points, which have no ratio."""
    return rows["median_ratio"].mask(rows["compared_points"] > rows["points"])


def median_column(campaign: CampaignInfo) -> str:
    """The column of `summary` that has the medians."""
    of_default = f"_{metrics.DEFAULT.partition('.')[2]}" if _compares_the_default_alone(campaign) else ""
    return f"median{of_default}{'_by_pairs' if of_many_networks(campaign) else ''}"


def _compares_the_default_alone(campaign: CampaignInfo) -> bool:
    return set(metrics.of_workloads(campaign).values()) == {metrics.DEFAULT}


def of_many_networks(campaign: CampaignInfo) -> bool:
    """Whether a median over its trials mixes networks."""
    return len(campaign.points) > 1


def by_pairs(
    medians: Mapping[str, float],
    ratios: Mapping[str, float],
    baselines: Mapping[str, str],
    greatest: float = math.inf,
) -> dict[str, float]:
    """The medians of variants as their pairs have them, by label: of one that has a median ratio, the value
    of its baseline times this ratio. It is the variant's own median where there is no ratio (NaN), as of a
    baseline or where that is 0 at some points; where the baseline's is the worst value or unknown; and where
    the product is above the `greatest` value that there can be, as a share above 1.

    Medians over different networks may differ in another direction than the variants do in most of these
    networks (Simpson's paradox). These differ as the pairs do.
    """

    def of(variant: str) -> float:
        own, ratio = float(medians[variant]), ratios[variant]
        if math.isnan(ratio):
            return own
        of_baseline = of(baselines[variant])
        if not math.isfinite(of_baseline):
            return own
        product = of_baseline * ratio
        return product if product <= greatest else own

    return {variant: of(variant) for variant in medians}


def whole_groups(frame: pd.DataFrame, campaign: CampaignInfo, with_worst: bool = False) -> pd.Series:
    """Whether each trial is of a whole group: in that workload, point and repetition, all variants measured
    what the workload compares, but those that never did in this workload. `with_worst`: the worst
    value is a measurement, too.

    So values of one variant are of the networks and losses of another's, and not of those that it got
    through. They are still of different networks: only a ratio compares, and `by_pairs`.
    """
    measured = pd.Series(False, frame.index)
    for metric, labels in metrics.labels_of_metrics(metrics.of_workloads(campaign)).items():
        values = outcomes.values(frame, metrics.of(metric))
        has_value = values.notna() if with_worst else np.isfinite(values)
        measured |= has_value & frame["workload"].isin(labels)
    return of_whole_groups(frame, measured, campaign)


def of_whole_groups(
    frame: pd.DataFrame, measured: pd.Series, campaign: CampaignInfo | None = None
) -> pd.Series:
    """Whether each trial is one of these, `measured`, and of a group in which each variant has one that has
    any in this workload. With `campaign`, only of the repetitions that averages over networks are made of."""
    if campaign is not None:
        measured = measured & (frame["repetition"] < campaign.averaged_repetitions)
    some = frame.loc[measured, ["workload", "point", "repetition", "variant"]]
    variants = some.groupby("workload", observed=True)["variant"].nunique()
    # A variant has one trial in a group, so as many variants as trials.
    in_group = some.groupby(["workload", "point", "repetition"], observed=True)["variant"].transform("size")
    whole = in_group == np.asarray(some["workload"].map(variants.to_dict()))
    return whole.reindex(frame.index, fill_value=False)


def _of_workload(pairing: Pairing | None, workload: str) -> tuple[pd.DataFrame, pd.Series, int, int]:
    """Return the ratios of points, whether the variant was better at each that is decided, as averages over
    networks take both, and how many points have a ratio and are decided."""
    if pairing is None:
        return pd.DataFrame(columns=["ratio", "censored"], dtype="float64"), pd.Series(dtype="float64"), 0, 0
    tables = pairing.averaged_ratios, pairing.averaged.decided, pairing.ratios, pairing.decided
    ratios, decided, *of_all = (table[table["workload"] == workload] for table in tables)
    points, compared_points = map(len, of_all)
    return ratios, decided["faster"], points, compared_points
