"""The figures of a campaign, each a matplotlib Figure for a person who compares.

One style for all: a variant has the same colour in every figure, and is told apart without it. Drawing the
same data twice gives the same bytes. A campaign that lacks what a figure needs raises NothingToDraw with a
sentence that says what.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import PercentFormatter

from fecbench.quantities import counted
from fecbench.results import metrics
from fecbench.results.analysis import frames, outcomes
from fecbench.results.analysis.intervals import EFFECTS, LEVEL, averaged, why_undecided
from fecbench.results.analysis.margins import margins_text
from fecbench.results.analysis.pairing import Pairing, baselines_of, comparisons, only_compared
from fecbench.results.analysis.ratio_table import ratio_table, why_none
from fecbench.results.analysis.scales import is_log
from fecbench.results.analysis.summary import median_column, of_many_networks, summary, whole_groups
from fecbench.results.analysis.workload_names import workload_axis, workload_names
from fecbench.results.figures.box_plots import boxes_of
from fecbench.results.figures.curves import band, behind, curve
from fecbench.results.figures.nothing import NothingToDraw
from fecbench.results.figures.sample import remark, sample
from fecbench.results.figures.seaborn_alone import sns
from fecbench.results.figures.sheet import Given, heading, sheet
from fecbench.results.figures.style import (
    as_pixels,
    em,
    greatest_log,
    height_of,
    line,
    looks,
    mark,
    page,
    style,
    wide,
    wrapped,
)
from fecbench.results.figures.ticks import plain_ticks, ratio_ticks, round_ticks
from fecbench.results.metrics import Metric, choose, of_workloads
from fecbench.results.metrics.units import axis_label
from fecbench.results.store.records import CampaignInfo

_LINES: tuple[Literal["-", "--", "-.", ":"], ...] = ("-", "--", "-.", ":")
_CURVE = 2.4  # inches, the least width of a panel of a curve
_FACTORS = 8  # the most that have room across and up


def boxes(frame: pd.DataFrame, campaign: CampaignInfo, metric: str = "", *, ax: Given = None) -> Figure:
    """The metric by workload and variant: boxes, and dots while they can be told apart.

    Of the ok trials of whole groups (`summary.whole_groups`), so that all variants' are of the same networks;
    the caption says how many failed or timed out, which no box can show.
    Where they are of several points, lines are the medians as the pairs have them (`summary.by_pairs`).
    `metric`: by default the one that the workloads compare. On a logarithmic axis, if all values are above 0.
    """
    campaign = choose(campaign, metric)
    compared = _only_metric_of(campaign)
    trials = only_compared(frame, campaign)
    trials = trials[trials["workload"].isin(list(workload_names(campaign)))]
    ok = _measured(trials[trials["state"] == "ok"], compared)
    ok = ok[whole_groups(trials, campaign)[ok.index]]
    if ok.empty:
        raise NothingToDraw(f"In no repetition did all variants measure {compared.name}.")
    look_of, names = looks(campaign), workload_names(campaign)
    found = summary(trials, campaign).set_index(["workload", "variant"])
    lines, are_paired = found[median_column(campaign)], found["median_ratio"].notna().any()
    of_lines = " · lines: medians as the pairs have them" if of_many_networks(campaign) and are_paired else ""
    with sheet(1, (workloads_width(names), 5.5), ax) as drawn:
        (axes,) = drawn.panels
        boxes_of(axes, ok, "workload", compared.name, list(names), look_of, dict(lines))
        across_workloads(axes, campaign)
        axes.set_ylabel(wrapped(compared.title, 4))
        if (ok[compared.name] > 0).all():
            axes.set_yscale("log")
            round_ticks(axes.yaxis)
        else:
            plain_ticks(axes.yaxis)
        drawn.legend(
            [
                Patch(facecolor=(*look.color, 0.6), edgecolor="black", hatch=look.hatch, label=label)
                for label, look in look_of.items()
            ]
        )
        missing = outcomes.lacking(trials, compared)
        of_missing = f" · in no box, and may decide: {missing}" if missing else ""
        detail = f"{campaign.averaged_heading} · {len(ok)} ok trials of {len(trials)}{of_lines}{of_missing}"
        drawn.heading(compared.question, detail)
    return drawn.figure


# The name by which notebooks know it.
dct = boxes


def only_metric(names: Iterable[str]) -> Metric:
    """The metric that all of these names name. Raises NothingToDraw when they name several."""
    different = list(dict.fromkeys(names))
    if len(different) > 1:
        raise NothingToDraw(f"Different metrics are compared ({', '.join(different)}): choose one of them.")
    return metrics.of(different[0])


def _only_metric_of(campaign: CampaignInfo) -> Metric:
    return only_metric(of_workloads(campaign).values())


def workloads_width(names: Mapping[str, str]) -> float:
    """Return the width of a figure with so many workloads side by side, in inches."""
    return wide() if page().is_fixed else max(wide(), 1 + 1.2 * len(names))


def across_workloads(axes: Axes, campaign: CampaignInfo) -> None:
    """A horizontal axis with a place for each workload, from 0 on."""
    names = workload_names(campaign)
    room = (workloads_width(names) - 1.2) / len(names)
    axes.set_xticks(range(len(names)), [wrapped(name, 0.9 * room) for name in names.values()])
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.grid(False, axis="x")
    axes.set_xlabel(workload_axis(campaign))


def compared_with_baseline(frame: pd.DataFrame, campaign: CampaignInfo) -> dict[str, Pairing]:
    """Each variant compared with its baseline by the metric of all workloads. Raises NothingToDraw."""
    metric, compared = _only_metric_of(campaign), comparisons(frame, campaign)
    if sentence := why_none(compared, campaign, metric):
        raise NothingToDraw(sentence)
    return compared


def ratio_ecdf(
    frame: pd.DataFrame,
    campaign: CampaignInfo,
    metric: str = "",
    *,
    ratios: pd.DataFrame | None = None,
    ax: Given = None,
) -> Figure:
    """The ECDF over the points of the ratio of each variant to its baseline: `ecdf_panels`, a row a variant.

    `metric`: by default the one that the workloads compare. `ratios`: their `ratios.ratio_table`, where it
    was made before. A panel says in how many points the variant surely is better or worse: by the verdicts
    of its intervals, as tables do.
    """
    campaign = choose(campaign, metric)
    if ratios is None or ratios.empty:
        ratios = ratio_table(compared_with_baseline(frame, campaign), campaign)
    names = workload_names(campaign)
    order = [variant["label"] for variant in campaign.variants]
    of_variants = {label: ratios[ratios["variant"] == label] for label in order}
    parts = {
        variant: {name: rows[rows["workload"] == label] for label, name in names.items()}
        for variant, rows in of_variants.items()
        if len(rows)
    }
    helps = f"“{next(iter(parts))}”" if len(parts) == 1 else "a variant"
    of_averages = averaged(ratios)
    return ecdf_panels(
        {
            variant: {name: averaged(rows)["ratio"] for name, rows in of_variant.items() if len(rows)}
            for variant, of_variant in parts.items()
        },
        baselines_of(campaign),
        campaign,
        f"In how many networks does {helps} help?",
        f"{campaign.averaged_heading} · {counted(of_averages['point'].nunique(), 'network')} of"
        f" {len(campaign.points)}"
        f" · {_pairs(of_averages)} · counted where the whole interval is beyond {margins_text(campaign)}",
        "networks",
        metric,
        verdicts={
            variant: {
                name: rows["verdict"].astype(object).where(rows["low"].notna())
                for name, rows in of_variant.items()
            }
            for variant, of_variant in parts.items()
        },
        ax=ax,
    )


def _pairs(ratios: pd.DataFrame) -> str:
    """Return the number of pairs of these ratios, in words."""
    pairs, timeouts = int(ratios["pairs"].sum()), int(ratios["timeouts"].sum())
    return (
        f"{counted(pairs, 'pair')}, {timeouts} of them with a failure or timeout"
        if timeouts
        else f"{counted(pairs, 'pair')} of ok trials"
    )


def divisor(baselines: Mapping[str, str]) -> str:
    """Return the divisor of the ratios of these variants, for the label of an axis that all share."""
    different = set(baselines.values())
    return different.pop() if len(different) == 1 else "its baseline"


def names_of_ratios(baselines: Mapping[str, str]) -> dict[str, str]:
    """Return the name of the ratios of each variant beside others: its label, and its baseline where not
    all have the same."""
    one = len(set(baselines.values())) == 1
    return {label: label if one else f"{label} against {of}" for label, of in baselines.items()}


Curves = Mapping[str, Mapping[str, pd.Series]]  # the ratios of each variant, by the name of the workload


def ecdf_panels(
    curves: Curves,
    baseline: str | Mapping[str, str],
    campaign: CampaignInfo,
    question: str,
    detail: str,
    units: str,
    metric: str = "",
    *,
    verdicts: Curves | None = None,
    ax: Given = None,
) -> Figure:
    """The ECDF of ratios of a metric with its band, a row a variant and a panel a workload.

    The curves of Networking 2019, Fig. 5 to 10, each in a panel of its own, since bands on top of each other
    cannot be told apart; a variant's other curves are behind it in grey. `baseline`: what all variants are
    compared with, or each by its label. `units` says what a ratio is of. A ratio of 0 is at the left end of
    the axis, and one of ∞ is not reached at the right. `verdicts`: those of the ratios, which are counted
    above a panel; NaN where a ratio has no interval.

    In one `ax`, all curves are in one panel: the colour is of the variant, the line of the workload.
    """
    baselines = {label: baseline if isinstance(baseline, str) else baseline[label] for label in curves}
    rows_of = names_of_ratios(baselines)
    ratios = [ratio for of_variant in curves.values() for ratio in of_variant.values()]
    reach = 1.1 * max(np.log(1.2), *map(greatest_log, ratios))
    # A value that no axis has is a little beyond its ends.
    ends = float(np.exp(-1.1 * reach)), float(np.exp(1.1 * reach))
    compared = _only_metric_of(choose(campaign, metric))
    below, above = compared.sides
    most = max(len(of_variant) for of_variant in curves.values())
    panels = [(variant, name) for variant, of_variant in curves.items() for name in of_variant]
    in_one = ax is not None and (isinstance(ax, Axes) or len(list(ax)) == 1) and len(panels) > 1
    columns = min(most, max(1, int(wide() / _CURVE))) if page().is_fixed else most
    is_grid = columns == most and all(len(of_variant) == most for of_variant in curves.values())
    down = -(-len(panels) // columns)
    look_of = looks(campaign)
    with sheet(
        1 if in_one else len(panels),
        (max(wide(), _CURVE * columns), 1.6 + 2.8 * down),
        ax,
        columns=columns,
        sharex=True,
    ) as drawn:
        for number, (variant, name) in enumerate(panels):
            axes = drawn.panels[0 if in_one else number]
            color, values = look_of[variant].color, curves[variant][name]
            if not in_one or number == 0:
                axes.axvline(1, color="black", linewidth=line(2 / 3))
            if in_one:
                style_of = _LINES[list(curves[variant]).index(name) % len(_LINES)]
                curve(axes, values, ends, color=color, linestyle=style_of)
                continue
            for other in curves[variant]:
                if other != name:
                    behind(axes, curves[variant][other], ends)
            band(axes, values, ends, color, 0.25)
            curve(axes, values, ends, color=color, linewidth=line(5 / 3))
            if drawn.own:
                who = [] if is_grid or len(curves) == 1 else [rows_of[variant]]
                counts = [] if verdicts is None else [_in_words(verdicts[variant][name], campaign.statistic)]
                lines = [wrapped(text, drawn.width) for text in (*who, name, *counts)]
                axes.set_title("\n".join(lines), fontsize="medium")
                if is_grid and number % columns == 0:
                    axes.set_ylabel(wrapped(rows_of[variant], 2.4))
        for axes in drawn.panels:
            axes.set(xscale="log", xlim=(np.exp(-reach), np.exp(reach)), ylim=(-0.02, 1.02))
            ratio_ticks(axes.xaxis, reach)
            axes.yaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
        for axes in drawn.last_row if drawn.own else ():
            axes.tick_params(labelbottom=True)
        drawn.label_across(f"◀ {below}   {compared.ratio_to(divisor(baselines))}   {above} ▶")
        share = f"share of {units} with at most this ratio"
        if drawn.own and is_grid:
            # It stands in the middle of the figure: the heading may take as much above it as below is left.
            room = height_of(drawn.figure) - (2.2 if page().titled else 1)
            drawn.figure.supylabel(wrapped(share, min(3, room)), fontsize="medium")
        else:
            drawn.label_up(share)
        if in_one:
            drawn.legend(_of_curves(curves, rows_of, campaign))
        of_band = f"band: holds the whole curve with {100 * (1 - LEVEL):g} % confidence, over {units} (DKW)"
        others = " · grey: the other panels of the row" if most > 1 else ""
        drawn.heading(question, f"{detail} · {of_band}{others}")
    return drawn.figure


def _in_words(verdicts: pd.Series, statistic: str) -> str:
    """Return in how many points a variant surely is better, and in how many worse; a point without an
    interval has no verdict."""
    if verdicts.isna().all():
        return f"undecided: {why_undecided(statistic)}"
    gains, harms = ((verdicts == verdict).sum() for verdict in EFFECTS)
    return f"helps in {gains}, harms in {harms} of {len(verdicts)}"


def _of_curves(curves: Curves, names: Mapping[str, str], campaign: CampaignInfo) -> list[Line2D]:
    """The legend of curves in one panel."""
    several = max(len(of_variant) for of_variant in curves.values()) > 1
    is_named = len(curves) > 1 or not several
    return [
        Line2D(
            [],
            [],
            color=looks(campaign)[variant].color,
            linestyle=_LINES[place % len(_LINES)],
            label=" · ".join([names[variant]] * is_named + [name] * several),
        )
        for variant, of_variant in curves.items()
        for place, name in enumerate(of_variant)
    ]


def points(campaign: CampaignInfo) -> Figure:
    """Draw the points of the design, in each pair of its factors."""
    with style():
        grid = pair_grid(campaign)
        marks = len(panels_of(grid)) * len(campaign.points)
        grid.map(sns.scatterplot, s=mark(0.75), color="0.25", linewidth=0, rasterized=as_pixels(marks))
        label_pairs(grid, campaign)
        figure: Figure = grid.figure
        detail = (
            f"{campaign.heading} · {counted(len(campaign.points), 'network')}{of_factors(grid, campaign)}"
        )
        heading(figure, "Which networks were tried?", f"{detail}{remark(len(campaign.points))}")
    return figure


class _Grid(sns.PairGrid):  # type: ignore[misc]
    """A grid that is laid out when it is drawn. Before, that would take as long as all else of it."""

    def tight_layout(self, *_: Any, **__: Any) -> _Grid:
        return self


def pair_grid(campaign: CampaignInfo) -> sns.PairGrid:
    """A panel for each pair of factors, the first at the top left, with the points of the design as data (a
    `sample` of many); to be finished by `label_pairs`. Raises NothingToDraw."""
    factors = frames.values(campaign.points)
    if not len(factors.columns):
        raise NothingToDraw("This design varies no factor, so there are no networks to draw.")
    factors = factors.loc[sample(pd.DataFrame({"point": factors.index})).index]
    factors = factors[[factor for factor in factors if factor not in campaign.linked]]
    most = set(factors.nunique().nlargest(_FACTORS, keep="first").index)
    factors = factors[[factor for factor in factors if factor in most]]
    if len(factors.columns) == 1:
        factors.insert(0, "index of the point", factors.index)
    across, down = list(factors.columns[:-1]), list(factors.columns[1:])
    # seaborn lays out by itself, and leaves its figure to pyplot, which would show it a second time.
    with mpl.rc_context({"figure.constrained_layout.use": False}):
        grid = _Grid(factors, x_vars=across, y_vars=down, corner=True, dropna=False, despine=False)
    plt.close(grid.figure)
    grid.figure.set_layout_engine("constrained")
    grid.figure.set_size_inches(em() * wide(), em() * (1.5 + _high(grid) * len(down)))
    return grid


def of_factors(grid: sns.PairGrid, campaign: CampaignInfo) -> str:
    """Return how many factors are not drawn, for a heading; "" where all are."""
    left_out = len(campaign.points[0].keys() - campaign.linked) - len({*grid.x_vars, *grid.y_vars})
    return f" · factors of fewest values left out: {left_out}" if left_out > 0 else ""


def _high(grid: sns.PairGrid) -> float:
    """A panel, in inches."""
    return max(1.6, 4.5 / len(grid.y_vars))


def panels_of(grid: sns.PairGrid) -> list[tuple[Axes, str, str]]:
    """The panels with the factors that they have across and up."""
    return [
        (axes, grid.x_vars[column], grid.y_vars[row])
        for row, of_row in enumerate(grid.axes)
        for column, axes in enumerate(of_row)
        if axes is not None
    ]


def label_pairs(grid: sns.PairGrid, campaign: CampaignInfo) -> None:
    """Scales, ticks and labels of the outer panels."""
    room = (wide() - 1.5) / len(grid.x_vars) - 0.3
    for axes, horizontal, vertical in panels_of(grid):
        axes.set_xlabel(wrapped(axis_label(horizontal), room))
        axes.set_ylabel(wrapped(axis_label(vertical), _high(grid) - 0.1))
        for axis, factor in ((axes.xaxis, horizontal), (axes.yaxis, vertical)):
            if pd.api.types.is_numeric_dtype(grid.data[factor]):
                if is_log(grid.data[factor], campaign.scales):
                    axes.set(**{f"{axis.axis_name}scale": "log"})
                    round_ticks(axis)
                else:
                    plain_ticks(axis)
            elif axis is axes.xaxis:
                axis.set_tick_params(rotation=90)  # names have no room beside each other


def _measured(ok: pd.DataFrame, metric: Metric) -> pd.DataFrame:
    """Return the ok trials that measured it."""
    nothing = f"so there is no {metric.words or metric.name} to draw."
    if ok.empty:
        raise NothingToDraw(f"No trial is ok, {nothing}")
    if metric.name not in ok or ok[metric.name].isna().all():
        raise NothingToDraw(f"No trial measured {metric.name}, {nothing}")
    return ok[ok[metric.name].notna()]
