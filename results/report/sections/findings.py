"""The findings: the result of each variant against its baseline, where it helps, and a paper's claims."""

from __future__ import annotations

from typing import Literal, Self

from fecbench.results import metrics
from fecbench.results.analysis import rules
from fecbench.results.papers.claim import Verdict
from fecbench.results.report import evidence
from fecbench.results.report.medians import Medians as FoundMedians
from fecbench.results.report.sections.section import Count, Number, Section, Word


class Metric(Section):
    """A metric that is compared, and its words."""

    name: str
    """The name in frames: "client.dct_s"."""
    title: str
    """The name with its unit: "download completion time (s)"."""
    noun: str
    """The name in a sentence: "the DCT"."""
    ratio: str
    """The name of its ratio: "DCT ratio"."""
    better: Literal["less", "more"] | None
    """The better direction. None: neither is, and less counts as the gain."""
    gain: str
    """The word for a variant whose metric is better than its baseline's: "faster"."""
    harm: str
    """The word for one whose metric is worse: "slower"."""
    time_unit: str
    """The unit of a metric that is a time: "s"; "" for any other."""

    @classmethod
    def of(cls, metric: metrics.Metric) -> Self:
        """Return the words of a metric."""
        return cls(
            name=metric.name,
            title=metric.title,
            noun=metric.noun,
            ratio=metric.ratio,
            better=metric.better,
            gain=metric.comparative.gain,
            harm=metric.comparative.harm,
            time_unit=metric.unit if metric.is_time else "",
        )


class Comparison(Section):
    """The result of a variant against its baseline on a workload, as `show --json` has it."""

    workload: str
    variant: str
    metric: str
    statistic: str
    margin: float
    """The least relative difference that matters on this workload."""
    baseline: str
    points: int
    """The number of points that have a ratio."""
    planned_points: int
    helps: int
    """Points at which the variant is better by more than the margin."""
    harms: int
    """Points at which it is worse by more than the margin."""
    equivalent: int
    """Points at which it makes no difference that matters."""
    undecided: int
    """The other points that have a ratio."""
    median_ratio: Number
    """The median over points."""
    mean_ratio: Number
    """The geometric mean over points."""
    mean_interval: tuple[Number, Number] | None
    """Interval of the mean ratio."""
    tail_ratio: Number
    """95 % of these points have this ratio or a better one."""
    average: str
    """The average over points that `ratio` is: "mean", of a design that asks for means, or "median"."""
    ratio: Number
    """The ratio over points."""
    ratio_interval: tuple[Number, Number] | None
    p95_ratio: Number
    """The same average of the ratios of the 95th percentiles of the repetitions of a point."""
    p95_interval: tuple[Number, Number] | None
    saved: Number
    """The same average of the difference to the baseline, in the metric's unit: above 0, it has less."""
    saved_interval: tuple[Number, Number] | None
    more_bytes: Number
    """The share of bytes that both endpoints send more."""
    more_bytes_interval: tuple[Number, Number] | None
    interval: tuple[Number, Number] | None
    """The interval of the median ratio."""


class Finding(Section):
    """The finding about a variant on a workload. Fields about ratios are None for a variant without a
    baseline."""

    workload: str
    variant: str
    compared_with: str
    """The label of its baseline; "" where there is none."""
    metric: str
    trials: int
    """The number of trials that were run."""
    ok: int
    """The number of them that are ok."""
    whole_groups: int
    """Repetitions in which all variants are ok, failed or timed out."""
    median: Number
    """The median of the metric, in its unit, over whole groups; over several points as the pairs have it."""
    margin: Number
    """The least relative difference that matters on this workload."""
    points: int
    """The number of points that have a ratio."""
    planned_points: int
    compared_points: int
    """The same, with points at which the baseline is 0."""
    faster: Number
    """The share of the compared points at which the variant is better, by however little."""
    helps: Count
    """Points at which the variant is better by more than the margin."""
    harms: Count
    """Points at which it is worse by more than the margin."""
    equivalent: Count
    """Points at which it makes no difference that matters."""
    undecided: Count
    """The other points that have a ratio."""
    helps_discovered: Count
    """Points that remain of `helps` when at most 5 % of the verdicts of a workload may be false."""
    harms_discovered: Count
    """Points that remain of `harms`."""
    by_chance: Number
    """The number of points that would be said to help or harm, at most, if no difference were greater than
    the margin; 0 where no point has an interval."""
    median_ratio: Number
    """The median over points."""
    low: Number
    """The lower end of the interval of the median ratio (`high`: the upper)."""
    high: Number
    mean_ratio: Number
    """The geometric mean over points."""
    mean_low: Number
    """The lower end of the interval of the mean ratio (`mean_high`: the upper)."""
    mean_high: Number
    tail_ratio: Number
    """95 % of these points have this ratio or a better one."""
    average: Word
    """The average over points that `ratio` is: "mean", of a design that asks for means, or "median"."""
    ratio: Number
    """The ratio over points (`ratio_low` and `ratio_high`: the ends of its interval)."""
    ratio_low: Number
    ratio_high: Number
    p95_ratio: Number
    """The same average of the ratios of the 95th percentiles of the repetitions of a point."""
    p95_low: Number
    p95_high: Number
    saved: Number
    """The same average of the difference to the baseline, in the metric's unit: above 0, it has less."""
    saved_low: Number
    saved_high: Number
    more_bytes: Number
    """The share of bytes that both endpoints send more."""
    more_bytes_low: Number
    more_bytes_high: Number


