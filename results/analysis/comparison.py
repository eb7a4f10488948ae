"""The result of a comparison of two variants: the three numbers that a person wants, in this order.

In how many networks does the variant help by more than the margin, in how many does it harm, and in how many
does it make no difference that matters (`intervals.verdicts`)? Then the ratio over networks, by the design's
statistic, and the time that it saves. Then the slow trials: the ratio of the p95 of repetitions. Each has its
interval.

Tables, headline, `show`, JSON documents and figures count from here, so a word has one meaning.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from fecbench.documents import number
from fecbench.results import metrics
from fecbench.results.analysis import averages
from fecbench.results.analysis.averages import UNKNOWN, Estimate
from fecbench.results.analysis.intervals import (
    EFFECTS,
    LEVEL,
    averaged,
    mean_ratio_interval,
    median_ratio_interval,
    of_campaign,
    of_statistics,
)
from fecbench.results.analysis.margins import margins_of
from fecbench.results.analysis.pairing import (
    Pairing,
    comparisons,
    in_order,
    is_censored,
    ratio_of,
)
from fecbench.results.analysis.point_statistic import by_group, p95
from fecbench.results.store.records import FEWEST_OF_P95, P95, CampaignInfo

COUNTS = ("helps", "harms", "equivalent", "undecided")
"""Each point that has a ratio is in one of these counts."""
COLUMNS = (
    *("workload", "variant", "compared_with", "metric", "statistic", "margin", "points", "planned_points"),
    *(*COUNTS, "helps_discovered", "harms_discovered", "by_chance"),
    *("average", "ratio", "ratio_low", "ratio_high", "p95_ratio", "p95_low", "p95_high"),
    *("saved", "saved_low", "saved_high", "more_bytes", "more_bytes_low", "more_bytes_high"),
    *("median_ratio", "low", "high", "mean_ratio", "mean_low", "mean_high", "tail_ratio"),
)
_ESTIMATES = ("ratio", "p95", "saved", "more_bytes")
_NUMBERS = ("median_ratio", "low", "high", "mean_ratio", "mean_low", "mean_high", "tail_ratio")
_VERDICT_OF = {"helps": "gain", "harms": "harm", "equivalent": "equivalent", "undecided": "undecided"}


def of_pairings(
    pairings: Mapping[str, Pairing],
    campaign: CampaignInfo,
    ratio_rows: pd.DataFrame | None = None,
    frame: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """The comparisons of a campaign (`pairing.comparisons`), one row a (workload, variant) of its design.

    `ratio_rows`: their `intervals.of_campaign` as one table with a column `variant`, where it was made
    before. `frame`: the trials, where the bytes that they sent are to be compared.

    Columns: `workload`, `variant`, `compared_with` (the label of the baseline), the `metric`, the
    `statistic` of the repetitions of a point, and the `margin`, a share; `points` that have a ratio,
    `planned_points`;

    - `helps`, `harms`, `equivalent`, `undecided`: at how many points each verdict stands, `points` in all;
    - `helps_discovered`, `harms_discovered`: how many of them are left when no more than 5 % may be false
      (`intervals.ratio_intervals`), and `by_chance`: how many points would be called either at most, on
      average, if no difference were greater than the margin;
    - `ratio` over points, with its interval `ratio_low` to `ratio_high`: the `average`, "mean" or "median"
      (`averages.average_of`); of a design with one point the ratio there, with its
      interval over repetitions;
    - `p95_ratio`, the same average of the ratios of the p95 of the repetitions, with `p95_low` to `p95_high`;
      NaN for fewer than 20 repetitions, and below FEWEST_OF_TAIL of a design with one point;
    - `saved`, the same average of the differences to the baseline, in the metric's unit, and `more_bytes`,
      the share of bytes sent more, with intervals (`averages.saved`, `averages.more_bytes`);
    - `median_ratio` over points, with its interval `low` to `high`, NaN for too few points;
    - `mean_ratio`, the geometric mean over points, with its interval `mean_low` to `mean_high`
      (`intervals.mean_ratio_interval`);
    - `tail_ratio`: 95 % of these points have a ratio that is as good, or better; NaN for fewer than 20. It
      describes the points that were run, and has no interval.
    """
    margins, of_workloads = margins_of(campaign), metrics.of_workloads(campaign)
    rows = []
    for variant, pairing in pairings.items():
        ratios = of_campaign(pairing, campaign) if ratio_rows is None else _of_variant(ratio_rows, variant)
        for workload, name in of_workloads.items():
            of_workload = _of_workload(ratios, workload)
            rows.append(
                {
                    "workload": workload,
                    "variant": variant,
                    "compared_with": pairing.baseline_label,
                    "metric": name,
                    "statistic": campaign.statistic,
                    "margin": margins[workload],
                    "planned_points": len(campaign.points),
                    **_counts(of_workload, metrics.of(name), len(campaign.points)),
                    **_estimates(of_workload, pairing, workload, campaign, frame),
                }
            )
    order = {label: place for place, label in enumerate(of_workloads)}
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    return table.sort_values(
        "workload", key=lambda labels: labels.map(order), kind="stable", ignore_index=True
    )


def of_frame(frame: pd.DataFrame, campaign: CampaignInfo) -> pd.DataFrame:
    """The same of a frame of trials with the `metrics_of` the campaign."""
    return of_pairings(comparisons(frame, campaign), campaign, frame=frame)


def metrics_of(campaign: CampaignInfo) -> set[str]:
    """Return the metrics of trials that a whole comparison is made of: those compared, and the bytes sent."""
    return {*metrics.of_workloads(campaign).values(), *averages.SENT}


def _of_variant(ratios: pd.DataFrame, variant: str) -> pd.DataFrame:
    return ratios[ratios["variant"] == variant] if len(ratios) else ratios


def _of_workload(rows: pd.DataFrame, workload: str) -> pd.DataFrame:
    return rows[rows["workload"] == workload] if len(rows) else rows


def _counts(ratios: pd.DataFrame, metric: metrics.Metric, planned_points: int) -> dict[str, Any]:
    """Return the counts of `intervals.ratio_intervals`, given the rows of one workload."""
    if ratios.empty:
        none = dict.fromkeys((*COUNTS, "helps_discovered", "harms_discovered"), 0)
        return {"points": 0, **none, "by_chance": 0.0, **dict.fromkeys(_NUMBERS, math.nan)}
    of_averages = averaged(ratios)
    median, low, high = median_ratio_interval(of_averages, of_averages["point"])
    mean, mean_low, mean_high = mean_ratio_interval(of_averages)
    if planned_points == 1:
        low, high = ratios[["low", "high"]].iloc[0]
    return {
        "points": len(ratios),
        **{count: int((ratios["verdict"] == verdict).sum()) for count, verdict in _VERDICT_OF.items()},
        **{
            f"{count}_discovered": int((ratios["discovery"] == verdict).sum())
            for count, verdict in _VERDICT_OF.items()
            if verdict in EFFECTS
        },
        "by_chance": LEVEL * int(ratios["low"].notna().sum()),
        "median_ratio": median,
        "low": low,
        "high": high,
        "mean_ratio": mean,
        "mean_low": mean_low,
        "mean_high": mean_high,
        "tail_ratio": max(p95(in_order(of_averages), metric.more_is_better), 0.0),
    }


def _estimates(
    ratios: pd.DataFrame, pairing: Pairing, workload: str, campaign: CampaignInfo, frame: pd.DataFrame | None
) -> dict[str, Any]:
    """Return the estimates for a variant on a workload with their intervals, and the name of the average."""
    of_averages, pairing = averaged(ratios), pairing.averaged
    if of_averages.empty:
        estimates: dict[str, Estimate] = dict.fromkeys(_ESTIMATES, UNKNOWN)
        average = averages.average_of(pd.DataFrame({"ratio": [], "censored": []}), campaign.statistic)
    else:
        pairs, metric = _of_workload(pairing.matched, workload), metrics.of(str(ratios["metric"].iloc[0]))
        one_network = len(campaign.points) == 1
        level = LEVEL / len(campaign.looks)  # in one network, whose repetitions were looked at so often
        average = averages.average_of(of_averages, campaign.statistic)
        ratio = averages.ratio_over(of_averages, of_averages["point"], average)
        if one_network:
            ratio = Estimate(ratio.value, *ratios[["low", "high"]].iloc[0])
        estimates = {
            "ratio": ratio,
            "p95": _p95_ratio(pairing, workload, metric, campaign),
            "saved": averages.saved(
                _of_workload(pairing.decided, workload),
                pairs,
                campaign.statistic,
                average,
                level,
                one_network=one_network,
                in_blocks=campaign.engine == "field",
            ),
            "more_bytes": UNKNOWN
            if frame is None
            else averages.more_bytes(
                frame[frame["repetition"] < campaign.averaged_repetitions],
                workload,
                pairing.variant_label,
                pairing.baseline_label,
                level,
                one_network=one_network,
                in_blocks=campaign.engine == "field",
            ),
        }
    columns: dict[str, Any] = {"average": average}
    for name, estimate in estimates.items():
        columns["p95_ratio" if name == "p95" else name] = estimate.value
        columns |= {f"{name}_low": estimate.low, f"{name}_high": estimate.high}
    return columns


def _p95_ratio(pairing: Pairing, workload: str, metric: metrics.Metric, campaign: CampaignInfo) -> Estimate:
    pairs = _of_workload(pairing.matched, workload)
    if pairs.groupby("point").size().max() < FEWEST_OF_P95:
        return UNKNOWN
    arms = pd.DataFrame(
        {arm: by_group(pairs, ["point"], arm, P95, metric.more_is_better) for arm in ("baseline", "variant")}
    ).dropna()
    arms = arms.assign(ratio=ratio_of(arms, metric), censored=is_censored(arms, metric))
    arms = arms[arms["ratio"].notna() & (arms["baseline"] != 0)]
    if arms.empty:
        return UNKNOWN
    if len(campaign.points) == 1 and campaign.engine == "field":  # no interval bears blocks that depend
        return Estimate(float(arms["ratio"].iloc[0]))
    if len(campaign.points) == 1:
        baseline, variant = (pairs[arm].to_numpy(np.float64)[np.newaxis] for arm in ("baseline", "variant"))
        level = LEVEL / len(campaign.looks)
        ((low, high),) = of_statistics(baseline, variant, P95, level, np.array([metric.more_is_better]))
        return Estimate(float(arms["ratio"].iloc[0]), float(low), float(high))
    average = averages.average_of(arms, campaign.statistic)
    return averages.ratio_over(arms, pd.Series(arms.index), average)


def document(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of `of_pairings` as JSON documents have them."""
    return [
        {
            **{name: row[name] for name in ("workload", "variant", "metric", "statistic", "margin")},
            "baseline": row["compared_with"],
            **{name: int(row[name]) for name in ("points", "planned_points", *COUNTS)},
            **{name: number(row[name]) for name in ("median_ratio", "mean_ratio", "tail_ratio", "p95_ratio")},
            "average": row["average"],
            **{name: number(row[name]) for name in ("ratio", "saved", "more_bytes")},
            **{f"{name}_interval": _interval(row, name) for name in _ESTIMATES},
            "interval": None if math.isnan(row["low"]) else [number(row["low"]), number(row["high"])],
            "mean_interval": _interval(row, "mean"),
        }
        for row in table.to_dict("records")
    ]


def _interval(row: Mapping[Any, Any], name: str) -> list[float | str | None] | None:
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    return None if math.isnan(low) else [number(low), number(high)]
