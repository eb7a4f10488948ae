"""Figures 5 to 10 of QUIC-FEC's evaluation, from campaigns of `networking2019-*`, and its claims.

F. Michel, Q. De Coninck, O. Bonaventure: "QUIC-FEC: Bringing the benefits of Forward Erasure Correction to
QUIC", IFIP Networking 2019, §IV.

Shares of points (or of loss patterns) have exact binomial intervals of 95 %; a claim of a majority is
undecided where the interval contains one half.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from textwrap import fill
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from results import frames
from results.claims import Claim, PaperFigure
from results.database import CampaignInfo
from results.figure_style import box, looks, style, title
from results.figures import NothingToDraw, ecdf_panels, size
from results.frames import DCT, Pairing
from results.statistics import FEWEST, LEVEL, median_interval, ratio_intervals

Unit = Literal["point", "repetition"]

OFF: dict[str, Any] = {"scheme": "none"}
RLC: dict[str, Any] = {"scheme": "rlc", "n": 3, "k": 2}
RLC_4_5: dict[str, Any] = {"scheme": "rlc", "n": 5, "k": 4}
REED_SOLOMON: dict[str, Any] = {"scheme": "rs", "n": 30, "k": 20}

SMALL = (1_000, 10_000, 50_000)
LARGE = 1_000_000
_SAME = 0.05  # ours: a ratio this close to 1 is "no impact"
_LOW_R = 0.12  # §IV-C


def variant_with(campaign: CampaignInfo, options: Mapping[str, Any]) -> str:
    """The label of the design's variant with these options. Raises NothingToDraw when there is none."""
    for variant in campaign.variants:
        if options.items() <= variant["options"].items():
            return str(variant["label"])
    wanted = ", ".join(f"{name} = {value}" for name, value in options.items())
    raise NothingToDraw(f"No variant of this design has {wanted}.")


def ratios(
    frame: pd.DataFrame,
    campaign: CampaignInfo,
    options: Mapping[str, Any],
    to: Mapping[str, Any] = OFF,
    unit: Unit = "point",
) -> pd.DataFrame:
    """The DCT ratio of the variant with `options` to that with the options `to`, by size.

    One row a (size_bytes, point), of the medians; or a (size_bytes, point, repetition), for loss patterns.
    Columns: these, `ratio`, and the factors of the point. Empty when nothing can be compared; raises
    NothingToDraw when the design lacks one of the two.
    """
    variant, baseline = (variant_with(campaign, each) for each in (options, to))
    pairing = frames.paired(frame, baseline, variant, DCT, campaign.statistic)
    found = pairing.ratios if unit == "point" else pairing.matched
    sizes = {workload["label"]: workload["parameters"]["size_bytes"] for workload in campaign.workloads}
    found = found.assign(size_bytes=found["workload"].astype(str).map(sizes))
    return found.merge(frames.points(campaign), on="point")


# The options of what is divided, and of what it is divided by.
Panel = tuple[dict[str, Any], dict[str, Any]]


def ecdfs(
    frame: pd.DataFrame, campaign: CampaignInfo, panels: Sequence[Panel], question: str, unit: Unit = "point"
) -> Figure:
    """The ECDF of DCT ratios, a curve a size: all of the paper's figures but the ninth."""
    found = [ratios(frame, campaign, *panel, unit) for panel in panels]
    for each, panel in zip(found, panels, strict=True):
        if each.empty:
            arms = " and ".join(variant_with(campaign, options) for options in panel)
            raise NothingToDraw(f"No repetition is ok for {arms}, so there is no DCT ratio to draw.")
    curves = {
        variant_with(campaign, options): {
            size(int(size_bytes)): _of_size(each, size_bytes)["ratio"]
            for size_bytes in sorted(each["size_bytes"].unique())
        }
        for each, (options, _) in zip(found, panels, strict=True)
    }
    what = "points" if unit == "point" else "loss patterns"
    keys = ["point"] if unit == "point" else ["point", "repetition"]
    counts = " and ".join(str(len(each[keys].drop_duplicates())) for each in found)
    baseline = variant_with(campaign, panels[0][1])  # the same in all panels of a figure
    return ecdf_panels(curves, baseline, campaign, question, f"{campaign.name} · {counts} {what}", what)


