"""Whether a campaign in virtual time agrees with a sample of it that was emulated.

Each trial of the sample is compared with its twin in virtual time, which had the same endpoints, options,
link and losses. For each variant and workload, that is done with the metric of the workload, its ratio to the
baseline, the handshake, and the bytes and packets of the sender. Each comparison is judged by several
questions (`results.analysis.criteria`), whose answers are held against a tolerance (`tolerances`):

- all intervals lie within: the two agree;
- it is not true that all answers lie within: they differ;
- anything else, and too few trials for an interval: nobody can tell, and it says how many more would.

A test of equality would be of no use. Emulated endpoints take time of a processor and virtual ones do not, so
the two are never equal, and with enough trials such a test finds that out whatever it amounts to.

The losses must be the same: each packet that both trials sent met the same verdict.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fecbench.results import metrics
from fecbench.results.analysis import criteria as questions
from fecbench.results.analysis import tolerances
from fecbench.results.analysis.criteria import Criterion, Stratum, Verdict
from fecbench.results.analysis.intervals import FEWEST
from fecbench.results.analysis.pairing import baselines_of
from fecbench.results.analysis.tolerances import Tolerance
from fecbench.results.analysis.twins import Beside, Twins, differences, ratios, table
from fecbench.results.analysis.units import number
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, StoredTrial, TrialKey

QUANTILES = (0.05, 0.5, 0.95)
COUNTED = ("bytes_sent", "packets_sent")
"""What is compared of an endpoint that sends content, and of the server."""

Floats = NDArray[np.float64]

_MOST_TIMES = 10  # the groups of a design: who needs more of them does not get them


@dataclass(frozen=True)
class Comparison:
    """One metric of one variant with one workload, virtual beside emulated."""

    variant: str
    workload: str
    metric: str
    """As frames name it."""
    baseline: str | None
    """What is compared is the ratio to this variant, of shares the difference; None: the metric itself."""
    n: int
    """How many trials, or pairs of trials, were compared."""
    quantiles: dict[float, float]
    """Of the relative differences, virtual / emulated - 1, of shares of virtual - emulated; NaN for none."""
    interval: tuple[float, float]
    """Of their median; NaN for too few."""
    tolerance: tuple[float, float]
    reason: str
    """Why the tolerance is what it is."""
    criteria: list[Criterion]
    """What was asked: of logarithms of virtual / emulated, of shares of their difference."""

    @property
    def verdict(self) -> Verdict:
        return questions.verdict(self.criteria)

    @property
    def more(self) -> int | None:
        """How many more trials, or pairs, would decide: 0 for none, None where no number would."""
        return questions.more_trials(self.criteria)

    @property
    def what(self) -> str:
        """What is compared, in words."""
        metric = metrics.of(self.metric)
        if metric.is_share:
            shown = f"late of {metric.noun}" if metric.more_is_better else metric.noun
            return shown if self.baseline is None else f"{shown}, less that of {self.baseline}"
        return metric.noun if self.baseline is None else f"{metric.ratio} to {self.baseline}"

    def of(self, stratum: Stratum, statistic: questions.Statistic) -> Criterion | None:
        """The answer to one question; None where it was not asked."""
        asked = ((each.stratum, each.statistic) for each in self.criteria)
        return next(
            (each for each, key in zip(self.criteria, asked, strict=True) if key == (stratum, statistic)),
            None,
        )

    def shown(self, value: float) -> str:
        """A quantile, or an end of an interval or a tolerance, as a table has it."""
        return percent(value, points=metrics.of(self.metric).is_share)

    def relative(self, criterion: Criterion, value: float) -> float:
        """A value of a criterion as a difference, virtual / emulated - 1, where it is one of logarithms."""
        is_logarithm = criterion.statistic != "far" and not metrics.of(self.metric).is_share
        return float(np.expm1(value)) if is_logarithm else value

    def shown_value(self, criterion: Criterion, value: float) -> str:
        """The same, as a table has it."""
        return percent(value) if criterion.statistic == "far" else self.shown(self.relative(criterion, value))


@dataclass(frozen=True)
class Agreement:
    """What a crosscheck found."""

    campaign: str
    """In virtual time."""
    sample: str
    """The campaign that was emulated."""
    share: float
    """Of the groups, that was to be emulated."""
    groups: int
    """How many the campaign in virtual time has of each workload."""
    planned: int
    """Trials of the sample."""
    pairs: int
    """Trials of it that were compared."""
    left_out: dict[str, int]
    """Of the others: how many for which reason."""
    other_losses: list[TrialKey]
    """Trials in which a packet met another verdict, where verdicts follow from packets' numbers."""
    is_clocked: bool
    """Whether losses of some follow from the time instead."""
    other_states: list[TrialKey]
    """Trials that one of the two did not get through, and the other did or timed out in."""
    met_a_loss: int
    """How many of the pairs met a loss."""
    comparisons: list[Comparison]

    @property
    def verdict(self) -> Verdict:
        """That of all comparisons together: one that differs is enough, and most must be able to tell."""
        if self.other_losses or self.other_states or self.count("differs"):
            return "differs"
        return "agrees" if 2 * self.count("agrees") >= max(len(self.comparisons), 1) else "cannot tell"

    def count(self, verdict: Verdict) -> int:
        """How many comparisons have this verdict."""
        return sum(comparison.verdict == verdict for comparison in self.comparisons)

    @property
    def more(self) -> int | None:
        """How many more groups of each workload would decide; None where none of a number would."""
        needed = [comparison.more for comparison in self.comparisons]
        return None if None in needed else max((each for each in needed if each is not None), default=0)


