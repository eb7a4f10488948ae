"""Figures of ratios to baselines: bars, scatter over factors, heat maps over two, and pair plots.

All are drawn from `table`. Drawn in the style of `results.figures.style`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from fecbench.results.analysis import frames
from fecbench.results.analysis.intervals import EFFECTS, FEWEST, median_ratio_interval
from fecbench.results.analysis.margins import margins_of, percent
from fecbench.results.analysis.pairing import baselines_of, median_ratios
from fecbench.results.analysis.ratios import ratio_table
from fecbench.results.analysis.units import axis_label, number, quantity
from fecbench.results.analysis.workload_names import workload_names
from fecbench.results.figures.distributions import (
    across_workloads,
    compared_with_baseline,
    divisor,
    names_of_ratios,
    only_metric,
    pair_plot,
    workloads_width,
)
from fecbench.results.figures.nothing import NothingToDraw
from fecbench.results.figures.segments import scale_at_once
from fecbench.results.figures.style import (
    ACROSS,
    FONT,
    RATIO_COLORS,
    WIDTH,
    Look,
    around_one,
    as_pixels,
    greatest_log,
    grid,
    heading,
    inches,
    is_log,
    label_ratios,
    legend_below,
    looks,
    plain_ticks,
    ratio_colorbar,
    ratio_ticks,
    round_ticks,
    style,
    to_ends,
    wrapped,
)
from fecbench.results.metrics import Metric, choose
from fecbench.results.store.records import CampaignInfo

_FEW = 6  # values of a factor that are cells of their own
_POINTS_IN_A_CELL = 4
_MOST_CELLS = 6  # along one side
_PALE = 0.3  # of a colour
_CELL = 0.75  # inches, the least width of one


def table(frame: pd.DataFrame, campaign: CampaignInfo, metric: str = "") -> pd.DataFrame:
    """The ratios of all variants to their baselines, one row a (variant, workload, point).

    `metric`: by default the one that the workloads compare. Columns: `variant`, those of
    `intervals.ratio_intervals`, and each factor. Raises NothingToDraw.
    """
    return ratio_table(compared_with_baseline(frame, choose(campaign, metric)), campaign)


def bars(ratios: pd.DataFrame, campaign: CampaignInfo) -> Figure:
    """The median ratio over points of each workload and variant, with its bootstrap interval over points; at
    the end of the axis for 0 and ∞."""
    metric, names, look_of = only_metric(ratios["metric"]), workload_names(campaign), _drawn(ratios, campaign)
    baselines = _baselines(look_of, campaign)
    step = 0.8 / len(look_of)
    estimates = pd.DataFrame(
        {
            (workload, variant): median_ratio_interval(rows, rows["point"])
            for (workload, variant), rows in ratios.groupby(["workload", "variant"], observed=True)
        },
        index=["median", "low", "high"],
    ).T
    reach, sure = greatest_log(pd.Series(estimates.to_numpy().ravel())), estimates["low"].notna()
    drawn = estimates.apply(to_ends, reach=1.1 * max(reach, float(np.log(1.02))))
    ends = {(workload, variant): row for workload, variant, *row in drawn.reset_index().to_numpy()}
    with style():
        figure = Figure(figsize=(workloads_width(names), 5.5))
        axes = figure.subplots()
        axes.axhline(1, color="black", linewidth=1)
        axes.set_yscale("log")
        for i, workload in enumerate(names):
            for j, (variant, look) in enumerate(look_of.items()):
                if (workload, variant) not in ends:
                    continue
                position = i + (j - (len(look_of) - 1) / 2) * step
                median, low, high = ends[workload, variant]
                axes.bar(
                    position,
                    median - 1,
                    0.8 * step,
                    bottom=1,
                    facecolor=(*look.color, 0.6),
                    edgecolor="black",
                    hatch=look.hatch,
                )
                axes.vlines(position, low, high, color="black", linewidth=2.5)  # NaN draws nothing
        _ratio_axis(figure, axes, reach, metric, baselines)
        across_workloads(axes, campaign)
        legend_below(
            figure,
            [
                Patch(facecolor=(*look.color, 0.6), edgecolor="black", hatch=look.hatch, label=name)
                for name, look in zip(names_of_ratios(baselines).values(), look_of.values(), strict=True)
            ],
        )
        line = "line: its 95 % interval" if sure.any() else ""
        none = "" if sure.all() else f"no interval of fewer than {FEWEST} points"
        heading(
            figure,
            f"By how much does {metric.noun} change?",
            f"{campaign.heading} · {ratios['point'].nunique()} points of {len(campaign.points)} · "
            + "; ".join(filter(None, ["bar: median over points", line, none])),
        )
    return figure


def over_factors(ratios: pd.DataFrame, campaign: CampaignInfo, workload: str) -> Figure:
    """The ratio of one workload at every point, over each factor: a panel a factor. Ratios of 0 and ∞, of
    timeouts, are hollow, at the ends of the axis."""
    factors = _factors(campaign)
    some = ratios[ratios["workload"] == workload]
    name = workload_names(campaign)[workload]
    if some.empty:
        raise NothingToDraw(f"No ratio was measured for {name}.")
    metric, look_of, reach = only_metric(some["metric"]), _drawn(some, campaign), greatest_log(some["ratio"])
    baselines = _baselines(look_of, campaign)
    drawn, pixels = to_ends(some["ratio"]), as_pixels(len(some) * len(factors))
    with style():
        figure = Figure(figsize=(WIDTH, 2 + 2.6 * -(-len(factors) // ACROSS)))
        panels = grid(figure, len(factors), ACROSS)
        for axes, factor in zip(panels, factors, strict=True):
            axes.axhline(1, color="black", linewidth=1)
            axes.set_yscale("log")
            intervals = []
            for variant, look in look_of.items():
                rows = some[some["variant"] == variant]
                lines = axes.vlines(
                    rows[factor],
                    rows["low"],
                    rows["high"],
                    color=look.color,
                    linewidth=1,
                    alpha=0.6,
                    rasterized=pixels,
                )
                intervals.append(lines)
                undecided = rows["low"].notna() & ~rows["verdict"].isin(EFFECTS)
                for chosen, color in (
                    (~rows["censored"] & ~undecided, look.color),
                    (~rows["censored"] & undecided, _pale(look.color)),
                    (rows["censored"], "white"),
                ):
                    alike = rows[chosen]
                    if alike.empty:
                        continue
                    axes.scatter(
                        alike[factor],
                        drawn[alike.index],
                        s=30,
                        marker=look.marker,
                        color=color,
                        edgecolor="black",
                        linewidth=0.5,
                        zorder=3,
                        rasterized=pixels,
                    )
            axes.set_xlabel(axis_label(factor))
            if is_log(some[factor], campaign.scales):
                axes.set_xscale("log")
                round_ticks(axes.xaxis)
            elif pd.api.types.is_numeric_dtype(some[factor]):
                plain_ticks(axes.xaxis)
            elif sum(inches(f"{value} ") for value in some[factor].unique()) > (WIDTH - 1) / ACROSS:
                axes.tick_params(axis="x", labelrotation=90)
            for lines in intervals:
                scale_at_once(axes, lines)
        _ratio_axis(figure, panels[0], reach, metric, baselines)
        legend_below(
            figure,
            [
                Line2D([], [], linestyle="", marker=look.marker, color=look.color, mec="black", label=name)
                for name, look in zip(names_of_ratios(baselines).values(), look_of.values(), strict=True)
            ],
        )
        pale = f"pale: neither helps nor harms by more than {percent(margins_of(campaign)[workload])}"
        known = some["low"].notna().any()
        told = f" · line: 95 % interval over repetitions, {pale}" if known else ""
        hollow = " · hollow: failed or timed out, beyond the axis" if some["censored"].any() else ""
        heading(
            figure,
            f"Where does {metric.noun} change, for {name}?",
            f"{campaign.heading} · {some['point'].nunique()} points of {len(campaign.points)}{told}{hollow}",
        )
    return figure


def _pale(color: tuple[float, float, float]) -> tuple[float, float, float]:
    """The colour of a point without an effect."""
    red, green, blue = (1 - _PALE * (1 - part) for part in color)
    return red, green, blue


def heat_map(
    ratios: pd.DataFrame, campaign: CampaignInfo, variant: str, factors: tuple[str, str] | None = None
) -> Figure:
    """The median ratio in cells of two factors, a panel a workload; with the number of points in each cell.

    Values are as measured, with no model. Without `factors`, over the first two that the design varies.
    """
    some = ratios[ratios["variant"] == variant]
    varied = _factors(campaign)
    if len(varied) < 2:
        raise NothingToDraw("This design varies one factor only, so there is no map over two.")
    across, up = factors or (varied[0], varied[1])
    names = {
        label: name for label, name in workload_names(campaign).items() if label in set(some["workload"])
    }
    if not names:
        raise NothingToDraw(f"No ratio of {variant} was measured.")
    metric = only_metric(some["metric"])
    points = frames.points(campaign)
    columns, rows = (_cells(points[factor], campaign.scales) for factor in (across, up))
    cells = pd.DataFrame({"point": points["point"], "column": columns.of_point, "row": rows.of_point})
    with style():
        cell = max(_CELL, *(inches(f"{label} ") for label in columns.labels))
        across_page = max(1, int((WIDTH - 2) / (cell * (len(columns) + 1))))
        high = 1.2 + 0.7 * len(rows)
        figure = Figure(figsize=(WIDTH, 1 + high * -(-len(names) // across_page)))
        panels = grid(figure, len(names), across_page)
        in_cells, cell_of = some.merge(cells, on="point"), ["workload", "row", "column"]
        medians = median_ratios(in_cells, cell_of)
        sizes = in_cells.groupby(cell_of, observed=True).size()
        shades = np.log2(to_ends(medians))
        norm = around_one(medians)
        for axes, (workload, name) in zip(panels, names.items(), strict=True):
            in_grid = (
                shades[workload].unstack().reindex(range(len(rows))).reindex(columns=range(len(columns)))
            )
            drawn = axes.pcolormesh(in_grid, norm=norm, cmap=RATIO_COLORS)
            for (row, column), median in medians[workload].items():
                dark = abs(norm(shades[workload, row, column]) - 0.5) > 0.35
                axes.text(
                    column + 0.5,
                    row + 0.5,
                    f"{'?' if np.isnan(median) else number(median)}\n({sizes[workload, row, column]})",
                    ha="center",
                    va="center",
                    fontsize="small",
                    color="white" if dark else "black",
                )
            axes.grid(False)
            axes.set_xticks(columns.ticks, columns.labels)
            axes.set_yticks(rows.ticks, rows.labels)
            axes.set_xlabel(axis_label(across))
            axes.set_title(wrapped(name, cell * len(columns)))
        figure.supylabel(axis_label(up), fontsize=FONT)
        ratio_colorbar(figure, panels, drawn, metric.ratio_to(baselines_of(campaign)[variant]))
        heading(
            figure,
            f"Where does “{variant}” help?",
            f"{campaign.heading} · median ratio (number of points) · {some['point'].nunique()} points of"
            f" {len(campaign.points)}",
        )
    return figure


def pairs(ratios: pd.DataFrame, campaign: CampaignInfo, variant: str) -> Figure:
    """The points of the design in each pair of its factors, coloured by the median ratio over workloads."""
    some = ratios[ratios["variant"] == variant]
    if some.empty:
        raise NothingToDraw(f"No ratio of {variant} was measured.")
    metric, of_point = only_metric(some["metric"]), median_ratios(some, ["point"]).dropna()
    with style():
        figure, panels = pair_plot(campaign)
        pixels = as_pixels(len(panels) * len(campaign.points))
        for axes, across, up in panels:
            # A point without a ratio stays grey.
            axes.scatter(across, up, s=10, color="0.7", rasterized=pixels)
            drawn = axes.scatter(
                across[of_point.index],
                up[of_point.index],
                c=np.log2(to_ends(of_point)),
                norm=around_one(of_point),
                cmap=RATIO_COLORS,
                s=45,
                edgecolor="black",
                linewidth=0.5,
                rasterized=pixels,
            )
        ratio_colorbar(
            figure, [axes for axes, _, _ in panels], drawn, metric.ratio_to(baselines_of(campaign)[variant])
        )
        heading(
            figure,
            f"In which networks does “{variant}” help?",
            f"{campaign.heading} · {len(of_point)} points of {len(campaign.points)}",
        )
    return figure


@dataclass(frozen=True)
class _Cells:
    """A factor cut into cells: the cell of each point of the design, and the ticks between or at cells."""

    of_point: NDArray[np.intp]
    ticks: NDArray[np.floating]
    labels: Sequence[str]

    def __len__(self) -> int:
        return int(self.of_point.max()) + 1


def _cells(values: pd.Series, scales: Mapping[str, str]) -> _Cells:
    """A cell for each of few values or words; else cells of equal width, about as many as points fill."""
    distinct = sorted(set(values), key=lambda value: (isinstance(value, str), value))
    if len(distinct) <= _FEW or not pd.api.types.is_numeric_dtype(values):
        labels = [
            value if isinstance(value, str) else quantity(str(values.name), value) for value in distinct
        ]
        of_point = np.array([distinct.index(value) for value in values])
        return _Cells(of_point, np.arange(len(labels)) + 0.5, labels)
    count = int(np.clip(np.sqrt(len(values) / _POINTS_IN_A_CELL), 2, _MOST_CELLS))
    between = np.geomspace if is_log(values, scales) else np.linspace
    edges = between(values.min(), values.max(), count + 1)
    of_point = np.searchsorted(edges[1:-1], values.to_numpy(), side="right")
    return _Cells(of_point, np.arange(count + 1.0), [f"{edge:.3g}" for edge in edges])


def _drawn(ratios: pd.DataFrame, campaign: CampaignInfo) -> dict[str, Look]:
    """The looks of the variants that have a ratio."""
    return {label: look for label, look in looks(campaign).items() if label in set(ratios["variant"])}


def _baselines(labels: Iterable[str], campaign: CampaignInfo) -> dict[str, str]:
    """What each of these variants is compared with."""
    of_all = baselines_of(campaign)
    return {label: of_all[label] for label in labels}


def _ratio_axis(
    figure: Figure, axes: Axes, reach: float, metric: Metric, baselines: Mapping[str, str]
) -> None:
    """The figure's vertical axis of ratios, which contains 1 and at least 2 % on either side."""
    reach = 1.1 * max(reach, float(np.log(1.02)))
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, float(np.exp(-reach / 4))), max(high, float(np.exp(reach / 4))))
    ratio_ticks(axes.yaxis, reach)
    label_ratios(figure, metric, divisor(baselines))


def _factors(campaign: CampaignInfo) -> list[str]:
    """The factors that have more than one value."""
    points = pd.DataFrame(campaign.points)
    varied = [str(name) for name in points if points[name].nunique() > 1]
    if not varied:
        raise NothingToDraw("This design varies no factor, so no ratio can be drawn over one.")
    return varied
