"""Gains and costs of arms in groups of networks, beside each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fecbench.results.figures.seaborn_alone import sns
from fecbench.results.figures.sheet import Given, sheet
from fecbench.results.figures.style import across, line, look, mark, wide
from fecbench.results.figures.ticks import ratio_ticks

_PANEL = 2.6  # inches high
_LEAST = 2.4  # inches wide
_MOST = 90  # % of the networks, between the ends of a line
_APART = 0.25  # of the distance between two groups: that of two arms


def gains_map(
    table: pd.DataFrame, arms: Sequence[str], question: str, detail: str, *, ax: Given = None
) -> Figure:
    """A panel for each value of the column `panel`, in it a place for each `group`, and there for each arm a
    mark at the geometric mean of `ratio` over the rows (networks), and a line over 90 % of them. Ratios are
    above 0; columns besides: `arm`. Panels and groups are in the order of the table."""
    panels = list(table.groupby("panel", observed=True, sort=False))
    groups = list(dict.fromkeys(table["group"]))
    look_of = {arm: look(place) for place, arm in enumerate(arms)}
    columns = across(_LEAST)
    ends = table.groupby(["panel", "group", "arm"], observed=True)["ratio"].quantile(
        np.array([1 - _MOST / 100, 1 + _MOST / 100]) / 2
    )
    reach = max(0.01, float(np.abs(np.log(ends)).max()))
    size = (wide(), 1.6 + _PANEL * -(-len(panels) // columns))
    with sheet(len(panels), size, ax, columns=columns, what="leave one panel in the table") as page:
        for axes, (name, rows) in zip(page.panels, panels, strict=True):
            sns.pointplot(
                rows,
                x="group",
                y="ratio",
                order=groups,
                hue="arm",
                hue_order=list(arms),
                palette={arm: look.color for arm, look in look_of.items()},
                markers=[look.marker for look in look_of.values()],
                linestyles="none",
                estimator="mean",
                errorbar=("pi", _MOST),
                log_scale=(False, True),  # so the mean is the geometric one
                dodge=_APART * (len(arms) - 1) if len(arms) > 1 else False,
                markersize=mark(7 / 6) ** 0.5,
                err_kws={"linewidth": line(4 / 3)},
                legend=False,
                ax=axes,
            )
            axes.axhline(1, color="black", linewidth=line(2 / 3))
            axes.set(xlabel="", ylabel="")
            axes.tick_params(axis="x", labelsize="small")
            axes.set_title(str(name), fontsize="medium")
        for axes in page.panels:
            axes.set_ylim(np.exp(-1.05 * reach), np.exp(1.05 * reach))
            ratio_ticks(axes.yaxis, reach)
        page.label_up("◀ shorter      longer ▶")
        page.legend(
            [Line2D([], [], color=look.color, marker=look.marker, label=arm) for arm, look in look_of.items()]
        )
        page.heading(question, f"{detail} · mark: geometric mean; line: {_MOST} % of the networks")
    return page.figure