def sample_of(database: Database, campaign: CampaignInfo) -> CampaignInfo | None:
    """The emulated sample of a campaign in virtual time; None where there is none."""
    samples = (other for other in database.campaigns() if other.checked == campaign.name)
    return next((other for other in samples if other.design_text == campaign.design_text), None)


def of_campaign(database: Database, campaign: CampaignInfo) -> Agreement | None:
    """How the campaign in virtual time agrees with its emulated sample; None where it has none."""
    sample = sample_of(database, campaign)
    return None if sample is None else between(database, campaign, sample)


def between(database: Database, campaign: CampaignInfo, sample: CampaignInfo) -> Agreement:
    """How a campaign in virtual time agrees with an emulated sample of it."""
    wanted = [
        asked
        for start in database.starts(sample.id)
        if (asked := start.provenance.get("crosscheck", {})).get("campaign") == campaign.name
    ]
    share, planned = max(((asked["share"], asked["trials"]) for asked in wanted), default=(0.0, 0))
    twins = [
        Twins(virtual.record, emulated.record)
        for emulated in database.trials(sample.id)
        if (virtual := _twin(database, campaign, emulated)) is not None
    ]
    reasons = Counter(pair.left_out for pair in twins)
    compared = [pair for pair in twins if not pair.left_out]
    reasons["not run"] = planned - len(twins)
    return Agreement(
        campaign=campaign.name,
        sample=sample.name,
        share=share,
        groups=len(campaign.points) * campaign.looks[0],
        planned=planned,
        pairs=len(compared),
        left_out={reason: count for reason, count in sorted(reasons.items()) if reason and count > 0},
        other_losses=[pair.key for pair in compared if not pair.virtual.met_the_losses_of(pair.emulated)],
        other_states=[pair.key for pair in compared if not pair.same_outcome],
        is_clocked=any(pair.virtual.clocked_directions for pair in compared),
        met_a_loss=sum(pair.met_a_loss for pair in compared),
        comparisons=list(of_twins([pair for pair in compared if pair.same_outcome], sample)),
    )


def _twin(database: Database, campaign: CampaignInfo, emulated: StoredTrial) -> StoredTrial | None:
    return database.trial_of(campaign.id, emulated.record.key)


