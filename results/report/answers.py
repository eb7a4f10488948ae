"""The answer of a campaign in plain words: a sentence for each arm.

A case is a workload in a network. Counts are of cases, so that each arm of a design with several workloads
has one sentence, too; its best and its worst workload stand behind the counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from fecbench.results import metrics
from fecbench.results.analysis import comparison
from fecbench.results.analysis.margins import percent
from fecbench.results.analysis.pairing import baselines_of
from fecbench.results.analysis.workload_names import short_names
from fecbench.results.metrics import Metric
from fecbench.results.metrics.units import decimals, estimate, number
from fecbench.results.report.sections.answers import Answer
from fecbench.results.store.records import CampaignInfo

_LARGE = 10  # a ratio with fewer decimals
_MOST_NAMES = 6  # of workloads, in a sentence


def answers(table: pd.DataFrame, campaign: CampaignInfo) -> Iterator[Answer]:
    """Yield an answer for each metric and variant that is compared, of the table of `findings.findings`."""
    compared = metrics.of_workloads(campaign)
    rows = table.assign(
        metric=table["workload"].map(compared), name=table["workload"].map(short_names(campaign))
    )
    several = len(set(compared.values())) > 1
    for metric in dict.fromkeys(compared.values()):
        for variant, baseline in baselines_of(campaign).items():
            rows_of_arm = rows[(rows["variant"] == variant) & (rows["metric"] == metric)]
            if len(rows_of_arm):
                yield _answer(rows_of_arm, variant, baseline, metrics.of(metric), campaign, several)


def lead(campaign: CampaignInfo) -> str:
    """Return a sentence that says what the answers count."""
    compared, networks = metrics.of_workloads(campaign), counted(len(campaign.points), "network")
    what = " and ".join(metrics.of(name).words or name for name in dict.fromkeys(compared.values()))
    if len(compared) == 1:
        return f"Compared is the {what} in {networks}."
    names = short_names(campaign).values()
    listed = f" ({', '.join(names)})" if len(names) <= _MOST_NAMES else ""
    cases = len(campaign.points) * len(compared)
    return f"Compared is the {what} in {cases:,} cases: {networks} × {len(compared)} workloads{listed}."


def _answer(
    rows: pd.DataFrame, variant: str, baseline: str, metric: Metric, campaign: CampaignInfo, several: bool
) -> Answer:
    undecided, equivalent = int(rows["undecided"].sum()), int(rows["equivalent"].sum())
    by = f"By {metric.noun}, " if several else ""
    return Answer(
        variant=variant,
        baseline=baseline,
        metric=metric.name,
        networks=len(campaign.points),
        cases=int(rows["points"].sum()),
        planned_cases=len(campaign.points) * len(rows),
        helps=int(rows["helps"].sum()),
        harms=int(rows["harms"].sum()),
        neither=undecided + equivalent,
        undecided=undecided,
        margins=(float(rows["margin"].min()), float(rows["margin"].max())),
        sentence=f"{by}{variant} {'; '.join(_clauses(rows, baseline, metric))}.",
    )


def _clauses(rows: pd.DataFrame, baseline: str, metric: Metric) -> Iterator[str]:
    """Yield the mean effect and the counts; the median ratio where there is no mean; the tail."""
    if not rows["compared_points"].sum():
        yield f"cannot be compared with {baseline}: in no network have both a result"
        return
    average = _average(rows, baseline, metric)
    if average:
        yield average
    yield _counts(rows, baseline, metric)
    with_ratio = rows[rows["median_ratio"].notna()].to_dict("records")
    if not with_ratio:
        yield "there is no ratio"
        return
    tails = [row for row in with_ratio if not math.isnan(row["tail_ratio"])]
    worst = max(tails, key=lambda row: row["tail_ratio"] * (-1 if metric.more_is_better else 1), default=None)
    tail = "" if worst is None else _tail(worst, metric)
    if not average:
        yield f"the median ratio is {_medians(with_ratio, metric, len(rows) > 1)}{tail and f', and {tail}'}"
    elif tail:
        yield f"the ratio is {tail}"


def _medians(rows: list[dict[Any, Any]], metric: Metric, several: bool) -> str:
    """Return the median ratio of the best workload and of the worst."""
    rows.sort(key=lambda row: -row["median_ratio"] if metric.more_is_better else row["median_ratio"])
    ends = rows[:1] if len(rows) == 1 else [rows[0], rows[-1]]
    return " to ".join(
        estimate(row["median_ratio"], row["low"], row["high"]) + (f" ({row['name']})" if several else "")
        for row in ends
    )


def _average(rows: pd.DataFrame, baseline: str, metric: Metric) -> str:
    """Return the mean effect over the networks, of the best workload and of the worst; "" without one."""
    with_mean = rows[rows["mean_low"].notna()].to_dict("records")
    if not with_mean or len(with_mean) < (rows["points"] > 0).sum():
        return ""
    with_mean.sort(key=lambda row: row["mean_ratio"])
    ends = with_mean[:1] if len(with_mean) == 1 else [with_mean[0], with_mean[-1]]
    texts = [change_text(row["mean_ratio"], row["mean_low"], row["mean_high"]) for row in ends]
    names = [f" ({row['name']})" if len(rows) > 1 else "" for row in ends]
    changes = " to ".join(f"{text}{name}" for text, name in zip(texts, names, strict=True))
    return (
        f"changes the {metric.words or metric.name} of {baseline} by {changes} on average over the networks"
    )


def change_text(ratio: float, low: float, high: float) -> str:
    """Return a ratio with its interval as a change: "−3 % [−4, −2]"."""
    places = max(decimals(low, high) - 2, 0)
    # Adding 0 makes a rounded -0 a 0.
    value, *ends = (number(round(100 * (end - 1), places) + 0, f"+.{places}f") for end in (ratio, low, high))
    return f"{value} % [{ends[0]}, {ends[1]}]"


def _counts(rows: pd.DataFrame, baseline: str, metric: Metric) -> str:
    better, worse = metric.comparative
    if not rows["by_chance"].sum():
        compared = int(rows["compared_points"].sum())
        gains = round(float((rows["faster"] * rows["compared_points"]).sum()))
        return (
            f"is {better} than {baseline} in {gains} of {_cases(compared, rows)}, but there are too few"
            " repetitions to tell that from chance"
        )
    helps, harms, equivalent, undecided = (int(rows[name].sum()) for name in comparison.COUNTS)
    neither = equivalent + undecided
    open_ = f" ({undecided} undecided)" if undecided else ""
    return (
        f"is {better} than {baseline} in {helps} of {_cases(int(rows['points'].sum()), rows)} by more than"
        f" {margin_text(rows['margin'])}, {worse} in {harms}, and neither in {neither}{open_}"
    )


def _cases(count: int, rows: pd.DataFrame) -> str:
    """Return how many networks or cases were compared, and of how many planned ones."""
    planned = int(rows["planned_points"].sum())
    what = counted(count, "network" if len(rows) == 1 else "case")
    return f"{what} (of {planned:,} planned)" if count < planned else what


def counted(count: int, noun: str) -> str:
    """A count with its noun: "1 network", "40 networks"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _tail(row: Mapping[Any, Any], metric: Metric) -> str:
    tail = row["tail_ratio"]
    places = decimals(row["low"], row["high"]) if tail < _LARGE else 1
    side = "at least" if metric.more_is_better else "at most"
    return f"{side} {number(tail, f'.{places}f')} in 95 % of the networks"


def margin_text(margins: pd.Series) -> str:
    """The margins of workloads, as a range where they differ: "2 to 4 %"."""
    least, most = float(margins.min()), float(margins.max())
    return percent(most) if least == most else f"{percent(least).removesuffix(' %')} to {percent(most)}"
