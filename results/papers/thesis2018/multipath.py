"""Figures 5.24 to 5.31 of Michel's thesis, messages over one path and over two, and its claims about them.

With homogeneous paths, a factor such as `loss.r` holds on both; with heterogeneous ones, each path has its
own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fecbench.quantities import counted
from fecbench.results import metrics
from fecbench.results.figures.nothing import NothingToDraw
from fecbench.results.figures.sheet import heading
from fecbench.results.figures.style import looks, new_figure, style, to_ends, wide
from fecbench.results.figures.ticks import plain_ticks
from fecbench.results.papers.claim import Claim, Estimate, Share
from fecbench.results.papers.forms import claim_of_none, ours
from fecbench.results.papers.thesis2018.arms import (
    REBUFFERING,
    RECEIVED,
    Arm,
    at_points,
    is_known,
    ratios,
    variant_of,
)
from fecbench.results.papers.thesis2018.claims import claim_of_more, median_ratio_of
from fecbench.results.papers.thesis2018.figures import of_metric, of_ratio
from fecbench.results.store.records import CampaignInfo

_arm = partial(Arm, implementation="noq-fec", scheme="rs", n=30)
SINGLE_PATH = _arm("single path", options=(("paths", 1),))
ROUND_ROBIN = _arm("round robin", options=(("paths", 2), ("scheduler", "round-robin")))
HIGHRB = _arm("HIGHRB", options=(("paths", 2), ("scheduler", "highrb")))
ALL = (SINGLE_PATH, ROUND_ROBIN, HIGHRB)

_MUCH, _MORE = 1.001, "0.1 %"  # §5.9.1.1
_HIGH_R, _LOW_R, _LOW_P = 0.3, 0.1, 0.0025
"""r ≥ 0.3 is the thesis' (§5.9.1.1); what "low" is, of a range of 0.025 to 0.5 and of 0 to 0.01, is ours."""
_SHORT_BURST, _LONG_BURST = 4, 8
"""Our bounds, in packets: a message has 8, and of a burst of 8 two paths in turn make 16."""
_LOW_OWD_MS = 15.0  # §5.9.3
_APART_MS = 70.0  # §5.9.4
_STRONGLY = 0.15
"""Our bound: by so much one r is "strongly larger" than another (§5.9.2 has 0.15 and 0.19)."""
_OF_A_NUMBER = 0.5
"""Our share of a difference of factors that the thesis gives in numbers: at least so much of it."""
_ALIKE = 0.01
"""Our bound: "quite similarly" is a median ratio that differs by less from 1."""


