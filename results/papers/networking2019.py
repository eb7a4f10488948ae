"""Figures 5 to 10 of QUIC-FEC's evaluation, from campaigns of `networking2019-*`, and its claims.

F. Michel, Q. De Coninck, O. Bonaventure: "QUIC-FEC: Bringing the benefits of Forward Erasure Correction to
QUIC", IFIP Networking 2019, §IV.

Claims are judged as `results.papers.claims` says; "most" is more than one half of the points (or loss
patterns). A point at which one arm alone timed out in a repetition has no ratio, since that of the others
would be one of survivors, but tells which arm was faster; one that doesn't widens a share's interval to both
sides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from textwrap import fill
from typing import Any, Literal

import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from results.analysis import frames
from results.analysis.intervals import FEWEST, LEVEL, median_interval, ratio_intervals
from results.analysis.pairing import DCT, paired
from results.analysis.units import size
from results.figures.distributions import ecdf_panels
from results.figures.nothing import NothingToDraw
from results.figures.style import box, looks, style, title
from results.papers.claims import Claim, Estimate, PaperFigure, Share, none_without_a_figure, shown
from results.store.database import CampaignInfo

Unit = Literal["point", "repetition"]

OFF: dict[str, Any] = {"scheme": "none"}
RLC: dict[str, Any] = {"scheme": "rlc", "n": 3, "k": 2}
RLC_4_5: dict[str, Any] = {"scheme": "rlc", "n": 5, "k": 4}
REED_SOLOMON: dict[str, Any] = {"scheme": "rs", "n": 30, "k": 20}

SMALL = (1_000, 10_000, 50_000)
LARGE = 1_000_000
_SAME = 0.05  # ours: a ratio this close to 1 is "no impact"
_RARE = (
    0.10  # ours: none of the paper's 50 loss patterns is an interval up to 7 % itself, so finer is not "none"
)
_ABOUT_75 = (0.60, 0.87)  # 75 % of the paper's 50 patterns are 37 or 38: these are their exact intervals
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

    One row a (size_bytes, point), of the medians; or a (size_bytes, point, repetition), for loss patterns; of
    all that were run. Columns: these, `ratio` (NaN where no two ok trials can be compared, or one arm alone
    timed out), `faster` (1 or 0; NaN where nobody can tell, `Pairing.decided`), and the factors of the point.
    Raises NothingToDraw when the design lacks one of the two.
    """
    variant, baseline = (variant_with(campaign, each) for each in (options, to))
    pairing = paired(frame, baseline, variant, DCT, campaign.statistic)
    key = ["workload", "point"] if unit == "point" else ["workload", "point", "repetition"]
    run = frame.loc[frame["variant"].isin([variant, baseline]), key].drop_duplicates()
    if unit == "point":
        found = run.merge(pairing.ratios, how="left", on=key)
        found["ratio"] = found["ratio"].mask(found["timeouts"] > 0)
        found = found.merge(pairing.decided[[*key, "faster"]], how="left", on=key)
    else:
        found = run.merge(pairing.matched, how="left", on=key)
        found["faster"] = (found["ratio"] < 1).where(found["ratio"].notna())
    sizes = {workload["label"]: workload["parameters"]["size_bytes"] for workload in campaign.workloads}
    found = found.assign(size_bytes=found["workload"].astype(str).map(sizes))
    return found.merge(frames.points(campaign), on="point")


# The options of what is divided, and of what it is divided by.
Panel = tuple[dict[str, Any], dict[str, Any]]


def ecdfs(
    frame: pd.DataFrame, campaign: CampaignInfo, panels: Sequence[Panel], question: str, unit: Unit = "point"
) -> Figure:
    """The ECDF of DCT ratios, a curve a size: the form of all of the paper's figures but the ninth."""
    found = [ratios(frame, campaign, *panel, unit).dropna(subset="ratio") for panel in panels]
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

    They have one workload, `beside`: so `pairing.paired` compares what the foreground met.
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


