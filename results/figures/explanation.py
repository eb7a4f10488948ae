"""The figures of an explanation: maps over the two strongest factors, and the effect of each factor.

Drawn in the style of `distributions`. An explanation that lacks what a figure needs raises NothingToDraw.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fecbench.hints import nearest
from fecbench.quantities import counted
from fecbench.results import metrics
from fecbench.results.analysis.intervals import VERDICTS, WORDS
from fecbench.results.analysis.rules import Explanation
from fecbench.results.analysis.scales import is_log
from fecbench.results.figures.nothing import NothingToDraw
from fecbench.results.figures.sample import remark, sample
from fecbench.results.figures.seaborn_alone import sns
from fecbench.results.figures.sheet import Given, sheet
from fecbench.results.figures.style import (
    across,
    around_one,
    as_pixels,
    greatest_log,
    line,
    mark,
    ratio_colors,
    to_ends,
    wide,
    wrapped,
)
from fecbench.results.figures.ticks import few_ticks, plain_ticks, ratio_ticks, round_ticks
from fecbench.results.metrics.units import axis_label, quantity

_DOWN, _UP = "v", "^"
_FEW = 5
_MAP = 4.6  # inches, the least width of a map


def benefit_map(
    explanation: Explanation, variant: str, baseline: str, metric: str = "", *, ax: Given = None
) -> Figure:
    """The ratio over the two strongest factors of the points: as the forest predicts it, and at each point as
    it was. A map a workload.

    `metric`: by default the one that was explained.
    """
    compared = metrics.of(metric or explanation.metric)
    lower, higher = ("harm", "gain") if compared.more_is_better else ("gain", "harm")
    markers = {lower: _DOWN, higher: _UP, "equivalent": "s", "undecided": "o"}
    if not explanation.surfaces:
        raise NothingToDraw("A map needs enough networks, and two factors of them that vary.")
    maps = {
        workload: _dots(explanation.table[explanation.table["workload"] == workload], surface)
        for workload, surface in explanation.surfaces.items()
    }
    columns, colors = across(_MAP), ratio_colors(compared)
    most = max(len(dots) for dots in maps.values())
    norm = around_one(pd.concat([dots["ratio"] for dots in maps.values()]))
    size = (wide(), 2 + 4 * -(-len(maps) // columns))
    with sheet(len(maps), size, ax, columns=columns) as page:
        page.blank_labels()
        for axes, (workload, dots) in zip(page.panels, maps.items(), strict=True):
            surface = explanation.surfaces[workload]
            horizontal, up = str(surface.index.name), str(surface.columns.name)
            axes.pcolormesh(
                surface.index,
                surface.columns,
                np.log2(surface.to_numpy()).T,
                norm=norm,
                cmap=colors,
                alpha=0.6,
                shading="nearest",
                rasterized=True,
            )
            marks = sample(dots.assign(hue=np.log2(to_ends(dots["ratio"]))))
            sns.scatterplot(
                marks,
                x=horizontal,
                y=up,
                hue="hue",
                hue_norm=norm,
                palette=colors,
                style="verdict",
                markers=markers,
                s=mark(1.1),
                edgecolor="black",
                linewidth=0.7,
                clip_on=False,  # points at the ends of a range stand on the edge
                zorder=3,
                legend=False,
                rasterized=as_pixels(len(dots)),
                ax=axes,
            )
            _scale(axes, "x", explanation.table[horizontal], explanation.scales)
            _scale(axes, "y", explanation.table[up], explanation.scales)
            counts = [
                f"{WORDS[verdict]} {np.count_nonzero(dots['verdict'] == verdict)}" for verdict in VERDICTS
            ]
            title = [wrapped(text, page.width - 0.3) for text in (workload, ", ".join(counts))]
            axes.set_title("\n".join(title))
            axes.set(xlabel=axis_label(horizontal), ylabel="")
        for axes in page.first_column:
            axes.set_ylabel(axis_label(str(next(iter(explanation.surfaces.values())).columns.name)))
        page.colorbar(ScalarMappable(norm, colors), compared.ratio_to(baseline))
        page.legend(
            [
                Line2D(
                    [],
                    [],
                    linestyle="",
                    marker=markers[verdict],
                    color="0.7",
                    mec="black",
                    label=WORDS[verdict],
                )
                for verdict in VERDICTS
            ]
        )
        page.heading(
            f"Where does “{variant}” help?",
            f"{explanation.campaign} · {counted(explanation.everywhere.points, 'network')}; purple: helps,"
            f" orange: harms{remark(most)}",
        )
    return page.figure


def _dots(rows: pd.DataFrame, surface: pd.DataFrame) -> pd.DataFrame:
    """The points of a workload that have a ratio, with the verdict of each."""
    columns = ["point", str(surface.index.name), str(surface.columns.name), "ratio", "verdict"]
    return rows.assign(ratio=rows["ratio"].astype(np.float64))[columns].dropna().astype({"verdict": str})


def effects(
    explanation: Explanation,
    variant: str,
    baseline: str,
    metric: str = "",
    *,
    factors: Sequence[str] = (),
    ax: Given = None,
) -> Figure:
    """The ratio over each factor, or over those named, the strongest first: the forest's mean prediction, and
    every ratio."""
    if not explanation.effects:
        raise NothingToDraw("The effects of the factors need more networks.")
    varied = list(explanation.importances["factor"])
    for factor in factors:
        if factor not in varied:
            raise NothingToDraw(f"This design does not vary {factor!r}; {nearest(factor, varied)}.")
    names = [name for name in varied if name in factors or not factors]
    reach, columns = greatest_log(explanation.table["ratio"]), across()
    dots = sample(explanation.table.assign(drawn=to_ends(explanation.table["ratio"])))
    pixels = as_pixels(len(names) * len(explanation.table))
    size = (wide(), 1.5 + 2.6 * -(-len(names) // columns))
    with sheet(len(names), size, ax, columns=columns, what="choose some of factors=") as page:
        page.blank_labels()
        for axes, name in zip(page.panels, names, strict=True):
            axes.axhline(1, color="black", linewidth=line(2 / 3))
            sns.scatterplot(
                dots, x=name, y="drawn", s=mark(0.5), color="0.6", linewidth=0, rasterized=pixels, ax=axes
            )
            sns.lineplot(
                explanation.effects[name],
                x="value",
                y="ratio",
                estimator=None,
                color="black",
                linewidth=line(5 / 3),
                ax=axes,
            )
            axes.set(xlabel=axis_label(name), ylabel="")
            _scale(axes, "x", explanation.table[name], explanation.scales)
            axes.set_yscale("log")
            ratio_ticks(axes.yaxis, reach)
        page.label_up(metrics.of(metric or explanation.metric).ratio_to(baseline))
        page.heading(
            f"What drives the ratio of {variant}?",
            f"{explanation.campaign} · {counted(explanation.everywhere.points, 'network')}; line:"
            " mean prediction of a"
            f" random forest{remark(explanation.everywhere.points)}",
        )
    return page.figure


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
