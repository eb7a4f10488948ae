"""The claims of Networking 2019 about two aeroplanes (§IV-B.1, Fig. 5), which are about loss patterns."""

from __future__ import annotations

import math
from dataclasses import replace

import pandas as pd

from fecbench.results.analysis.margins import percent
from fecbench.results.metrics.units import size
from fecbench.results.papers.claim import Claim, beside_stalls
from fecbench.results.papers.forms import Counted, claim_of_none, margin_of, ours
from fecbench.results.papers.networking2019.comparisons import (
    OFF,
    RLC,
    SMALL,
    of_size,
    ratios,
    sizes_of,
    variant_with,
)
from fecbench.results.papers.networking2019.judging import (
    NEAR_1,
    claim_of_no_difference,
    claim_of_ratios,
    longer,
    median_of,
    shorter,
)
from fecbench.results.papers.words import MORE, MOST, NOTICEABLY, VAST_MAJORITY
from fecbench.results.store.records import CampaignInfo

# 75 % of the paper's 50 patterns are 37 or 38: these are their exact intervals.
_ABOUT_75 = (0.60, 0.87)
_PATTERN = ["point", "repetition"]
_PAYLOAD_BYTES = 1200
_HANDSHAKE = 5


def claims_of_da2gc(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§IV-B.1.a, Fig. 5 (left)."""
    table = ratios(frame, campaign, RLC, unit="repetition")
    claims = []
    for size_bytes in sizes_of(campaign, SMALL[:1]):
        text = f"loss patterns in which FEC lengthens downloads of {size(size_bytes)}"
        paper = "“only a positive impact or no impact” (§IV-B.1.a)"
        by = f", by more than {percent(NEAR_1)}"
        claims.append(claim_of_none(text, paper, longer(of_size(table, size_bytes))(NEAR_1), by))
    for size_bytes in sizes_of(campaign, SMALL[1:]):
        downloads = of_size(table, size_bytes)
        text = f"loss patterns in which FEC lengthens downloads of {size(size_bytes)}"
        by_size = NOTICEABLY.beyond(_margin(campaign, size_bytes))
        paper = "“clearly deteriorates the DCT in most cases” (§IV-B.1.a)"
        claims.append(claim_of_ratios(text, paper, MOST, downloads, longer(downloads), by_size))
        paper = "beneficial for “25 % of the experiments”, “noticeably deteriorates” the others (Fig. 5)"
        claims.append(_claim_of_about_75(text, paper, downloads, longer(downloads), by_size))
    return claims


def claims_of_mss(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§IV-B.1.b, Fig. 5 (right)."""
    table = ratios(frame, campaign, RLC, unit="repetition")
    claims = []
    for size_bytes in sizes_of(campaign, SMALL):
        downloads = of_size(table, size_bytes)
        by = MORE.beyond(_margin(campaign, size_bytes))
        text = f"loss patterns in which FEC shortens downloads of {size(size_bytes)}"
        paper = "“reduces the total DCT in the vast majority of the smaller files downloads” (§IV-B.1.b)"
        claims.append(claim_of_ratios(text, paper, VAST_MAJORITY, downloads, shorter(downloads), by))
        if size_bytes == SMALL[-1]:
            paper = "“can improve the performances in 75 % of the cases” (Fig. 5)"
            claims.append(_claim_of_about_75(text, paper, downloads, shorter(downloads), by))
    return [*claims, *_claims_of_no_harm(frame, campaign, table)]


def _margin(campaign: CampaignInfo, size_bytes: int) -> float:
    """A loss pattern has one download of each arm, and no mean."""
    return margin_of(campaign, size_bytes, statistic="median")


def _claim_of_about_75(text: str, paper: str, table: pd.DataFrame, counted: Counted, by: float) -> Claim:
    """A claim of the caption of Fig. 5: about as many loss patterns as that."""
    claim = claim_of_ratios(text, paper, MOST, table, counted, by)
    share = counted(by).estimate
    least, most = map(percent, _ABOUT_75)
    words = f"{least} to {most} (75 % of 50), by more than {percent(by)}"
    return replace(claim, holds=share.within(*_ABOUT_75), size=words, ours=ours(share.value, ".0%"))


def _claims_of_no_harm(frame: pd.DataFrame, campaign: CampaignInfo, table: pd.DataFrame) -> list[Claim]:
    """Return the claims about small files when no loss occurs."""
    claims = []
    losses, arms = _drawn_losses(frame), (variant_with(campaign, OFF), variant_with(campaign, RLC))
    for size_bytes in sizes_of(campaign, SMALL[:2]):
        down, up = _packets_of(size_bytes)
        clear = losses[(losses["down"] >= down) & (losses["up"] >= up)].index
        downloads = of_size(table, size_bytes)
        spared = downloads[downloads.set_index(_PATTERN).index.isin(clear)]
        claim = claim_of_no_difference(
            f"median DCT ratio of {size(size_bytes)} in loss patterns that drop none of the first {down}"
            f" packets down and {up} up",
            "“does not deteriorate it when no loss occurs” (Fig. 5)",
            median_of(spared),
            f"{len(spared)} loss patterns",
        )
        of_size_alone = frame[frame["workload"].isin(list(spared["workload"].unique()))]
        claims.append(beside_stalls(claim, of_size_alone, *arms))
    return claims


def _packets_of(size_bytes: int) -> tuple[int, int]:
    """Return the packets, down and up, of a download that loses nothing, as far as its size says before
    any arm runs. They are full packets of the size that every path carries, one acknowledgement for
    every second of them (RFC 9000, §14 and §13.2.2), and a handshake of _HANDSHAKE packets each way."""
    data = math.ceil(size_bytes / _PAYLOAD_BYTES)
    return _HANDSHAKE + data, _HANDSHAKE + math.ceil(data / 2)


def _drawn_losses(frame: pd.DataFrame) -> pd.DataFrame:
    """Return how many packets the drawn losses of a loss pattern let pass before they drop one, `down` and
    `up`.

    One row a (point, repetition). All trials of it have the same seeds, and so the same losses, whatever
    their size and variant: the one that sent most packets tells most of what was drawn. A pattern is chosen
    by that, and not by how an arm fared: patterns in which one was lucky make the other look worse.
    """
    directions = {}
    for direction in ("down", "up"):
        lost, packets = (f"internet.{direction}.{what}" for what in ("first_lost", "packets"))
        if not {lost, packets} <= set(frame.columns):
            return pd.DataFrame(columns=["down", "up"], index=pd.MultiIndex.from_tuples([], names=_PATTERN))
        by_pattern = frame.assign(passed=frame[lost].fillna(frame[packets])).groupby(_PATTERN)
        first_lost = by_pattern[lost].min()
        directions[direction] = first_lost.fillna(by_pattern["passed"].max())
    return pd.DataFrame(directions)
