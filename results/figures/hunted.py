"""The figure of a hunt: where it looked in the space, and what it found."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fecbench.quantities import counted
from fecbench.results.figures.nothing import NothingToDraw
from fecbench.results.figures.sheet import heading, legend_below
from fecbench.results.figures.style import (
    PALETTE,
    across,
    as_pixels,
    new_figure,
    style,
    wide,
    wrapped,
)
from fecbench.results.figures.ticks import plain_ticks, round_ticks

_HIGH = 2.6  # inches, of a row of panels
_GREY = (0.55, 0.55, 0.55)
_LARGEST = 3.0
"""The greatest ratio that is drawn, and the inverse of the least: what is beyond lies at the edge."""


def hunted_space(
    looked_at: pd.DataFrame,
    found: pd.DataFrame,
    scales: Mapping[str, str],
    margin: float,
    question: str,
    effect: str,
) -> Figure:
    """A panel for each factor: the effect in each network that was looked at, by all its pairs, and in those
    that were found; `effect` names it, such as "times as long".

    Both frames have a column for each factor, and `effect`. `scales`: of the factors with a range, "log" or
    "linear"; the others are choices. Raises NothingToDraw where no network has a ratio.
    """
    known = looked_at[looked_at["effect"] > 0]
    factors = [name for name in known.columns if name != "effect" and known[name].nunique() > 1]
    if not factors:
        raise NothingToDraw("No two networks that were looked at have a ratio.")
    columns = min(across(), len(factors))
    rows = math.ceil(len(factors) / columns)
    with style():
        figure = new_figure(wide(), 1.4 + _HIGH * rows)
        panels = figure.subplots(rows, columns, squeeze=False, sharey=True).ravel()
        for axes, name in zip(panels, factors, strict=False):
            _draw(axes, name, known, found, scales.get(name))
            axes.axhspan(1 / (1 + margin), 1 + margin, color=_GREY, alpha=0.25, linewidth=0)
        for axes in panels[len(factors) :]:
            axes.set_axis_off()
        for axes in panels[::columns]:
            axes.set_ylabel(wrapped(effect, _HIGH))
        legend_below(
            figure,
            [
                _mark(_GREY, ".", f"looked at ({counted(len(known), 'network')})"),
                _mark(PALETTE[3], "D", f"found ({len(found)})"),
                Line2D([], [], color=_GREY, alpha=0.4, linewidth=8, label="within the margin"),
            ],
        )
        heading(
            figure, question, "of most networks there is one pair of trials, which says little under losses"
        )
    return figure


def _draw(axes: Axes, name: str, looked_at: pd.DataFrame, found: pd.DataFrame, scale: str | None) -> None:
    places = {str(value): place for place, value in enumerate(dict.fromkeys(looked_at[name]))}
    random = np.random.default_rng(0)
    for frame, color, marker, size in ((looked_at, _GREY, ".", 3), (found, PALETTE[3], "D", 6)):
        if scale is None:
            at = np.array([places.get(str(value), 0) for value in frame[name]], np.float64)
            at += random.uniform(-0.3, 0.3, len(at)) * (marker == ".")
        else:
            at = frame[name].to_numpy(np.float64)
        effect = np.clip(frame["effect"].to_numpy(np.float64), 1 / _LARGEST, _LARGEST)
        axes.plot(
            at,
            effect,
            linestyle="none",
            marker=marker,
            markersize=size,
            color=color,
            rasterized=as_pixels(len(at)),
        )
    axes.set_yscale("log")
    axes.set_ylim(0.95 / _LARGEST, 1.05 * _LARGEST)
    axes.set_yticks([0.5, 1, 2], ["0.5", "1", "2"])
    axes.minorticks_off()
    if scale is None:
        axes.set_xticks(range(len(places)), list(places), rotation=20, ha="right", fontsize="x-small")
    elif scale == "log":
        axes.set_xscale("log")
        round_ticks(axes.xaxis)
    else:
        plain_ticks(axes.xaxis)
    axes.set_title(name, fontsize="medium")


def _mark(color: tuple[float, float, float], marker: str, label: str) -> Line2D:
    return Line2D([], [], color=color, linestyle="none", marker=marker, label=label)
