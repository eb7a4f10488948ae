"""The figures of messages in real time: how many are whole by when they are played.

A playout delay makes no other trial: each is read from the same ones. Drawn in the style of
`results.figures.style`. A campaign without messages raises NothingToDraw.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter

from fecbench.quantities import counted
from fecbench.results.analysis import outcomes
from fecbench.results.analysis.intervals import LEVEL, median_interval
from fecbench.results.analysis.point_statistic import by_group
from fecbench.results.analysis.summary import of_whole_groups
from fecbench.results.figures.curves import curve
from fecbench.results.figures.nothing import NothingToDraw
from fecbench.results.figures.seaborn_alone import sns
from fecbench.results.figures.sheet import Given, Sheet, sheet
from fecbench.results.figures.style import Look, across, looks, order_of, wide, wrapped
from fecbench.results.figures.ticks import plain_ticks
from fecbench.results.metrics import of, playout
from fecbench.results.store.records import CampaignInfo

_PANEL = 3.6  # inches
_MARKS = 10  # of a line


def playouts(frame: pd.DataFrame) -> dict[float, str]:
    """Each playout delay in ms at which messages were asked for, ascending, and its column."""
    found = ((playout(str(column)), str(column)) for column in frame.columns)
    return dict(sorted((delay, column) for delay, column in found if delay is not None))


def on_time(frame: pd.DataFrame, campaign: CampaignInfo, *, ax: Given = None) -> Figure:
    """The share of messages that are whole in time over the playout delay, a panel a workload and a line a
    variant.

    Each share is the median over points of the design's statistic over repetitions; a trial that failed or
    timed out has no message in time. All trials are of whole groups (`summary.of_whole_groups`): no variant
    is drawn in other networks than the others. The band is the interval of that median over points, where
    there are enough of them.
    """
    columns = playouts(frame)
    ok = frame["state"] == "ok"
    sent = ok & frame[list(columns.values())].notna().any(axis=1) if columns else ok & False
    if not sent.any():
        raise NothingToDraw("No trial that is ok sent messages, so there is no share on time to draw.")
    has_messages = frame["workload"].isin(set(frame.loc[sent, "workload"]))
    is_drawn = of_whole_groups(frame, has_messages & (sent | outcomes.is_worst(frame)), campaign)
    if not is_drawn.any():
        raise NothingToDraw("In no repetition did all variants send messages.")
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
    delay_of = {column: delay for delay, column in columns.items()}
    long = shares.melt(place, list(columns.values()), "column", "share").dropna(subset="share")
    long = long.assign(delay=long["column"].map(delay_of), variant=long["variant"].astype(str))
    order = order_of([variant["label"] for variant in campaign.variants], long["variant"])
    look_of = {label: looks(campaign)[label] for label in order}
    with _panels(drawn, ax) as page:
        for axes, workload in zip(page.panels, drawn, strict=True):
            axes.set_title(wrapped(workload, page.width), fontsize="medium")
            sns.lineplot(
                long[long["workload"] == workload],
                x="delay",
                y="share",
                hue="variant",
                hue_order=order,
                style="variant",
                style_order=order,
                palette={label: look.color for label, look in look_of.items()},
                markers=[look.marker for look in look_of.values()],
                dashes=False,
                markevery=max(1, len(columns) // _MARKS),
                estimator="median",
                errorbar=_interval,
                legend=False,
                ax=axes,
            )
            axes.set_ylim(-0.02, 1.02)
            axes.yaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
            plain_ticks(axes.xaxis)
        _label(page, "playout delay (ms)", "share of messages that are whole in time")
        _legend(page, look_of)
        points = shares["point"].nunique()
        page.heading(
            "How many messages are whole when they are played?",
            f"{campaign.averaged_heading} · {counted(points, 'network')} of {len(campaign.points)}"
            f" · {counted(len(drawn_trials), 'trial')}{_of_worst(drawn_trials)}"
            f" · band: {100 * (1 - LEVEL):g} % interval of the median over points",
        )
    return page.figure


def _interval(values: pd.Series) -> tuple[float, float]:
    """Return the interval of the median over points, each of which has one value."""
    return median_interval(values, range(len(values)))


def _of_worst(trials: pd.DataFrame) -> str:
    """Return the remark of a figure of messages on trials that failed or timed out; "" for none."""
    lacking = outcomes.lacking(trials)
    return f" · no message in time, for the trial {lacking}" if lacking else ""


def latency_ecdf(
    series: pd.DataFrame, campaign: CampaignInfo, frame: pd.DataFrame, *, ax: Given = None
) -> Figure:
    """The distribution of the latency of messages, a panel a workload and a line a variant.

    `series` is that of messages, as `frames.series` gives it, and `frame` has the trials: those that are ok
    are drawn, of whole groups, as in `on_time`. A message that never was whole is in no step, so that a curve
    ends at the share of those that were. No message counts as whole of a trial that failed or timed out: as
    many as the others of that variant have in the mean.
    """
    place = ["workload", "variant"]
    has_series = (frame["state"] == "ok") & frame["id"].isin(series["id"])
    arms = pd.MultiIndex.from_frame(frame.loc[has_series, place].drop_duplicates())
    is_of_arms = pd.Series(pd.MultiIndex.from_frame(frame[place]).isin(arms), frame.index)
    counted_trials = frame[
        of_whole_groups(frame, has_series | (is_of_arms & outcomes.is_worst(frame)), campaign)
    ]
    series = series[series["id"].isin(counted_trials.loc[counted_trials["state"] == "ok", "id"])]
    if series.empty or "whole_s" not in series:
        raise NothingToDraw("No variant left the series messages, so there is no latency to draw.")
    latency_ms = (1e3 * (series["whole_s"] - series["t_s"])).where(series["whole_s"] >= 0, np.inf)
    left = series.assign(latency_ms=latency_ms)
    worst = counted_trials[outcomes.is_worst(counted_trials)].groupby(place, observed=True).size()
    drawn = [label for label in (w["label"] for w in campaign.workloads) if (left["workload"] == label).any()]
    known = left.loc[np.isfinite(left["latency_ms"]), "latency_ms"]
    longest = float(known.max()) if len(known) else 0.0
    ends = (-0.1 * (longest or 1.0), 1.1 * (longest or 1.0))
    there = order_of([variant["label"] for variant in campaign.variants], left["variant"])
    look_of = {label: looks(campaign)[label] for label in there}
    with _panels(drawn, ax) as page:
        for axes, workload in zip(page.panels, drawn, strict=True):
            axes.set_title(wrapped(workload, page.width), fontsize="medium")
            of_workload = left[left["workload"] == workload]
            for number, (variant, look) in enumerate(look_of.items()):
                of_variant = of_workload[of_workload["variant"] == variant]
                trials = max(1, of_variant["id"].nunique())
                lacking = worst.get((workload, variant), 0) * len(of_variant) / trials
                curve(
                    axes,
                    of_variant["latency_ms"].replace(np.inf, ends[1]),
                    ends,
                    worst=lacking,
                    color=look.color,
                    marker=look.marker,
                    markevery=(number / 20, 0.2),
                )
            axes.set(xlim=(ends[0] / 2, longest * 1.05 or 1.0), ylim=(-0.02, 1.02))
            axes.yaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
            plain_ticks(axes.xaxis)
        _label(page, "latency since a message was due (ms)", "share of all messages")
        _legend(page, look_of)
        page.heading(
            "How late are messages whole?",
            f"{campaign.averaged_heading} · {counted(len(left), 'message')} of"
            f" {counted(left['id'].nunique(), 'trial')}"
            f"{_of_worst(counted_trials)}",
        )
    return page.figure


def _panels(workloads: list[str], ax: Given) -> AbstractContextManager[Sheet]:
    """A panel for each of these workloads."""
    columns = min(across(), len(workloads))
    size = (wide(), 1.6 + _PANEL * -(-len(workloads) // columns))
    return sheet(len(workloads), size, ax, columns=columns, sharex=True, what="choose one workload")


def _label(page: Sheet, horizontal: str, up: str) -> None:
    """The axes' labels: below the last panel of each column, and beside the first of each row."""
    for axes in page.panels:
        axes.set(xlabel="", ylabel="")
    for axes in page.last_row:
        axes.set_xlabel(wrapped(horizontal, page.width))
        axes.tick_params(labelbottom=True)
    for axes in page.first_column:
        axes.set_ylabel(wrapped(up, _PANEL - 0.6))


def _legend(page: Sheet, look_of: Mapping[str, Look]) -> None:
    page.legend(
        [
            Line2D([], [], color=look.color, marker=look.marker, label=variant)
            for variant, look in look_of.items()
        ]
    )
