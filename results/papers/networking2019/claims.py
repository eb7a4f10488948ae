"""The claims of Networking 2019 about its experimental design (Fig. 6, 7, 9 and 10), judged by our trials.

Judged as `results.papers.claim` says, the paper's words as `results.papers.words` does. A point that tells
nothing widens a share's interval to both sides. Sizes that the design lacks have no claims.
"""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from fecbench.quantities import counted
from fecbench.results.analysis.intervals import ratio_intervals
from fecbench.results.analysis.margins import percent
from fecbench.results.analysis.pairing import paired
from fecbench.results.metrics.units import size
from fecbench.results.papers.claim import Claim, Estimate, beside_stalls
from fecbench.results.papers.forms import (
    claim_of_less,
    claim_of_longer,
    margin_of,
)
from fecbench.results.papers.networking2019.comparisons import (
    DCT,
    LARGE,
    OFF,
    REED_SOLOMON,
    RLC,
    SMALL,
    backgrounds,
    by_point,
    of_size,
    ratios,
    sizes_of,
    variant_with,
)
from fecbench.results.papers.networking2019.judging import (
    claim_of_no_difference,
    claim_of_ratios,
    longer,
    margin_at,
    median_of,
    shorter,
)
from fecbench.results.papers.words import (
    CONSIDERABLY,
    DRASTICALLY,
    MORE,
    MOST,
    SIGNIFICANTLY,
    SizeWord,
)
from fecbench.results.store.records import CampaignInfo

_LOW_R = 0.12  # §IV-C
_HARSH = ["loss.p", "owd_ms"]


