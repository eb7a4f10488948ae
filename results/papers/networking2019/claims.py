"""The claims of Networking 2019, judged by our trials.

Judged as `results.papers.claims` says; "most" is more than one half of the points (or loss patterns). A point
that tells nothing widens a share's interval to both sides. Sizes that the design lacks have no claims.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import pandas as pd
import scipy

from fecbench.results.analysis.intervals import FEWEST, LEVEL, median_ratio_interval, ratio_intervals
from fecbench.results.analysis.pairing import paired
from fecbench.results.analysis.units import size
from fecbench.results.papers.claims import NOT_MEASURED, Claim, Estimate, Share, beside_stalls, shown
from fecbench.results.papers.networking2019.comparisons import (
    DCT,
    LARGE,
    OFF,
    REED_SOLOMON,
    RLC,
    RLC_4_5,
    SMALL,
    backgrounds,
    by_point,
    of_size,
    ratios,
    sizes_of,
    variant_with,
)
from fecbench.results.store.records import CampaignInfo

# Ours: a ratio this close to 1 is "no impact".
_NEAR_1 = 0.05
# Ours: none of the paper's 50 loss patterns is an interval up to 7 % itself, so finer is not "none".
_RARE = 0.10
# 75 % of the paper's 50 patterns are 37 or 38: these are their exact intervals.
_ABOUT_75 = (0.60, 0.87)
_LOW_R = 0.12  # §IV-C
_PATTERN = ["point", "repetition"]
_PAYLOAD_BYTES = 1200
_HANDSHAKE = 5


def claims_of_da2gc(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§IV-B.1.a, Fig. 5 (left)."""
    table = ratios(frame, campaign, RLC, unit="repetition")
    claims = []
    for size_bytes in sizes_of(campaign, SMALL[:1]):
        longer = f"takes more than {_percent(_NEAR_1)} longer with FEC"
        text = f"loss patterns in which a download of {size(size_bytes)} {longer}"
        ratio = of_size(table, size_bytes)["ratio"]
        claims.append(_claim_of_none(text, "§IV-B.1", Share.of(ratio > 1 + _NEAR_1, ratio.notna())))
    for size_bytes in sizes_of(campaign, SMALL[1:]):
        downloads = of_size(table, size_bytes)
        slower = _slower(downloads)
        text = f"loss patterns in which FEC lengthens downloads of {size(size_bytes)}"
        claims += [_claim_of_most(text, "§IV-B.1", downloads, slower), _claim_of_about_75(text, slower)]
    return claims


