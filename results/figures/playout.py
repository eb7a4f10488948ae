"""The figures of messages in real time: how many are whole by when they are played.

A playout delay makes no other trial: each is read from the same ones. Drawn in the style of
`results.figures.style`. A campaign without messages raises NothingToDraw.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter

from fecbench.results.analysis import outcomes
from fecbench.results.analysis.intervals import LEVEL, ecdf, median_interval
from fecbench.results.analysis.point_statistic import by_group
from fecbench.results.figures.nothing import NothingToDraw
from fecbench.results.figures.style import (
    ACROSS,
    FONT,
    WIDTH,
    Look,
    heading,
    legend_below,
    looks,
    plain_ticks,
    style,
    wrapped,
)
from fecbench.results.metrics import of, playout
from fecbench.results.store.records import CampaignInfo

_PANEL = 3.6  # inches
_MARKS = 10  # of a line


def playouts(frame: pd.DataFrame) -> dict[float, str]:
    """Each playout delay in ms at which messages were asked for, ascending, and its column."""
    found = ((playout(str(column)), str(column)) for column in frame.columns)
    return dict(sorted((delay, column) for delay, column in found if delay is not None))


def on_time(frame: pd.DataFrame, campaign: CampaignInfo) -> Figure:
    """The share of messages that are whole in time over the playout delay, a panel a workload and a line a
    variant.

    Each share is the median over points of the design's statistic over repetitions; a trial that failed or
    timed out has no message in time. The band is the interval of that median over points, where there are
    enough of them.
    """
    columns = playouts(frame)
    ok = frame["state"] == "ok"
    sent = ok & frame[list(columns.values())].notna().any(axis=1) if columns else ok & False
    if not sent.any():
        raise NothingToDraw("No trial that is ok sent messages, so there is no share on time to draw.")
    is_drawn = frame["workload"].isin(set(frame.loc[sent, "workload"])) & (sent | outcomes.is_worst(frame))
    drawn_trials = frame[is_drawn].assign(
        **{name: outcomes.shares(frame, of(name))[is_drawn] for name in columns.values()}
    )
    place = ["workload", "variant", "point"]
    shares = pd.DataFrame(
        {
            name: by_group(drawn_trials, place, name, campaign.statistic, more_is_better=True)
            for name in columns.values()
        }
    ).reset_index()
    drawn = [
        label for label in (w["label"] for w in campaign.workloads) if (shares["workload"] == label).any()
    ]
    with style():
        figure, panels = _panels(drawn)
        for axes, workload in zip(panels, drawn, strict=True):
            of_workload = shares[shares["workload"] == workload]
            for number, (variant, look) in enumerate(looks(campaign).items()):
                of_variant = of_workload[of_workload["variant"] == variant]
                if len(of_variant):
                    _draw_shares(axes, of_variant, columns, look, number)
            axes.set_ylim(-0.02, 1.02)
            axes.yaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
            plain_ticks(axes.xaxis)
        _label(panels, "playout delay (ms)", "share of messages that are whole in time")
        _legend(figure, campaign, shares["variant"])
        points = shares["point"].nunique()
        heading(
            figure,
            "How many messages are whole when they are played?",
            f"{campaign.heading} · {points} points of {len(campaign.points)} · {len(drawn_trials)} trials"
            f"{_of_worst(drawn_trials)} · band: {100 * (1 - LEVEL):g} % interval of the median over points",
        )
    return figure


def _of_worst(trials: pd.DataFrame) -> str:
    """What a figure of messages says of trials that failed or timed out; "" for none."""
    lacking = outcomes.lacking(trials)
    return f" · no message in time, for the trial {lacking}" if lacking else ""


def latency_ecdf(series: pd.DataFrame, campaign: CampaignInfo, frame: pd.DataFrame) -> Figure:
    """The distribution of the latency of messages, a panel a workload and a line a variant.

    `series` is that of messages, as `frames.series` gives it, and `frame` has the trials. A message that
    never was whole is in no step, so that a curve ends at the share of those that were. No message counts as
    whole of a trial that failed or timed out, of which there is no series: as many as the others of that
    variant have in the mean.
    """
    if series.empty or "whole_s" not in series:
        raise NothingToDraw("No variant left the series messages, so there is no latency to draw.")
    latency_ms = (1e3 * (series["whole_s"] - series["t_s"])).where(series["whole_s"] >= 0, np.inf)
    left = series.assign(latency_ms=latency_ms)
    place = ["workload", "variant"]
    has_series = pd.MultiIndex.from_frame(frame[place]).isin(
        pd.MultiIndex.from_frame(left[place].drop_duplicates())
    )
    counted = frame[has_series]
    worst = counted[outcomes.is_worst(counted)].groupby(place, observed=True).size()
    drawn = [label for label in (w["label"] for w in campaign.workloads) if (left["workload"] == label).any()]
    with style():
        figure, panels = _panels(drawn)
        for axes, workload in zip(panels, drawn, strict=True):
            of_workload = left[left["workload"] == workload]
            for number, (variant, look) in enumerate(looks(campaign).items()):
                of_variant = of_workload[of_workload["variant"] == variant]
                curve = ecdf(of_variant["latency_ms"])
                curve = curve[np.isfinite(curve["value"])]
                trials = of_variant["id"].nunique()
                curve["share"] *= trials / max(1, trials + worst.get((workload, variant), 0))
                if len(curve):
                    axes.step(
                        curve["value"],
                        curve["share"],
                        where="post",
                        color=look.color,
                        marker=look.marker,
                        markevery=(number / 20, 0.2),
                        rasterized=True,
                    )
            axes.set_ylim(-0.02, 1.02)
            axes.yaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
            plain_ticks(axes.xaxis)
        _label(panels, "latency since a message was due (ms)", "share of all messages")
        _legend(figure, campaign, left["variant"])
        heading(
            figure,
            "How late are messages whole?",
            f"{campaign.heading} · {len(left)} messages of {left['id'].nunique()} trials{_of_worst(counted)}",
        )
    return figure


def _panels(workloads: list[str]) -> tuple[Figure, list[Axes]]:
    """A panel for each of these workloads."""
    across = min(ACROSS, len(workloads))
    down = -(-len(workloads) // across)
    figure = Figure(figsize=(WIDTH, 1.6 + _PANEL * down))
    panels = list(figure.subplots(down, across, squeeze=False, sharex=True, sharey=True).flat)
    for axes, workload in zip(panels, workloads, strict=False):
        axes.set_title(wrapped(workload, WIDTH / across - 0.7), fontsize=FONT)
    for unused in panels[len(workloads) :]:
        unused.set_visible(False)
    return figure, panels[: len(workloads)]


def _draw_shares(
    axes: Axes, shares: pd.DataFrame, columns: Mapping[float, str], look: Look, number: int
) -> None:
    values = [shares[column].dropna() for column in columns.values()]
    bands = [median_interval(value, shares.loc[value.index, "point"]) for value in values]
    at = list(columns)
    if np.isfinite(bands).any():
        axes.fill_between(
            at,
            [low for low, _ in bands],
            [high for _, high in bands],
            color=look.color,
            alpha=0.2,
            linewidth=0,
        )
    axes.plot(
        at,
        [value.median() for value in values],
        color=look.color,
        marker=look.marker,
        markevery=(number % 2, max(1, len(at) // _MARKS)) if len(at) > _MARKS else None,
    )


def _label(panels: list[Axes], across: str, up: str) -> None:
    """The axes' labels: below the last panel of each column, and beside the first of each row."""
    for number, axes in enumerate(panels):
        if number + ACROSS >= len(panels):
            axes.set_xlabel(wrapped(across, WIDTH / ACROSS - 0.7))
            axes.tick_params(labelbottom=True)
        if number % ACROSS == 0:
            axes.set_ylabel(wrapped(up, _PANEL - 0.6))


def _legend(figure: Figure, campaign: CampaignInfo, drawn: pd.Series) -> None:
    there = set(drawn)
    legend_below(
        figure,
        [
            Line2D([], [], color=look.color, marker=look.marker, label=variant)
            for variant, look in looks(campaign).items()
            if variant in there
        ],
    )
