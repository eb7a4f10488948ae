"""The forms that claims have, whichever paper makes them, and how each is judged by its size."""

from __future__ import annotations

import math
from collections.abc import Callable

import pandas as pd

from fecbench.results.analysis import tolerances
from fecbench.results.analysis.margins import percent
from fecbench.results.papers.claim import Claim, Estimate, Share, shown
from fecbench.results.papers.words import MORE, MOST, NONE, ShareWord, SizeWord
from fecbench.results.store.records import CampaignInfo

Counted = Callable[[float], Share]
"""The share of units of which something is true by more than so much."""


def margin_of(campaign: CampaignInfo, size_bytes: int | None = None, *, statistic: str) -> float:
    """Return the margin of ratios that the engine of a campaign vouches for, of transfers of one size or
    of anything else."""
    is_short = size_bytes is not None and tolerances.is_short({"size_bytes": size_bytes})
    return tolerances.vouched_by(campaign.engine, short=is_short, statistic=statistic)


def are_shorter(ratio: pd.Series, by: float) -> pd.Series:
    """Return which ratios of times are below 1 by more than this, as `Estimate.shorter`."""
    return ratio < 1 / (1 + by)


def are_longer(ratio: pd.Series, by: float) -> pd.Series:
    """Return which ratios of times are above 1 by more than this."""
    return ratio > 1 + by


def bound_of(ratio: float, margin: float, word: SizeWord = MORE) -> float:
    """Return the ratio of times below which a gain is as great as that of a paper, whose ratio and word
    these are. Numbers within the margin of each other count as equal; so a gain within it, be it
    the paper's, counts as none."""
    return min(ratio * (1 + margin), 1 / (1 + word.beyond(margin)))


def ours(value: float, form: str) -> str:
    """A value of ours beside the paper's size; a dash for none."""
    return "–" if math.isnan(value) else shown(value, form)


def claim_of_share(
    text: str, paper: str, word: ShareWord, counted: Counted, by: float, beside: str = ""
) -> Claim:
    """Return the claim that something is true, by more than `by`, of as many units as the word says; in
    direction, by however little of more than one half."""
    by_size, by_any = counted(by), counted(0.0)
    return Claim(
        text,
        paper,
        f"{by_size} by more than {percent(by)}; {by_any} by however little{beside}",
        holds=word.judge(by_size.estimate),
        in_direction=MOST.judge(by_any.estimate),
        size=f"{word.taken_for}, by more than {percent(by)}",
        ours=ours(by_size.estimate.value, ".0%"),
    )


def claim_of_none(text: str, paper: str, share: Share, by: str = "") -> Claim:
    """Return the claim that something is true of no unit, or of as few as the word allows. It has no
    direction."""
    return Claim(
        text,
        paper,
        str(share),
        holds=NONE.judge(share.estimate),
        size=NONE.taken_for + by,
        ours=ours(share.estimate.value, ".0%"),
    )


def claim_of_less(text: str, paper: str, ratio: Estimate, by: float, measured: str) -> Claim:
    """Return the claim that a ratio of times is below 1 by more than this."""
    return Claim(
        text,
        paper,
        measured,
        holds=ratio.shorter(by),
        in_direction=ratio.shorter(),
        size=f"below {1 / (1 + by):.3g}",
        ours=ours(ratio.value, ".3g"),
    )


def claim_of_longer(text: str, paper: str, ratio: Estimate, by: float, measured: str) -> Claim:
    """Return the claim that a ratio of times is above 1 by more than this."""
    return Claim(
        text,
        paper,
        measured,
        holds=ratio.longer(by),
        in_direction=ratio.longer(),
        size=f"above {1 + by:.3g}",
        ours=ours(ratio.value, ".3g"),
    )