def backgrounds(frame: pd.DataFrame, campaign: CampaignInfo) -> pd.DataFrame:
    """The trials in which the foreground has no FEC, each with the background's label as its variant.

    They have one workload, `beside`: so `frames.paired` compares what the foreground met.
    """
    labels = {
        workload["label"]: workload["parameters"]["background"]
        for workload in campaign.workloads
        if workload["name"] == "competing"
    }
    foreground = variant_with(campaign, OFF)
    of_off = frame[(frame["variant"] == foreground) & frame["workload"].isin(list(labels))]
    return of_off.assign(variant=of_off["workload"].astype(str).map(labels), workload="beside")


def fig9_fairness(frame: pd.DataFrame, campaign: CampaignInfo) -> Figure:
    """Fig. 9: DCT without FEC beside a transfer without FEC, with notified, and with masked recovery.

    A panel for each point: the paper has one, and names no queue.
    """
    trials = backgrounds(frame, campaign)
    ok = trials[trials["state"] == "ok"]
    if ok.empty or DCT not in ok:
        raise NothingToDraw("No download without FEC that competed with another is ok.")
    look_of = {label: look for label, look in looks(campaign).items() if label in set(ok["variant"])}
    panels = [(where, of_point) for where, of_point in _by_point(ok, campaign) if not of_point.empty]
    with style():
        figure = Figure(figsize=(1 + 1.9 * len(look_of) * len(panels), 5.4))
        drawn = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
        for axes, (where, of_point) in zip(drawn, panels, strict=True):
            for i, (label, look) in enumerate(look_of.items()):
                box(axes, i, 0.6, of_point.loc[of_point["variant"] == label, DCT].to_numpy(), look)
            names = [
                f"{fill(label, 20)}\n{_share(of_point[of_point['variant'] == label])}" for label in look_of
            ]
            axes.set_xticks(range(len(names)), names)
            axes.grid(False, axis="x")
            axes.set_ylim(bottom=0)
            axes.set_xlabel(
                "background transfer, and the median share\nof the link that the download got beside it"
            )
            title(axes, where or campaign.name, f"{len(of_point)} ok trials")
        drawn[0].set_ylabel("download completion time (s)")
        question = "How long does a download without FEC take beside another transfer?"
        figure.suptitle(question, fontweight="bold", x=0.01, ha="left")
    return figure


def _by_point(trials: pd.DataFrame, campaign: CampaignInfo) -> Iterator[tuple[str, pd.DataFrame]]:
    """The trials of each point, with what sets it apart: "queue_bdp = 0.3", and nothing for the only one."""
    every = frames.points(campaign).drop(columns="point")
    varying = [name for name in every.columns if every[name].nunique() > 1]
    for point, factors in enumerate(every.to_dict("records")):
        where = ", ".join(f"{name} = {factors[name]}" for name in varying)
        yield where, trials[trials["point"] == point]


def _share(trials: pd.DataFrame) -> str:
    own, other = trials["competition.foreground_mbps"], trials["competition.background_mbps"]
    return f"{(own / (own + other)).median():.0%}"


@dataclass(frozen=True)
class _Share:
    """How many of some units something is true of."""

    count: int = 0
    units: int = 0

    @property
    def interval(self) -> tuple[float, float]:
        """The exact interval of the share; none for fewer than FEWEST units."""
        if self.units < FEWEST:
            return math.nan, math.nan
        found = stats.binomtest(self.count, self.units).proportion_ci(1 - LEVEL)
        return float(found.low), float(found.high)

    def above(self, bound: float) -> bool | None:
        low, high = self.interval
        return True if low > bound else False if high < bound else None

    def rare(self) -> bool | None:
        """Whether it may be true of no more than _SAME of all units: of chance ones only."""
        return None if self.units < FEWEST else self.above(_SAME) is not True

    def at_least(self, bound: float) -> bool | None:
        """Whether the share may be as high as this."""
        low, high = self.interval
        return None if math.isnan(low) else high >= bound

    def __str__(self) -> str:
        if not self.units:
            return "not measured"
        low, high = self.interval
        interval = "no interval" if math.isnan(low) else f"{low:.0%} to {high:.0%}"
        return f"{self.count / self.units:.0%} of {self.units} ({interval})"


