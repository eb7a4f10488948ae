"""The figures of rQUIC's evaluation, drawn from campaigns of the designs `rquic2021-*`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator, PercentFormatter

from fecbench.quantities import counted
from fecbench.results.analysis import outcomes
from fecbench.results.figures.box_plots import boxes_of
from fecbench.results.figures.nothing import NothingToDraw
from fecbench.results.figures.sheet import legend_below, question, title
from fecbench.results.figures.style import looks, new_figure, style, variant_marks
from fecbench.results.papers.rquic2021.rates import (
    BOUNDED_FROM_LOSS,
    BTO,
    DCT,
    LOSS,
    MOST_OVERHEAD,
    NETWORKS,
    by_network,
    completion_rates,
    labels_of,
    loss_rates,
    networks_of,
    ok_trials,
    overheads,
    variants_with_fec,
)
from fecbench.results.store.records import CampaignInfo

_SUBJECTS = {"download": "A bulk transfer", "page": "A web page"}
_DEGREE = 3  # of the regression in Fig. 12 and 13
_RTT: dict[str, Any] = {"color": "black", "linestyle": "--", "linewidth": 1.5}
_BEST: dict[str, Any] = {"color": "black", "linestyle": ":", "linewidth": 1.5}


def boxes(frame: pd.DataFrame, campaign: CampaignInfo, workload: str) -> Figure:
    """DCT and overhead by loss rate, a column a network: the form of Fig. 5 and 7."""
    overhead = overheads(frame, campaign, workload)
    networks, losses, look_of = networks_of(campaign), loss_rates(campaign), looks(campaign)
    ok = ok_trials(frame, campaign, workload)
    with style():
        figure = new_figure(1 + 4.5 * len(networks), 8.5)
        above, below = figure.subplots(2, len(networks), squeeze=False, height_ratios=(3, 2))
        for axes, bars, network in zip(above, below, networks, strict=True):
            trials = ok[ok["network"] == network]
            boxes_of(axes, trials, LOSS, DCT, losses, look_of)
            axes.set_ylim(bottom=0)
            _label_losses(axes, losses)
            title(axes, network, f"{len(trials)} ok trials{_of_missing(frame, campaign, workload, network)}")
            _draw_overheads(bars, overhead[overhead["network"] == network], campaign, losses)
            if workload == "download" and 0.05 in losses:
                where = [losses.index(0.05) - 0.5, losses.index(0.05) + 0.5]
                bars.fill_between(where, NETWORKS[network].overhead, MOST_OVERHEAD, color="0.8")
            _label_losses(bars, losses)
            bars.set_ylim(0, max(0.3, 1.1 * _highest(overhead, "mean")))
            bars.yaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=" %"))
            bars.set_xlabel("loss rate")
        above[0].set_ylabel("download completion time (s)")
        below[0].set_ylabel("coded packets / packets sent")
        handles = [
            Patch(facecolor=look.color, alpha=0.6, edgecolor="black", hatch=look.hatch, label=variant)
            for variant, look in look_of.items()
        ]
        if workload == "download":
            handles.append(Patch(facecolor="0.8", label="judged as the paper's overhead"))
        legend_below(figure, handles)
        question(figure, f"{_SUBJECTS[workload]}: how long does it take, and how much is coded for it?")
    return figure


def _of_missing(frame: pd.DataFrame, campaign: CampaignInfo, workload: str, network: str) -> str:
    """Return how many trials boxes lack, by the variant; "" for none."""
    labels = labels_of(campaign, workload)
    missing = outcomes.lacking(frame[frame["workload"].isin(labels) & (frame["network"] == network)])
    return f"; beyond the boxes, {missing}" if missing else ""


def _position(i: int, j: int, boxes: int) -> float:
    """Return the place of box j of so many at loss rate i."""
    return i + (j - (boxes - 1) / 2) * 0.8 / boxes


def _label_losses(axes: Axes, losses: Sequence[float]) -> None:
    axes.set_xticks(range(len(losses)), [f"{100 * loss:g} %" for loss in losses])
    axes.set_xlim(-0.6, len(losses) - 0.4)
    axes.grid(False, axis="x")


def _draw_overheads(
    axes: Axes, overhead: pd.DataFrame, campaign: CampaignInfo, losses: Sequence[float]
) -> None:
    variants, look_of = variants_with_fec(campaign), looks(campaign)
    for j, variant in enumerate(variants):
        rows = overhead[overhead["variant"] == variant].set_index(LOSS).reindex(list(losses))
        axes.bar(
            [_position(i, j, len(variants)) for i in range(len(losses))],
            rows["mean"],
            0.7 / len(variants),
            yerr=(rows["high"] - rows["mean"]).to_numpy(),
            color=(*look_of[variant].color, 0.6),
            edgecolor="black",
            hatch=look_of[variant].hatch,
            capsize=3,
            zorder=2,
        )


def rates_by_loss(frame: pd.DataFrame, campaign: CampaignInfo, workload: str) -> Figure:
    """ξ by loss rate, a panel a network: what Fig. 6 and 9 show, with the bounds of §VI-B for bulk."""
    rates, losses = completion_rates(frame, campaign, workload), loss_rates(campaign)
    with style():
        figure, panels = _panels(campaign, rates)
        for axes, (network, of_network) in zip(panels, by_network(rates, campaign), strict=True):
            for j, variant in enumerate(variants_with_fec(campaign)):
                rows = of_network[of_network["variant"] == variant].set_index(LOSS).reindex(losses)
                at = np.arange(len(losses)) + 0.12 * (j - (len(variants_with_fec(campaign)) - 1) / 2)
                _draw_rates(axes, at, rows, campaign, variant, line="-")
            bound, first = NETWORKS[network].bound, sum(loss < BOUNDED_FROM_LOSS for loss in losses)
            if workload == "download":
                axes.plot([first - 0.3, len(losses) - 0.7], [bound, bound], color="black", linestyle="--")
                axes.annotate(
                    f"paper: below {bound:g}",
                    (len(losses) - 0.7, bound),
                    (0, 4),
                    textcoords="offset points",
                    ha="right",
                )
            _label_losses(axes, losses)
            axes.set_xlabel("loss rate")
        legend_below(figure, variant_marks(campaign, variants_with_fec(campaign)))
        question(figure, f"{_SUBJECTS[workload]}: how much faster is it with FEC?")
    return figure


def rates_by_timeout(frame: pd.DataFrame, campaign: CampaignInfo, workload: str) -> Figure:
    """ξ by buffer timeout with the RTT marked, a panel a network: what Fig. 12 and 13 show."""
    rates = completion_rates(frame, campaign, workload)
    if BTO not in rates:
        raise NothingToDraw(f"This design does not vary {BTO}, so there is nothing to draw over it.")
    with style():
        figure, panels = _panels(campaign, rates)
        for axes, (network, of_network) in zip(panels, by_network(rates, campaign), strict=True):
            axes.set_xscale("log")
            for variant in variants_with_fec(campaign):
                rows = of_network[of_network["variant"] == variant].sort_values(BTO)
                fitted = _regression(rows[BTO], rows["ratio"])
                _draw_rates(axes, rows[BTO], rows, campaign, variant, line="" if fitted else "-")
                if fitted:
                    axes.plot(*fitted, color=looks(campaign)[variant].color, linewidth=3.5, alpha=0.6)
            paper = NETWORKS[network]
            axes.axvline(paper.rtt_ms, **_RTT)
            axes.axvline(paper.best_bto_ms[workload], **_BEST)
            axes.xaxis.set_major_locator(FixedLocator(sorted(of_network[BTO].unique())))
            axes.xaxis.set_minor_locator(NullLocator())
            axes.xaxis.set_major_formatter(FuncFormatter(lambda bto_ms, _: f"{bto_ms:g}"))
            axes.tick_params(axis="x", labelsize="small")
            axes.set_xlabel("buffer timeout (ms)")
        marks = [Line2D([], [], label="RTT", **_RTT), Line2D([], [], label="the paper's best", **_BEST)]
        legend_below(figure, [*variant_marks(campaign, variants_with_fec(campaign)), *marks])
        question(figure, f"{_SUBJECTS[workload]}: how long should the receiver wait for coded packets?")
    return figure


def _highest(estimated: pd.DataFrame, mean: str) -> float:
    values = estimated[[mean, "high"]].to_numpy(np.float64)
    return float(values[np.isfinite(values)].max(initial=0))


def _regression(timeout_ms: pd.Series, rate: pd.Series) -> tuple[Any, Any] | None:
    """The paper's thick line: least squares of the third order, over log(BTO), of the rates that are numbers.
    None for too few points."""
    timeout_ms, rate = timeout_ms[np.isfinite(rate)], rate[np.isfinite(rate)]
    if timeout_ms.nunique() <= _DEGREE + 1:
        return None
    log = np.log(timeout_ms)
    curve = np.polynomial.Polynomial.fit(log, rate, _DEGREE)
    at = np.linspace(log.min(), log.max(), 100)
    return np.exp(at), curve(at)


def _panels(campaign: CampaignInfo, rates: pd.DataFrame) -> tuple[Figure, list[Axes]]:
    """Panels for ξ, one a network."""
    networks = networks_of(campaign)
    figure = new_figure(1 + 4.5 * len(networks), 5)
    panels = list(figure.subplots(1, len(networks), squeeze=False, sharey=True)[0])
    for axes, (network, of_network) in zip(panels, by_network(rates, campaign), strict=True):
        axes.axhline(1, color="black", linewidth=1)
        title(axes, network, f"{counted(int(of_network['pairs'].sum()), 'pair')} of trials")
    panels[0].set_ylim(0, 1.1 * max(1.0, _highest(rates, "ratio")))
    panels[0].set_ylabel("completion rate ξ\n◀ faster with FEC      slower ▶")
    return figure, panels


def _draw_rates(
    axes: Axes, at: Any, rows: pd.DataFrame, campaign: CampaignInfo, variant: str, line: str
) -> None:
    """ξ with its interval, where it has one; at the upper end of the axis where it is ∞."""
    look = looks(campaign)[variant]
    rate = rows["ratio"].clip(upper=axes.get_ylim()[1])
    axes.errorbar(
        at,
        rate,
        yerr=[rate - rows["low"], rows["high"] - rate],
        color=look.color,
        marker=look.marker,
        markeredgecolor="black",
        markersize=8,
        linestyle=line or "none",
        linewidth=1,
        capsize=4,
    )
