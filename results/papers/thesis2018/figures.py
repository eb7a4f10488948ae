"""Figures 5.6 to 5.19 of Michel's thesis, drawn from campaigns of `thesis2018-*`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter

from fecbench.quantities import counted
from fecbench.results import metrics
from fecbench.results.analysis.intervals import LEVEL
from fecbench.results.analysis.pairing import in_order
from fecbench.results.figures.curves import band, curve
from fecbench.results.figures.nothing import NothingToDraw
from fecbench.results.figures.sheet import heading, legend_below
from fecbench.results.figures.style import Look, line, looks, new_figure, style, wide
from fecbench.results.figures.ticks import plain_ticks
from fecbench.results.papers.thesis2018.arms import (
    OVERHEAD,
    REBUFFERING,
    REBUFFERING_2,
    RECEIVED,
    RECEIVED_2,
    REED_SOLOMON,
    RELIABLE,
    RLC,
    UDP,
    XOR,
    Arm,
    at_points,
    ratios,
    variant_of,
)
from fecbench.results.store.records import CampaignInfo

Draw = Callable[[pd.DataFrame, CampaignInfo], Figure]

_Line = Literal["-", "--", "-.", ":"]
_LINES: tuple[_Line, ...] = ("-", "--", "-.", ":")
_BEYOND = 0.05  # share of an axis: so far beyond its end, timeouts are drawn


def of_metric(metric: str, arms: Sequence[Arm], question: str) -> Draw:
    """The ECDFs over points of what several arms measured, in one panel."""

    def draw(frame: pd.DataFrame, campaign: CampaignInfo) -> Figure:
        table = at_points(frame, campaign, metric, arms).dropna(subset=[arm.name for arm in arms])
        curves = {arm: table[arm.name] for arm in arms}
        return _ecdfs(curves, campaign, metrics.of(metric).title, question)

    return draw


def of_ratio(metric: str, of: Sequence[Arm], to: Arm, question: str) -> Draw:
    """The ECDFs over points of what some arms measured divided by what another one did."""

    def draw(frame: pd.DataFrame, campaign: CampaignInfo) -> Figure:
        table = at_points(frame, campaign, metric, [*of, to])
        rows = {arm: ratios(table, metric, arm, to).dropna(subset="ratio") for arm in of}
        curves = {arm: in_order(of_arm) for arm, of_arm in rows.items()}
        return _ecdfs(curves, campaign, f"{metrics.of(metric).words} / that of {to.name}", question, at=1.0)

    return draw


def over_the_delay(frame: pd.DataFrame, campaign: CampaignInfo) -> Figure:
    """Fig. 5.10: the re-buffering time over the one-way delay."""
    arms = (RELIABLE, REED_SOLOMON, UDP)
    table = at_points(frame, campaign, REBUFFERING, arms).sort_values("owd_ms")
    ends = _ends_of(pd.concat([table[arm.name] for arm in arms]).dropna())
    with style():
        figure = new_figure(wide(), 5.2)
        axes = figure.subplots()
        for number, (arm, look) in enumerate(_looks_of(campaign, arms).items()):
            values = table[arm.name] if ends is None else table[arm.name].clip(upper=ends[1])
            axes.plot(
                table["owd_ms"],
                values,
                color=look.color,
                linestyle=_LINES[number],
                marker=look.marker,
            )
            timed_out = np.isinf(table[arm.name])
            axes.scatter(
                table.loc[timed_out, "owd_ms"],
                values[timed_out],
                color="white",
                edgecolor=look.color,
                marker=look.marker,
                zorder=3,
            )
        axes.axvline(45, color="black", linewidth=1)
        axes.set_xlabel("one-way delay (ms); the line is the thesis' 45 ms")
        axes.set_ylabel(metrics.of(REBUFFERING).title)
        plain_ticks(axes.xaxis)
        plain_ticks(axes.yaxis)
        axes.set_ylim(bottom=0)
        _legend(figure, campaign, arms)
        heading(
            figure,
            "From which delay on does a reliable stream re-buffer?",
            f"{campaign.heading} · {table['point'].nunique()} delays, {campaign.statistic} of repetitions"
            f"{' · hollow: failed or timed out, beyond the axis' if ends else ''}",
        )
    return figure


def _looks_of(campaign: CampaignInfo, arms: Sequence[Arm]) -> dict[Arm, Look]:
    look_of_variant = looks(campaign)
    return {arm: look_of_variant[variant_of(campaign, arm)] for arm in arms}


def _ecdfs(
    curves: dict[Arm, pd.Series], campaign: CampaignInfo, across: str, question: str, at: float | None = None
) -> Figure:
    if not all(len(values) for values in curves.values()):
        raise NothingToDraw("In no network are all of these variants ok.")
    measured = pd.concat(list(curves.values()))
    ends = _ends_of(measured)
    with style():
        figure = new_figure(wide(), 5.2)
        axes = figure.subplots()
        if at is not None:
            axes.axvline(at, color="black", linewidth=1)
        low, high = ends or (float(measured.min()), float(measured.max()))
        span = (low - (high - low), high + (high - low)) if ends else (low, high)
        for number, (arm, look) in enumerate(_looks_of(campaign, list(curves)).items()):
            band(axes, curves[arm], span, look.color, 0.12)
            curve(axes, curves[arm], span, color=look.color, linewidth=line(1.5), linestyle=_LINES[number])
        if ends:
            axes.set_xlim(*ends)
        axes.set_xlabel(across)
        axes.set_ylabel("share of points with at most this")
        axes.set_ylim(-0.02, 1.02)
        axes.yaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
        plain_ticks(axes.xaxis)
        _legend(figure, campaign, list(curves))
        points = min(len(values) for values in curves.values())
        heading(
            figure,
            question,
            f"{campaign.heading} · {counted(points, 'point')} of {len(campaign.points)}"
            f" · band: holds the whole curve with {100 * (1 - LEVEL):g} % confidence (DKW)"
            f"{' · beyond the ends of the axis: failed or timed out' if ends else ''}",
        )
    return figure


def _ends_of(values: pd.Series) -> tuple[float, float] | None:
    """The ends of an axis that has all values but timeouts between them; None where there is no timeout.
    Raises NothingToDraw where there is nothing else."""
    finite = values[np.isfinite(values)]
    if finite.empty:
        raise NothingToDraw("In no network is there a statistic of these variants that is not a timeout.")
    if len(finite) == len(values):
        return None
    margin = _BEYOND * (float(finite.max() - finite.min()) or abs(float(finite.max())) or 1.0)
    return float(finite.min()) - margin, float(finite.max()) + margin


def _legend(figure: Figure, campaign: CampaignInfo, arms: Sequence[Arm]) -> None:
    legend_below(
        figure,
        [
            Line2D([], [], color=look.color, linestyle=_LINES[number], linewidth=line(1.5), label=arm.name)
            for number, (arm, look) in enumerate(_looks_of(campaign, arms).items())
        ],
    )


fig5_6 = of_ratio(OVERHEAD, (REED_SOLOMON, RLC, RELIABLE), UDP, "How much more is sent than with UDP?")
fig5_7 = of_metric(RECEIVED, (UDP, REED_SOLOMON, RELIABLE), "How much data is received?")
fig5_8 = of_metric(REBUFFERING, (UDP, REED_SOLOMON, RELIABLE), "For how long does the receiver re-buffer?")
fig5_9 = of_ratio(RECEIVED, (REED_SOLOMON,), UDP, "Is more received with Reed-Solomon than with UDP?")
received_by_codes = of_metric(RECEIVED, (RLC, REED_SOLOMON, XOR), "With which code is most received?")
rebuffering_by_codes = of_metric(
    REBUFFERING, (RLC, REED_SOLOMON, XOR), "With which code does the receiver re-buffer least?"
)
fig5_15 = of_ratio(RECEIVED, (RLC,), REED_SOLOMON, "Is more received with RLC than with Reed-Solomon?")
received_low = of_metric(
    RECEIVED_2, (RLC, REED_SOLOMON, UDP), "How much data is received with a buffer of two messages?"
)
rebuffering_low = of_metric(
    REBUFFERING_2,
    (RLC, REED_SOLOMON, UDP),
    "For how long does the receiver re-buffer with a buffer of two messages?",
)
fig5_18 = of_ratio(
    RECEIVED_2, (RLC,), REED_SOLOMON, "Is more received with RLC, with a buffer of two messages?"
)
