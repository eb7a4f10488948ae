"""The claims of Michel's thesis about messages, judged by our trials.

They are judged as `results.papers.claim` says, and the thesis' words as `results.papers.words` does. The
numbers of a claim are the thesis', and tolerances are ours. A statement that no valid trial can contradict is
no claim: that reliable QUIC receives all data (§5.4), since a transfer that lacks any is failed; and that it
sends more bytes than UDP (§5.2), since it sends all data at least once, in packets with longer headers, and
timeouts count as more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import pandas as pd

from fecbench.results.analysis.intervals import median_interval, median_ratio_interval
from fecbench.results.analysis.margins import percent
from fecbench.results.papers.claim import Claim, Estimate, Share
from fecbench.results.papers.forms import claim_of_longer, claim_of_none, claim_of_share, margin_of, ours
from fecbench.results.papers.thesis2018.arms import (
    OVERHEAD,
    REBUFFERING,
    REBUFFERING_2,
    RECEIVED,
    RECEIVED_2,
    REED_SOLOMON,
    RELIABLE,
    RLC,
    UDP,
    XOR,
    Arm,
    at_points,
    is_known,
    ratios,
)
from fecbench.results.papers.words import (
    DRASTICALLY,
    MORE,
    MOST,
    MUCH,
    SIGNIFICANTLY,
    VAST_MAJORITY,
    SizeWord,
)
from fecbench.results.store.records import CampaignInfo

Claims = Callable[[pd.DataFrame, CampaignInfo], list[Claim]]

_LOW_R = 0.06  # §5.3
_HIGH_OWD_MS = 45.0  # §5.4.1
_NEAR_UDP = 0.5
"""Our bound: "not so far from UDP" is more than half of its re-buffering."""
_LITTLE_S = 1.0
"""Our bound of re-buffering that increases slightly."""
_NEARLY_NOT_S = 0.1
"""Our bound: "nearly not affected" is by three messages at most, of 750."""


def claims_of_fig5_6(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§5.2."""
    table = at_points(frame, campaign, OVERHEAD, [UDP, REED_SOLOMON, RLC])
    claims = []
    for arm in (REED_SOLOMON, RLC):
        median = median_ratio_of(ratios(table, OVERHEAD, arm, UDP))
        claims.append(
            Claim(
                f"bytes sent with {arm.name} divided by those with UDP, median over points",
                "“between 50% and 60% compared to UDP” (§5.2, Fig. 5.6)",
                f"{median:.3f}",
                holds=median.within(1.5, 1.6),
                in_direction=median.above(1),
                size="1.5 to 1.6",
                ours=ours(median.value, ".2f"),
            )
        )
    return claims


