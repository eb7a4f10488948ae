"""The claims of Michel's thesis about messages, judged by our trials.

Judged as `results.papers.claims` says; "most" is more than one half of the points. The numbers of a claim
are the thesis', and tolerances are ours. What no valid trial can contradict is no claim: that reliable QUIC
receives all data (§5.4), since a transfer that lacks any is failed; and that it sends more bytes than UDP
(§5.2), since it sends all data at least once, in packets with longer headers, and timeouts count as more.
"""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from fecbench.results.analysis.intervals import median_interval, median_ratio_interval
from fecbench.results.papers.claims import Claim, Estimate, Share
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
from fecbench.results.store.records import CampaignInfo

Claims = Callable[[pd.DataFrame, CampaignInfo], list[Claim]]

_RARE = 0.10
"""Ours: at most so many points are "none", and all but so many are "always" and "the vast majority"."""
_LOW_R = 0.06  # §5.3
_HIGH_OWD_MS = 45.0  # §5.4.1
_NEAR_UDP = 0.5
"""Ours: "not so far from UDP" is more than half of its re-buffering."""
_NEARLY_NOT_S = 0.1
"""Ours: "nearly not affected" is by three messages at most, of 750."""


def claims_of_fig5_6(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§5.2."""
    table = at_points(frame, campaign, OVERHEAD, [UDP, REED_SOLOMON, RLC])
    claims = []
    for arm in (REED_SOLOMON, RLC):
        median = median_ratio_of(ratios(table, OVERHEAD, arm, UDP))
        text = f"bytes sent with {arm.name} divided by those with UDP, median over points"
        claims.append(Claim(text, "1.5 to 1.6 (§5.2, Fig. 5.6)", f"{median:.3f}", median.within(1.5, 1.6)))
    return claims


def claims_of_fig5_8(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§5.3 and §5.4."""
    table = at_points(frame, campaign, REBUFFERING, [UDP, REED_SOLOMON, RELIABLE])
    high = table[table["owd_ms"] > _HIGH_OWD_MS]
    low = table[table["owd_ms"] <= _HIGH_OWD_MS]
    return [
        claim_of_more(table, UDP, REED_SOLOMON, "§5.3, Fig. 5.8"),
        claim_of_more(table, RELIABLE, REED_SOLOMON, "§5.4, Fig. 5.8"),
        claim_of_more(
            high, RELIABLE, UDP, "§5.4, Fig. 5.8", f" where the delay is above {_HIGH_OWD_MS:g} ms"
        ),
        claim_of_more(
            low, UDP, RELIABLE, "§5.4, Fig. 5.8", f" where the delay is at most {_HIGH_OWD_MS:g} ms"
        ),
    ]


def claims_of_fig5_9(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§5.3."""
    table = at_points(frame, campaign, RECEIVED, [UDP, REED_SOLOMON])
    more = ratios(table, RECEIVED, REED_SOLOMON, UDP)["ratio"]
    high_r = table["loss.r"] > _LOW_R
    less = Share.of(more[high_r] < 1, more[high_r].notna())
    text = f"points with r > {_LOW_R} at which Reed-Solomon receives less than UDP"
    return [
        claim_of_nearly_all(
            "points at which Reed-Solomon receives at least as much as UDP",
            "the vast majority: §5.3, Fig. 5.9",
            Share.of(more >= 1, more.notna()),
        ),
        claim_of_nearly_none(text, "none: §5.3", less),
    ]


def claims_of_fig5_10(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§5.4.1."""
    table = at_points(frame, campaign, REBUFFERING, [RELIABLE, REED_SOLOMON])
    high = table["owd_ms"] > _HIGH_OWD_MS
    claims = []
    for arm, grows in ((RELIABLE, True), (REED_SOLOMON, False)):
        values = table[arm.name]
        above, below = (Estimate.of_mean(values[chosen].dropna()) for chosen in (high, ~high))
        change = above.minus(below)
        text = (
            f"mean re-buffering of {arm.name} at delays above {_HIGH_OWD_MS:g} ms, less that at shorter ones"
        )
        if grows:
            paper, holds = "a lot above 0 (§5.4.1, Fig. 5.10; judged here: above 1 s)", change.above(1)
        else:
            paper, holds = "little (§5.4.1, Fig. 5.10; judged here: below 1 s)", change.below(1)
        claims.append(Claim(text, paper, f"{change:.2f} s", holds))
    return claims


def claims_of_received_by_codes(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§5.5."""
    table = at_points(frame, campaign, RECEIVED, [REED_SOLOMON, XOR])
    return [claim_of_more(table, REED_SOLOMON, XOR, "§5.5", what="receives more")]


def claims_of_uniform_rebuffering(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§5.5.1 and §5.6.1."""
    table = at_points(frame, campaign, REBUFFERING, [RLC, REED_SOLOMON, XOR])
    return [
        claim_of_more(table, XOR, REED_SOLOMON, "§5.5.1, Fig. 5.12"),
        claim_of_more(table, REED_SOLOMON, RLC, "§5.6.1, Fig. 5.12"),
    ]


def claims_of_bursty_rebuffering(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§5.5.2."""
    table = at_points(frame, campaign, REBUFFERING, [REED_SOLOMON, XOR])
    return [claim_of_more(table, XOR, REED_SOLOMON, "§5.5.2, Fig. 5.14")]


def claims_of_fig5_15(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§5.6.2."""
    table = at_points(frame, campaign, RECEIVED, [REED_SOLOMON, RLC])
    return [claim_of_more(table, REED_SOLOMON, RLC, "§5.6.2, Fig. 5.13 and 5.15", what="receives more")]


def claims_of_uniform_low(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§5.7.1."""
    low = at_points(frame, campaign, REBUFFERING_2, [RLC, REED_SOLOMON, UDP])
    usual = at_points(frame, campaign, REBUFFERING, [RLC])
    near = median_ratio_of(ratios(low, REBUFFERING_2, REED_SOLOMON, UDP))
    change = median_of(low[RLC.name] - usual[RLC.name])
    return [
        Claim(
            "re-buffering of Reed-Solomon divided by that of UDP, with a buffer of two messages, median",
            f"not far from 1 (§5.7.1, Fig. 5.17; judged here: above {_NEAR_UDP:g})",
            f"{near:.2f}",
            near.above(_NEAR_UDP),
        ),
        Claim(
            "re-buffering of RLC with a buffer of two messages, less that with four, median over points",
            f"nearly none (§5.7.1, Fig. 5.17; judged here: below {_NEARLY_NOT_S:g} s)",
            f"{change:.3f} s",
            change.below(_NEARLY_NOT_S),
        ),
        claim_of_more(low, REED_SOLOMON, RLC, "§5.7.1, Fig. 5.17"),
    ]


def claims_of_bursty_low(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§5.7.2."""
    low = at_points(frame, campaign, REBUFFERING_2, [RLC, REED_SOLOMON])
    return [claim_of_more(low, REED_SOLOMON, RLC, "§5.7.2, Fig. 5.19")]


def claims_of_fig5_18(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§5.7.2."""
    table = at_points(frame, campaign, RECEIVED_2, [RLC, REED_SOLOMON])
    return [claim_of_more(table, RLC, REED_SOLOMON, "§5.7.2, Fig. 5.18", what="receives more")]


def none_of(_: pd.DataFrame, __: CampaignInfo) -> list[Claim]:
    """Of a figure whose claims stand with another one."""
    return []


def claim_of_more(
    table: pd.DataFrame, more: Arm, less: Arm, source: str, where: str = "", what: str = "re-buffers longer"
) -> Claim:
    """That one arm has more than another at most of the points at which they differ."""
    known = is_known(table, more, less)
    equal_there = known & (table[more.name] == table[less.name])
    has_more = table[more.name] > table[less.name]
    share = Share.of(has_more[~equal_there], known[~equal_there])
    text = f"points at which {more.name} {what} than {less.name}{where}, of those at which they differ"
    equal = int(equal_there.sum())
    measured = f"{share}; equal at {equal}" if equal else str(share)
    return Claim(text, f"most ({source})", measured, share.estimate.above(0.5))


def claim_of_nearly_all(text: str, source: str, share: Share) -> Claim:
    least = f"{1 - _RARE:.0%}".replace("%", " %")
    return Claim(
        text, f"{source} (judged here: at least {least})", str(share), share.estimate.within(1 - _RARE, 1)
    )


def claim_of_nearly_none(text: str, source: str, share: Share, most: float = _RARE) -> Claim:
    """That something is true of no point, or of few."""
    judged = f"{most:.0%}".replace("%", " %")
    return Claim(
        text, f"{source} (judged here: at most {judged})", str(share), share.estimate.within(0, most)
    )


def median_of(values: pd.Series) -> Estimate:
    """Over points."""
    known = values.dropna()
    return Estimate(float(known.median()), *median_interval(known, known.index.to_series()))


def median_ratio_of(rows: pd.DataFrame) -> Estimate:
    """Over points, of `arms.ratios`."""
    known = rows.dropna(subset="ratio")
    return Estimate(*median_ratio_interval(known, known.index.to_series()))
