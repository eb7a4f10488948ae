"""Delays that so many repetitions cannot have seen: they are rarer than one in a few of them.

An interval of a mean is made of the spread of its values. A delay that is in none of them has no part in it,
so a variant that now and then takes many times as long may be called equal, or faster. A median does not see
delays that are in fewer than half of the values, though there are many: "no difference" says nothing of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from fecbench.quantities import counted
from fecbench.results.analysis.intervals import LEVEL
from fecbench.results.analysis.margins import percent
from fecbench.results.analysis.pairing import Pairing
from fecbench.results.analysis.same_losses import may_lose
from fecbench.results.store.records import CampaignInfo


def unseen_share(repetitions: int) -> float:
    """Return the greatest share of downloads that may be delayed without any of so many being so, in 5 of 100
    cases: about 3 / `repetitions` (the "rule of three": Hanley and Lippman-Hand, JAMA 249, 1983)."""
    return float(1 - LEVEL ** (1 / repetitions))


def sentences(pairings: Mapping[str, Pairing], campaign: CampaignInfo) -> list[str]:
    """Return a sentence on delays that the means or medians of a campaign cannot show; none where neither is
    compared, and none on medians where no link of a design loses packets or a network has one value."""
    pairs = [int(pairing.ratios["pairs"].max()) for pairing in pairings.values() if len(pairing.ratios)]
    most = max(pairs, default=0)
    if campaign.statistic == "median" and most > 1 and may_lose(campaign.design_text):
        return [
            "A median does not see what fewer than half of the transfers of a network meet, such as rare"
            " losses: --statistic mean does."
        ]
    if campaign.statistic != "mean" or not pairs:
        return []
    return [
        f"A mean rests on {counted(most, 'pair')} at most, in each network: a delay that less than"
        f" {percent(unseen_share(most))} of the transfers meet may be in none of them, and in no interval."
    ]
