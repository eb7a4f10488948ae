"""The figures of an explanation: maps over the two strongest factors, and the effect of each factor.

Drawn in the style of `distributions`. An explanation that lacks what a figure needs raises NothingToDraw.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fecbench.results import metrics
from fecbench.results.analysis.intervals import VERDICTS
from fecbench.results.analysis.rules import Explanation
from fecbench.results.analysis.units import axis_label, quantity
from fecbench.results.figures.nothing import NothingToDraw
from fecbench.results.figures.style import (
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
    is_log,
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
_MAPS_ACROSS = 2


def benefit_map(explanation: Explanation, variant: str, baseline: str, metric: str = "") -> Figure:
    """The ratio over the two strongest factors of the points: as the forest predicts it, and at each point as
    it was. A map a workload.

    `metric`: by default the one that was explained.
    """
    compared = metrics.of(metric or explanation.metric)
    below, above = compared.sides
    lower, higher = ("harm", "gain") if compared.more_is_better else ("gain", "harm")
    markers = {lower: _DOWN, higher: _UP, "equivalent": "s", "undecided": "o"}
    if not explanation.surfaces:
        raise NothingToDraw("A map needs enough points, and two factors of them that vary.")
    maps = {
        workload: _dots(explanation.table[explanation.table["workload"] == workload], surface)
        for workload, surface in explanation.surfaces.items()
    }
    with style():
        figure = Figure(figsize=(WIDTH, 2 + 4 * -(-len(maps) // _MAPS_ACROSS)))
        panels = grid(figure, len(maps), _MAPS_ACROSS)
        norm = around_one(pd.concat([dots["ratio"] for dots in maps.values()]))
        for axes, (workload, dots) in zip(panels, maps.items(), strict=True):
            surface = explanation.surfaces[workload]
            across, up = str(surface.index.name), str(surface.columns.name)
            mesh = axes.pcolormesh(
                surface.index,
                surface.columns,
                np.log2(surface.to_numpy()).T,
                norm=norm,
                cmap=RATIO_COLORS,
                alpha=0.6,
                shading="nearest",
                rasterized=True,
            )
            shades, counts = np.log2(to_ends(dots["ratio"])), []
            for verdict in VERDICTS:
                some = dots[dots["verdict"] == verdict]
                counts.append(f"{verdict} {len(some)}")
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
                    clip_on=False,  # points at the ends of a range stand on the edge
                    zorder=3,
                    label=verdict,
                    rasterized=as_pixels(len(dots)),
                )
            _scale(axes, "x", explanation.table[across], explanation.scales)
            _scale(axes, "y", explanation.table[up], explanation.scales)
            axes.set_title(f"{workload}\n{', '.join(counts)}")
            axes.set_xlabel(axis_label(across))
        for axes in panels[::_MAPS_ACROSS]:
            axes.set_ylabel(axis_label(up))
        ratio_colorbar(figure, panels, mesh, compared.ratio_to(baseline))
        figure.legend(
            handles=panels[0].get_legend_handles_labels()[0],
            loc="outside lower center",
            ncols=len(VERDICTS),
            frameon=False,
        )
        heading(
            figure,
            f"Where does “{variant}” help?",
            f"{explanation.campaign} · {explanation.everywhere.points} points; purple: {below},"
            f" orange: {above}",
        )
    return figure


def _dots(rows: pd.DataFrame, surface: pd.DataFrame) -> pd.DataFrame:
    """The points of a workload that have a ratio, with the verdict of each."""
    columns = [str(surface.index.name), str(surface.columns.name), "ratio", "verdict"]
    return rows.assign(ratio=rows["ratio"].astype(np.float64))[columns].dropna().astype({"verdict": str})


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
            _scale(axes, "x", explanation.table[name], explanation.scales)
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


def _scale(axes: Axes, which: Literal["x", "y"], values: pd.Series, scales: Mapping[str, str]) -> None:
    """Logarithmic as the design has it; a tick at each value where there are few."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    if is_log(values, scales):
        axes.set(**{f"{which}scale": "log"})
        round_ticks(axis)
    else:
        plain_ticks(axis)
    if values.nunique() <= _FEW:
        few_ticks(axis, sorted(set(values)), partial(quantity, str(values.name)))
