"""The answer of a campaign in plain words: a sentence for each arm.

A case is a workload in a network. Counts are of cases, so that each arm of a design with several workloads
has one sentence, too, with its best and its worst workload. Each number in it has its interval.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from fecbench.quantities import counted
from fecbench.results import metrics
from fecbench.results.analysis import comparison
from fecbench.results.analysis.intervals import why_undecided
from fecbench.results.analysis.margins import percent
from fecbench.results.analysis.pairing import baselines_of
from fecbench.results.analysis.workload_names import short_names
from fecbench.results.metrics import Metric
from fecbench.results.metrics.units import change_text, difference
from fecbench.results.report.evidence import Explained
from fecbench.results.report.rules_in_words import where
from fecbench.results.report.sections.answers import Answer
from fecbench.results.store.records import CampaignInfo

_MOST_NAMES = 6  # of workloads, in a sentence


def answers(table: pd.DataFrame, campaign: CampaignInfo) -> list[Answer]:
    """Return an answer for each metric and variant that is compared, of the table of `findings.findings`;
    those with the most decided effects first. Variants without a case are left out, unless none has one. None
    has a rule (`with_rules`)."""
    compared = metrics.of_workloads(campaign)
    rows = table.assign(
        metric=table["workload"].map(compared), name=table["workload"].map(short_names(campaign))
    )
    several = len(set(compared.values())) > 1
    of_all = []
    for metric in dict.fromkeys(compared.values()):
        for variant, baseline in baselines_of(campaign).items():
            rows_of_arm = rows[(rows["variant"] == variant) & (rows["metric"] == metric)]
            if len(rows_of_arm):
                of_all.append(_answer(rows_of_arm, variant, baseline, metrics.of(metric), campaign, several))
    with_cases = [one for one in of_all if one.cases]
    return sorted(with_cases or of_all, key=lambda one: -(one.helps + one.harms))


def with_rules(plain: Sequence[Answer], explained: Sequence[Explained]) -> list[Answer]:
    """Return the same answers, each with the networks in which its variant helps and harms."""
    rules = {
        (one.part.metric.name, one.variant): where(one.explanation, one.part.metric) for one in explained
    }
    return [one.model_copy(update={"rule": rules.get((one.metric, one.variant), "")}) for one in plain]


def lead(campaign: CampaignInfo) -> str:
    """Return a sentence that says what the answers count."""
    compared, networks = metrics.of_workloads(campaign), counted(len(campaign.points), "network")
    what = " and ".join(metrics.of(name).words or name for name in dict.fromkeys(compared.values()))
    if len(compared) == 1:
        return f"Compared is the {what} in {networks}."
    names = short_names(campaign).values()
    listed = f" ({', '.join(names)})" if len(names) <= _MOST_NAMES else ""
    cases = len(campaign.points) * len(compared)
    return (
        f"Compared is the {what} in {counted(cases, 'case')}: {networks} ×"
        f" {counted(len(compared), 'workload')}{listed}."
    )


def _answer(
    rows: pd.DataFrame,
    variant: str,
    baseline: str,
    metric: Metric,
    campaign: CampaignInfo,
    several: bool,
) -> Answer:
    undecided, equivalent = int(rows["undecided"].sum()), int(rows["equivalent"].sum())
    by = f"By {metric.noun}, " if several else ""
    has_any = bool(rows["compared_points"].sum())
    effect = list(_clauses(rows, baseline, metric, campaign)) if has_any else []
    counts = f"cannot be compared with {baseline}: in no network have both a result"
    if has_any:
        counts = _counts(rows) if rows["points"].any() else f"cannot be compared with {baseline} by one"
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
        rule="",
        effect="; ".join(effect),
        sentence=f"{by}{variant} {'; '.join([*effect, counts])}.",
    )


def _clauses(rows: pd.DataFrame, baseline: str, metric: Metric, campaign: CampaignInfo) -> Iterator[str]:
    """Yield the effect over the networks, that on the slow trials, and the bytes."""
    with_ratio = rows[rows["ratio_low"].notna()].to_dict("records")
    if with_ratio:
        yield _effect(with_ratio, len(rows) > 1, baseline, metric, campaign)
    elif not rows["ratio"].notna().any():
        yield "has no ratio"
    if slow := _ends(rows[rows["p95_low"].notna()].to_dict("records"), "p95_ratio", "p95", len(rows) > 1):
        yield f"its 95th percentile by {slow}"
    if sent := rows[rows["more_bytes_low"].notna()].to_dict("records"):
        yield f"the bytes sent by {_bytes(sent, len(rows) > 1)}"


def _effect(
    rows: list[dict[Any, Any]], several: bool, baseline: str, metric: Metric, campaign: CampaignInfo
) -> str:
    averages = "/".join(sorted({row["average"] for row in rows}))
    over = f"{averages} over the networks" if len(campaign.points) > 1 else ""
    changes = _ends(rows, "ratio", "ratio", several, metric)
    words, within = metric.words or metric.name, ""
    if campaign.engine == "field":
        within = "geometric mean within blocks"
    else:
        words = statistic_of(campaign.statistic, words)
    means = ", ".join(filter(None, [within, over]))
    return f"changes the {words} of {baseline} by {changes}{f' ({means})' if means else ''}"


def statistic_of(statistic: str, words: str) -> str:
    """Return a statistic of a metric by its words, which may begin with it: "mean of the mean bit rate"."""
    return f"{statistic} of the {words}" if words.startswith(f"{statistic} ") else f"{statistic} {words}"


def _ends(
    rows: list[dict[Any, Any]], name: str, interval: str, several: bool, metric: Metric | None = None
) -> str:
    """Return a ratio as a change, of the best workload and of the worst; "" without one."""
    if not rows:
        return ""
    rows = sorted(rows, key=lambda row: row[name])
    ends = rows[:1] if len(rows) == 1 else [rows[0], rows[-1]]
    return " to ".join(
        change_text(row[name], row[f"{interval}_low"], row[f"{interval}_high"])
        + (saved_text(row, metric) if metric else "")
        + (f" ({row['name']})" if several else "")
        for row in ends
    )


def saved_text(row: Mapping[Any, Any], metric: Metric) -> str:
    """Return the time saved with its interval: ", 54 ms [34, 74] less"; "" for what is no time, or without an
    interval."""
    if not metric.is_time or math.isnan(row["saved_low"]):
        return ""
    value, low, high = row["saved"], row["saved_low"], row["saved_high"]
    if value < 0:
        return f", {difference(-value, -high, -low, metric.unit)} more"
    return f", {difference(value, low, high, metric.unit)} less"


def _bytes(rows: list[dict[Any, Any]], several: bool) -> str:
    rows = sorted(rows, key=lambda row: row["more_bytes"])
    ends = rows[:1] if len(rows) == 1 else [rows[0], rows[-1]]
    return " to ".join(
        change_text(*(1 + row[f"more_bytes{end}"] for end in ("", "_low", "_high")))
        + (f" ({row['name']})" if several else "")
        for row in ends
    )


def _counts(rows: pd.DataFrame) -> str:
    helps, harms, equivalent, undecided = (int(rows[name].sum()) for name in comparison.COUNTS)
    cases = _cases(int(rows["points"].sum()), rows)
    if not rows["by_chance"].sum():
        return f"is undecided in all {cases}: {why_undecided(rows['statistic'].iloc[0])}"
    return (
        f"helps in {helps} of {cases} by more than {margin_text(rows['margin'])}, harms in {harms}, makes no"
        f" difference in {equivalent}, and is undecided in {undecided}"
    )


def _cases(count: int, rows: pd.DataFrame) -> str:
    """Return how many networks or cases were compared, and of how many planned ones."""
    planned = int(rows["planned_points"].sum())
    what = counted(count, "network" if len(rows) == 1 else "case")
    return f"{what} (of {planned:,} planned)" if count < planned else what


def margin_text(margins: pd.Series) -> str:
    """The margins of workloads, as a range where they differ: "2 to 4 %"."""
    least, most = float(margins.min()), float(margins.max())
    return percent(most) if least == most else f"{percent(least).removesuffix(' %')} to {percent(most)}"
