"""In which networks enough messages are whole in time."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from fecbench.results.analysis import frames
from fecbench.results.analysis.keeping import LEAST, LOSSES, kept, losses
from fecbench.results.analysis.units import axis_label
from fecbench.results.figures.nothing import NothingToDraw
from fecbench.results.figures.style import (
    FONT,
    WIDTH,
    heading,
    is_wide,
    legend_below,
    looks,
    round_ticks,
    style,
    wrapped,
)
from fecbench.results.metrics import compared, playout
from fecbench.results.store.records import CampaignInfo

_ACROSS = 3  # panels in a row
_PANEL = 2.2  # inches high
_DELAY = re.compile(r"(\w+\.)*owd_ms")


def kept_map(frame: pd.DataFrame, campaign: CampaignInfo, workload: str) -> Figure:
    """A panel a variant, and in it a mark a point, at the share of packets that were lost there and its
    delay: full where `analysis.keeping.LEAST` of the messages were whole in time, by the playout delay that
    the workload compares.

    Raises NothingToDraw for a workload that compares something else, or where the delay does not vary.
    """
    (metric,) = (compared(each) for each in campaign.workloads if each["label"] == workload)
    within_ms = playout(metric)
    points = frames.points(campaign)
    delays = [str(name) for name in points if _DELAY.fullmatch(str(name)) and points[name].nunique() > 1]
    rows = frame[frame["workload"] == workload]
    if within_ms is None or not delays or metric not in rows or not (rows["state"] == "ok").any():
        raise NothingToDraw(f"There are no shares on time of {workload} over delays to draw.")
    table = kept(rows, campaign, metric).merge(points, on="point")
    table = table.merge(losses(rows, campaign).drop(columns="workload"), on="point")
    variants = [label for label in looks(campaign) if (table["variant"] == label).any()]
    columns = min(_ACROSS, len(variants))
    least = table.loc[table[LOSSES] > 0, LOSSES].min()
    wide = is_wide(table[LOSSES].clip(lower=least))
    table[LOSSES] = table[LOSSES].clip(lower=least / 2) if wide else table[LOSSES]  # 0 stands at the left end
    down = -(-len(variants) // columns)
    with style():
        figure = Figure(figsize=(WIDTH, 1.6 + (_PANEL + 0.5) * down))
        places = list(figure.subplots(down, columns, squeeze=False, sharex=True, sharey=True).flat)
        for axes, label in zip(places, variants, strict=False):
            _draw(axes, table[table["variant"] == label], delays[0], label, WIDTH / columns - 0.7)
            if wide:
                axes.set_xscale("log")
                round_ticks(axes.xaxis)
            axes.xaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g} %"))
        for unused in places[len(variants) :]:
            unused.set_visible(False)
        for axes in places[max(0, len(variants) - columns) : len(variants)]:
            axes.set_xlabel("packets lost", fontsize=FONT)
            axes.tick_params(labelbottom=True)
        figure.supylabel(axis_label(delays[0]), fontsize=FONT)
        marks = {"kept": "black", "not kept": "none"}
        legend_below(
            figure,
            [
                Line2D([], [], color="black", marker="o", ls="", mfc=face, label=name)
                for name, face in marks.items()
            ],
        )
        heading(
            figure,
            f"Where are {100 * LEAST:g} % of {workload} whole within {within_ms:g} ms?",
            f"{campaign.heading} · {table['point'].nunique()} points of {len(campaign.points)}",
        )
    return figure


def _draw(axes: Axes, table: pd.DataFrame, delay: str, label: str, width: float) -> None:
    for is_kept, face in ((True, "black"), (False, "none")):
        marks = table[table["kept"] == is_kept]
        axes.scatter(marks[LOSSES], marks[delay], s=14, facecolor=face, edgecolor="black", rasterized=True)
    title = f"{label}: {int(np.sum(table['kept']))} of {len(table)}"
    axes.set_title(wrapped(title, width), fontsize=FONT)