def claims_of_fig5_25(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§5.9.1.1."""
    table = at_points(frame, campaign, RECEIVED, [SINGLE_PATH, ROUND_ROBIN])
    better = table[SINGLE_PATH.name] > _MUCH * table[ROUND_ROBIN.name]
    low = (table["loss.r"] <= _LOW_R) & (table["loss.p"] <= _LOW_P)
    elsewhere = better & (table["loss.r"] < _HIGH_R) & ~low
    is_known_there = is_known(table, SINGLE_PATH, ROUND_ROBIN)
    text = f"points at which single path receives {_MORE} more, r is below {_HIGH_R}, and r or p is not low"
    paper = "“is often higher in the multipath case” (§5.9.1.1, Fig. 5.25)"
    return [
        claim_of_more(table, ROUND_ROBIN, SINGLE_PATH, paper, campaign, what="receives more"),
        claim_of_none(text, "none, “for all the cases” (§5.9.1.1)", Share.of(elsewhere, is_known_there)),
    ]


def claims_of_fig5_26(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§5.9.1.1."""
    table = at_points(frame, campaign, REBUFFERING, [SINGLE_PATH, ROUND_ROBIN])
    burst = 1 / table["loss.r"]
    short, long = table[burst <= _SHORT_BURST], table[burst >= _LONG_BURST]
    source = "(§5.9.1.1, Fig. 5.26)"
    where = " where bursts have {} packets or {} on average"
    return [
        claim_of_more(
            short,
            SINGLE_PATH,
            ROUND_ROBIN,
            f"“smaller … when the mean loss burst is short” {source}",
            campaign,
            where.format(_SHORT_BURST, "fewer"),
        ),
        claim_of_more(
            long,
            ROUND_ROBIN,
            SINGLE_PATH,
            f"“higher … when the mean loss burst is long” {source}",
            campaign,
            where.format(_LONG_BURST, "more"),
        ),
    ]


def claims_of_fig5_27(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§5.9.2."""
    table = at_points(frame, campaign, RECEIVED, [SINGLE_PATH, ROUND_ROBIN])
    claims = []
    for better, worse, first, second, of_p, of_r in (
        (ROUND_ROBIN, SINGLE_PATH, 1, 2, 0.0018, 0.19),
        (SINGLE_PATH, ROUND_ROBIN, 2, 1, 0.0019, 0.15),
    ):
        where = table[table[better.name] > table[worse.name]]
        for name, more, less, least in (("p", first, second, of_p), ("r", second, first, of_r)):
            difference = _mean(where[f"path{more}.loss.{name}"] - where[f"path{less}.loss.{name}"])
            claims.append(
                Claim(
                    f"{name} of path {more} less that of path {less}, mean where {better.name} receives more",
                    f"by “{least:g} … on average” (§5.9.2, Fig. 5.27)",
                    f"{difference:.4f}",
                    holds=difference.above(_OF_A_NUMBER * least),
                    in_direction=difference.above(0),
                    size=f"above {_OF_A_NUMBER * least:g}, {_OF_A_NUMBER:.0%} of it".replace("%", " %"),
                    ours=ours(difference.value, ".4f"),
                )
            )
    return claims


def claims_of_fig5_28(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§5.9.3."""
    table = at_points(frame, campaign, RECEIVED, [ROUND_ROBIN, HIGHRB])
    alike = median_ratio_of(ratios(table, RECEIVED, ROUND_ROBIN, HIGHRB))
    least, most = 1 - _ALIKE, 1 + _ALIKE
    return [
        Claim(
            "data received by round robin divided by that by HIGHRB, median over points",
            "“quite similarly” (§5.9.3, Fig. 5.28)",
            f"{alike:.4f}",
            holds=alike.within(least, most),
            size=f"{least:g} to {most:g}",
            ours=ours(alike.value, ".4f"),
        )
    ]


def claims_of_fig5_29(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§5.9.3."""
    table = at_points(frame, campaign, RECEIVED, [ROUND_ROBIN, HIGHRB])
    low = table[table["owd_ms"] <= _LOW_OWD_MS]
    share = Share.of(low[ROUND_ROBIN.name] > low[HIGHRB.name], is_known(low, ROUND_ROBIN, HIGHRB))
    text = f"points with a delay of at most {_LOW_OWD_MS:g} ms at which round robin receives more than HIGHRB"
    return [claim_of_none(text, "“never won a test” (§5.9.3, Fig. 5.29)", share)]


def claims_of_fig5_30(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§5.9.3."""
    table = at_points(frame, campaign, RECEIVED, ALL)
    paper = "“seems to outperform both” (§5.9.3, Fig. 5.30)"
    worse = table[table[SINGLE_PATH.name] > _MUCH * table[HIGHRB.name]]
    larger = _mean(worse["path1.loss.r"] - worse["path2.loss.r"])
    return [
        claim_of_more(table, HIGHRB, SINGLE_PATH, paper, campaign, what="receives more"),
        claim_of_more(table, HIGHRB, ROUND_ROBIN, paper, campaign, what="receives more"),
        Claim(
            f"r of path 1 less that of path 2, mean where single path receives {_MORE} more than HIGHRB",
            "“strongly higher” (§5.9.3)",
            f"{larger:.3f}",
            holds=larger.above(_STRONGLY),
            in_direction=larger.above(0),
            size=f"above {_STRONGLY}",
            ours=ours(larger.value, ".3f"),
        ),
    ]


def claims_of_fig5_31(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§5.9.4."""
    table = at_points(frame, campaign, RECEIVED, ALL)
    apart_ms = (table["path1.owd_ms"] - table["path2.owd_ms"]).abs()
    more_r = table["path1.loss.r"] - table["path2.loss.r"]
    source = "(§5.9.4, Fig. 5.31)"
    often = f"“often performs badly compared to the single-path case” {source}"
    claim = partial(claim_of_more, campaign=campaign, what="receives more")
    return [
        claim(table, HIGHRB, ROUND_ROBIN, f"“seems less perturbed” {source}"),
        claim(
            table[apart_ms > _APART_MS],
            SINGLE_PATH,
            HIGHRB,
            often,
            where=f" where the delays are more than {_APART_MS:g} ms apart",
        ),
        claim(
            table[more_r > _STRONGLY],
            SINGLE_PATH,
            HIGHRB,
            often,
            where=f" where r of path 1 is larger by {_STRONGLY}",
        ),
        claim(
            table[(-more_r > _STRONGLY) & (apart_ms <= _APART_MS)],
            HIGHRB,
            SINGLE_PATH,
            f"“still performs well” {source}",
            where=f" where r of path 2 is larger by {_STRONGLY}, with delays up to {_APART_MS:g} ms apart",
        ),
    ]


def _mean(values: pd.Series) -> Estimate:
    """Return the mean over points of a difference of either sign."""
    return Estimate.of_mean(values, least=-math.inf)


def over_the_delay(frame: pd.DataFrame, campaign: CampaignInfo) -> Figure:
    """Fig. 5.29: round robin's data received divided by HIGHRB's, where they differ, over the delay."""
    table = at_points(frame, campaign, RECEIVED, [ROUND_ROBIN, HIGHRB])
    rows = ratios(table, RECEIVED, ROUND_ROBIN, HIGHRB)
    ratio, clipped = rows["ratio"], to_ends(rows["ratio"])
    if not ratio.notna().any():
        raise NothingToDraw("At no point are both schedulers ok.")
    look = looks(campaign)[variant_of(campaign, HIGHRB)]
    with style():
        figure = new_figure(wide(), 5.2)
        axes = figure.subplots()
        for side, inside in ((~rows["censored"], look.color), (rows["censored"], "white")):
            is_visible = side & ratio.notna() & (ratio != 1)
            axes.scatter(
                table.loc[is_visible, "owd_ms"],
                clipped[is_visible],
                color=inside,
                edgecolor=look.color,
                marker=look.marker,
            )
        axes.axhline(1, color="black", linewidth=1)
        axes.axvline(_LOW_OWD_MS, color="black", linewidth=1, linestyle=":")
        axes.set_xlabel("one-way delay (ms); the dotted line is the thesis' 15 ms")
        axes.set_ylabel(f"{metrics.of(RECEIVED).words}\nround robin / HIGHRB")
        plain_ticks(axes.xaxis)
        equal = int(np.sum(ratio == 1))
        hollow = " · hollow: failed or timed out, beyond the axis" if rows["censored"].any() else ""
        heading(
            figure,
            "At which delays does a scheduler that looks at windows receive more?",
            f"{campaign.heading} · {counted(int(ratio.notna().sum()), 'point')}, equal at {equal}{hollow}",
        )
    return figure


Draw = Callable[[pd.DataFrame, CampaignInfo], Figure]

_TWO = (SINGLE_PATH, ROUND_ROBIN)
fig5_24 = of_metric(RECEIVED, _TWO, "How much data is received over two paths in turn?")
fig5_25 = of_ratio(
    RECEIVED, (SINGLE_PATH,), ROUND_ROBIN, "Is more received over a single path than over two?"
)
fig5_26 = of_metric(REBUFFERING, _TWO, "For how long does the receiver re-buffer, with one path and two?")
fig5_27 = of_metric(RECEIVED, _TWO, "How much data is received when paths differ in losses?")
received_by_schedulers = of_metric(RECEIVED, ALL, "With which scheduler is most received?")