def _of_size(found: pd.DataFrame, size_bytes: int) -> pd.DataFrame:
    return found[found["size_bytes"] == size_bytes]


def _faster(found: pd.DataFrame) -> _Share:
    return _Share(int((found["ratio"] < 1).sum()), len(found))


def _slower(found: pd.DataFrame, by: float = 0.0) -> _Share:
    return _Share(int((found["ratio"] > 1 + by).sum()), len(found))


def _plainly(found: pd.DataFrame) -> str:
    """How many change by more than noise: without a loss, a ratio is as likely below 1 as above."""
    if found.empty:
        return "not measured"
    shorter, longer = (found["ratio"] < 1 - _SAME).mean(), (found["ratio"] > 1 + _SAME).mean()
    return f"by more than {_SAME:.0%}: {shorter:.0%} shorter, {longer:.0%} longer"


def _median(found: pd.DataFrame) -> str:
    if found.empty:
        return "not measured"
    low, high = median_interval(
        found["ratio"], found.index.to_series()
    )  # a row is a point, or a loss pattern
    interval = "no interval" if math.isnan(low) else f"{low:.2f} to {high:.2f}"
    return f"median ratio {found['ratio'].median():.2f} ({interval})"


def _claims_of_small_and_large(found: pd.DataFrame, section: str) -> Iterator[Claim]:
    for size_bytes in SMALL:
        of_size = _of_size(found, size_bytes)
        faster = _faster(of_size)
        yield Claim(
            f"points at which FEC shortens downloads of {size(size_bytes)}",
            f"most ({section})",
            f"{faster}; {_median(of_size)}; {_plainly(of_size)}",
            faster.above(0.5),
        )
    large = _of_size(found, LARGE)
    slower = _slower(large)
    yield Claim(
        f"points at which FEC lengthens downloads of {size(LARGE)}",
        f"most ({section})",
        f"{slower}; {_median(large)}",
        slower.above(0.5),
    )


