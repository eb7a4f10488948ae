"""The claims of Networking 2019 about links that lose nothing (§IV-B.3, Fig. 8)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import pandas as pd
import scipy

from fecbench.results.analysis.intervals import FEWEST, LEVEL
from fecbench.results.analysis.margins import percent
from fecbench.results.metrics.units import size
from fecbench.results.papers.claim import Claim, Share, all_hold
from fecbench.results.papers.forms import claim_of_none, claim_of_share, ours
from fecbench.results.papers.networking2019.comparisons import (
    LARGE,
    RLC,
    RLC_4_5,
    SMALL,
    of_size,
    ratios,
    sizes_of,
)
from fecbench.results.papers.networking2019.judging import NEAR_1, longer, margin_at, median_of
from fecbench.results.papers.words import ALWAYS, MORE, MOST
from fecbench.results.store.records import CampaignInfo


def claims_of_fig8(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§IV-B.3."""
    low_rate, high_rate = (ratios(frame, campaign, options) for options in (RLC, RLC_4_5))
    sizes = sizes_of(campaign, (*SMALL, LARGE))
    return [
        _claim_that_nothing_is_helped("2/3", low_rate),
        _claim_that_nothing_is_helped("4/5", high_rate),
        _claim_that_all_is_harmed("2/3", low_rate, campaign, sizes),
        _claim_that_all_is_harmed("4/5", high_rate, campaign, sizes),
        *(_claim_of_bandwidth(of_size(low_rate, size_bytes), campaign, size_bytes) for size_bytes in sizes),
        *_claims_of_code_rates(low_rate, high_rate, campaign, sizes),
    ]


def _claim_that_nothing_is_helped(code_rate: str, table: pd.DataFrame) -> Claim:
    by_point = table.set_index("point")["ratio"]
    helped = (by_point < 1 - NEAR_1).groupby("point").any()
    is_known = helped | by_point.notna().groupby("point").all()
    text = f"points at which a code rate of {code_rate} shortens a download"
    paper = "none, “except for some results due to a slight variance” (§IV-B.3)"
    by = f", by more than {percent(NEAR_1)}"
    return claim_of_none(text, paper, Share.of(helped, is_known), by)


def _claim_that_all_is_harmed(
    code_rate: str, table: pd.DataFrame, campaign: CampaignInfo, sizes: Sequence[int]
) -> Claim:
    """Return the claim about each size, at all points."""
    counted = {size_bytes: longer(of_size(table, size_bytes)) for size_bytes in sizes}
    by = {size_bytes: MORE.beyond(margin_at(campaign, size_bytes)) for size_bytes in sizes}
    harmed = {size_bytes: counted[size_bytes](by[size_bytes]) for size_bytes in sizes}
    bounds = " and ".join(percent(margin) for margin in sorted(set(by.values())))
    return Claim(
        f"points at which a code rate of {code_rate} lengthens downloads, of each size",
        "“using FEC always deteriorates the DCT” (§IV-B.3)",
        "; ".join(
            f"{size(size_bytes)}: {share} by more than {percent(by[size_bytes])}"
            for size_bytes, share in harmed.items()
        ),
        holds=all_hold(lambda level: [ALWAYS.judge(share.at(level)) for share in harmed.values()]),
        in_direction=all_hold(lambda level: [MOST.judge(count(0.0).at(level)) for count in counted.values()]),
        size=f"{ALWAYS.taken_for} of each, by more than {bounds}",
        ours=", ".join(ours(share.estimate.value, ".0%") for share in harmed.values()),
    )


def _claim_of_bandwidth(table: pd.DataFrame, campaign: CampaignInfo, size_bytes: int) -> Claim:
    """Return the claim about bandwidth. Its direction is that of the rank correlation; its size, how much
    greater the ratio is in the middle of the points of little bandwidth than of the others."""
    by = MORE.beyond(margin_at(campaign, size_bytes))
    text = f"bandwidth and DCT ratio of downloads of {size(size_bytes)}: rank correlation, and medians"
    paper = "“further deteriorated … for which the available bandwidth is low” (§IV-B.3)"
    words = f"lower half of the bandwidths longer by more than {percent(by)}"
    table = table.dropna(subset="ratio")
    if len(table) < FEWEST or table["ratio"].nunique() == 1:
        measured = f"none with {table['ratio'].nunique()} ratios"
        return Claim(text, paper, measured, holds=None, in_direction=None, size=words, ours="–")
    correlation = scipy.stats.spearmanr(table["bandwidth_mbps"], table["ratio"])
    value, probability = float(correlation.statistic), float(correlation.pvalue)
    is_narrow = table["bandwidth_mbps"] <= table["bandwidth_mbps"].median()
    narrow, wide = median_of(table[is_narrow]), median_of(table[~is_narrow])
    return Claim(
        text,
        paper,
        f"{value:.2f} (p = {probability:.2g}, {len(table)} points); {narrow:.3f} in the lower half of the"
        f" bandwidths, {wide:.3f} in the upper",
        holds=narrow.exceeds(wide, by),
        in_direction=value < 0 if probability < LEVEL else None,
        size=words,
        ours=ours(narrow.value / wide.value - 1, ".1%"),
    )


def _claims_of_code_rates(
    low_rate: pd.DataFrame, high_rate: pd.DataFrame, campaign: CampaignInfo, sizes: Sequence[int]
) -> Iterator[Claim]:
    both = low_rate.merge(high_rate, on=["size_bytes", "point"], suffixes=("_low", "_high"))
    for size_bytes in sizes:
        low, high = (of_size(both, size_bytes)[f"ratio_{rate}"] for rate in ("low", "high"))
        is_known = low.notna() & high.notna() & ~_both_beyond(low, high)
        equal = int(((low == high) & is_known).sum())

        def harms_less(
            by: float, low: pd.Series = low, high: pd.Series = high, is_known: pd.Series = is_known
        ) -> Share:
            return Share.of(high * (1 + by) < low, is_known)

        yield claim_of_share(
            f"points at which code rate 4/5 harms downloads of {size(size_bytes)} less than 2/3",
            "“increasing the code rate reduces the negative impact” (§IV-B.3, Fig. 8)",
            MOST,
            harms_less,
            MORE.beyond(margin_at(campaign, size_bytes)),
            f"; equal at {equal}" if equal else "",
        )


def _both_beyond(first: pd.Series, second: pd.Series) -> pd.Series:
    """Whether both ratios are 0, or both ∞: which is greater is unknown."""
    return (first == second) & first.isin([0, math.inf])