def claims_of_fig6(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§IV-B.2.a and b, and what §IV-D and the abstract say of small files."""
    table = ratios(frame, campaign, REED_SOLOMON)
    return [
        *_claims_of_benefit(
            table, campaign, "“the advantage of FEC is visible on small file transfers” (§IV-B.2.b)"
        ),
        *_claims_of_harm(table, campaign, "“performs badly … with the 1MB file” (§IV-B.2.a)"),
        *_claims_of_size(table, campaign),
        *_claims_under_harsh_conditions(table, campaign),
    ]


def _claims_of_benefit(table: pd.DataFrame, campaign: CampaignInfo, paper: str) -> Iterator[Claim]:
    for size_bytes in sizes_of(campaign, SMALL):
        downloads = of_size(table, size_bytes)
        text = f"points at which FEC shortens downloads of {size(size_bytes)}"
        by = MORE.beyond(margin_at(campaign, size_bytes))
        yield claim_of_ratios(text, paper, MOST, downloads, shorter(downloads), by)


def _claims_of_harm(table: pd.DataFrame, campaign: CampaignInfo, paper: str) -> Iterator[Claim]:
    for size_bytes in sizes_of(campaign, [LARGE]):
        downloads = of_size(table, size_bytes)
        text = f"points at which FEC lengthens downloads of {size(size_bytes)}"
        by = MORE.beyond(margin_at(campaign, size_bytes))
        yield claim_of_ratios(text, paper, MOST, downloads, longer(downloads), by)


def _claims_of_size(table: pd.DataFrame, campaign: CampaignInfo) -> Iterator[Claim]:
    """Yield the claims that FEC shortens small files by as much, in the middle of the points."""
    paper = "“considerably reduces the Download Completion Time for small files” (§IV-D)"
    for size_bytes in sizes_of(campaign, SMALL):
        text = f"median over points of the DCT ratio of {size(size_bytes)}"
        yield _claim_of_size(text, paper, CONSIDERABLY, of_size(table, size_bytes), campaign, size_bytes)


def _claims_under_harsh_conditions(table: pd.DataFrame, campaign: CampaignInfo) -> Iterator[Claim]:
    """High and long is what lies in the upper half of the design's points: so the word is ours."""
    paper = (
        "“with high packet loss rates and long delays or smaller files, … drastically reducing” (abstract)"
    )
    is_harsh = (table[_HARSH] >= table.drop_duplicates("point")[_HARSH].median()).all(axis="columns")
    for size_bytes in sizes_of(campaign, SMALL):
        text = (
            f"median over points of the DCT ratio of {size(size_bytes)}, where loss rate and delay are in the"
            " upper half"
        )
        yield _claim_of_size(
            text, paper, DRASTICALLY, of_size(table[is_harsh], size_bytes), campaign, size_bytes
        )


def _claim_of_size(
    text: str, paper: str, word: SizeWord, table: pd.DataFrame, campaign: CampaignInfo, size_bytes: int
) -> Claim:
    median, by = median_of(table), word.beyond(margin_at(campaign, size_bytes))
    return claim_of_less(text, paper, median, by, f"{median:.3f}, {counted(table['ratio'].count(), 'point')}")


def claims_of_fig7(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§IV-B.2.c."""
    table = ratios(frame, campaign, RLC, REED_SOLOMON)
    paper = "“performs significantly better than Reed-Solomon with the 1MB file transfer” (§IV-B.2.c)"
    claims = []
    for size_bytes in sizes_of(campaign, [LARGE]):
        downloads = of_size(table, size_bytes)
        text = f"points at which downloads of {size(size_bytes)} are faster with RLC than with Reed-Solomon"
        by = SIGNIFICANTLY.beyond(margin_at(campaign, size_bytes))
        claims.append(claim_of_ratios(text, paper, MOST, downloads, shorter(downloads), by))
    return claims


def claims_of_fig9(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§IV-B.4, at each point."""
    trials, off = backgrounds(frame, campaign), variant_with(campaign, OFF)
    return [
        _claim_of_fairness(
            of_point, where, off, variant_with(campaign, {"recovered": recovered}), recovered, campaign
        )
        for where, of_point in by_point(trials, campaign)
        for recovered in ("notify", "mask")
    ]


def _claim_of_fairness(
    trials: pd.DataFrame, where: str, off: str, label: str, recovered: str, campaign: CampaignInfo
) -> Claim:
    text = f"DCT without FEC beside {label} divided by that beside {off}, medians"
    text = f"{text}, where {where}" if where else text
    ratio, repetitions = Estimate(), "no repetitions"
    for row in ratio_intervals(paired(trials, off, label, DCT)).to_dict("records"):  # one, or none
        ratio = Estimate(row["ratio"], row["low"], row["high"])
        repetitions = counted(row["pairs"], "repetition")
    if recovered == "notify":
        claim = claim_of_no_difference(text, "“no difference” (§IV-B.4, Fig. 9)", ratio, repetitions)
        return beside_stalls(claim, trials, off, label)
    by = MORE.beyond(margin_of(campaign, statistic="median"))
    return claim_of_longer(
        text, "“takes generally longer” (§IV-B.4, Fig. 9)", ratio, by, f"{ratio:.2f}, {repetitions}"
    )


def claims_of_fig10(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§IV-C, and what §IV-D says of small files."""
    table = ratios(frame, campaign, RLC)
    # Points of low r alone say nothing of Table I as a whole.
    all_low = bool((table["loss.r"] <= _LOW_R).all())
    claims = [] if all_low else list(_claims_under_bursts(table, campaign))
    for size_bytes in sizes_of(campaign, SMALL[1:]):
        downloads, by = of_size(table, size_bytes), MORE.beyond(margin_at(campaign, size_bytes))
        low = downloads["loss.r"] <= _LOW_R
        parts = [
            (f"r ≤ {percent(_LOW_R)}", downloads[low], "average “above 1” (§IV-C)", claim_of_longer),
            (f"r > {percent(_LOW_R)}", downloads[~low], "average “below 1” (§IV-C)", claim_of_less),
        ]
        for where, points_of_part, paper, claim_of in parts[:1] if all_low else parts:
            ratio = points_of_part["ratio"].dropna()
            mean = Estimate.of_mean(ratio)
            text = f"mean DCT ratio of {size(size_bytes)} where {where}"
            measured = f"{mean:.2f}, {len(ratio):,} of {counted(len(points_of_part), 'point')}"
            claims.append(claim_of(text, paper, mean, by, measured))
    return claims


def _claims_under_bursts(table: pd.DataFrame, campaign: CampaignInfo) -> Iterator[Claim]:
    yield from _claims_of_benefit(
        table, campaign, "“using FEC has benefits for smaller transfers” (§IV-C, Fig. 10)"
    )
    yield from _claims_of_harm(
        table, campaign, "“the 1MB file transfer suffers from the added redundancy” (§IV-C, Fig. 10)"
    )
    yield from _claims_of_size(table, campaign)