def claims_of_mss(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§IV-B.1.b, Fig. 5 (right)."""
    table = ratios(frame, campaign, RLC, unit="repetition")
    claims = []
    for size_bytes in sizes_of(campaign, SMALL):
        downloads = of_size(table, size_bytes)
        text = f"loss patterns in which FEC shortens downloads of {size(size_bytes)}"
        claims.append(_claim_of_most(text, "§IV-B.1", downloads, _faster(downloads)))
        if size_bytes == SMALL[-1]:
            claims.append(_claim_of_about_75(text, _faster(downloads)))
    drawn, arms = _drawn_losses(frame), (variant_with(campaign, OFF), variant_with(campaign, RLC))
    for size_bytes in sizes_of(campaign, SMALL[:2]):
        down, up = _packets_of(size_bytes)
        clear = drawn[(drawn["down"] >= down) & (drawn["up"] >= up)].index
        downloads = of_size(table, size_bytes)
        spared = downloads[downloads.set_index(_PATTERN).index.isin(clear)]
        claim = _claim_of_no_difference(
            f"median DCT ratio of {size(size_bytes)} in loss patterns that drop none of the first {down}"
            f" packets down and {up} up",
            "no harm",
            "Fig. 5, where QUIC lost nothing",
            _median(spared),
            f"{len(spared)} loss patterns",
        )
        of_size_alone = frame[frame["workload"].isin(list(spared["workload"].unique()))]
        claims.append(beside_stalls(claim, of_size_alone, *arms))
    return claims


def _packets_of(size_bytes: int) -> tuple[int, int]:
    """What a download needs that loses nothing, in packets down and up, as far as its size says before any
    arm runs: full packets of the size that every path carries, one acknowledgement for every second of them
    (RFC 9000, §14 and §13.2.2), and a handshake of _HANDSHAKE packets each way."""
    data = math.ceil(size_bytes / _PAYLOAD_BYTES)
    return _HANDSHAKE + data, _HANDSHAKE + math.ceil(data / 2)


def _drawn_losses(frame: pd.DataFrame) -> pd.DataFrame:
    """How many packets the drawn losses of a loss pattern let pass before they drop one, `down` and `up`.

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


def claims_of_fig6(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§IV-B.2.a and b."""
    table = ratios(frame, campaign, REED_SOLOMON)
    return list(_claims_of_small_and_large(table, campaign, "§IV-B.2, Fig. 6"))


def claims_of_fig7(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§IV-B.2.c."""
    table = ratios(frame, campaign, RLC, REED_SOLOMON)
    source = "and significantly, §IV-B.2, Fig. 7; judged here: by however little"
    claims = []
    for size_bytes in sizes_of(campaign, [LARGE]):
        downloads = of_size(table, size_bytes)
        text = f"points at which downloads of {size(size_bytes)} are faster with RLC than with Reed-Solomon"
        claims.append(_claim_of_most(text, source, downloads, _faster(downloads)))
    return claims


def claims_of_fig8(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§IV-B.3."""
    low_rate, high_rate = (ratios(frame, campaign, options) for options in (RLC, RLC_4_5))
    sizes = sizes_of(campaign, (*SMALL, LARGE))
    return [
        _claim_that_nothing_is_helped("2/3", low_rate),
        _claim_that_nothing_is_helped("4/5", high_rate),
        *(_claim_of_bandwidth(of_size(low_rate, size_bytes), size_bytes) for size_bytes in sizes),
        *_claims_of_code_rates(low_rate, high_rate, sizes),
    ]


def _claim_that_nothing_is_helped(code_rate: str, table: pd.DataFrame) -> Claim:
    by_point = table.set_index("point")["ratio"]
    helped = (by_point < 1 - _NEAR_1).groupby("point").any()
    known = helped | by_point.notna().groupby("point").all()
    text = f"points at which a code rate of {code_rate} shortens a download by more than {_percent(_NEAR_1)}"
    return _claim_of_none(text, "but by chance, §IV-B.3", Share.of(helped, known))


def _claim_of_bandwidth(table: pd.DataFrame, size_bytes: int) -> Claim:
    text = f"rank correlation of bandwidth and DCT ratio, downloads of {size(size_bytes)}"
    paper = "negative: FEC harms more where the bandwidth is low (§IV-B.3)"
    table = table.dropna(subset="ratio")
    if len(table) < FEWEST or table["ratio"].nunique() == 1:
        return Claim(text, paper, f"none with {table['ratio'].nunique()} ratios", None)
    correlation = scipy.stats.spearmanr(table["bandwidth_mbps"], table["ratio"])
    value, probability = float(correlation.statistic), float(correlation.pvalue)
    holds = None if not probability < LEVEL else value < 0
    return Claim(text, paper, f"{value:.2f} (p = {probability:.2g}, {len(table)} points)", holds)


def _claims_of_code_rates(
    low_rate: pd.DataFrame, high_rate: pd.DataFrame, sizes: Sequence[int]
) -> Iterator[Claim]:
    both = low_rate.merge(high_rate, on=["size_bytes", "point"], suffixes=("_low", "_high"))
    for size_bytes in sizes:
        low, high = (of_size(both, size_bytes)[f"ratio_{rate}"] for rate in ("low", "high"))
        less = Share.of(high < low, low.notna() & high.notna() & ~_both_beyond(low, high))
        text = f"points at which code rate 4/5 harms downloads of {size(size_bytes)} less than 2/3"
        equal = int(((low == high) & ~_both_beyond(low, high)).sum())
        measured = f"{less}; equal at {equal}" if equal else str(less)
        yield Claim(text, "most (§IV-B.3, Fig. 8)", measured, less.estimate.above(0.5))


def _both_beyond(first: pd.Series, second: pd.Series) -> pd.Series:
    """Whether both ratios are 0, or both ∞: nobody can tell which is greater."""
    return (first == second) & first.isin([0, math.inf])


def claims_of_fig9(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§IV-B.4, at each point."""
    trials, off = backgrounds(frame, campaign), variant_with(campaign, OFF)
    return [
        _claim_of_fairness(of_point, where, off, variant_with(campaign, {"recovered": recovered}), recovered)
        for where, of_point in by_point(trials, campaign)
        for recovered in ("notify", "mask")
    ]


def _claim_of_fairness(trials: pd.DataFrame, where: str, off: str, label: str, recovered: str) -> Claim:
    text = f"DCT without FEC beside {label} divided by that beside {off}, medians"
    text = f"{text}, where {where}" if where else text
    ratio, repetitions = Estimate(), "no repetitions"
    for row in ratio_intervals(paired(trials, off, label, DCT)).to_dict("records"):  # one, or none
        ratio = Estimate(row["ratio"], row["low"], row["high"])
        repetitions = f"{row['pairs']} repetitions"
    if recovered == "notify":
        claim = _claim_of_no_difference(text, "no difference", "§IV-B.4, Fig. 9", ratio, repetitions)
        return beside_stalls(claim, trials, off, label)
    measured = f"{ratio:.2f}, {repetitions}"
    return Claim(text, "generally longer: above 1 (§IV-B.4, Fig. 9)", measured, ratio.above(1))


def claims_of_fig10(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§IV-C."""
    table = ratios(frame, campaign, RLC)
    # Points of low r alone say nothing of Table I as a whole.
    all_low = bool((table["loss.r"] <= _LOW_R).all())
    claims = [] if all_low else list(_claims_of_small_and_large(table, campaign, "§IV-C, Fig. 10"))
    for size_bytes in sizes_of(campaign, SMALL[1:]):
        downloads = of_size(table, size_bytes)
        low = downloads["loss.r"] <= _LOW_R
        parts = [
            (f"r ≤ {_percent(_LOW_R)}", downloads[low], "above 1 (§IV-C)", Estimate.above),
            (f"r > {_percent(_LOW_R)}", downloads[~low], "below 1 (§IV-C)", Estimate.below),
        ]
        for where, chosen, paper, judge in parts[:1] if all_low else parts:
            ratio = chosen["ratio"].dropna()
            mean = Estimate.of_mean(ratio)
            text = f"mean DCT ratio of {size(size_bytes)} where {where}"
            measured = f"{mean:.2f}, {len(ratio)} of {len(chosen)} points"
            claims.append(Claim(text, paper, measured, judge(mean, 1)))
    return claims


def _claims_of_small_and_large(table: pd.DataFrame, campaign: CampaignInfo, source: str) -> Iterator[Claim]:
    for size_bytes in sizes_of(campaign, SMALL):
        downloads = of_size(table, size_bytes)
        text = f"points at which FEC shortens downloads of {size(size_bytes)}"
        yield _claim_of_most(text, source, downloads, _faster(downloads))
    for size_bytes in sizes_of(campaign, [LARGE]):
        downloads = of_size(table, size_bytes)
        text = f"points at which FEC lengthens downloads of {size(size_bytes)}"
        yield _claim_of_most(text, source, downloads, _slower(downloads))


# The forms that claims have, and how each is judged. `source` is the paper's section or figure.


def _claim_of_most(text: str, source: str, table: pd.DataFrame, share: Share) -> Claim:
    """A claim that a majority of these ratios is on one side of 1, with how far they are from it."""
    median = f"median of {table['ratio'].count()} ratios {_median(table):.2f}"
    measured = f"{share}; {median}; {_beyond_noise(table)}"
    return Claim(text, f"most ({source})", measured, share.estimate.above(0.5))


def _claim_of_none(text: str, source: str, share: Share) -> Claim:
    paper = f"none ({source}; judged here: at most {_percent(_RARE)})"
    return Claim(text, paper, str(share), share.estimate.within(0, _RARE))


def _claim_of_about_75(text: str, share: Share) -> Claim:
    """A claim of the caption of Fig. 5."""
    least, most = map(_percent, _ABOUT_75)
    paper = f"75 % (Fig. 5; judged here: {least} to {most}, the interval of the paper's share of 50)"
    return Claim(text, paper, str(share), share.estimate.within(*_ABOUT_75))


def _claim_of_no_difference(text: str, claimed: str, source: str, ratio: Estimate, units: str) -> Claim:
    least, most = 1 - _NEAR_1, 1 + _NEAR_1
    paper = f"{claimed} ({source}; judged here: {least:g} to {most:g})"
    return Claim(text, paper, f"{ratio:.3f}, {units}", ratio.within(least, most))


def _faster(table: pd.DataFrame) -> Share:
    return Share.of(table["faster"] == 1, table["faster"].notna())


def _slower(table: pd.DataFrame) -> Share:
    return Share.of((table["faster"] == 0) & (table["ratio"] != 1), table["faster"].notna())


def _median(table: pd.DataFrame) -> Estimate:
    """Of the ratios; each row is a unit of its own, a point or a loss pattern."""
    known = table.dropna(subset="ratio")
    return Estimate(*median_ratio_interval(known, known.index.to_series()))


def _beyond_noise(table: pd.DataFrame) -> str:
    """How many ratios change by more than noise: without a loss, one is as likely below 1 as above."""
    ratio = table["ratio"].dropna()
    if ratio.empty:
        return NOT_MEASURED
    shorter, longer = (ratio < 1 - _NEAR_1).mean(), (ratio > 1 + _NEAR_1).mean()
    return f"by more than {_percent(_NEAR_1)}: {_percent(shorter)} shorter, {_percent(longer)} longer"


def _percent(share: float) -> str:
    return shown(share, ".0%")