def _of_size(found: pd.DataFrame, size_bytes: int) -> pd.DataFrame:
    return found[found["size_bytes"] == size_bytes]


def _faster(found: pd.DataFrame) -> Share:
    return Share.of(found["faster"] == 1, found["faster"].notna())


def _slower(found: pd.DataFrame) -> Share:
    return Share.of((found["faster"] == 0) & (found["ratio"] != 1), found["faster"].notna())


def _plainly(found: pd.DataFrame) -> str:
    """How many change by more than noise: without a loss, a ratio is as likely below 1 as above."""
    ratio = found["ratio"].dropna()
    if ratio.empty:
        return "not measured"
    shorter, longer = (ratio < 1 - _SAME).mean(), (ratio > 1 + _SAME).mean()
    return f"by more than {_percent(_SAME)}: {_percent(shorter)} shorter, {_percent(longer)} longer"


def _percent(share: float) -> str:
    return shown(share, ".0%")


def _median(found: pd.DataFrame) -> Estimate:
    """Of the ratios; each row is a unit of its own, a point or a loss pattern."""
    ratio = found["ratio"].dropna()
    return Estimate(float(ratio.median()), *median_interval(ratio, ratio.index.to_series()))


def _most(text: str, paper: str, found: pd.DataFrame, share: Share) -> Claim:
    """A claim that a majority of these ratios is on one side of 1, and what to think of it by."""
    median = f"median of {found['ratio'].count()} ratios {_median(found):.2f}"
    measured = f"{share}; {median}; {_plainly(found)}"
    return Claim(text, f"most ({paper})", measured, share.estimate.above(0.5))


def _none(text: str, paper: str, share: Share) -> Claim:
    judged = f"none ({paper}; judged here: at most {_percent(_RARE)})"
    return Claim(text, judged, str(share), share.estimate.within(0, _RARE))


def _about_75_percent(text: str, share: Share) -> Claim:
    """A claim of the caption of Fig. 5."""
    least, most = map(_percent, _ABOUT_75)
    paper = f"75 % (Fig. 5; judged here: {least} to {most}, the interval of the paper's share of 50)"
    return Claim(text, paper, str(share), share.estimate.within(*_ABOUT_75))


def _claims_of_small_and_large(found: pd.DataFrame, section: str) -> Iterator[Claim]:
    for size_bytes in SMALL:
        of_size = _of_size(found, size_bytes)
        text = f"points at which FEC shortens downloads of {size(size_bytes)}"
        yield _most(text, section, of_size, _faster(of_size))
    large = _of_size(found, LARGE)
    yield _most(f"points at which FEC lengthens downloads of {size(LARGE)}", section, large, _slower(large))


