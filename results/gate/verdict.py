"""The verdict on a new build: one of four, of intervals and a margin alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from fecbench.results.analysis import tolerances
from fecbench.results.gate.overall import Measured, Ratio
from fecbench.results.store.records import CampaignInfo

Verdict = Literal["faster", "slower", "no difference that matters", "undecided"]


def margin_of(campaign: CampaignInfo) -> float:
    """The least difference over all networks that is named: the design's, and no less than virtual time
    vouches for."""
    return max(campaign.margin, tolerances.OVERALL if campaign.engine == "virtual" else 0.0)


def verdict_of(measured: Measured, margin: float) -> Verdict:
    """What the intervals say.

    A harm comes first: who is slower in one workload is slower, whatever it gains elsewhere.
    """
    ratios = (measured.overall, *measured.workloads.values())
    if slower(ratios, margin):
        return "slower"
    if measured.overall.high <= 1 + margin:
        if faster(ratios, margin):
            return "faster"
        if measured.overall.low >= 1 / (1 + margin):
            return "no difference that matters"
    return "undecided"


def is_settled(measured: Measured, margin: float) -> bool:
    """Whether it need not go on: the builds differ, or they are surely equal in each workload, too.

    While a workload is open, the overall ratio may hide that it is slower.
    """
    verdict = verdict_of(measured, margin)
    if verdict != "no difference that matters":
        return verdict != "undecided"
    within = (
        1 / (1 + margin) <= ratio.low and ratio.high <= 1 + margin for ratio in measured.workloads.values()
    )
    return all(within)


def slower(ratios: Iterable[Ratio], margin: float) -> list[Ratio]:
    """Those whose whole interval is above the margin."""
    return [ratio for ratio in ratios if ratio.low > 1 + margin]


def faster(ratios: Iterable[Ratio], margin: float) -> list[Ratio]:
    """Those whose whole interval is below the margin."""
    return [ratio for ratio in ratios if ratio.high < 1 / (1 + margin)]
