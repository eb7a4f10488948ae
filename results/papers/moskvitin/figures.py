"""The slides' table as a figure: how much longer or shorter messages take with FEC, by size and loss rate."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fecbench.quantities import counted
from fecbench.results.analysis.pairing import with_fec
from fecbench.results.figures.sheet import heading, legend_below, title
from fecbench.results.figures.style import looks, new_figure, style, variant_marks
from fecbench.results.metrics.units import size
from fecbench.results.papers.claim import shown
from fecbench.results.papers.moskvitin.slides import LOSSES, SIZES, TABLE, Direction, Ways, ratios
from fecbench.results.store.records import CampaignInfo

_WIDTH = 0.7  # of what stands side by side at a size


def table(frame: pd.DataFrame, campaign: CampaignInfo, direction: Direction, ways: Ways) -> Figure:
    """A panel a loss rate; the slides' ratio as a bar at each size, ours as marks with their intervals."""
    measured = ratios(frame, campaign, direction, ways)
    variants = list(with_fec(campaign))
    with style():
        figure = new_figure(15, 6)
        panels = figure.subplots(1, len(LOSSES), sharey=True)
        for axes, loss in zip(panels, LOSSES, strict=True):
            of_loss = measured[measured["loss"] == loss]
            for i, size_bytes in enumerate(SIZES):
                slides = TABLE[size_bytes, loss].ratio
                axes.plot([i - 0.45, i + 0.45], [slides, slides], color="black", linewidth=2.5)
            for j, variant in enumerate(variants):
                of_variant = of_loss[of_loss["variant"] == variant].set_index("size_bytes").reindex(SIZES)
                at = [i + _WIDTH * (j / max(1, len(variants) - 1) - 0.5) for i in range(len(SIZES))]
                _marks(axes, at, of_variant, campaign, variant)
            axes.axhline(1, color="black", linewidth=0.8)
            axes.set_yscale("log")
            axes.set_xticks(range(len(SIZES)), [size(size_bytes) for size_bytes in SIZES])
            axes.grid(False, axis="x")
            axes.set_xlabel("size")
            title(
                axes,
                f"{shown(loss, '.0%')} loss",
                f"{counted(int(of_loss['pairs'].sum()), 'pair')} of trials",
            )
        panels[0].set_yticks([0.25, 0.5, 0.75, 1, 1.5, 2], ["0.25", "0.5", "0.75", "1", "1.5", "2"])
        panels[0].minorticks_off()
        panels[0].set_ylabel("mean time with FEC / without\n◀ faster with FEC      slower ▶")
        paper = Line2D([], [], color="black", linewidth=2.5, label="the slides")
        legend_below(figure, [paper, *variant_marks(campaign, variants)])
        heading(
            figure,
            f"How much faster are {direction}s with FEC?",
            f"{campaign.heading} · packets lost {ways}: " + _DETAILS[ways],
        )
    return figure


_DETAILS = {"one way": "from the client to the server", "both ways": "from each end to the other"}


def _marks(axes: Axes, at: list[float], rows: pd.DataFrame, campaign: CampaignInfo, variant: str) -> None:
    look = looks(campaign)[variant]
    axes.errorbar(
        at,
        rows["ratio"],
        # Where nothing is lost, intervals have no width, but for rounding.
        yerr=[(rows["ratio"] - rows["low"]).clip(lower=0), (rows["high"] - rows["ratio"]).clip(lower=0)],
        color=look.color,
        marker=look.marker,
        markeredgecolor="black",
        markersize=7,
        linestyle="none",
        linewidth=1,
        capsize=3,
    )
