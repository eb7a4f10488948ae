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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fecbench.results import metrics
from fecbench.results.analysis import criteria as questions
from fecbench.results.analysis import pooled as means
from fecbench.results.analysis import tolerances
from fecbench.results.analysis.criterion import Criterion, Statistic, Stratum, Verdict
from fecbench.results.analysis.pairing import baselines_of
from fecbench.results.analysis.pooled import Pooled
from fecbench.results.analysis.tolerances import Tolerance
from fecbench.results.analysis.twins import Twins, differences, own_tolerance, ratios, table
from fecbench.results.analysis.units import change
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, StoredTrial, TrialKey

QUANTILES = (0.05, 0.5, 0.95)
COUNTED = ("bytes_sent", "packets_sent")
"""What is compared of an endpoint that sends content, and of the server."""

Floats = NDArray[np.float64]

_OF_TRIALS = ("far", "either")  # statistics that are shares of trials


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

    def of(self, stratum: Stratum, statistic: Statistic) -> Criterion | None:
        """The answer to one question; None where it was not asked."""
        asked = ((each.stratum, each.statistic) for each in self.criteria)
        return next(
            (each for each, key in zip(self.criteria, asked, strict=True) if key == (stratum, statistic)),
            None,
        )

    def shown(self, value: float) -> str:
        """A quantile, or an end of an interval or a tolerance, as a table has it."""
        return change(value, points=metrics.of(self.metric).is_share)

    def relative(self, criterion: Criterion, value: float) -> float:
        """A value of a criterion as a difference, virtual / emulated - 1, where it is one of logarithms."""
        is_logarithm = criterion.statistic not in _OF_TRIALS and not metrics.of(self.metric).is_share
        return float(np.expm1(value)) if is_logarithm else value

    def shown_value(self, criterion: Criterion, value: float) -> str:
        """The same, as a table has it."""
        return (
            change(value)
            if criterion.statistic in _OF_TRIALS
            else self.shown(self.relative(criterion, value))
        )


@dataclass(frozen=True)
class Agreement:
    """What a crosscheck found."""

    campaign: str
    """In virtual time."""
    sample: str
    """The campaign that was emulated."""
    share: float
    """Of the groups, that was to be emulated."""
    arms: tuple[str, ...]
    """The labels of the variants that were to be emulated; none: all."""
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
    pooled: list[Pooled]
    """The mean ratios of variants to their baselines, to 1 %."""

    @property
    def verdict(self) -> Verdict:
        """That of all comparisons together: one that differs is enough, most must be able to tell, and all
        mean ratios must agree to 1 %."""
        if self.other_losses or self.other_states or self.count("differs") or self.of_pooled("differs"):
            return "differs"
        to_one_percent = len(self.of_pooled("agrees")) == len(self.pooled)
        return "agrees" if self.most_agree and to_one_percent else "cannot tell"

    @property
    def most_agree(self) -> bool:
        """Return whether at least half of the comparisons agree."""
        return 2 * self.count("agrees") >= max(len(self.comparisons), 1)

    def of_pooled(self, verdict: Verdict) -> list[Pooled]:
        """The mean ratios that have this verdict."""
        return [each for each in self.pooled if each.verdict == verdict]

    def count(self, verdict: Verdict) -> int:
        """How many comparisons have this verdict."""
        return sum(comparison.verdict == verdict for comparison in self.comparisons)

    @property
    def more(self) -> int | None:
        """How many more groups of each workload would decide; None where none of a number would."""
        return _greatest([comparison.more for comparison in self.comparisons])

    @property
    def more_to_one_percent(self) -> int | None:
        """The same of the mean ratios."""
        return _greatest([each.more for each in self.pooled])