def of_twins(twins: Sequence[Twins], campaign: CampaignInfo) -> Iterator[Comparison]:
    """Of each workload and variant: its metric, the ratio of that to its baseline, the handshake, and what
    was sent, where endpoints tell it."""
    baselines, of_workloads = baselines_of(campaign), metrics.of_workloads(campaign)
    short = {each["label"]: tolerances.is_short(each["parameters"]) for each in campaign.workloads}
    for workload, name in of_workloads.items():
        of_workload = [pair for pair in twins if pair.key.workload == workload]
        metric = metrics.of(name)
        own = _own_tolerance(metric)
        values = table(of_workload, name, *own)
        whole = [pair for pair in of_workload if pair.are_ok]
        handshakes = table(whole, metrics.HANDSHAKE, tolerances.HANDSHAKE, "value")
        for variant in (variant["label"] for variant in campaign.variants):
            arm = values[values["variant"] == variant]
            yield _compared(variant, workload, name, arm, own[0])
            if baseline := baselines.get(variant):
                tolerance = tolerances.of_ratio(is_share=metric.is_share, short=short[workload])
                of_baseline = values[values["variant"] == baseline]
                pairs = ratios(arm, of_baseline, tolerance, is_share=metric.is_share)
                yield _compared(variant, workload, name, pairs, tolerance, baseline)
            arm = handshakes[handshakes["variant"] == variant]
            if len(arm):
                yield _compared(variant, workload, metrics.HANDSHAKE, arm, tolerances.HANDSHAKE)
            yield from _of_senders([pair for pair in whole if pair.key.variant == variant])


def _own_tolerance(metric: metrics.Metric) -> tuple[Tolerance, Beside]:
    """That of a metric that a workload compares, and what it is held beside."""
    if metric.is_share:
        return tolerances.SHARE, ""
    return (tolerances.TIME, "rtt") if metric.is_time else (tolerances.OTHER, "")


def _of_senders(twins: Sequence[Twins]) -> Iterator[Comparison]:
    """What endpoints sent, of the trials of one variant with one workload: a simulator that sends everything
    twice may be as fast."""
    for endpoint in sorted({sender for pair in twins for sender in pair.senders}):
        for counted, tolerance in zip(COUNTED, (tolerances.BYTES, tolerances.PACKETS), strict=True):
            name = f"{endpoint}.{counted}"
            if len(rows := table(twins, name, tolerance, "value")):
                yield _compared(twins[0].key.variant, twins[0].key.workload, name, rows, tolerance)


def _compared(
    variant: str,
    workload: str,
    metric: str,
    rows: pd.DataFrame,
    tolerance: Tolerance,
    baseline: str | None = None,
) -> Comparison:
    is_share = metrics.of(metric).is_share
    found = differences(rows, is_share=is_share)
    asked = questions.asked(found)
    median = asked[0]
    as_shown = np.asarray if is_share else np.expm1
    return Comparison(
        variant=variant,
        workload=workload,
        metric=metric,
        baseline=baseline,
        n=len(found.y),
        quantiles={share: float(as_shown(_quantile(found.y, share))) for share in QUANTILES},
        interval=(float(as_shown(median.interval[0])), float(as_shown(median.interval[1]))),
        tolerance=(float(as_shown(median.tolerance[0])), float(as_shown(median.tolerance[1]))),
        reason=tolerance.reason,
        criteria=asked,
    )


def _quantile(values: Floats, share: float) -> float:
    """Of a few values it is one of them, so that it may be infinite; the median is one between two."""
    if not len(values):
        return math.nan
    return float(np.median(values) if share == 0.5 else np.quantile(values, share, method="inverted_cdf"))


def headline(agreement: Agreement) -> str:
    """What a crosscheck found, in a sentence for a person."""
    agree, differ, open_ones = (agreement.count(each) for each in ("agrees", "differs", "cannot tell"))
    in_all = len(agreement.comparisons)
    if agreement.verdict == "differs":
        found = [f"{differ} of {in_all} comparisons differ"] if differ else []
        if agreement.other_losses:
            found.append(f"packets met other losses in {len(agreement.other_losses)} trials")
        if agreement.other_states:
            found.append(f"{len(agreement.other_states)} trials ended otherwise")
        return f"Virtual and emulated differ: {', '.join(found)}."
    if not open_ones:
        return f"No disagreement found: all {in_all} comparisons agree."
    too_small = f"the sample is too small ({_would_decide(agreement)})"
    if agreement.verdict == "cannot tell":
        agreeing = f"{agree} of {in_all} comparisons agree" if in_all else "there is no comparison"
        return f"Cannot tell: {agreeing}, for {open_ones} {too_small}."
    return f"No disagreement found: {agree} of {in_all} comparisons agree, for {open_ones} {too_small}."


