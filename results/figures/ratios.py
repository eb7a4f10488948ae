"""Figures of ratios to baselines: bars, scatter over factors, heat maps over two, and pair plots.

All are drawn from `table`. Drawn in the style of `results.figures.style`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from fecbench.hints import nearest
from fecbench.quantities import counted
from fecbench.results.analysis import frames
from fecbench.results.analysis.averages import Average, average_of, averages_of, ratio_over
from fecbench.results.analysis.intervals import EFFECTS, FEWEST, averaged
from fecbench.results.analysis.margins import margins_of, percent
from fecbench.results.analysis.pairing import baselines_of
from fecbench.results.analysis.ratio_table import ratio_table
from fecbench.results.analysis.scales import is_log
from fecbench.results.analysis.workload_names import workload_names
from fecbench.results.figures.distributions import (
    across_workloads,
    compared_with_baseline,
    divisor,
    label_pairs,
    names_of_ratios,
    of_factors,
    only_metric,
    pair_grid,
    panels_of,
    workloads_width,
)
from fecbench.results.figures.nothing import NothingToDraw
from fecbench.results.figures.sample import remark, sample
from fecbench.results.figures.seaborn_alone import sns
from fecbench.results.figures.segments import vertical_lines
from fecbench.results.figures.sheet import Given, Sheet, heading, ratio_colorbar, sheet
from fecbench.results.figures.style import (
    Color,
    Look,
    across,
    around_one,
    as_pixels,
    greatest_log,
    height_of,
    inches,
    line,
    looks,
    mark,
    ratio_colors,
    style,
    to_ends,
    wide,
    wrapped,
)
from fecbench.results.figures.ticks import plain_ticks, ratio_ticks, round_ticks
from fecbench.results.metrics import Metric, choose
from fecbench.results.metrics.units import axis_label, number, quantity
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


def bars(ratios: pd.DataFrame, campaign: CampaignInfo, *, ax: Given = None) -> Figure:
    """The ratio over points of each workload and variant, mean or median as the design has it, with its
    interval over points; at the end of the axis for 0 and ∞."""
    ratios = averaged(ratios)
    metric, names, look_of = only_metric(ratios["metric"]), workload_names(campaign), _drawn(ratios, campaign)
    baselines = _baselines(look_of, campaign)
    groups = dict(iter(ratios.groupby(["workload", "variant"], observed=True)))
    average = {key: average_of(rows, campaign.statistic) for key, rows in groups.items()}
    over = {key: ratio_over(rows, rows["point"], average[key]) for key, rows in groups.items()}
    estimates = pd.DataFrame(
        {key: (one.value, one.low, one.high) for key, one in over.items()}, index=["ratio", "low", "high"]
    ).T.rename_axis(["workload", "variant"])
    reach, sure = greatest_log(pd.Series(estimates.to_numpy().ravel())), estimates["low"].notna()
    drawn = estimates.apply(to_ends, reach=1.1 * max(reach, float(np.log(1.02)))).reset_index()
    labels, places = list(look_of), list(names)
    with sheet(1, (workloads_width(names), 5.5), ax) as page:
        (axes,) = page.panels
        page.blank_labels()
        axes.axhline(1, color="black", linewidth=line(2 / 3))
        sns.barplot(
            drawn.assign(height=drawn["ratio"] - 1),
            x="workload",
            y="height",
            order=places,
            hue="variant",
            hue_order=labels,
            palette={label: look.color for label, look in look_of.items()},
            bottom=1,
            gap=0.2,
            errorbar=None,
            saturation=1,
            legend=False,
            ax=axes,
        )
        for label, container in zip(labels, axes.containers, strict=True):
            for bar in container:
                look = look_of[label]
                bar.set(facecolor=(*look.color, 0.6), edgecolor="black", hatch=look.hatch)
        step = 0.8 / len(labels)
        at = drawn["workload"].map(places.index) + step * (
            drawn["variant"].map(labels.index) - (len(labels) - 1) / 2
        )
        axes.vlines(at, drawn["low"], drawn["high"], color="black", linewidth=line(5 / 3))  # NaN draws none
        axes.set(yscale="log", ylabel="")
        _ratio_axis(page, reach, metric, baselines)
        across_workloads(axes, campaign)
        page.legend(
            [
                Patch(facecolor=(*look.color, 0.6), edgecolor="black", hatch=look.hatch, label=name)
                for name, look in zip(names_of_ratios(baselines).values(), look_of.values(), strict=True)
            ],
        )
        of_line = "line: its 95 % interval" if sure.any() else ""
        none = "" if sure.all() else f"no interval of fewer than {FEWEST} networks"
        page.heading(
            f"By how much does {metric.noun} change?",
            f"{campaign.averaged_heading} · {counted(ratios['point'].nunique(), 'network')} of"
            f" {len(campaign.points)} · "
            + "; ".join(filter(None, [f"bar: {_names(average)} over networks", of_line, none])),
        )
    return page.figure


def over_factors(
    ratios: pd.DataFrame,
    campaign: CampaignInfo,
    workload: str,
    *,
    factors: Sequence[str] = (),
    ax: Given = None,
) -> Figure:
    """The ratio of one workload at every point, over each factor: a panel a factor, of `factors` or of all.
    Ratios of 0 and ∞, of timeouts, are hollow, at the ends of the axis."""
    varied = _factors(campaign)
    for factor in factors:
        if factor not in varied:
            raise NothingToDraw(f"This design does not vary {factor!r}; {nearest(factor, varied)}.")
    chosen = list(factors) or varied
    some = ratios[ratios["workload"] == workload]
    name = workload_names(campaign)[workload]
    if some.empty:
        raise NothingToDraw(f"No ratio was measured for {name}.")
    metric, look_of, reach = only_metric(some["metric"]), _drawn(some, campaign), greatest_log(some["ratio"])
    baselines = _baselines(look_of, campaign)
    kinds, palette = _kinds(some, look_of)
    marks = sample(some.assign(drawn=to_ends(some["ratio"]), kind=kinds, variant=some["variant"].astype(str)))
    pixels, columns = as_pixels(len(some) * len(chosen)), across()
    size = (wide(), 2 + 2.6 * -(-len(chosen) // columns))
    with sheet(len(chosen), size, ax, columns=columns, what="choose some of factors=") as page:
        page.blank_labels()
        for axes, factor in zip(page.panels, chosen, strict=True):
            axes.axhline(1, color="black", linewidth=line(2 / 3))
            for variant, rows in marks.groupby("variant", observed=True):
                vertical_lines(
                    axes,
                    rows[factor],
                    rows["low"],
                    rows["high"],
                    color=look_of[str(variant)].color,
                    linewidth=line(2 / 3),
                    alpha=0.6,
                    rasterized=pixels,
                )
            sns.scatterplot(
                marks,
                x=factor,
                y="drawn",
                hue="kind",
                palette=palette,
                style="variant",
                markers={label: look.marker for label, look in look_of.items()},
                s=mark(0.9),
                edgecolor="black",
                linewidth=0.5,
                zorder=3,
                legend=False,
                rasterized=pixels,
                ax=axes,
            )
            axes.set_xlabel(axis_label(factor))
            axes.set_ylabel("")
            axes.set_yscale("log")
            if is_log(some[factor], campaign.scales):
                axes.set_xscale("log")
                round_ticks(axes.xaxis)
            elif pd.api.types.is_numeric_dtype(some[factor]):
                plain_ticks(axes.xaxis)
            elif sum(inches(f"{value} ") for value in some[factor].unique()) > page.width:
                axes.tick_params(axis="x", labelrotation=90)
        _ratio_axis(page, reach, metric, baselines)
        page.legend(
            [
                Line2D([], [], linestyle="", marker=look.marker, color=look.color, mec="black", label=name)
                for name, look in zip(names_of_ratios(baselines).values(), look_of.values(), strict=True)
            ],
        )
        pale = f"pale: neither helps nor harms by more than {percent(margins_of(campaign)[workload])}"
        known = some["low"].notna().any()
        told = f" · line: 95 % interval over repetitions, {pale}" if known else ""
        hollow = " · hollow: failed or timed out, beyond the axis" if some["censored"].any() else ""
        networks = some["point"].nunique()
        page.heading(
            f"Where does {metric.noun} change, for {name}?",
            f"{campaign.heading} · {counted(networks, 'network')} of {len(campaign.points)}{told}{hollow}"
            f"{remark(networks)}",
        )
    return page.figure


def _kinds(ratios: pd.DataFrame, look_of: Mapping[str, Look]) -> tuple[pd.Series, dict[str, Color]]:
    """Return the name of the filling of each mark, and the colours of these: that of the variant, pale
    where nothing is decided, and white where a trial failed or timed out."""
    undecided = ratios["low"].notna() & ~ratios["verdict"].isin(EFFECTS)
    ending = np.select([ratios["censored"], undecided], [" white", " pale"], "")
    palette: dict[str, Color] = {}
    for label, look in look_of.items():
        palette |= {label: look.color, f"{label} pale": _pale(look.color), f"{label} white": (1.0, 1.0, 1.0)}
    return ratios["variant"].astype(str) + ending, palette


def _pale(color: Color) -> Color:
    """The colour of a point without an effect."""
    red, green, blue = (1 - _PALE * (1 - part) for part in color)
    return red, green, blue


def heat_map(
    ratios: pd.DataFrame,
    campaign: CampaignInfo,
    variant: str,
    factors: tuple[str, str] | None = None,
    *,
    ax: Given = None,
) -> Figure:
    """The ratio in cells of two factors, a panel a workload, mean or median as the design has it; with the
    number of points in each cell.

    Values are as measured, with no model. Without `factors`, over the first two that the design varies.
    """
    some = averaged(ratios[ratios["variant"] == variant])
    varied = _factors(campaign)
    if len(varied) < 2:
        raise NothingToDraw("This design varies one factor only, so there is no map over two.")
    horizontal, up = factors or (varied[0], varied[1])
    there = set(some["workload"].unique())
    names = {label: name for label, name in workload_names(campaign).items() if label in there}
    if not names:
        raise NothingToDraw(f"No ratio of {variant} was measured.")
    metric = only_metric(some["metric"])
    points = frames.points(campaign)
    columns, rows = (_cells(points[factor], campaign.scales) for factor in (horizontal, up))
    cells = pd.DataFrame({"point": points["point"], "column": columns.of_point, "row": rows.of_point})
    cell = max(_CELL, *(inches(f"{label} ") for label in columns.labels))
    across_page = max(1, int((wide() - 2) / (cell * (len(columns) + 1))))
    size = (wide(), 1 + (1.2 + 0.7 * len(rows)) * -(-len(names) // across_page))
    in_cells, cell_of = some.merge(cells, on="point"), ["workload", "row", "column"]
    average: dict[Any, Average] = {
        workload: average_of(ratios, campaign.statistic)
        for workload, ratios in some.groupby("workload", observed=True)
    }
    over = pd.concat(
        [
            averages_of(ratios, cell_of, average[workload])
            for workload, ratios in in_cells.groupby("workload", observed=True)
        ]
    )
    sizes = in_cells.groupby(cell_of, observed=True).size()
    shades, norm, colors = np.log2(to_ends(over)), around_one(over), ratio_colors(metric)
    count_of_each = sizes.reindex(over.index)
    texts = pd.Series(
        [
            f"{'?' if np.isnan(ratio) else number(ratio)}\n({count})"
            for ratio, count in zip(over, count_of_each, strict=True)
        ],
        index=over.index,
    )
    with sheet(len(names), size, ax, columns=across_page, what="leave ratios of one workload") as page:
        for axes, (workload, name) in zip(page.panels, names.items(), strict=True):
            in_grid, in_words = (
                _in_grid(of.xs(workload, level="workload"), len(rows), len(columns)) for of in (shades, texts)
            )
            sns.heatmap(
                in_grid,
                annot=in_words.astype(object).fillna(""),
                fmt="",
                annot_kws={"fontsize": "small"},
                norm=norm,
                cmap=colors,
                cbar=False,
                ax=axes,
            )
            # seaborn writes nothing into a cell without a value.
            unknown = in_words[in_grid.isna()].stack().dropna().reset_index()
            for row, column, text in unknown.itertuples(index=False, name=None):
                axes.text(column + 0.5, row + 0.5, text, ha="center", va="center", fontsize="small")
            axes.invert_yaxis()
            has_room = cell * (len(columns) + 1) <= wide() - 2
            axes.set_xticks(columns.ticks, columns.labels, rotation=0 if has_room else 90)
            axes.set_yticks(rows.ticks, rows.labels, rotation=0)
            axes.set(xlabel=axis_label(horizontal), ylabel="")
            axes.set_title(wrapped(name, cell * len(columns)))
        page.label_up(axis_label(up))
        page.colorbar(ScalarMappable(norm, colors), metric.ratio_to(baselines_of(campaign)[variant]))
        page.heading(
            f"Where does “{variant}” help?",
            f"{campaign.averaged_heading} · {_names(average)} ratio (number of networks)"
            f" · {some['point'].nunique():,} of {counted(len(campaign.points), 'network')}",
        )
    return page.figure


def _names(averages: Mapping[Any, Average]) -> str:
    """Return the kinds of averages in words: one, where all are of one kind."""
    return " or ".join(sorted(set(averages.values())))


def _in_grid(of_cells: pd.Series, rows: int, columns: int) -> pd.DataFrame:
    """The values of cells by their row and column; NaN where there is none."""
    return of_cells.unstack().reindex(range(rows)).reindex(columns=range(columns))


def pairs(ratios: pd.DataFrame, campaign: CampaignInfo, variant: str) -> Figure:
    """The points of the design in each pair of its factors, coloured by the ratio, over workloads
    the mean or the median as the design has it."""
    some = averaged(ratios[ratios["variant"] == variant])
    if some.empty:
        raise NothingToDraw(f"No ratio of {variant} was measured.")
    metric, average = only_metric(some["metric"]), average_of(some, campaign.statistic)
    of_point = averages_of(some, ["point"], average).dropna()
    norm, colors = around_one(of_point), ratio_colors(metric)
    with style():
        grid = pair_grid(campaign)
        panels = panels_of(grid)
        pixels = as_pixels(len(panels) * len(campaign.points))
        # A point without a ratio stays grey.
        grid.map(sns.scatterplot, s=mark(0.5), color="0.7", linewidth=0, rasterized=pixels)
        colored = to_ends(of_point)[of_point.index.isin(grid.data.index)]
        for axes, horizontal, vertical in panels:
            sns.scatterplot(
                grid.data.loc[colored.index],
                x=horizontal,
                y=vertical,
                hue=np.log2(colored),
                hue_norm=norm,
                palette=colors,
                s=mark(1.1),
                edgecolor="black",
                linewidth=0.5,
                legend=False,
                rasterized=pixels,
                ax=axes,
            )
        label_pairs(grid, campaign)
        ratio_colorbar(
            [axes for axes, _, _ in panels],
            ScalarMappable(norm, colors),
            metric.ratio_to(baselines_of(campaign)[variant]),
            height_of(grid.figure) - 0.8,
        )
        heading(
            grid.figure,
            f"In which networks does “{variant}” help?",
            f"{campaign.averaged_heading} · {counted(len(of_point), 'network')} of {len(campaign.points)}"
            f"{of_factors(grid, campaign)}{remark(len(campaign.points))}",
        )
        figure: Figure = grid.figure
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
    there = set(ratios["variant"].unique())
    return {label: look for label, look in looks(campaign).items() if label in there}


def _baselines(labels: Iterable[str], campaign: CampaignInfo) -> dict[str, str]:
    """Return the baseline of each of these variants."""
    of_all = baselines_of(campaign)
    return {label: of_all[label] for label in labels}


def _ratio_axis(page: Sheet, reach: float, metric: Metric, baselines: Mapping[str, str]) -> None:
    """The vertical axis of ratios, which contains 1 and at least 2 % on either side."""
    reach = 1.1 * max(reach, float(np.log(1.02)))
    for axes in page.panels:
        low, high = axes.get_ylim()
        axes.set_ylim(min(low, float(np.exp(-reach / 4))), max(high, float(np.exp(reach / 4))))
        ratio_ticks(axes.yaxis, reach)
    page.label_ratios(metric, divisor(baselines))


def _factors(campaign: CampaignInfo) -> list[str]:
    """The factors that have more than one value."""
    points = frames.values(campaign.points)
    varied = [str(name) for name in points if points[name].nunique() > 1]
    if not varied:
        raise NothingToDraw("This design varies no factor, so no ratio can be drawn over one.")
    return varied
