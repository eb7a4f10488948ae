"""The verdict on a new build: one of five, of what was measured and a margin alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from fecbench.quantities import counted
from fecbench.results.analysis import tolerances
from fecbench.results.analysis.margins import margins_of, percent
from fecbench.results.gate.failing import NONE, Failed
from fecbench.results.gate.networks import NOWHERE, Slower
from fecbench.results.gate.overall import UNKNOWN, Ratio
from fecbench.results.store.records import CampaignInfo

Verdict = Literal["fails", "slower", "faster", "no difference that matters", "undecided"]
MOST_LOST = 0.05
"""The share of all pairs that may have failed, and so be in no ratio; beyond it, times have no verdict."""


@dataclass(frozen=True)
class Margins:
    """The least differences that are named, as shares."""

    overall: float
    """The margin of ratios over all networks."""
    tail: float
    """The margin of the ratio of 95th percentiles, and of single networks."""


@dataclass(frozen=True)
class Measured:
    """The measurements of a campaign of two builds."""

    overall: Ratio
    """The geometric mean over all networks and workloads."""
    workloads: dict[str, Ratio]
    """Geometric mean of each workload, by label; that of a single workload is the overall one."""
    pairs: int
    """The number of pairs in these ratios."""
    mean: Ratio = UNKNOWN
    """The ratio of the mean times."""
    tail: Ratio = UNKNOWN
    """The ratio of the 95th percentiles."""
    networks: Slower = NOWHERE
    failed: Failed = NONE
    fails: bool = False
    """Whether the new build surely fails where the old one does not."""
    may_fail: bool = False
    """Whether it may do so."""
    lost: float = 0.0
    """The share of pairs whose failing may hide that the new build is slower."""
    unseen: int = 0
    """Networks, each with each workload, without a pair that the harness vouches for."""
    unlike: str = ""
    """The reason why the harness does not vouch for both arms alike, in a clause; "" where it does."""

    @property
    def ratios(self) -> dict[str, Ratio]:
        """The ratios that are held against the margin over all networks, by name."""
        of_mean = {} if math.isnan(self.mean.value) else {"mean times": self.mean}
        return {"all networks": self.overall, **of_mean, **self.workloads}


def margins_for(campaign: CampaignInfo) -> Margins:
    """Return the margins of a campaign: the design's, and no less than virtual time vouches for."""
    vouched = tolerances.OVERALL if campaign.engine == "virtual" else 0.0
    return Margins(max(campaign.margin, vouched), max(margins_of(campaign).values()))


def verdict_of(measured: Measured, margins: Margins) -> Verdict:
    """Return the verdict, in a word.

    A failure comes first, then whatever makes times incomparable. A harm comes before a gain: a build that is
    slower in one workload, in its slowest downloads or in one network is slower, whatever it gains elsewhere.
    No build is faster, or without a difference, while a ratio may be above the margin, or a network has not
    been examined.
    """
    if measured.fails:
        return "fails"
    if next(hindrances(measured), None):
        return "undecided"
    if next(harms(measured, margins), None):
        return "slower"
    if measured.unseen or measured.may_fail or open_ratios(measured, margins):
        return "undecided"
    if faster(measured, margins):
        return "faster"
    ratios = (measured.overall, *measured.workloads.values())
    within = all(1 / (1 + margins.overall) <= ratio.at_least for ratio in ratios)
    return "no difference that matters" if within else "undecided"


def hindrances(measured: Measured) -> Iterator[str]:
    """Yield the reasons why times cannot be compared, each in a clause."""
    failed = measured.failed
    if not measured.pairs and failed.any:
        yield f"no pair is left to compare: of {failed.run}, {failed.both} failed in both builds"
    elif measured.lost > MOST_LOST:
        yield f"{percent(measured.lost)} of the pairs are in no ratio because they failed"
    if measured.unlike:
        yield measured.unlike


def harms(measured: Measured, margins: Margins) -> Iterator[str]:
    """Yield the respects in which the new build is surely slower, each in a clause."""
    for name, ratio in measured.ratios.items():
        if ratio.low > 1 + margins.overall:
            yield f"{name} {shown(ratio)}"
    if measured.tail.low > 1 + margins.tail:
        yield f"95th percentiles {shown(measured.tail)}, by more than {percent(margins.tail)}"
    if count := len(measured.networks.points):
        yield f"surely slower in {counted(count, 'network')}"


def faster(measured: Measured, margins: Margins) -> dict[str, Ratio]:
    """Return the ratios over all networks and of workloads whose whole interval is below the margin."""
    ratios = {"all networks": measured.overall, **measured.workloads}
    return {name: ratio for name, ratio in ratios.items() if ratio.high < 1 / (1 + margins.overall)}


def open_ratios(measured: Measured, margins: Margins) -> dict[str, Ratio]:
    """Return the ratios that may or may not be above the margin."""
    return {
        name: ratio for name, ratio in measured.ratios.items() if not ratio.at_most <= 1 + margins.overall
    }


def is_settled(measured: Measured, margins: Margins, deterministic: bool) -> bool:
    """Return whether a campaign need not go on.

    It stops at a failure and at a harm. It stops at a gain, or at no difference, once no workload is open and
    no network is suspected. It goes on while both builds fail, or while the harness vouches for one arm more
    than for the other. Then it stops only if no pair can be compared and every trial would end in the same
    way.
    """
    verdict = verdict_of(measured, margins)
    if verdict == "undecided":
        return deterministic and not measured.pairs and measured.failed.any > 0
    return verdict in ("fails", "slower") or not measured.networks.suspected


def at_most(ratio: Ratio) -> str:
    """Return the upper end of a ratio, for a person."""
    return "unknown" if math.isnan(ratio.at_most) else f"{ratio.at_most:.3f}"


def shown(ratio: Ratio) -> str:
    """Return a ratio with its interval, for a person."""
    if math.isnan(ratio.value):
        return "unknown"
    interval = "no interval" if math.isnan(ratio.low) else f"{ratio.low:.3f}, {ratio.high:.3f}"
    return f"{ratio.value:.3f} [{interval}]"
