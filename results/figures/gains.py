"""What arms gain and cost in groups of networks, beside each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fecbench.results.figures.style import (
    FONT,
    MARKERS,
    PALETTE,
    WIDTH,
    grid,
    heading,
    legend_below,
    ratio_ticks,
    style,
)

_ACROSS = 4  # panels in a row
_PANEL = 2.6  # inches high
_TAIL = 0.05  # of the networks, beyond each end of a line
_APART = 0.25  # of the distance between two groups: that of two arms


def gains_map(table: pd.DataFrame, arms: Sequence[str], question: str, detail: str) -> Figure:
    """A panel for each value of the column `panel`, in it a place for each `group`, and there for each arm a
    mark at the geometric mean of `ratio` over the rows (networks), and a line over 90 % of them. Ratios are
    above 0; columns besides: `arm`. Panels and groups are in the order of the table."""
    panels = list(table.groupby("panel", observed=True, sort=False))
    groups = list(dict.fromkeys(table["group"]))
    looks = dict(zip(arms, zip(PALETTE, MARKERS, strict=False), strict=False))
    with style():
        figure = Figure(figsize=(WIDTH, 1.6 + _PANEL * -(-len(panels) // _ACROSS)))
        reach = 0.0
        places = grid(figure, len(panels), _ACROSS)
        for axes, (name, rows) in zip(places, panels, strict=True):
            for number, (arm, look) in enumerate(looks.items()):
                beside = _APART * (number - (len(arms) - 1) / 2)
                for place, group in enumerate(groups):
                    logs = np.log(rows.loc[(rows["group"] == group) & (rows["arm"] == arm), "ratio"])
                    if len(logs):
                        reach = max(reach, _draw(axes, place + beside, logs, *look))
            axes.axhline(1, color="black", linewidth=1)
            axes.set_xticks(range(len(groups)), groups, fontsize=FONT - 3)
            axes.set_title(str(name), fontsize=FONT)
        for axes in places:
            axes.set_yscale("log")
            axes.set_ylim(np.exp(-1.05 * reach), np.exp(1.05 * reach))
            ratio_ticks(axes.yaxis, reach)
        figure.supylabel("◀ shorter      longer ▶", fontsize=FONT)
        legend_below(
            figure,
            [Line2D([], [], color=color, marker=marker, label=arm) for arm, (color, marker) in looks.items()],
        )
        heading(figure, question, f"{detail} · mark: geometric mean; line: 90 % of the networks")
    return figure


def _draw(axes: Axes, x: float, logs: pd.Series, color: tuple[float, float, float], marker: str) -> float:
    """How far the line reaches from 1, as a log ratio."""
    low, high = logs.quantile([_TAIL, 1 - _TAIL])
    axes.plot([x, x], np.exp([low, high]), color=color, linewidth=2)
    axes.plot([x], [np.exp(logs.mean())], color=color, marker=marker, markersize=7)
    return float(max(-low, high, 0.01))
