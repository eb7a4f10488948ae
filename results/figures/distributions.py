"""The figures of a campaign, each a matplotlib Figure for a person who compares.

One style for all: a variant has the same colour in every figure, and is told apart without it. Drawing the
same data twice gives the same bytes. A campaign that lacks what a figure needs raises NothingToDraw with a
sentence that says what.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import PercentFormatter

from fecbench.results import metrics
from fecbench.results.analysis import outcomes
from fecbench.results.analysis.intervals import LEVEL, ecdf
from fecbench.results.analysis.pairing import Pairing, baselines_of, comparisons, only_compared
from fecbench.results.analysis.ratios import why_none
from fecbench.results.analysis.summary import median_column, of_many_networks, summary, whole_groups
from fecbench.results.analysis.units import axis_label
from fecbench.results.analysis.workload_names import workload_axis, workload_names
from fecbench.results.figures.nothing import NothingToDraw
from fecbench.results.figures.style import (
    FONT,
    WIDTH,
    as_pixels,
    box,
    greatest_log,
    heading,
    is_log,
    legend_below,
    looks,
    plain_ticks,
    ratio_ticks,
    round_ticks,
    style,
    wrapped,
)
from fecbench.results.metrics import Metric, choose, of_workloads
from fecbench.results.store.records import CampaignInfo

_MOST_STEPS = 2000  # of a curve that is drawn with every step
# Of the greatest panel at the resolution of a PNG.
_PIXELS_ACROSS, _PIXELS_UP = 1500, 500


def boxes(frame: pd.DataFrame, campaign: CampaignInfo, metric: str = "") -> Figure:
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
    step = 0.8 / len(look_of)
    with style():
        figure = Figure(figsize=(workloads_width(names), 5.5))
        axes = figure.subplots()
        for i, workload in enumerate(names):
            for j, (variant, look) in enumerate(look_of.items()):
                chosen = (ok["workload"] == workload) & (ok["variant"] == variant)
                values = ok.loc[chosen, compared.name].to_numpy()
                box(
                    axes,
                    i + (j - (len(look_of) - 1) / 2) * step,
                    0.8 * step,
                    values,
                    look,
                    lines[workload, variant],
                )
        across_workloads(axes, campaign)
        axes.set_ylabel(wrapped(compared.title, figure.get_figheight() - 1.5))
        if (ok[compared.name] > 0).all():
            axes.set_yscale("log")
            round_ticks(axes.yaxis)
        else:
            plain_ticks(axes.yaxis)
        handles = [
            Patch(facecolor=look.color, alpha=0.6, edgecolor="black", hatch=look.hatch, label=label)
            for label, look in look_of.items()
        ]
        legend_below(figure, handles)
        missing = outcomes.lacking(trials)
        of_missing = f" · in no box, and may decide: {missing}" if missing else ""
        detail = f"{campaign.heading} · {len(ok)} ok trials of {len(trials)}{of_lines}{of_missing}"
        heading(figure, compared.question, detail)
    return figure


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
    """Of a figure with so many workloads side by side, in inches."""
    return max(WIDTH, 1 + 1.2 * len(names))


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


def ratio_ecdf(frame: pd.DataFrame, campaign: CampaignInfo, metric: str = "") -> Figure:
    """The ECDF over the points of the ratio of each variant to its baseline: `ecdf_panels`, a row a variant.

    `metric`: by default the one that the workloads compare.
    """
    compared = compared_with_baseline(frame, choose(campaign, metric))
    names = workload_names(campaign)
    curves = {}
    for variant, pairing in compared.items():
        by_workload = dict(list(pairing.ratios.groupby("workload", observed=True)["ratio"]))
        curves[variant] = {name: by_workload[label] for label, name in names.items() if label in by_workload}
    measured = pd.concat([pairing.ratios for pairing in compared.values()])
    helps = f"“{next(iter(compared))}”" if len(compared) == 1 else "an arm"
    return ecdf_panels(
        curves,
        baselines_of(campaign),
        campaign,
        f"At how many points does {helps} help?",
        f"{campaign.heading} · {measured['point'].nunique()} points of {len(campaign.points)}"
        f" · {_pairs(measured)}",
        "points",
        metric,
    )


def _pairs(ratios: pd.DataFrame) -> str:
    """How many pairs these ratios hold."""
    pairs, timeouts = int(ratios["pairs"].sum()), int(ratios["timeouts"].sum())
    return (
        f"{pairs} pairs, {timeouts} of them with a failure or timeout"
        if timeouts
        else f"{pairs} pairs of ok trials"
    )


def divisor(baselines: Mapping[str, str]) -> str:
    """What the ratios of these variants are divided by, for the label of an axis that all share."""
    different = set(baselines.values())
    return different.pop() if len(different) == 1 else "its baseline"


def names_of_ratios(baselines: Mapping[str, str]) -> dict[str, str]:
    """What the ratios of each variant are called beside those of others: by its label, and with its baseline
    where not all have the same."""
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
) -> Figure:
    """The ECDF of ratios of a metric with its band, a row a variant and a panel a workload.

    The curves of Networking 2019, Fig. 5 to 10, each in a panel of its own, since bands on top of each other
    cannot be told apart; a variant's other curves are behind it in grey. `baseline`: what all variants are
    compared with, or each by its label. `units` says what a ratio is of. A ratio of 0 is at the left end of
    the axis, and one of ∞ is not reached at the right.
    """
    baselines = {label: baseline if isinstance(baseline, str) else baseline[label] for label in curves}
    rows_of = names_of_ratios(baselines)
    ratios = [ratio for of_variant in curves.values() for ratio in of_variant.values()]
    reach = 1.1 * max(np.log(1.2), *map(greatest_log, ratios))
    compared = _only_metric_of(choose(campaign, metric))
    below, above = compared.sides
    across = max(len(of_variant) for of_variant in curves.values())
    with style():
        figure = Figure(figsize=(max(WIDTH, 2.4 * across), 1.6 + 2.8 * len(curves)))
        rows = figure.subplots(len(curves), across, squeeze=False, sharex=True, sharey=True)
        for row, (variant, of_variant) in zip(rows, curves.items(), strict=True):
            row[0].set_ylabel(wrapped(rows_of[variant], 2.4))
            drawn = {
                name: _thinned(_to_the_ends(ecdf(ratio), reach), reach) for name, ratio in of_variant.items()
            }
            for axes, (name, ratio) in zip(row, of_variant.items(), strict=False):
                better = ratio > 1 if compared.more_is_better else ratio < 1
                share = f"{compared.comparative.gain} at {100 * better.mean():.0f} % of {len(ratio)}"
                axes.set_title(f"{wrapped(name, WIDTH / across - 0.7)}\n{share}", fontsize=FONT)
                _ecdf_before_others(axes, drawn, name, looks(campaign)[variant].color)
            for unused in row[len(of_variant) :]:
                unused.set_visible(False)
        for axes in rows.flat:
            axes.set(xscale="log", xlim=(np.exp(-reach), np.exp(reach)), ylim=(-0.02, 1.02))
            ratio_ticks(axes.xaxis, reach)
            axes.yaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
        label = f"◀ {below}   {compared.ratio_to(divisor(baselines))}   {above} ▶"
        figure.supxlabel(wrapped(label, WIDTH - 1), fontsize=FONT)
        figure.supylabel(wrapped(f"share of {units} with at most this ratio", 3), fontsize=FONT)
        band = f"band: holds the whole curve with {100 * (1 - LEVEL):g} % confidence, over {units} (DKW)"
        others = " · grey: the other panels of the row" if across > 1 else ""
        heading(figure, question, f"{detail} · {band}{others}")
    return figure


def _to_the_ends(curve: pd.DataFrame, reach: float) -> pd.DataFrame:
    """An `ecdf` from one end of an axis to the other; all its values lie between, but 0 and ∞."""
    curve = curve[curve["value"] < np.inf]
    value = curve["value"].clip(lower=np.exp(-reach))
    return pd.concat([curve.assign(value=value), curve.iloc[[-1]].assign(value=np.exp(reach))])


def _thinned(curve: pd.DataFrame, reach: float) -> pd.DataFrame:
    """Of the rows of `_to_the_ends`, no more than can be told apart: the last one within each pixel."""
    if len(curve) <= _MOST_STEPS:
        return curve
    across = np.floor((np.log(curve["value"]) / reach + 1) / 2 * _PIXELS_ACROSS)
    up = np.floor(curve["share"] * _PIXELS_UP)
    is_last = (across != across.shift(-1)) | (up != up.shift(-1))
    is_last.iloc[0] = True
    thinned: pd.DataFrame = curve[is_last]
    return thinned


def _ecdf_before_others(
    axes: Axes, curves: Mapping[str, pd.DataFrame], name: str, color: tuple[float, float, float]
) -> None:
    """One of the curves with its band."""
    axes.axvline(1, color="black", linewidth=1)
    for other in curves:
        if other != name:
            axes.step(curves[other]["value"], curves[other]["share"], where="post", color="0.7", linewidth=1)
    value, share, low, high = (curves[name][column] for column in ("value", "share", "low", "high"))
    axes.fill_between(value, low, high, step="post", color=color, alpha=0.25, linewidth=0)
    axes.step(value, share, where="post", color=color, linewidth=2.5)


def points(campaign: CampaignInfo) -> Figure:
    """Where the points of the design lie, in each pair of its factors."""
    with style():
        figure, grid = pair_plot(campaign)
        for axes, across, up in grid:
            marks = len(grid) * len(campaign.points)
            axes.scatter(across, up, s=20, color="0.25", rasterized=as_pixels(marks))
        heading(figure, "Which networks were tried?", f"{campaign.heading} · {len(campaign.points)} points")
    return figure


def pair_plot(campaign: CampaignInfo) -> tuple[Figure, list[tuple[Axes, pd.Series, pd.Series]]]:
    """A figure with an empty panel for each pair of factors, the first at the top left.

    With each panel, the values of its two factors at each point of the design. Raises NothingToDraw.
    """
    factors = pd.DataFrame(campaign.points)
    if not len(factors.columns):
        raise NothingToDraw("This design varies no factor, so there are no points to draw.")
    if len(factors.columns) == 1:
        factors.insert(0, "index of the point", factors.index)
    across, down = list(factors.columns[:-1]), list(factors.columns[1:])
    high = max(1.6, 4.5 / len(down))
    figure = Figure(figsize=(WIDTH, 1.5 + high * len(down)))
    grid = figure.subplots(len(down), len(across), squeeze=False, sharex="col", sharey="row")
    panels = []
    for row, vertical in enumerate(down):
        for column, horizontal in enumerate(across):
            axes = grid[row][column]
            if column > row:
                axes.remove()
                continue
            if row == len(down) - 1:
                axes.set_xlabel(wrapped(axis_label(horizontal), (WIDTH - 1.5) / len(across) - 0.3))
            if column == 0:
                axes.set_ylabel(wrapped(axis_label(vertical), high - 0.1))
            for axis, factor in ((axes.xaxis, horizontal), (axes.yaxis, vertical)):
                if pd.api.types.is_numeric_dtype(factors[factor]):
                    if is_log(factors[factor], campaign.scales):
                        axes.set(**{f"{axis.axis_name}scale": "log"})
                        round_ticks(axis)
                    else:
                        plain_ticks(axis)
                elif axis is axes.xaxis:
                    axis.set_tick_params(rotation=90)  # names have no room beside each other
            panels.append((axes, factors[horizontal], factors[vertical]))
    return figure, panels


def _measured(ok: pd.DataFrame, metric: Metric) -> pd.DataFrame:
    """Those of the ok trials that measured it."""
    nothing = f"so there is no {metric.words or metric.name} to draw."
    if ok.empty:
        raise NothingToDraw(f"No trial is ok, {nothing}")
    if metric.name not in ok or ok[metric.name].isna().all():
        raise NothingToDraw(f"No trial measured {metric.name}, {nothing}")
    return ok[ok[metric.name].notna()]