def claims_of_da2gc(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§IV-B.1.a, Fig. 5 (left)."""
    found = ratios(frame, campaign, RLC, unit="repetition")
    harmed = _slower(_of_size(found, SMALL[0]), _SAME)
    claims = [
        Claim(
            f"loss patterns in which a download of 1 kB takes more than {_SAME:.0%} longer with FEC",
            "none (§IV-B.1)",
            str(harmed),
            harmed.rare(),
        )
    ]
    for size_bytes in SMALL[1:]:
        slower = _slower(_of_size(found, size_bytes))
        claims.append(
            Claim(
                f"loss patterns in which FEC lengthens downloads of {size(size_bytes)}",
                "most (§IV-B.1); about 75 % (Fig. 5)",
                f"{slower}; {_median(_of_size(found, size_bytes))}",
                slower.above(0.5),
            )
        )
    return claims


def claims_of_mss(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§IV-B.1.b, Fig. 5 (right)."""
    found = ratios(frame, campaign, RLC, unit="repetition")
    faster = _faster(_of_size(found, 50_000))
    medium = _faster(_of_size(found, 10_000))
    return [
        Claim(
            "loss patterns in which FEC shortens downloads of 50 kB",
            "75 % (Fig. 5)",
            f"{faster}; {_median(_of_size(found, 50_000))}",
            faster.at_least(0.75),
        ),
        Claim(
            "loss patterns in which FEC lengthens downloads of 10 kB by more than 5 %",
            "few: it does no harm when nothing of a small file is lost (Fig. 5)",
            f"{_slower(_of_size(found, 10_000), _SAME)}; shortened in {medium}",
            _no(_slower(_of_size(found, 10_000), _SAME).above(0.25)),
        ),
    ]


def _no(judged: bool | None) -> bool | None:
    return None if judged is None else not judged


def claims_of_fig6(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§IV-B.2.a and b."""
    return list(_claims_of_small_and_large(ratios(frame, campaign, REED_SOLOMON), "§IV-B.2, Fig. 6"))


def claims_of_fig7(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§IV-B.2.c."""
    large = _of_size(ratios(frame, campaign, RLC, REED_SOLOMON), LARGE)
    faster = _faster(large)
    return [
        Claim(
            f"points at which downloads of {size(LARGE)} are faster with RLC than with Reed-Solomon",
            "most, significantly (§IV-B.2, Fig. 7)",
            f"{faster}; {_median(large)}",
            faster.above(0.5),
        )
    ]


def claims_of_fig8(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§IV-B.3."""
    low_rate, high_rate = (ratios(frame, campaign, options) for options in (RLC, RLC_4_5))
    claims = []
    for rate, found in (("2/3", low_rate), ("4/5", high_rate)):
        helped = found.assign(helped=found["ratio"] < 1 - _SAME).groupby("point")["helped"].any()
        rarely = _Share(int(helped.sum()), len(helped))
        claims.append(
            Claim(
                f"points at which a code rate of {rate} shortens a download by more than {_SAME:.0%}",
                "none but by chance (§IV-B.3)",
                str(rarely),
                rarely.rare(),
            )
        )
    for size_bytes in (*SMALL, LARGE):
        of_size = _of_size(low_rate, size_bytes)
        claims.append(_claim_of_bandwidth(of_size, size_bytes))
    both = low_rate.merge(high_rate, on=["size_bytes", "point"], suffixes=("_low", "_high"))
    for size_bytes in (*SMALL, LARGE):
        of_size = _of_size(both, size_bytes)
        less = _Share(int((of_size["ratio_high"] < of_size["ratio_low"]).sum()), len(of_size))
        claims.append(
            Claim(
                f"points at which code rate 4/5 harms downloads of {size(size_bytes)} less than 2/3",
                "most (§IV-B.3, Fig. 8)",
                str(less),
                less.above(0.5),
            )
        )
    return claims


def _claim_of_bandwidth(found: pd.DataFrame, size_bytes: int) -> Claim:
    text = f"rank correlation of bandwidth and DCT ratio, downloads of {size(size_bytes)}"
    paper = "negative: FEC harms more where the bandwidth is low (§IV-B.3)"
    if len(found) < FEWEST or found["ratio"].nunique() == 1:
        return Claim(text, paper, f"none with {found['ratio'].nunique()} ratios", None)
    correlation = stats.spearmanr(found["bandwidth_mbps"], found["ratio"])
    value, probability = float(correlation.statistic), float(correlation.pvalue)
    holds = None if not probability < LEVEL else value < 0
    return Claim(text, paper, f"{value:.2f} (p = {probability:.2g}, {len(found)} points)", holds)


def claims_of_fig9(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§IV-B.4, at each point."""
    trials, off = backgrounds(frame, campaign), variant_with(campaign, OFF)
    return [
        _claim_of_fairness(of_point, where, off, variant_with(campaign, {"recovered": recovered}), recovered)
        for where, of_point in _by_point(trials, campaign)
        for recovered in ("notify", "mask")
    ]


def _claim_of_fairness(trials: pd.DataFrame, where: str, off: str, label: str, recovered: str) -> Claim:
    low, high, measured = _ratio_beside(frames.paired(trials, off, label))
    if recovered == "mask":
        paper = "generally longer: ratio above 1 (§IV-B.4, Fig. 9)"
        holds = True if low > 1 else False if high < 1 else None
    else:
        paper = "no difference: ratio 1 (§IV-B.4, Fig. 9)"
        holds = None if math.isnan(low) else low <= 1 + _SAME and high >= 1 - _SAME
    text = f"DCT without FEC beside {label} divided by that beside {off}, medians"
    return Claim(f"{text}, where {where}" if where else text, paper, measured, holds)


def _ratio_beside(pairing: Pairing) -> tuple[float, float, str]:
    if pairing.ratios.empty:
        return math.nan, math.nan, "not measured"
    (row,) = ratio_intervals(pairing).to_dict("records")
    low, high = float(row["low"]), float(row["high"])
    interval = "no interval" if math.isnan(low) else f"{low:.2f} to {high:.2f}"
    return low, high, f"{row['ratio']:.2f} ({interval}, {row['pairs']} repetitions)"


def claims_of_fig10(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§IV-C."""
    found = ratios(frame, campaign, RLC)
    claims = list(_claims_of_small_and_large(found, "§IV-C, Fig. 10"))
    for size_bytes in SMALL[1:]:
        of_size = _of_size(found, size_bytes)
        low = of_size["loss.r"] <= _LOW_R
        for where, chosen, paper, sign in (
            (f"r ≤ {_LOW_R:.0%}", of_size[low], "above 1 (§IV-C)", 1),
            (f"r > {_LOW_R:.0%}", of_size[~low], "below 1 (§IV-C)", -1),
        ):
            text = f"mean DCT ratio of {size(size_bytes)} where {where}"
            claims.append(_claim_of_mean(text, paper, chosen["ratio"], sign))
    return claims


def _claim_of_mean(text: str, paper: str, ratio: pd.Series, sign: int) -> Claim:
    """By Student's interval of the mean logarithm; `sign` is 1 where the paper's mean is above 1."""
    if len(ratio) < FEWEST:
        mean = "" if ratio.empty else f"{ratio.mean():.2f}, "
        return Claim(text, paper, f"{mean}no interval with {len(ratio)} points", None)
    log = np.log(ratio)
    half = float(stats.t.ppf(1 - LEVEL / 2, len(log) - 1) * log.std() / math.sqrt(len(log)))
    low, high = math.exp(log.mean() - half), math.exp(log.mean() + half)
    above = True if low > 1 else False if high < 1 else None
    holds = above if sign > 0 else _no(above)
    measured = f"{ratio.mean():.2f}; geometric mean {low:.2f} to {high:.2f}, {len(ratio)} points"
    return Claim(text, paper, measured, holds)


def _differences(frame: pd.DataFrame, campaign: CampaignInfo) -> list[str]:  # noqa: ARG001
    return [
        "noq speaks IETF QUIC; the paper's quic-go spoke Google's. Pacing, loss recovery (probe timeouts in"
        " the place of tail loss probes) and the first window are others, and requests are hq-interop's.",
        f"{campaign.repetitions} repetitions at {len(campaign.points)} points. The paper names no queue; here"
        " the link's holds 1.5 bandwidth-delay products, if the design doesn't vary it.",
    ]


def _differences_of_mss(frame: pd.DataFrame, campaign: CampaignInfo) -> list[str]:
    return [
        *_differences(frame, campaign),
        "50 kB and its repair symbols are more than the first window of 32 packets. With one of 64"
        " (option.initial_window), FEC shortened most of these downloads.",
    ]


def _differences_of_bursts(frame: pd.DataFrame, campaign: CampaignInfo) -> list[str]:
    """With how far the ratios reach, which makes means of them say little."""
    said = [
        *_differences(frame, campaign),
        "A burst lasts for a number of packets, however rarely they are sent: who has to probe through a long"
        " one waits for minutes, since probe timeouts double. Redundancy makes a transfer longer, so it meets"
        " bursts that the other ends before. The paper leaves out intense losses, we leave out timeouts.",
    ]
    ratio = ratios(frame, campaign, RLC)["ratio"]
    if ratio.empty:
        return said
    extreme = int((ratio > 3).sum())
    return [*said, f"{extreme} of {len(ratio)} ratios are above 3; the greatest is {ratio.max():.1f}."]


def _differences_of_fairness(frame: pd.DataFrame, campaign: CampaignInfo) -> list[str]:
    """With how often the background's window fell and came back: whether masking had anything to mask."""
    said = [
        *_differences(frame, campaign),
        "The paper names no queue, and the result depends on it. A long one may overflow by more packets than"
        " RLC (7, 6, 20) mends, and loses repair packets, too, which nothing masks; we have not shown that"
        " this is the reason.",
    ]
    trials = backgrounds(frame, campaign)
    ok = trials[trials["state"] == "ok"]
    names = [f"background_server.window_{what}" for what in ("reductions", "restorations")]
    if ok.empty or not set(names) <= set(ok):
        return said
    counts = []
    for where, of_point in _by_point(ok, campaign):
        medians = of_point.groupby("variant", observed=True)[names].median()
        each = "; ".join(f"{label}: {fell:g}, {back:g}" for label, (fell, back) in medians.iterrows())
        counts.append(f"where {where}, {each}" if where else each)
    return [
        *said,
        "How often losses made the background's congestion window smaller, and how often it came back since"
        f" they were masked (medians): {'. '.join(counts)}.",
    ]


Claims = Callable[[pd.DataFrame, CampaignInfo], list[Claim]]
Differences = Callable[[pd.DataFrame, CampaignInfo], list[str]]
_RATIO = (
    "ECDF of the download completion time divided by that of the other arm for the same losses. Left of 1,"
    " the arm in the title is faster."
)


def _figure(
    number: int,
    draw: Callable[[pd.DataFrame, CampaignInfo], Figure],
    claims: Claims,
    caption: str = _RATIO,
    differences: Differences = _differences,
) -> PaperFigure:
    return PaperFigure(
        name=f"networking2019-fig{number}",
        number=f"Networking 2019, Fig. {number}",
        caption=caption,
        draw=draw,
        claims=partial(_where_its_arms_are, claims),
        differences=differences,
    )


def _where_its_arms_are(claims: Claims, frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """No claims of a design that lacks the paper's arms: in place of the figure stands what it lacks."""
    try:
        return claims(frame, campaign)
    except NothingToDraw:
        return []


def fig5_aeroplanes(frame: pd.DataFrame, campaign: CampaignInfo) -> Figure:
    """Fig. 5: RLC against QUIC in one network, over 50 loss patterns."""
    question = "In how many loss patterns does FEC shorten downloads from aeroplanes?"
    return ecdfs(frame, campaign, [(RLC, OFF)], question, "repetition")


def fig6_reed_solomon(frame: pd.DataFrame, campaign: CampaignInfo) -> Figure:
    """Fig. 6: Reed-Solomon against QUIC, uniform losses."""
    return ecdfs(frame, campaign, [(REED_SOLOMON, OFF)], "At how many points does Reed-Solomon help?")


def fig7_codes(frame: pd.DataFrame, campaign: CampaignInfo) -> Figure:
    """Fig. 7: RLC against Reed-Solomon, uniform losses."""
    return ecdfs(frame, campaign, [(RLC, REED_SOLOMON)], "Is RLC faster than Reed-Solomon?")


def fig8_no_loss(frame: pd.DataFrame, campaign: CampaignInfo) -> Figure:
    """Fig. 8: RLC with code rates 2/3 and 4/5 against QUIC, without losses."""
    return ecdfs(frame, campaign, [(RLC, OFF), (RLC_4_5, OFF)], "What does FEC cost where nothing is lost?")


def fig10_bursts(frame: pd.DataFrame, campaign: CampaignInfo) -> Figure:
    """Fig. 10: RLC against QUIC, Gilbert-Elliott losses."""
    return ecdfs(frame, campaign, [(RLC, OFF)], "At how many points does RLC help under bursty losses?")


_BOXES = (
    "Download completion time of 10 MB without FEC, begun when another transfer had filled the link. The line"
    " is the median, the box holds the middle half, the whiskers reach the last trial within 1.5 times the"
    " height of the box."
)

# By the name of the design: `results.papers`.
FIGURES: dict[str, list[PaperFigure]] = {
    "networking2019-da2gc": [_figure(5, fig5_aeroplanes, claims_of_da2gc)],
    "networking2019-mss": [_figure(5, fig5_aeroplanes, claims_of_mss, differences=_differences_of_mss)],
    "networking2019-uniform": [
        _figure(6, fig6_reed_solomon, claims_of_fig6),
        _figure(7, fig7_codes, claims_of_fig7),
    ],
    "networking2019-noloss": [_figure(8, fig8_no_loss, claims_of_fig8)],
    "networking2019-fairness": [_figure(9, fig9_fairness, claims_of_fig9, _BOXES, _differences_of_fairness)],
    "networking2019-ge": [_figure(10, fig10_bursts, claims_of_fig10, differences=_differences_of_bursts)],
}
