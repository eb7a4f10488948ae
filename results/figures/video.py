"""Figures of videos: what a ladder is made of, what sessions were worth, and one session over time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import PercentFormatter

from fecbench.results import metrics
from fecbench.results.analysis import outcomes
from fecbench.results.analysis.summary import of_whole_groups
from fecbench.results.figures.curves import curve
from fecbench.results.figures.nothing import NothingToDraw
from fecbench.results.figures.seaborn_alone import sns
from fecbench.results.figures.sheet import Given, heading, legend_below, sheet
from fecbench.results.figures.style import line, looks, new_figure, style, wide, wrapped
from fecbench.results.figures.ticks import plain_ticks
from fecbench.results.store.records import CampaignInfo

if TYPE_CHECKING:
    from matplotlib.artist import Artist

SHARE = "video.share_"
_CURVES = ("video.qoe_lin", "video.stall_ratio")
_LIVE = ("video.latency_p95_s", "video.stall_ratio")
_PANEL = 2.6  # inches high


def segments(levels: Sequence[Mapping[str, Any]], segment_s: float) -> Figure:
    """The rate of each segment of each level of a ladder, in Mbit/s, over the time of the video.

    `levels`: `kbps`, `width`, `height` and `sizes` (bytes) of each, as in the ladder's file.
    """
    with style():
        figure = new_figure(wide(), 5.5)
        axes = figure.subplots()
        for level in reversed(levels):
            rates = 8e-6 * np.array(level["sizes"]) / segment_s
            times = segment_s * np.arange(len(rates) + 1)
            axes.stairs(rates, times, label=f"{level['kbps']:g} kbit/s, {level['width']}×{level['height']}")
        axes.set_xlabel("time of the video (s)")
        axes.set_ylabel("rate of a segment (Mbit/s)")
        axes.set_yscale("log")
        plain_ticks(axes.yaxis)
        heading(figure, "How large are the segments of each level?")
        legend_below(figure, axes.get_legend_handles_labels()[0])
        return figure


def sessions(frame: pd.DataFrame, campaign: CampaignInfo, *, ax: Given = None) -> Figure:
    """The distribution of what sessions were worth, and of how long their picture stood still: a row a
    workload, a line a variant. A session that failed or timed out is worse than any.

    Raises NothingToDraw where no session is ok.
    """
    labels = _labels(frame, campaign)
    panels = [(label, name) for label, live in labels.items() for name in (_LIVE if live else _CURVES)]
    size = (wide(), 1.6 + _PANEL * len(labels))
    with sheet(len(panels), size, ax, columns=2, what="choose one workload") as page:
        for number, (axes, (label, name)) in enumerate(zip(page.panels, panels, strict=True)):
            metric, trials = metrics.of(name), frame[frame["workload"] == label]
            _curves(axes, outcomes.values(trials, metric), trials, campaign)
            axes.set_xlabel(wrapped(metric.title, page.width))
            if metric.is_share:
                axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=" %"))
            if number % 2 == 0:
                axes.set_ylabel("share of sessions")
                axes.set_title(label, loc="left")
        page.legend(_lines(campaign))
        page.heading(
            "What were sessions worth, and for how long did the picture stand still?",
            campaign.averaged_heading,
        )
    return page.figure


def scores(
    by_trial: Mapping[int, float], frame: pd.DataFrame, campaign: CampaignInfo, *, ax: Given = None
) -> Figure:
    """The distribution of the scores of P.1203, by trial: a panel a workload, a line a variant. A session
    that failed, timed out or showed no picture (-∞) is worse than any."""
    labels = _labels(frame, campaign)
    values = frame["id"].map(dict(by_trial)).mask(outcomes.is_worst(frame), -math.inf)
    size = (wide(), 1.6 + _PANEL * len(labels))
    with sheet(len(labels), size, ax, sharex=True, what="choose one workload") as page:
        for axes, label in zip(page.panels, labels, strict=True):
            trials = frame[frame["workload"] == label]
            _curves(axes, values[trials.index], trials, campaign)
            axes.set_title(label, loc="left")
            axes.set_ylabel("share of sessions")
        page.panels[-1].set_xlabel("score of ITU-T P.1203, from 1 to 5")
        page.legend(_lines(campaign))
        page.heading("How would viewers rate the sessions?", campaign.averaged_heading)
    return page.figure


def _curves(axes: Axes, values: pd.Series, trials: pd.DataFrame, campaign: CampaignInfo) -> None:
    """The ECDF of the sessions of each variant, of whole groups (`summary.of_whole_groups`); what is worse
    than any value is beyond the axis."""
    values = values.where(of_whole_groups(trials, values.notna(), campaign))
    known = values[np.isfinite(values)]
    if known.empty:
        return
    margin = 0.05 * float(known.max() - known.min()) or 0.05
    ends = float(known.min()) - 2 * margin, float(known.max()) + 2 * margin
    for variant, look in looks(campaign).items():
        of_variant = values[(trials["variant"] == variant) & values.notna()]
        curve(axes, of_variant, ends, color=look.color)
    axes.set_xlim(ends[0] + margin, ends[1] - margin)
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=" %"))


def pictures(frame: pd.DataFrame, campaign: CampaignInfo, *, ax: Given = None) -> Figure:
    """Draw the share of all segments by size of the picture, of whole groups (`summary.of_whole_groups`) of
    ok trials: a panel a workload, a bar a variant.

    Raises NothingToDraw where no session is ok.
    """
    labels, variants = _labels(frame, campaign), list(looks(campaign))
    sizes = sizes_of(frame)
    shades = shades_of(sizes)
    size = (wide(), 1.8 + (0.5 + 0.35 * len(variants)) * len(labels))
    with sheet(len(labels), size, ax, sharex=True, sharey=False, what="choose one workload") as page:
        for axes, label in zip(page.panels, labels, strict=True):
            arrived = frame[[SHARE + size for size in sizes]].notna().any(axis=1)
            is_ok = (frame["workload"] == label) & (frame["state"] == "ok")
            ok = frame[of_whole_groups(frame, is_ok & arrived, campaign)]
            shares_of_sizes(axes, ok, "variant", variants, shades, across=False)
            axes.set_title(label, loc="left")
            axes.set(xlabel="", ylabel="")
            axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=" %"))
        page.panels[-1].set_xlabel("share of segments")
        page.legend(
            [
                Patch(facecolor=shades[size], edgecolor="black", label=size.replace("x", "×"))
                for size in sizes
            ],
        )
        page.heading("Which pictures did viewers see?", campaign.averaged_heading)
    return page.figure


def shares_of_sizes(
    axes: Axes,
    ok: pd.DataFrame,
    by: str,
    order: Sequence[Any],
    shades: Mapping[str, str],
    *,
    across: bool,
) -> None:
    """The mean share of segments of each size of the picture, stacked: a bar for each value of a column."""
    means = ok.groupby(by, observed=True)[[SHARE + size for size in shades]].mean().reindex(list(order))
    long = means.rename(columns=lambda name: name.removeprefix(SHARE)).melt(
        ignore_index=False, var_name="size", value_name="share"
    )
    long = long.dropna().reset_index().assign(**{by: lambda rows: pd.Categorical(rows[by], list(order))})
    sns.histplot(
        long,
        **{"x" if across else "y": by},
        weights="share",
        hue="size",
        hue_order=list(reversed(list(shades))),  # seaborn stacks the last one first
        palette=dict(shades),
        multiple="stack",
        discrete=True,
        shrink=0.8,
        alpha=1,
        edgecolor="black",
        linewidth=0.3,
        legend=False,
        ax=axes,
    )


def session_over_time(
    arrived: pd.DataFrame, stalls: pd.DataFrame, levels: Sequence[Mapping[str, Any]], trial: int
) -> Figure:
    """One session: its buffer and the rates of its segments over time, and where the picture stood still.

    `arrived` and `stalls`: the series `segments` and `stalls` of the trial.
    """
    with style():
        figure = new_figure(wide(), 1.6 + 2 * _PANEL)
        above, below = figure.subplots(2, 1, sharex=True)
        above.plot(*_buffer(arrived, stalls), color="black", linewidth=line(0.8))
        above.set_ylabel("buffer (s)")
        above.set_ylim(bottom=0)
        rates = [levels[int(level)]["kbps"] / 1e3 for level in arrived["level"]]
        below.step(arrived["requested_s"], rates, where="post", color="black", linewidth=line(0.8))
        below.plot(arrived["done_s"], arrived["estimate_kbps"] / 1e3, color="0.6", linewidth=line(2 / 3))
        below.set_yscale("log")
        plain_ticks(below.yaxis)
        below.set_ylabel("rate (Mbit/s)")
        below.set_xlabel("time since the video was asked for (s)")
        for axes in (above, below):
            _shade(axes, stalls)
        marks: list[Artist] = [
            Line2D([], [], color="black", label="buffer, and rate of the level"),
            Line2D([], [], color="0.6", label="estimate of the throughput"),
            Patch(facecolor="0.85", label="no picture"),
        ]
        legend_below(figure, marks)
        heading(figure, "What did the viewer get?", f"trial {trial}")
    return figure


def _waits(stalls: pd.DataFrame) -> list[tuple[float, float]]:
    """Return the times from and until which the picture stood still. An earlier fecbench recorded the place
    of a stall in the video alone: there each moves the next."""
    lengths = stalls["length_s"].to_numpy(dtype=float)
    begins = stalls["t_s"].to_numpy(dtype=float) + np.concatenate(([0.0], np.cumsum(lengths)[:-1]))
    if "end_s" in stalls:
        begins = stalls["end_s"].to_numpy(dtype=float) - lengths
    return list(zip(begins.tolist(), (begins + lengths).tolist(), strict=True))


def _shade(axes: Axes, stalls: pd.DataFrame) -> None:
    for begins_s, ends_s in _waits(stalls):
        axes.axvspan(begins_s, ends_s, color="0.85", linewidth=0)


def _buffer(arrived: pd.DataFrame, stalls: pd.DataFrame) -> tuple[list[float], list[float]]:
    """Times, and the buffer then: before and after each arrival, and empty from the beginning of a stall."""
    marks = [(begins_s, 0, 0.0) for begins_s, _ in _waits(stalls)[1:]]
    for done_s, before_s, after_s in arrived[["done_s", "buffer_s", "buffer_after_s"]].to_numpy().tolist():
        marks += [(done_s, 1, before_s), (done_s, 2, after_s)]
    marks.sort()
    return [at for at, _, _ in marks], [level for _, _, level in marks]


def sizes_of(frame: pd.DataFrame) -> list[str]:
    """The sizes of pictures of a frame of trials, the smallest first."""
    named = [name.removeprefix(SHARE) for name in frame.columns if name.startswith(SHARE)]
    return sorted(named, key=lambda size: math.prod(map(int, size.split("x"))))


def shades_of(sizes: Sequence[str]) -> dict[str, str]:
    """A grey for each: the larger, the darker."""
    return {size: str(0.92 - 0.8 * number / max(1, len(sizes) - 1)) for number, size in enumerate(sizes)}


def _labels(frame: pd.DataFrame, campaign: CampaignInfo) -> dict[str, bool]:
    """The workloads with sessions, and whether they are live."""
    of_video = [each for each in campaign.workloads if each["name"] == "video"]
    found = {
        each["label"]: "latency" in metrics.compared(each)
        for each in of_video
        if ((frame["workload"] == each["label"]) & (frame["state"] == "ok")).any()
    }
    if not found:
        raise NothingToDraw("No session of video is ok, so there is none to draw.")
    return found


def _lines(campaign: CampaignInfo) -> list[Artist]:
    return [Line2D([], [], color=look.color, label=label) for label, look in looks(campaign).items()]
