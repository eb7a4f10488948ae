"""The slides' table as a figure: how much longer or shorter uploads take with FEC, by stratum and bursts."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fecbench.results.analysis.pairing import with_fec
from fecbench.results.figures.sheet import heading, legend_below, title
from fecbench.results.figures.style import looks, new_figure, style, variant_marks
from fecbench.results.papers.starlink2022.slides import STATISTICS, STRATA, TABLE
from fecbench.results.papers.starlink2022.strata import bursts, ratios
from fecbench.results.store.records import CampaignInfo

_WIDTH = 0.6  # of what stands side by side at a length of bursts


def table(frame: pd.DataFrame, campaign: CampaignInfo) -> Figure:
    """A column a stratum, a row a statistic; the slides' ratio as a line, ours as marks with intervals."""
    measured = ratios(frame, campaign)
    lengths = list(bursts(campaign).values())
    variants = list(with_fec(campaign))
    with style():
        figure = new_figure(15, 9)
        panels = figure.subplots(len(STATISTICS), len(STRATA), sharey="row", squeeze=False)
        for row, statistic in zip(panels, STATISTICS, strict=True):
            for axes, stratum in zip(row, STRATA, strict=True):
                axes.axhline(TABLE[stratum, statistic].ratio, color="black", linewidth=2.5)
                axes.axhline(1, color="black", linewidth=0.8)
                for j, variant in enumerate(variants):
                    look = looks(campaign)[variant]
                    for i, burst in enumerate(lengths):
                        estimate = measured[variant, burst, stratum, statistic].estimate()
                        at = i + _WIDTH * (j / max(1, len(variants) - 1) - 0.5)
                        axes.plot([at, at], [estimate.low, estimate.high], color=look.color, linewidth=1)
                        axes.plot(
                            at,
                            estimate.value,
                            color=look.color,
                            marker=look.marker,
                            markeredgecolor="black",
                            markersize=7,
                        )
                pairs = {
                    sum(measured[variant, burst, stratum, statistic].pairs for burst in lengths)
                    for variant in variants
                }
                counts = " to ".join(str(count) for count in sorted({min(pairs), max(pairs)}))
                axes.set_xticks(range(len(lengths)), lengths)
                axes.grid(False, axis="x")
                title(axes, f"{statistic}: {stratum}", f"{counts} pairs of uploads a variant")
                axes.set_xlabel("mean length of bursts in packets")
            row[0].set_ylabel("time with FEC / without\n◀ faster with FEC      slower ▶")
        slides = Line2D([], [], color="black", linewidth=2.5, label="the slides")
        legend_below(figure, [slides, *variant_marks(campaign, variants)])
        heading(
            figure,
            "How much faster are uploads with repair symbols at their end?",
            f"{campaign.heading} · strata by what the variant without FEC lost",
        )
    return figure
