"""The figures of an explanation: a map over the two strongest factors, and the effect of each factor.

Drawn in the style of `distributions`. An explanation that lacks what a figure needs raises NothingToDraw.
"""

from __future__ import annotations

from functools import partial
from typing import Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from results import metrics
from results.analysis.intervals import VERDICTS
from results.analysis.pairing import median_ratios
from results.analysis.rules import Explanation
from results.analysis.units import axis_label, quantity
from results.figures.nothing import NothingToDraw
from results.figures.style import (
    ACROSS,
    FONT,
    RATIO_COLORS,
    WIDTH,
    around_one,
    as_pixels,
    few_ticks,
    greatest_log,
    grid,
    heading,
    is_wide,
    plain_ticks,
    ratio_colorbar,
    ratio_ticks,
    round_ticks,
    style,
    to_ends,
    wrapped,
)

_DOWN, _UP = "v", "^"
_FEW = 5


def benefit_map(explanation: Explanation, variant: str, baseline: str, metric: str = "") -> Figure:
    """The ratio over the two strongest factors: as the forest predicts it, and at each point as it was.

    Where a point has several workloads and none of the two factors is of the workload, its median is shown.
    `metric`: by default the one that was explained.
    """
    compared = metrics.of(metric or explanation.metric)
    lower, higher = ("harm", "gain") if compared.more_is_better else ("gain", "harm")
    markers = {lower: _DOWN, higher: _UP, "equivalent": "s", "undecided": "o"}
    if explanation.surface.empty:
        raise NothingToDraw("A map needs enough points, and two factors that vary.")
    across, up = str(explanation.surface.index.name), str(explanation.surface.columns.name)
    place = ["point", across, up]
    verdicts = explanation.table.astype({"verdict": str}).groupby(place)["verdict"]
    common = verdicts.first().where(verdicts.nunique() == 1, "undecided")
    dots = median_ratios(explanation.table, place).dropna().to_frame().join(common).reset_index()
    shades = np.log2(to_ends(dots["ratio"]))
    with style():
        figure = Figure(figsize=(WIDTH, 6))
        axes = figure.subplots()
        norm = around_one(dots["ratio"])
        surface = np.log2(explanation.surface.to_numpy()).T
        mesh = axes.pcolormesh(
            explanation.surface.index,
            explanation.surface.columns,
            surface,
            norm=norm,
            cmap=RATIO_COLORS,
            alpha=0.6,
            shading="nearest",
            rasterized=True,
        )
        for verdict in VERDICTS:
            some = dots[dots["verdict"] == verdict]
            axes.scatter(
                some[across],
                some[up],
                c=shades[some.index],
                norm=norm,
                cmap=RATIO_COLORS,
                s=45,
                marker=markers[verdict],
                edgecolor="black",
                linewidth=0.7,
                label=f"{verdict} ({len(some)})",
                rasterized=as_pixels(len(dots)),
            )
        _scale(axes, "x", explanation.table[across])
        _scale(axes, "y", explanation.table[up])
        axes.set_xlabel(axis_label(across))
        axes.set_ylabel(axis_label(up))
        ratio_colorbar(figure, axes, mesh, compared.ratio_to(baseline))
        figure.legend(loc="outside lower center", ncols=len(VERDICTS), frameon=False)
        heading(
            figure,
            f"Where does {variant} help?",
            f"{explanation.campaign} · {explanation.everywhere.points} points; purple: less, orange: more",
        )
    return figure


def effects(explanation: Explanation, variant: str, baseline: str, metric: str = "") -> Figure:
    """The ratio over each factor, the strongest first: the forest's mean prediction, and every ratio."""
    if not explanation.effects:
        raise NothingToDraw("The effects of the factors need more points.")
    names = list(explanation.importances["factor"])
    reach, ratios = greatest_log(explanation.table["ratio"]), to_ends(explanation.table["ratio"])
    pixels = as_pixels(len(names) * len(ratios))
    with style():
        figure = Figure(figsize=(WIDTH, 1.5 + 2.6 * -(-len(names) // ACROSS)))
        panels = grid(figure, len(names), ACROSS)
        for axes, name in zip(panels, names, strict=True):
            axes.axhline(1, color="black", linewidth=1)
            axes.scatter(explanation.table[name], ratios, s=10, color="0.6", rasterized=pixels)
            axes.plot(
                explanation.effects[name]["value"],
                explanation.effects[name]["ratio"],
                color="black",
                linewidth=2.5,
            )
            axes.set_xlabel(axis_label(name))
            _scale(axes, "x", explanation.table[name])
            axes.set_yscale("log")
            ratio_ticks(axes.yaxis, reach)
        label = metrics.of(metric or explanation.metric).ratio_to(baseline)
        figure.supylabel(wrapped(label, figure.get_figheight() - 1), fontsize=FONT)
        heading(
            figure,
            f"What drives the ratio of {variant}?",
            f"{explanation.campaign} · {explanation.everywhere.points} points; line: mean prediction of a"
            " random forest",
        )
    return figure


def _scale(axes: Axes, which: Literal["x", "y"], values: pd.Series) -> None:
    """Logarithmic where the factor is wide; a tick at each value where there are few."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    if is_wide(values):
        axes.set(**{f"{which}scale": "log"})
        round_ticks(axis)
    else:
        plain_ticks(axis)
    if values.nunique() <= _FEW:
        few_ticks(axis, sorted(set(values)), partial(quantity, str(values.name)))