def claims_of_fig5_8(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§5.3 and §5.4."""
    table = at_points(frame, campaign, REBUFFERING, [UDP, REED_SOLOMON, RELIABLE])
    high = table[table["owd_ms"] > _HIGH_OWD_MS]
    low = table[table["owd_ms"] <= _HIGH_OWD_MS]
    claim = partial(claim_of_more, campaign=campaign)
    return [
        claim(table, UDP, REED_SOLOMON, "“drastically reduced” (§5.3, Fig. 5.8)", word=DRASTICALLY),
        claim(table, RELIABLE, REED_SOLOMON, "“a lot more re-bufferings” (§5.4, Fig. 5.8)", word=MUCH),
        claim(
            high,
            RELIABLE,
            UDP,
            "“parameters configurations with a high delay” (§5.4, Fig. 5.8)",
            where=f" where the delay is above {_HIGH_OWD_MS:g} ms",
        ),
        claim(
            low,
            UDP,
            RELIABLE,
            "the others (§5.4, Fig. 5.8)",
            where=f" where the delay is at most {_HIGH_OWD_MS:g} ms",
        ),
    ]


def claims_of_fig5_9(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§5.3."""
    table = at_points(frame, campaign, RECEIVED, [UDP, REED_SOLOMON])
    more = ratios(table, RECEIVED, REED_SOLOMON, UDP)
    ratio, median = more["ratio"], median_ratio_of(more)
    high_r = table["loss.r"] > _LOW_R
    less = Share.of(ratio[high_r] < 1, ratio[high_r].notna())
    margin = margin_of(campaign, statistic="median")
    return [
        claim_of_share(
            "points at which Reed-Solomon receives more than UDP",
            "“the vast majority of the ratios is higher than 1” (§5.3, Fig. 5.9)",
            VAST_MAJORITY,
            lambda by: Share.of(ratio > 1 + by, ratio.notna()),
            MORE.beyond(margin),
        ),
        claim_of_longer(
            "data received with Reed-Solomon divided by that with UDP, median over points",
            "“significantly higher” (§5.3)",
            median,
            SIGNIFICANTLY.beyond(margin),
            f"{median:.3f}",
        ),
        claim_of_none(
            f"points with r > {_LOW_R} at which Reed-Solomon receives less than UDP",
            "“always occurs in parameter configurations with r ≤ 0.06” (§5.3)",
            less,
        ),
    ]


def claims_of_fig5_10(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§5.4.1."""
    table = at_points(frame, campaign, REBUFFERING, [RELIABLE, REED_SOLOMON])
    high = table["owd_ms"] > _HIGH_OWD_MS
    claims = []
    for arm, grows in ((RELIABLE, True), (REED_SOLOMON, False)):
        values = table[arm.name]
        above, below = (Estimate.of_mean(values[mask].dropna()) for mask in (high, ~high))
        change = above.minus(below)
        judged = partial(
            Claim,
            f"mean re-buffering of {arm.name} at delays above {_HIGH_OWD_MS:g} ms, less that at shorter ones",
            measured=f"{change:.2f} s; {above:.2f} s above, {below:.2f} s below",
        )
        claims.append(
            judged(
                paper="“increases a lot” (§5.4.1, Fig. 5.10)",
                holds=above.exceeds(below, MUCH.least),
                in_direction=change.above(0),
                size=f"by more than {percent(MUCH.least)}",
                ours=ours(above.value / below.value - 1 if below.value else math.nan, ".0%"),
            )
            if grows
            else judged(
                paper="“slight increase” (§5.4.1, Fig. 5.10)",
                holds=change.below(_LITTLE_S),
                size=f"by less than {_LITTLE_S:g} s",
                ours=f"{ours(change.value, '.2f')} s",
            )
        )
    return claims


def claims_of_received_by_codes(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§5.5."""
    table = at_points(frame, campaign, RECEIVED, [REED_SOLOMON, XOR])
    paper = "XOR “recovers … less data” (§5.5)"
    return [claim_of_more(table, REED_SOLOMON, XOR, paper, campaign, what="receives more")]


def claims_of_uniform_rebuffering(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§5.5.1 and §5.6.1."""
    table = at_points(frame, campaign, REBUFFERING, [RLC, REED_SOLOMON, XOR])
    return [
        claim_of_more(table, XOR, REED_SOLOMON, "“higher … re-buffering time” (§5.5.1, Fig. 5.12)", campaign),
        claim_of_more(table, REED_SOLOMON, RLC, "RLC has “fewer rebufferings” (§5.6.1, Fig. 5.12)", campaign),
    ]


def claims_of_bursty_rebuffering(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§5.5.2."""
    table = at_points(frame, campaign, REBUFFERING, [REED_SOLOMON, XOR])
    return [
        claim_of_more(table, XOR, REED_SOLOMON, "“re-bufferings more often” (§5.5.2, Fig. 5.14)", campaign)
    ]


def claims_of_fig5_15(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§5.6.2."""
    table = at_points(frame, campaign, RECEIVED, [REED_SOLOMON, RLC])
    paper = "“more data in the majority of the cases” (§5.6.2, Fig. 5.13 and 5.15)"
    return [claim_of_more(table, REED_SOLOMON, RLC, paper, campaign, what="receives more")]


def claims_of_uniform_low(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§5.7.1."""
    low = at_points(frame, campaign, REBUFFERING_2, [RLC, REED_SOLOMON, UDP])
    usual = at_points(frame, campaign, REBUFFERING, [RLC])
    near = median_ratio_of(ratios(low, REBUFFERING_2, REED_SOLOMON, UDP))
    change = median_of(low[RLC.name] - usual[RLC.name])
    return [
        Claim(
            "re-buffering of Reed-Solomon divided by that of UDP, with a buffer of two messages, median",
            "“not so far from UDP” (§5.7.1, Fig. 5.17)",
            f"{near:.2f}",
            holds=near.above(_NEAR_UDP),
            size=f"above {_NEAR_UDP:g}",
            ours=ours(near.value, ".2f"),
        ),
        Claim(
            "re-buffering of RLC with a buffer of two messages, less that with four, median over points",
            "“nearly not affected” (§5.7.1, Fig. 5.17)",
            f"{change:.3f} s",
            holds=change.below(_NEARLY_NOT_S),
            size=f"below {_NEARLY_NOT_S:g} s",
            ours=f"{ours(change.value, '.3f')} s",
        ),
        claim_of_more(
            low, REED_SOLOMON, RLC, "“not sufficient for our Reed-Solomon” (§5.7.1, Fig. 5.17)", campaign
        ),
    ]


def claims_of_bursty_low(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§5.7.2."""
    low = at_points(frame, campaign, REBUFFERING_2, [RLC, REED_SOLOMON])
    paper = "RLC has “fewer re-bufferings” (§5.7.2, Fig. 5.19)"
    return [claim_of_more(low, REED_SOLOMON, RLC, paper, campaign)]


def claims_of_fig5_18(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§5.7.2."""
    table = at_points(frame, campaign, RECEIVED_2, [RLC, REED_SOLOMON])
    paper = "RLC recovers “more data” (§5.7.2, Fig. 5.18)"
    return [claim_of_more(table, RLC, REED_SOLOMON, paper, campaign, what="receives more")]


def none_of(_: pd.DataFrame, __: CampaignInfo) -> list[Claim]:
    """Return no claims, for a figure whose claims stand with another one."""
    return []


def claim_of_more(
    table: pd.DataFrame,
    more: Arm,
    less: Arm,
    paper: str,
    campaign: CampaignInfo,
    where: str = "",
    what: str = "re-buffers longer",
    word: SizeWord = MORE,
) -> Claim:
    """Return the claim that one arm has more than another, by as much as the word says, at most of the
    points at which they differ."""
    is_known_there = is_known(table, more, less)
    equal_there = is_known_there & (table[more.name] == table[less.name])
    equal = int(equal_there.sum())
    differing, is_known_there = table[~equal_there], is_known_there[~equal_there]
    return claim_of_share(
        f"points at which {more.name} {what} than {less.name}{where}, of those at which they differ",
        paper,
        MOST,
        lambda by: Share.of(differing[more.name] > (1 + by) * differing[less.name], is_known_there),
        word.beyond(margin_of(campaign, statistic=campaign.statistic)),
        f"; equal at {equal}" if equal else "",
    )


def median_of(values: pd.Series) -> Estimate:
    """Return the median over points."""
    numbers = values.dropna()
    return Estimate(float(numbers.median()), *median_interval(numbers, numbers.index.to_series()))


def median_ratio_of(rows: pd.DataFrame) -> Estimate:
    """Return the median over points of `arms.ratios`."""
    rows_with_ratio = rows.dropna(subset="ratio")
    return Estimate(*median_ratio_interval(rows_with_ratio, rows_with_ratio.index.to_series()))
