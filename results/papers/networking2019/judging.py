"""The forms of this paper's claims, which are about ratios of completion times, and how each is judged."""

from __future__ import annotations

import pandas as pd

from fecbench.results.analysis.intervals import median_ratio_interval
from fecbench.results.papers.claim import Claim, Estimate, Share
from fecbench.results.papers.forms import (
    Counted,
    are_longer,
    are_shorter,
    claim_of_share,
    margin_of,
    ours,
)
from fecbench.results.papers.words import ShareWord
from fecbench.results.store.records import CampaignInfo

# Ours: a ratio this close to 1 is "no impact", as long as a valid emulated trial may stall for as much.
NEAR_1 = 0.05


def claim_of_ratios(
    text: str, paper: str, word: ShareWord, table: pd.DataFrame, counted: Counted, by: float
) -> Claim:
    """A claim that so many of these ratios are on one side of 1, with their median."""
    median = f"; median of {table['ratio'].count()} ratios {median_of(table):.2f}"
    return claim_of_share(text, paper, word, counted, by, median)


def claim_of_no_difference(text: str, paper: str, ratio: Estimate, units: str) -> Claim:
    least, most = 1 - NEAR_1, 1 + NEAR_1
    return Claim(
        text,
        paper,
        f"{ratio:.3f}, {units}",
        holds=ratio.within(least, most),
        size=f"{least:g} to {most:g}",
        ours=ours(ratio.value, ".3f"),
    )


def margin_at(campaign: CampaignInfo, size_bytes: int) -> float:
    """Return the margin that the engine vouches for in a point's ratio, of downloads of this size."""
    return margin_of(campaign, size_bytes, statistic=campaign.statistic)


def shorter(table: pd.DataFrame) -> Counted:
    """Return, by a margin, the share of ratios in which FEC, or the arm above, is faster."""
    return lambda by: Share.of(are_shorter(table["ratio"], by), table["ratio"].notna())


def longer(table: pd.DataFrame) -> Counted:
    return lambda by: Share.of(are_longer(table["ratio"], by), table["ratio"].notna())


def median_of(table: pd.DataFrame) -> Estimate:
    """Return the median of the ratios; each row is a unit of its own, a point or a loss pattern."""
    rows_with_ratio = table.dropna(subset="ratio")
    return Estimate(*median_ratio_interval(rows_with_ratio, rows_with_ratio.index.to_series()))