def claims_of_da2gc(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§IV-B.1.a, Fig. 5 (left)."""
    found = ratios(frame, campaign, RLC, unit="repetition")
    text = f"loss patterns in which a download of 1 kB takes more than {_percent(_SAME)} longer with FEC"
    ratio = _of_size(found, SMALL[0])["ratio"]
    claims = [_none(text, "§IV-B.1", Share.of(ratio > 1 + _SAME, ratio.notna()))]
    for size_bytes in SMALL[1:]:
        of_size = _of_size(found, size_bytes)
        slower = _slower(of_size)
        text = f"loss patterns in which FEC lengthens downloads of {size(size_bytes)}"
        claims += [_most(text, "§IV-B.1", of_size, slower), _about_75_percent(text, slower)]
    return claims


def claims_of_mss(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§IV-B.1.b, Fig. 5 (right)."""
    found = ratios(frame, campaign, RLC, unit="repetition")
    claims = []
    for size_bytes in SMALL:
        of_size = _of_size(found, size_bytes)
        text = f"loss patterns in which FEC shortens downloads of {size(size_bytes)}"
        claims.append(_most(text, "§IV-B.1", of_size, _faster(of_size)))
    claims.append(_about_75_percent(text, _faster(of_size)))
    lossless = found.merge(_without_losses(frame, campaign), on=["workload", "point", "repetition"])
    for size_bytes in SMALL[:2]:
        of_size = _of_size(lossless, size_bytes)
        claims.append(
            _same(
                f"median DCT ratio of {size(size_bytes)} in loss patterns in which QUIC lost nothing",
                "no harm (Fig. 5)",
                _median(of_size),
                f"{len(of_size)} loss patterns",
            )
        )
    return claims


def _without_losses(frame: pd.DataFrame, campaign: CampaignInfo) -> pd.DataFrame:
    """The keys (workload, point, repetition) of the ok trials without FEC that declared no packet lost."""
    lost = frame.reindex(columns=["client.packets_lost", "server.packets_lost"]).sum(axis=1, skipna=False)
    off = (frame["variant"] == variant_with(campaign, OFF)) & (frame["state"] == "ok") & (lost == 0)
    return frame.loc[off, ["workload", "point", "repetition"]]


def _same(text: str, paper: str, ratio: Estimate, of: str) -> Claim:
    least, most = 1 - _SAME, 1 + _SAME
    judged = f"{paper.removesuffix(')')}; judged here: {least:g} to {most:g})"
    return Claim(text, judged, f"{ratio:.3f}, {of}", ratio.within(least, most))


def claims_of_fig6(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§IV-B.2.a and b."""
    return list(_claims_of_small_and_large(ratios(frame, campaign, REED_SOLOMON), "§IV-B.2, Fig. 6"))


def claims_of_fig7(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§IV-B.2.c."""
    large = _of_size(ratios(frame, campaign, RLC, REED_SOLOMON), LARGE)
    text = f"points at which downloads of {size(LARGE)} are faster with RLC than with Reed-Solomon"
    return [
        _most(
            text, "and significantly, §IV-B.2, Fig. 7; judged here: by however little", large, _faster(large)
        )
    ]


def claims_of_fig8(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§IV-B.3."""
    low_rate, high_rate = (ratios(frame, campaign, options) for options in (RLC, RLC_4_5))
    claims = []
    for rate, found in (("2/3", low_rate), ("4/5", high_rate)):
        by_point = found.set_index("point")["ratio"]
        helped = (by_point < 1 - _SAME).groupby("point").any()
        known = helped | by_point.notna().groupby("point").all()
        text = f"points at which a code rate of {rate} shortens a download by more than {_percent(_SAME)}"
        claims.append(_none(text, "but by chance, §IV-B.3", Share.of(helped, known)))
    for size_bytes in (*SMALL, LARGE):
        claims.append(_claim_of_bandwidth(_of_size(low_rate, size_bytes), size_bytes))
    both = low_rate.merge(high_rate, on=["size_bytes", "point"], suffixes=("_low", "_high"))
    for size_bytes in (*SMALL, LARGE):
        low, high = (_of_size(both, size_bytes)[f"ratio_{rate}"] for rate in ("low", "high"))
        less = Share.of(high < low, low.notna() & high.notna())
        claims.append(
            Claim(
                f"points at which code rate 4/5 harms downloads of {size(size_bytes)} less than 2/3",
                "most (§IV-B.3, Fig. 8)",
                str(less),
                less.estimate.above(0.5),
            )
        )
    return claims


def _claim_of_bandwidth(found: pd.DataFrame, size_bytes: int) -> Claim:
    text = f"rank correlation of bandwidth and DCT ratio, downloads of {size(size_bytes)}"
    paper = "negative: FEC harms more where the bandwidth is low (§IV-B.3)"
    found = found.dropna(subset="ratio")
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
    text = f"DCT without FEC beside {label} divided by that beside {off}, medians"
    text = f"{text}, where {where}" if where else text
    intervals = ratio_intervals(paired(trials, off, label))
    ratio, of = Estimate(), "no repetitions"
    for row in intervals.to_dict("records"):  # one, or none
        ratio, of = Estimate(row["ratio"], row["low"], row["high"]), f"{row['pairs']} repetitions"
    if recovered == "notify":
        return _same(text, "no difference (§IV-B.4, Fig. 9)", ratio, of)
    return Claim(text, "generally longer: above 1 (§IV-B.4, Fig. 9)", f"{ratio:.2f}, {of}", ratio.above(1))


def claims_of_fig10(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§IV-C."""
    found = ratios(frame, campaign, RLC)
    claims = list(_claims_of_small_and_large(found, "§IV-C, Fig. 10"))
    for size_bytes in SMALL[1:]:
        of_size = _of_size(found, size_bytes)
        low = of_size["loss.r"] <= _LOW_R
        for where, chosen, paper, judge in (
            (f"r ≤ {_percent(_LOW_R)}", of_size[low], "above 1 (§IV-C)", Estimate.above),
            (f"r > {_percent(_LOW_R)}", of_size[~low], "below 1 (§IV-C)", Estimate.below),
        ):
            ratio = chosen["ratio"].dropna()
            mean, of = Estimate.of_mean(ratio), f"{len(ratio)} of {len(chosen)} points"
            text = f"mean DCT ratio of {size(size_bytes)} where {where}"
            claims.append(Claim(text, paper, f"{mean:.2f}, {of}", judge(mean, 1)))
    return claims


def _differences(frame: pd.DataFrame, campaign: CampaignInfo) -> list[str]:
    return [
        "noq speaks IETF QUIC; the paper's quic-go spoke Google's. Pacing, loss recovery (probe timeouts in"
        " the place of tail loss probes) and the first window are others, and requests are hq-interop's.",
        f"Repetitions: {frame['repetition'].nunique()}, at {len(campaign.points)} points. The paper names no"
        " queue; here the link's holds 1.5 bandwidth-delay products, if the design doesn't vary it.",
    ]


def _differences_of_bursts(frame: pd.DataFrame, campaign: CampaignInfo) -> list[str]:
    """With what was left out, and how far the ratios reach, which makes means of them say little."""
    said = [
        *_differences(frame, campaign),
        "A burst lasts for a number of packets, however rarely they are sent, and probe timeouts double: to"
        " probe through a long one may take minutes. Supposedly, a transfer that redundancy makes longer also"
        " meets bursts that the other ends before; we have not shown that it does.",
    ]
    pairing = paired(frame, variant_with(campaign, OFF), variant_with(campaign, RLC), DCT, campaign.statistic)
    left_out = pairing.unpaired.groupby("reason")["repetitions"].sum()
    if not left_out.empty:
        each = ", ".join(f"{repetitions} ({reason})" for reason, repetitions in left_out.items())
        said.append(
            f"The paper leaves out losses too intense for a transfer. Repetitions without a ratio: {each}."
        )
    ratio = ratios(frame, campaign, RLC)["ratio"].dropna()
    if ratio.empty:
        return said
    extreme = int((ratio > 3).sum())
    return [*said, f"{extreme} of {len(ratio)} ratios are above 3; the greatest is {ratio.max():.1f}."]


def _differences_of_fairness(frame: pd.DataFrame, campaign: CampaignInfo) -> list[str]:
    """With how often the background's window fell and came back: whether masking had anything to mask."""
    said = [
        *_differences(frame, campaign),
        "The paper names no queue, and the result may depend on it. A long one may overflow by more packets"
        " than RLC (7, 6, 20) mends, and loses repair packets, too, which nothing masks; we have not shown"
        " that this is the reason.",
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
        claims=none_without_a_figure(claims),
        differences=none_without_a_figure(differences),
    )


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
    "networking2019-mss": [_figure(5, fig5_aeroplanes, claims_of_mss)],
    "networking2019-uniform": [
        _figure(6, fig6_reed_solomon, claims_of_fig6),
        _figure(7, fig7_codes, claims_of_fig7),
    ],
    "networking2019-noloss": [_figure(8, fig8_no_loss, claims_of_fig8)],
    "networking2019-fairness": [_figure(9, fig9_fairness, claims_of_fig9, _BOXES, _differences_of_fairness)],
    "networking2019-ge": [_figure(10, fig10_bursts, claims_of_fig10, differences=_differences_of_bursts)],
}
