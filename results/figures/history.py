"""The figure of a history: the times of each commit, by workload, and the commits at which they change."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from fecbench.results.figures.sheet import heading, legend_below
from fecbench.results.figures.style import PALETTE, new_figure, style, wide
from fecbench.results.history.changes import Change, History, levels

_MOST_NAMED = 30
_MARKERS = "osD^vP*X"


def over_commits(history: History, changes: Sequence[Change]) -> Figure:
    """Return the times of each commit, divided by those of the first, with intervals of 95 %."""
    count = len(history.versions)
    with style():
        figure = new_figure(wide(), 5.2)
        axes = figure.subplots()
        workloads = history.workloads
        for number, workload in enumerate(workloads):
            of = levels(history, workload)
            at = np.arange(count) + (number - (len(workloads) - 1) / 2) * 0.5 / max(1, len(workloads))
            there = np.isfinite(of.ratio)
            axes.errorbar(
                at[there],
                of.ratio[there],
                yerr=[(of.ratio - of.low)[there], (of.high - of.ratio)[there]],
                color=PALETTE[number % len(PALETTE)],
                marker=_MARKERS[number % len(_MARKERS)],
                markersize=4,
                linewidth=1,
                label=workload,
            )
        for commit in sorted({change.commit for change in changes}):
            axes.axvline(commit - 0.5, color="0.2", linewidth=1.2, linestyle="--")
        axes.axhline(1, color="0.5", linewidth=0.8)
        ticks = range(0, count, max(1, -(-count // _MOST_NAMED)))
        axes.set_xticks(
            list(ticks),
            [history.versions[place].name for place in ticks],
            rotation=60,
            ha="right",
            fontsize="small",
        )
        axes.set_ylabel("time / that of the first commit")
        legend_below(figure, [*axes.get_legend_handles_labels()[0]])
        first = history.entries[0]
        heading(
            figure,
            f"{first.implementation}: at which commits does it get slower or faster?",
            f"{first.design}, {first.engine}; {len(history.entries)} comparisons; a dashed line is a change",
        )
    return figure