class Medians(Section):
    """The median of each metric on a workload, over repetitions in which all variants are ok."""

    workload: str
    groups: int
    """The number of these repetitions."""
    lacking: str
    """The variants that failed or timed out in others, and how often; "" for none."""
    variants: list[str]
    medians: dict[str, list[Number]]
    """The medians by the metric's name, in its unit: one for each of `variants`."""

    @classmethod
    def of(cls, medians: FoundMedians) -> Self:
        """Return those that were computed."""
        return cls(
            workload=medians.workload,
            groups=medians.groups,
            lacking=medians.lacking,
            variants=list(map(str, medians.table.columns)),
            medians={str(name): list(values) for name, *values in medians.table.itertuples(name=None)},
        )


class Rule(Section):
    """The ratio at the points that meet some conditions."""

    text: str
    """The whole rule in a line."""
    conditions: list[str]
    """All hold: "loss.p ≥ 2.1 %"; none: everywhere."""
    ratio: Number
    """The average over these points."""
    low: Number
    """The lower end of its interval (`high`: the upper), wider than one of 0.95, since a tree
    chose the conditions."""
    high: Number
    verdict: str
    """"gain", "harm", "equivalent" or "undecided"."""
    says: str
    """The verdict in words."""
    average: Word
    """The average over points that `ratio` is: "mean" or "median"."""
    points: int
    """The number of points that meet the conditions."""
    ratios: int
    """One a workload and point."""
    planned_ratios: int

    @classmethod
    def of(cls, rule: rules.Rule) -> Self:
        """Return a rule that was rule."""
        return cls(
            text=str(rule),
            conditions=list(rule.conditions),
            ratio=rule.ratio,
            low=rule.low,
            high=rule.high,
            verdict=rule.verdict,
            says=rule.says,
            average=rule.average,
            points=rule.points,
            ratios=rule.ratios,
            planned_ratios=rule.planned_ratios,
        )


class Explained(Section):
    """The networks where a variant helps, by one metric."""

    heading: str
    variant: str
    baseline: str
    metric: str
    """The name of what is compared."""
    everywhere: Rule | None
    """The ratio over all points; None for the reason that the sentence gives."""
    rules: list[Rule]
    """The greatest gain first."""
    sentence: str
    """The finding, or why there is no rule."""

    @classmethod
    def of(cls, result: evidence.Explained) -> Self:
        """Return what was explained."""
        explanation = result.explanation
        return cls(
            heading=result.part.heading(result.variant),
            variant=result.variant,
            baseline=result.baseline,
            metric=result.part.metric.name,
            everywhere=None if explanation is None else Rule.of(explanation.everywhere),
            rules=[] if explanation is None else list(map(Rule.of, explanation.rules)),
            sentence=result.sentence,
        )


class Claim(Section):
    """A claim of a paper, and our measurement of it."""

    text: str
    paper: str
    """The paper's value."""
    measured: str
    """Our measurement, with its interval where there is one."""
    holds: bool | None
    """Whether they agree, in size, too; None where the trials cannot tell."""
    verdict: Verdict
    size: str
    """The size that the paper's words are taken for, beside `ours`; "" where nothing is said of a size."""
    ours: str


class Reproduced(Section):
    """A figure of the paper whose design the campaign ran."""

    number: str
    """The paper's number: "rQUIC 2021, Fig. 5"."""
    claims: list[Claim]
    differences: list[str]
    """Sentences: where our experiment departs from the paper's."""