def _would_decide(agreement: Agreement) -> str:
    if agreement.more is None:
        return "no number of trials would decide"
    if agreement.more > _MOST_TIMES * agreement.groups:  # as good as on the edge of a tolerance
        return f"{_MOST_TIMES} times the {agreement.groups} groups of the design would not decide"
    return f"{agreement.more} more would decide"


def sentences(agreement: Agreement | None) -> list[str]:
    """What a crosscheck found, for a person; the first tells the verdict. None: there was none."""
    if agreement is None:
        return ["not cross-checked: no sample of it was emulated."]
    found = [f"cross-checked with {agreement.pairs} emulated trials. {headline(agreement)}"]
    if agreement.left_out:
        reasons = ", ".join(f"{count} {reason}" for reason, count in agreement.left_out.items())
        found.append(f"Of {agreement.planned} trials of the sample are not compared: {reasons}.")
    for keys, what in (
        (agreement.other_losses, "Packets met other verdicts in"),
        (agreement.other_states, "One of the two did not get through in"),
    ):
        if keys:
            more = f" and {len(keys) - 1} more" if len(keys) > 1 else ""
            found.append(f"{what} {keys[0]}{more}.")
    if agreement.pairs and not agreement.other_losses:
        same = "met losses by the same clock, which need not be of the same packets,"
        met = same if agreement.is_clocked else "met the same losses"
        found.append(f"Both {met} in all of them; {agreement.met_a_loss} of them met a loss.")
    for verdict in ("differs", "cannot tell"):
        of_verdict = [each for each in agreement.comparisons if each.verdict == verdict]
        found += [_explained(each) for each in of_verdict[:_MOST_EXPLAINED]]
        if len(of_verdict) > _MOST_EXPLAINED:
            found.append(f"So it is with {len(of_verdict) - _MOST_EXPLAINED} more.")
    if agreement.more:
        found.append(_where_from(agreement, agreement.more))
    return found


_MOST_EXPLAINED = 5


def _explained(comparison: Comparison) -> str:
    """Why a comparison does not agree."""
    reasons = [
        each
        for each in comparison.criteria
        if each.verdict == comparison.verdict and (each.differs or each.is_needed)
    ]
    words = "; ".join(_answer(each, comparison) for each in reasons[:2])
    return f"{comparison.variant}, {comparison.workload}, {comparison.what}: {comparison.verdict}: {words}."


def _answer(criterion: Criterion, comparison: Comparison) -> str:
    if criterion.n < FEWEST:
        return f"{criterion.n} trials, and an interval needs {FEWEST}"
    shown = [
        comparison.shown_value(criterion, value)
        for value in (criterion.value, *criterion.interval, *criterion.tolerance)
    ]
    where = {"all": "", "met a loss": " where a packet was lost", "met none": " where none was lost"}
    return (
        f"{_STATISTICS[criterion.statistic]}{where[criterion.stratum]} {shown[0]} ({shown[1]} to {shown[2]}),"
        f" tolerance {shown[3]} to {shown[4]}"
    )


_STATISTICS = {
    "median": "the median",
    "mean": "the mean",
    "far": "trials far too long, less those far too short,",
}


def _where_from(agreement: Agreement, more: int) -> str:
    """How to get so many more groups of each workload."""
    have = max((comparison.n for comparison in agreement.comparisons), default=0)
    if have + more > agreement.groups:
        return f"The design has {agreement.groups} groups of a workload: more repetitions would tell more."
    share = math.ceil(1000 * (have + more) / agreement.groups) / 1000
    return f"--share {share:g} has {more} more groups of each workload."


def percent(share: float, *, points: bool = False) -> str:
    """A relative difference, for a table, or one of shares in percentage points."""
    return "-" if math.isnan(share) else f"{number(100 * share, '+.2f')} {'points' if points else '%'}"
