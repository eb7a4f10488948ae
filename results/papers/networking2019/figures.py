"""Figures 5 to 10 of QUIC-FEC's evaluation, drawn from campaigns of `networking2019-*`."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from fecbench.results.analysis import outcomes
from fecbench.results.figures.box_plots import boxes_of
from fecbench.results.figures.distributions import ecdf_panels
from fecbench.results.figures.nothing import NothingToDraw
from fecbench.results.figures.sheet import sheet, title
from fecbench.results.figures.style import looks
from fecbench.results.metrics.units import size
from fecbench.results.papers.networking2019.comparisons import (
    DCT,
    Unit,
    backgrounds,
    by_point,
    of_size,
    ratios,
    variant_with,
)
from fecbench.results.store.records import CampaignInfo

# The options of the numerator and of the denominator.
Panel = tuple[dict[str, Any], dict[str, Any]]


def ecdfs(
    frame: pd.DataFrame, campaign: CampaignInfo, panels: Sequence[Panel], question: str, unit: Unit = "point"
) -> Figure:
    """The ECDF of DCT ratios, a curve a size: the form of all of the paper's figures but the ninth."""
    tables = [ratios(frame, campaign, *panel, unit).dropna(subset="ratio") for panel in panels]
    for table, panel in zip(tables, panels, strict=True):
        if table.empty:
            arms = " and ".join(variant_with(campaign, options) for options in panel)
            raise NothingToDraw(f"No repetition is ok for {arms}, so there is no DCT ratio to draw.")
    curves = {
        variant_with(campaign, options): {
            size(int(size_bytes)): of_size(table, size_bytes)["ratio"]
            for size_bytes in sorted(table["size_bytes"].unique())
        }
        for table, (options, _) in zip(tables, panels, strict=True)
    }
    what = "points" if unit == "point" else "loss patterns"
    keys = ["point"] if unit == "point" else ["point", "repetition"]
    counts = " and ".join(str(len(table[keys].drop_duplicates())) for table in tables)
    baselines = {variant_with(campaign, of): variant_with(campaign, to) for of, to in panels}
    detail = f"{campaign.heading} · {counts} {what}"
    return ecdf_panels(curves, baselines, campaign, question, detail, what, DCT)


def fig9_fairness(frame: pd.DataFrame, campaign: CampaignInfo) -> Figure:
    """Fig. 9: DCT without FEC beside a transfer without FEC, with notified, and with masked recovery.

    A panel for each point: the paper has one, and names no queue.
    """
    trials = backgrounds(frame, campaign)
    ok = trials[trials["state"] == "ok"]
    if ok.empty or DCT not in ok:
        raise NothingToDraw("No download without FEC that competed with another is ok.")
    look_of = {label: look for label, look in looks(campaign).items() if label in set(ok["variant"])}
    panels = [(where, of_point) for where, of_point in by_point(ok, campaign) if not of_point.empty]
    lacking = {
        where: f"; beyond the boxes, {missing}"
        for where, of_point in by_point(trials, campaign)
        if (missing := outcomes.lacking(of_point))
    }
    size = (1 + 1.9 * len(look_of) * len(panels), 5.4)
    with sheet(len(panels), size, columns=len(panels)) as page:
        for axes, (where, of_point) in zip(page.panels, panels, strict=True):
            boxes_of(axes, of_point, "variant", DCT, list(look_of), look_of)
            names = [
                f"{fill(label, 20)}\n{_median_share(of_point[of_point['variant'] == label])}"
                for label in look_of
            ]
            axes.set_xticks(range(len(names)), names)
            axes.grid(False, axis="x")
            axes.set_ylim(bottom=0)
            axes.set_xlabel(
                "background transfer, and the median share\nof the link that the download got beside it"
            )
            title(axes, where or campaign.heading, f"{len(of_point)} ok trials{lacking.get(where, '')}")
        page.panels[0].set_ylabel("download completion time (s)")
        page.question("How long does a download without FEC take beside another transfer?")
    return page.figure


def _median_share(trials: pd.DataFrame) -> str:
    """Return the share of the link that the foreground got, while both transfers competed."""
    own, other = trials["competition.foreground_mbps"], trials["competition.background_mbps"]
    return f"{(own / (own + other)).median():.0%}"
