"""Whether mean ratios of variants to their baselines are the same in virtual time as emulated, to 1 %.

A constant error of a few percent is within the tolerance of single trials, and as large as what some codes
gain. Chance averages out over a sample, so the geometric mean of all its ratios is held to OVERALL. That is
asked of each variant by workload and, where its workloads share a metric, over all of them. A mean agrees
where its whole 95 % interval lies within, and differs where it lies beyond. Each is judged by itself: one
that is truly at the edge is called different in 2.5 % of samples.

Of shares it is not asked: their tolerance is half of what designs decide at.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fecbench.results import metrics
from fecbench.results.analysis import tolerances
from fecbench.results.analysis.criterion import Criterion, Floats, Verdict
from fecbench.results.analysis.crosscheck_questions import mean_within
from fecbench.results.analysis.intervals import LEVEL
from fecbench.results.analysis.pairing import baselines_of
from fecbench.results.analysis.twins import Twins, own_tolerance, ratios, table
from fecbench.results.store.records import CampaignInfo

FEWEST_POOLED = 100
"""The fewest pairs of which a mean agrees: 3 % of all pairs may be such that none is among these (of n, 3
/ n: the rule of three), and where each of them is off by a third, the mean moves by 1 %."""
WITHIN = (-math.log1p(tolerances.OVERALL), math.log1p(tolerances.OVERALL))


@dataclass(frozen=True)
class Pooled:
    """The mean ratio of a variant to its baseline, virtual beside emulated."""

    variant: str
    baseline: str
    workload: str | None
    """None: over all workloads."""
    metric: str
    workloads: int
    """The number of workloads that were pooled."""
    criterion: Criterion

    @property
    def verdict(self) -> Verdict:
        few = self.criterion.n < FEWEST_POOLED and not self.criterion.differs
        return "cannot tell" if few else self.criterion.verdict

    @property
    def more(self) -> int | None:
        """The number of further groups of each workload that would decide: 0 for none, None where no
        number would."""
        if self.verdict != "cannot tell":
            return 0
        if self.criterion.more is None:
            return None
        lacking = max(self.criterion.more, FEWEST_POOLED - self.criterion.n)
        return math.ceil(lacking / self.workloads)

    @property
    def relative(self) -> tuple[float, float, float]:
        """Virtual / emulated - 1: of the mean, and the ends of its interval; NaN for too few."""
        value, low, high = np.expm1([self.criterion.value, *self.criterion.interval])
        return float(value), float(low), float(high)


def of_variants(twins: Sequence[Twins], campaign: CampaignInfo) -> list[Pooled]:
    """Return the pools of each variant that has a baseline: by workload, then over all of them."""
    of_workloads = metrics.of_workloads(campaign)
    ratios_of = {
        workload: dict(_ratios_of_variants(twins, campaign, workload, name))
        for workload, name in of_workloads.items()
        if not metrics.of(name).is_share
    }
    pools: list[Pooled] = []
    for variant, baseline in baselines_of(campaign).items():
        of_variant = {
            workload: ratios[variant] for workload, ratios in ratios_of.items() if variant in ratios
        }
        pools += of_ratios(variant, baseline, of_variant, of_workloads)
    return pools


def _ratios_of_variants(
    twins: Sequence[Twins], campaign: CampaignInfo, workload: str, name: str
) -> Iterator[tuple[str, Floats]]:
    """The logarithms of the ratios, virtual / emulated, of each variant with a workload."""
    of_workload = [pair for pair in twins if pair.key.workload == workload]
    values = table(of_workload, name, *own_tolerance(metrics.of(name)))
    for variant, baseline in baselines_of(campaign).items():
        arm, of_baseline = (values[values["variant"] == label] for label in (variant, baseline))
        rows = ratios(arm, of_baseline, tolerances.OTHER, is_share=False)
        if len(rows):
            yield variant, rows["y"].to_numpy(np.float64)


def of_ratios(
    variant: str, baseline: str, of_workload: dict[str, Floats], of_workloads: dict[str, str]
) -> Iterator[Pooled]:
    """Yield the pools of a variant: by workload, then over all of them. `of_workload` has the logarithms
    of its ratios, virtual / emulated, `of_workloads` the metric that each workload compares."""
    compared = {of_workloads[workload] for workload in of_workload}
    questions: list[tuple[str | None, str, int, Floats]] = [
        (workload, of_workloads[workload], 1, y) for workload, y in of_workload.items()
    ]
    if len(of_workload) > 1 and len(compared) == 1:
        questions.append((None, compared.pop(), len(of_workload), np.concatenate(list(of_workload.values()))))
    for workload, metric, count, y in questions:
        answer = mean_within(y, WITHIN)
        differs = answer.p_value <= LEVEL / 2
        yield Pooled(variant, baseline, workload, metric, count, replace(answer, differs=differs))