def _greatest(needed: Sequence[int | None]) -> int | None:
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
    arms = _arms(wanted, campaign)
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
        arms=arms,
        groups=len(campaign.points) * campaign.looks[0],
        planned=planned,
        pairs=len(compared),
        left_out={reason: count for reason, count in sorted(reasons.items()) if reason and count > 0},
        other_losses=[pair.key for pair in compared if not pair.virtual.met_the_losses_of(pair.emulated)],
        other_states=[pair.key for pair in compared if not pair.same_outcome],
        is_clocked=any(pair.virtual.clocked_directions for pair in compared),
        met_a_loss=sum(pair.met_a_loss for pair in compared),
        comparisons=list(of_twins([pair for pair in compared if pair.same_outcome], sample, arms)),
        pooled=means.of_variants([pair for pair in compared if pair.same_outcome], sample),
    )


def _arms(wanted: Sequence[Mapping[str, Any]], campaign: CampaignInfo) -> tuple[str, ...]:
    """Return the variants that were asked for at any time, in the order of the design; () for all."""
    asked = {arm for each in wanted for arm in each.get("arms", ())}
    if not all("arms" in each for each in wanted):
        return ()
    return tuple(variant["label"] for variant in campaign.variants if variant["label"] in asked)


def _twin(database: Database, campaign: CampaignInfo, emulated: StoredTrial) -> StoredTrial | None:
    return database.trial_of(campaign.id, emulated.record.key)


def of_twins(
    twins: Sequence[Twins], campaign: CampaignInfo, arms: Sequence[str] = ()
) -> Iterator[Comparison]:
    """Of each workload and variant: its metric, the ratio of that to its baseline, the handshake, and what
    was sent, where endpoints tell it.

    `arms`: the labels of the variants that are compared; none: all.
    """
    baselines, of_workloads = baselines_of(campaign), metrics.of_workloads(campaign)
    short = {each["label"]: tolerances.is_short(each["parameters"]) for each in campaign.workloads}
    for workload, name in of_workloads.items():
        of_workload = [pair for pair in twins if pair.key.workload == workload]
        metric = metrics.of(name)
        own = own_tolerance(metric)
        values = table(of_workload, name, *own)
        whole = [pair for pair in of_workload if pair.are_ok]
        handshakes = table(whole, metrics.HANDSHAKE, tolerances.HANDSHAKE, "value")
        for variant in arms or [variant["label"] for variant in campaign.variants]:
            arm = values[values["variant"] == variant]
            far_either = tolerances.far_either(short=short[workload])
            yield _compared(
                *(variant, workload, name, arm, own[0]), far_either=far_either, has_tail=metric.is_time
            )
            if baseline := baselines.get(variant):
                tolerance = tolerances.of_ratio(is_share=metric.is_share, short=short[workload])
                of_baseline = values[values["variant"] == baseline]
                pairs = ratios(arm, of_baseline, tolerance, is_share=metric.is_share)
                yield _compared(variant, workload, name, pairs, tolerance, baseline, far_either=far_either)
            arm = handshakes[handshakes["variant"] == variant]
            if len(arm):
                yield _compared(variant, workload, metrics.HANDSHAKE, arm, tolerances.HANDSHAKE)
            yield from _of_senders([pair for pair in whole if pair.key.variant == variant], far_either)


def _of_senders(twins: Sequence[Twins], far_either: float) -> Iterator[Comparison]:
    """What endpoints sent, of the trials of one variant with one workload: a simulator that sends everything
    twice may be as fast."""
    for endpoint in sorted({sender for pair in twins for sender in pair.senders}):
        for counted, tolerance in zip(COUNTED, (tolerances.BYTES, tolerances.PACKETS), strict=True):
            name = f"{endpoint}.{counted}"
            if len(rows := table(twins, name, tolerance, "value")):
                key = twins[0].key
                yield _compared(key.variant, key.workload, name, rows, tolerance, far_either=far_either)


def _compared(
    variant: str,
    workload: str,
    metric: str,
    rows: pd.DataFrame,
    tolerance: Tolerance,
    baseline: str | None = None,
    *,
    far_either: float = tolerances.FAR_EITHER_SHARE,
    has_tail: bool = False,
) -> Comparison:
    is_share = metrics.of(metric).is_share
    found = differences(rows, is_share=is_share, far_either=far_either, has_tail=has_tail)
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
