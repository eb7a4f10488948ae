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
from fecbench.results.figures.nothing import NothingToDraw
from fecbench.results.figures.style import (
    WIDTH,
    heading,
    legend_below,
    looks,
    plain_ticks,
    style,
    wrapped,
)
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
        figure = Figure(figsize=(WIDTH, 5.5))
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


def sessions(frame: pd.DataFrame, campaign: CampaignInfo) -> Figure:
    """The distribution of what sessions were worth, and of how long their picture stood still: a row a
    workload, a line a variant. A session that failed or timed out is worse than any.

    Raises NothingToDraw where no session is ok.
    """
    labels = _labels(frame, campaign)
    with style():
        figure = Figure(figsize=(WIDTH, 1.6 + _PANEL * len(labels)))
        rows = figure.subplots(len(labels), 2, squeeze=False, sharey=True)
        for row, (label, live) in zip(rows, labels.items(), strict=True):
            trials = frame[frame["workload"] == label]
            for axes, name in zip(row, _LIVE if live else _CURVES, strict=True):
                metric = metrics.of(name)
                values = outcomes.values(trials, metric)
                for variant, look in looks(campaign).items():
                    of_variant = values[(trials["variant"] == variant) & values.notna()].sort_values()
                    shares = np.arange(1, len(of_variant) + 1) / max(1, len(of_variant))
                    axes.step(of_variant, shares, where="post", color=look.color, linewidth=1.5)
                axes.set_xlabel(wrapped(metric.title, WIDTH / 2 - 1))
                if metric.is_share:
                    axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=" %"))
                axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=" %"))
            row[0].set_ylabel("share of sessions")
            row[0].set_title(label, loc="left")
        legend_below(figure, _lines(campaign))
        heading(
            figure,
            "What were sessions worth, and for how long did the picture stand still?",
            campaign.heading,
        )
    return figure


def scores(by_trial: Mapping[int, float], frame: pd.DataFrame, campaign: CampaignInfo) -> Figure:
    """The distribution of the scores of P.1203, by trial: a panel a workload, a line a variant. A session
    that failed or timed out has none."""
    labels = _labels(frame, campaign)
    values = frame["id"].map(dict(by_trial))
    with style():
        figure = Figure(figsize=(WIDTH, 1.6 + _PANEL * len(labels)))
        panels = figure.subplots(len(labels), 1, squeeze=False, sharex=True)[:, 0]
        for axes, label in zip(panels, labels, strict=True):
            for variant, look in looks(campaign).items():
                chosen = (frame["workload"] == label) & (frame["variant"] == variant) & values.notna()
                of_variant = values[chosen].sort_values()
                shares = np.arange(1, len(of_variant) + 1) / max(1, len(of_variant))
                axes.step(of_variant, shares, where="post", color=look.color, linewidth=1.5)
            axes.set_title(label, loc="left")
            axes.set_ylabel("share of sessions")
            axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=" %"))
        panels[-1].set_xlabel("score of ITU-T P.1203, from 1 to 5")
        legend_below(figure, _lines(campaign))
        heading(figure, "How would viewers rate the sessions?", campaign.heading)
    return figure


def pictures(frame: pd.DataFrame, campaign: CampaignInfo) -> Figure:
    """Which share of all segments had which size of the picture: a panel a workload, a bar a variant.

    Raises NothingToDraw where no session is ok.
    """
    labels, variants = _labels(frame, campaign), list(looks(campaign))
    sizes = sizes_of(frame)
    shades = shades_of(sizes)
    with style():
        figure = Figure(figsize=(WIDTH, 1.8 + (0.5 + 0.35 * len(variants)) * len(labels)))
        panels = figure.subplots(len(labels), 1, squeeze=False, sharex=True)[:, 0]
        for axes, label in zip(panels, labels, strict=True):
            ok = frame[(frame["workload"] == label) & (frame["state"] == "ok")]
            for place, variant in enumerate(variants):
                before = 0.0
                for size in sizes:
                    share = float(ok.loc[ok["variant"] == variant, SHARE + size].mean())
                    axes.barh(place, share, left=before, color=shades[size], edgecolor="black", linewidth=0.3)
                    before += 0.0 if math.isnan(share) else share
            axes.set_yticks(range(len(variants)), variants)
            axes.invert_yaxis()
            axes.set_title(label, loc="left")
            axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=" %"))
        panels[-1].set_xlabel("share of segments")
        legend_below(
            figure,
            [
                Patch(facecolor=shades[size], edgecolor="black", label=size.replace("x", "×"))
                for size in sizes
            ],
        )
        heading(figure, "Which pictures did viewers see?", campaign.heading)
    return figure


def session_over_time(
    arrived: pd.DataFrame, stalls: pd.DataFrame, levels: Sequence[Mapping[str, Any]], trial: int
) -> Figure:
    """One session: its buffer and the rates of its segments over time, and where the picture stood still.

    `arrived` and `stalls`: the series `segments` and `stalls` of the trial.
    """
    with style():
        figure = Figure(figsize=(WIDTH, 1.6 + 2 * _PANEL))
        above, below = figure.subplots(2, 1, sharex=True)
        above.plot(*_buffer(arrived, stalls), color="black", linewidth=1.2)
        above.set_ylabel("buffer (s)")
        above.set_ylim(bottom=0)
        rates = [levels[int(level)]["kbps"] / 1e3 for level in arrived["level"]]
        below.step(arrived["requested_s"], rates, where="post", color="black", linewidth=1.2)
        below.plot(arrived["done_s"], arrived["estimate_kbps"] / 1e3, color="0.6", linewidth=1)
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
    """From when until when the picture stood still: stalls are told by their place in the video, so each
    moves the next."""
    lengths = stalls["length_s"].to_numpy(dtype=float)
    begins = stalls["t_s"].to_numpy(dtype=float) + np.concatenate(([0.0], np.cumsum(lengths)[:-1]))
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
