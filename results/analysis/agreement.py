"""Whether a campaign in virtual time agrees with a sample of it that was emulated.

Each trial of the sample is compared with its twin in virtual time, which had the same endpoints, options,
link and losses. For each variant and workload, that is done with the metric of the workload, its ratio to the
baseline, the handshake, and the bytes and packets of the sender. Each comparison is judged by several
questions (`crosscheck_questions`), whose answers are held against a tolerance (`tolerances`):

- all intervals lie within: the two agree;
- it is not true that all answers lie within: they differ;
- otherwise, or with too few trials for an interval: the verdict is open, and says how many more would decide.

A test of equality would be of no use. Emulated endpoints take time of a processor and virtual ones do not, so
the two are never equal, and with enough trials such a test finds that out whatever it amounts to.

The losses must be the same: each packet that both trials sent met the same verdict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fecbench.results import metrics
from fecbench.results.analysis import crosscheck_questions, tolerances
from fecbench.results.analysis import pooled as means
from fecbench.results.analysis.criterion import Criterion, Statistic, Stratum, Verdict
from fecbench.results.analysis.pairing import baselines_of
from fecbench.results.analysis.pooled import Pooled
from fecbench.results.analysis.tolerances import Tolerance
from fecbench.results.analysis.twins import Twins, differences, own_tolerance, ratios, table
from fecbench.results.metrics.units import change
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, TrialKey

QUANTILES = (0.05, 0.5, 0.95)
COUNTED = ("bytes_sent", "packets_sent")
"""Metrics that are compared of an endpoint that sends content, and of the server."""

Floats = NDArray[np.float64]

_OF_TRIALS = ("far", "either")  # statistics that are shares of trials


@dataclass(frozen=True)
class Comparison:
    """One metric of one variant with one workload, virtual beside emulated."""

    variant: str
    workload: str
    metric: str
    """The metric's name in frames."""
    baseline: str | None
    """The variant to which ratios are compared (of shares: differences); None: the metric itself is
    compared."""
    n: int
    """The number of trials, or pairs of trials, that were compared."""
    quantiles: dict[float, float]
    """Quantiles of the relative differences, virtual / emulated - 1, of shares virtual - emulated; NaN for
    none."""
    interval: tuple[float, float]
    """The interval of their median; NaN for too few."""
    tolerance: tuple[float, float]
    reason: str
    """The reason of the tolerance."""
    criteria: list[Criterion]
    """The questions, about logarithms of virtual / emulated, or about differences of shares."""

    @property
    def verdict(self) -> Verdict:
        return crosscheck_questions.verdict(self.criteria)

    @property
    def more(self) -> int | None:
        """The number of further trials, or pairs, that would decide: 0 for none, None where no number
        would."""
        return crosscheck_questions.more_trials(self.criteria)

    @property
    def what(self) -> str:
        """The compared quantity, in words."""
        metric = metrics.of(self.metric)
        if metric.is_share:
            noun = f"late of {metric.noun}" if metric.more_is_better else metric.noun
            return noun if self.baseline is None else f"{noun}, less that of {self.baseline}"
        return metric.noun if self.baseline is None else f"{metric.ratio} to {self.baseline}"

    def of(self, stratum: Stratum, statistic: Statistic) -> Criterion | None:
        """The answer to one question; None where it was not asked."""
        keys = ((criterion.stratum, criterion.statistic) for criterion in self.criteria)
        return next(
            (
                criterion
                for criterion, key in zip(self.criteria, keys, strict=True)
                if key == (stratum, statistic)
            ),
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
    """The result of a crosscheck."""

    campaign: str
    """The campaign in virtual time."""
    sample: str
    """The campaign that was emulated."""
    share: float
    """The share of the groups that was to be emulated."""
    arms: tuple[str, ...]
    """The labels of the variants that were to be emulated; none: all."""
    groups: int
    """The number of groups that the campaign in virtual time has of each workload."""
    planned: int
    """Trials of the sample."""
    pairs: int
    """Trials of it that were compared."""
    left_out: dict[str, int]
    """The numbers of the other trials, by reason."""
    other_losses: list[TrialKey]
    """Trials in which a packet met another verdict, where verdicts follow from packets' numbers."""
    is_clocked: bool
    """Whether losses of some follow from the time instead."""
    other_states: list[TrialKey]
    """Trials that one of the two did not get through, and the other did or timed out in."""
    met_a_loss: int
    """The number of pairs that met a loss."""
    comparisons: list[Comparison]
    pooled: list[Pooled]
    """The mean ratios of variants to their baselines, to 1 %."""

    @property
    def verdict(self) -> Verdict:
        """The verdict of all comparisons together. A single difference is enough; most must be able to tell,
        and all mean ratios must agree to 1 %."""
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
        return [ratio for ratio in self.pooled if ratio.verdict == verdict]

    def count(self, verdict: Verdict) -> int:
        """Return the number of comparisons with this verdict."""
        return sum(comparison.verdict == verdict for comparison in self.comparisons)

    @property
    def more(self) -> int | None:
        """The number of further groups of each workload that would decide; None where no number would."""
        return _greatest([comparison.more for comparison in self.comparisons])

    @property
    def more_to_one_percent(self) -> int | None:
        """The same of the mean ratios."""
        return _greatest([ratio.more for ratio in self.pooled])


def _greatest(needed: Sequence[int | None]) -> int | None:
    return None if None in needed else max((count for count in needed if count is not None), default=0)


def sample_of(database: Database, campaign: CampaignInfo) -> CampaignInfo | None:
    """The emulated sample of a campaign in virtual time; None where there is none."""
    samples = (other for other in database.campaigns() if other.checked == campaign.name)
    return next((other for other in samples if other.design_text == campaign.design_text), None)


def of_campaign(database: Database, campaign: CampaignInfo) -> Agreement | None:
    """Return the agreement of the campaign in virtual time with its emulated sample; None where it has
    none."""
    sample = sample_of(database, campaign)
    return None if sample is None else between(database, campaign, sample)


def between(database: Database, campaign: CampaignInfo, sample: CampaignInfo) -> Agreement:
    """Return the agreement of a campaign in virtual time with an emulated sample of it."""
    crosschecks = [
        crosscheck
        for start in database.starts(sample.id)
        if (crosscheck := start.provenance.get("crosscheck", {})).get("campaign") == campaign.name
    ]
    share, planned = max(((source["share"], source["trials"]) for source in crosschecks), default=(0.0, 0))
    arms = _arms(crosschecks, campaign)
    emulated = list(database.trials(sample.id))
    virtual = database.trials_of(campaign.id, [stored.record.key for stored in emulated])
    hosts: dict[int | None, str] = {start.id: start.host for start in database.starts(sample.id)}
    twins = [
        Twins(virtual[key].record, stored.record, hosts.get(stored.start_id, ""))
        for stored in emulated
        if (key := stored.record.key) in virtual
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


def of_twins(
    twins: Sequence[Twins], campaign: CampaignInfo, arms: Sequence[str] = ()
) -> Iterator[Comparison]:
    """Yield the comparisons of each workload and variant: its metric, the ratio of that to its baseline,
    the handshake, and the traffic that was sent, where endpoints report it.

    `arms`: the labels of the variants that are compared; none: all.
    """
    baselines, of_workloads = baselines_of(campaign), metrics.of_workloads(campaign)
    short = {
        workload_table["label"]: tolerances.is_short(workload_table["parameters"])
        for workload_table in campaign.workloads
    }
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
            if (baseline := baselines.get(variant)) and not values["below_zero"].any():
                tolerance = tolerances.of_ratio(is_share=metric.is_share, short=short[workload])
                of_baseline = values[values["variant"] == baseline]
                pairs = ratios(arm, of_baseline, tolerance, is_share=metric.is_share)
                yield _compared(variant, workload, name, pairs, tolerance, baseline, far_either=far_either)
            arm = handshakes[handshakes["variant"] == variant]
            if len(arm):
                yield _compared(variant, workload, metrics.HANDSHAKE, arm, tolerances.HANDSHAKE)
            yield from _of_senders([pair for pair in whole if pair.key.variant == variant], far_either)


def _of_senders(twins: Sequence[Twins], far_either: float) -> Iterator[Comparison]:
    """Yield comparisons of the traffic that endpoints sent, over trials of one variant with one workload.
    A simulator that sends everything twice may be as fast."""
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
    differences_of_rows = differences(rows, is_share=is_share, far_either=far_either, has_tail=has_tail)
    criteria = crosscheck_questions.asked(differences_of_rows)
    median = criteria[0]
    as_shown = np.asarray if is_share else np.expm1
    return Comparison(
        variant=variant,
        workload=workload,
        metric=metric,
        baseline=baseline,
        n=len(differences_of_rows.y),
        quantiles={share: float(as_shown(_quantile(differences_of_rows.y, share))) for share in QUANTILES},
        interval=(float(as_shown(median.interval[0])), float(as_shown(median.interval[1]))),
        tolerance=(float(as_shown(median.tolerance[0])), float(as_shown(median.tolerance[1]))),
        reason=tolerance.reason,
        criteria=criteria,
    )


def _quantile(values: Floats, share: float) -> float:
    """Return a quantile. It is one of the values, so that it may be infinite; a median is between
    two."""
    if share == 0.5 or not len(values):
        return crosscheck_questions.median_of(values)
    return float(np.quantile(values, share, method="inverted_cdf"))
