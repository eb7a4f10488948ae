"""The agreement of a campaign in virtual time with an emulated sample of it."""

from __future__ import annotations

from typing import Self

from fecbench.results import metrics
from fecbench.results.analysis import agreement
from fecbench.results.analysis.criterion import Verdict
from fecbench.results.analysis.pooled import Pooled
from fecbench.results.report.sections.section import Number, Section


class CrosscheckComparison(Section):
    """One metric of a variant on a workload, virtual beside emulated: differences are virtual / emulated - 1,
    of shares virtual - emulated."""

    workload: str
    variant: str
    metric: str
    baseline: str | None
    """The metric's ratio to this variant is compared; None: the metric itself."""
    what: str
    """The compared quantity, in words."""
    of_shares: bool
    """Whether differences are of shares: the page has them in percentage points."""
    n: int
    """Trials, or pairs of trials, that were compared."""
    quantiles: list[Number]
    """Quantiles of the differences, at the shares that the document's `crosscheck` names."""
    interval: tuple[Number, Number]
    """The interval of their median."""
    mean: Number
    """The mean of the differences: a geometric one, but of shares."""
    far: Number
    """The share of trials far above their tolerance, less that of those far below."""
    either: Number
    """The share of trials far above or far below."""
    tail: Number | None
    """The ratio of the 95th percentiles, virtual / emulated - 1; None where it was not asked."""
    tolerance: tuple[Number, Number]
    """The tolerance of the median."""
    verdict: Verdict
    reason: str
    """The reason of the tolerance."""

    @classmethod
    def of(cls, compared: agreement.Comparison) -> Self:
        """Return a comparison that was made."""
        mean, far, either = compared.criteria[1:4]
        tail = compared.of("all", "tail")
        return cls(
            workload=compared.workload,
            variant=compared.variant,
            metric=compared.metric,
            baseline=compared.baseline,
            what=compared.what,
            of_shares=metrics.of(compared.metric).is_share,
            n=compared.n,
            quantiles=[compared.quantiles[share] for share in agreement.QUANTILES],
            interval=compared.interval,
            mean=compared.relative(mean, mean.value),
            far=far.value,
            either=either.value,
            tail=None if tail is None else compared.relative(tail, tail.value),
            tolerance=compared.tolerance,
            verdict=compared.verdict,
            reason=compared.reason,
        )


class MeanRatio(Section):
    """The mean ratio of a variant to its baseline, virtual / emulated - 1, to 1 %."""

    variant: str
    baseline: str
    workload: str | None
    """None: over all workloads."""
    n: int
    value: Number
    interval: tuple[Number, Number]
    verdict: Verdict
    more: int | None
    """The number of further groups of each workload that would decide; None where no number would."""

    @classmethod
    def of(cls, pooled: Pooled) -> Self:
        """Return a mean ratio that was compared."""
        value, low, high = pooled.relative
        return cls(
            variant=pooled.variant,
            baseline=pooled.baseline,
            workload=pooled.workload,
            n=pooled.criterion.n,
            value=value,
            interval=(low, high),
            verdict=pooled.verdict,
            more=pooled.more,
        )


class Crosscheck(Section):
    """The agreement of a campaign in virtual time with an emulated sample of it."""

    sample: str
    """The campaign that was emulated."""
    share: float
    """The share of the groups that was to be emulated."""
    arms: list[str]
    """The variants that were to be emulated; none: all."""
    planned: int
    """Trials of the sample."""
    pairs: int
    """Trials of it that were compared."""
    verdict: Verdict
    quantiles: list[float]
    """The shares at which comparisons have quantiles."""
    comparisons: list[CrosscheckComparison]
    mean_ratios: list[MeanRatio]

    @classmethod
    def of(cls, result: agreement.Agreement) -> Self:
        """Return what a crosscheck found."""
        return cls(
            sample=result.sample,
            share=result.share,
            arms=list(result.arms),
            planned=result.planned,
            pairs=result.pairs,
            verdict=result.verdict,
            quantiles=list(agreement.QUANTILES),
            comparisons=list(map(CrosscheckComparison.of, result.comparisons)),
            mean_ratios=list(map(MeanRatio.of, result.pooled)),
        )
