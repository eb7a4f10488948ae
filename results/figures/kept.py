"""Networks in which enough messages are whole in time."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from fecbench.quantities import counted
from fecbench.results.analysis import frames
from fecbench.results.analysis.keeping import LEAST, LOSSES, kept, losses
from fecbench.results.analysis.scales import is_wide
from fecbench.results.figures.nothing import NothingToDraw
from fecbench.results.figures.seaborn_alone import sns
from fecbench.results.figures.sheet import Given, sheet
from fecbench.results.figures.style import across, line, looks, mark, wide, wrapped
from fecbench.results.figures.ticks import round_ticks
from fecbench.results.metrics import compared, playout
from fecbench.results.metrics.units import axis_label
from fecbench.results.store.records import CampaignInfo

_PANEL = 2.2  # inches high
_DELAY = re.compile(r"(\w+\.)*(owd|rtt)_ms")


def kept_map(frame: pd.DataFrame, campaign: CampaignInfo, workload: str, *, ax: Given = None) -> Figure:
    """A panel a variant, and in it a mark a point, at the share of packets that were lost there and its
    delay: full where `analysis.keeping.LEAST` of the messages were whole in time, by the playout delay that
    the workload compares.

    Raises NothingToDraw for a workload that compares something else, or where the delay does not vary.
    """
    (metric,) = (compared(each) for each in campaign.workloads if each["label"] == workload)
    within_ms = playout(metric)
    points = frames.points(campaign)
    delays = [str(name) for name in points if _DELAY.fullmatch(str(name)) and points[name].nunique() > 1]
    rows = frame[frame["workload"] == workload]
    if within_ms is None or not delays or metric not in rows or not (rows["state"] == "ok").any():
        raise NothingToDraw(f"There are no shares on time of {workload} over delays to draw.")
    table = kept(rows, campaign, metric).merge(points, on="point")
    table = table.merge(losses(rows, campaign).drop(columns="workload"), on="point")
    if not table[LOSSES].notna().any():
        raise NothingToDraw(f"No trial of {workload} counted the packets that its link lost.")
    variants = [label for label in looks(campaign) if (table["variant"] == label).any()]
    least = table.loc[table[LOSSES] > 0, LOSSES].min()
    wide_range = is_wide(table[LOSSES].clip(lower=least))
    # 0 stands at the left end
    table[LOSSES] = table[LOSSES].clip(lower=least / 2) if wide_range else table[LOSSES]
    columns = min(across(), len(variants))
    size = (wide(), 1.6 + (_PANEL + 0.5) * -(-len(variants) // columns))
    with sheet(len(variants), size, ax, columns=columns, sharex=True, what="choose fewer variants") as page:
        for axes, label in zip(page.panels, variants, strict=True):
            rows = table[table["variant"] == label]
            sns.scatterplot(
                rows,
                x=LOSSES,
                y=delays[0],
                hue="kept",
                palette={True: "black", False: "white"},
                s=mark(0.6),
                edgecolor="black",
                linewidth=line(2 / 3),
                legend=False,
                rasterized=True,
                ax=axes,
            )
            title = f"{label}: {int(np.sum(rows['kept']))} of {len(rows)}"
            axes.set(xlabel="", ylabel="")
            axes.set_title(wrapped(title, page.width), fontsize="medium")
            if wide_range:
                axes.set_xscale("log")
                round_ticks(axes.xaxis)
            axes.xaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g} %"))
        for axes in page.last_row:
            axes.set_xlabel("packets lost", fontsize="medium")
            axes.tick_params(labelbottom=True)
        page.label_up(axis_label(delays[0]))
        page.legend(
            [
                Line2D([], [], color="black", marker="o", ls="", mfc=face, label=name)
                for name, face in {"kept": "black", "not kept": "white"}.items()
            ]
        )
        page.heading(
            f"Where are {100 * LEAST:g} % of {workload} whole within {within_ms:g} ms?",
            f"{campaign.heading} · {counted(table['point'].nunique(), 'network')} of {len(campaign.points)}",
        )
    return page.figure
