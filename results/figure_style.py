"""The one style of all figures: what a variant looks like, titles, ticks of ratios, boxes, legends.

A variant has the same colour, marker and hatch in every figure of a campaign: they follow from its place in
the design. Colours are told apart by people who cannot tell red from green, and are never the only sign.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.cm import ScalarMappable
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator
from numpy.typing import NDArray

from results.database import CampaignInfo

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES: tuple[Any, ...] = (
    "-",
    "--",
    "-.",
    ":",
    (0, (5, 1, 1, 1, 1, 1)),
    (0, (1, 3)),
    (0, (8, 3)),
    (0, (3, 1)),
)
RATIO_COLORS = "PuOr_r"  # orange above 1, purple below: told apart by people who cannot tell red from green
_HATCHES = ("", "///", "...", "xxx", "\\\\\\", "ooo", "+++", "---")
_UNITS = {"mbps": "Mbit/s", "ms": "ms", "s": "s", "bytes": "bytes", "packets": "packets", "bdp": "BDP"}
_MAX_DOTS = 400  # more single trials in one box hide it


@dataclass(frozen=True)
class Look:
    """The colour, marker and hatch of a variant."""

    color: tuple[float, float, float]
    marker: str
    hatch: str


def looks(campaign: CampaignInfo) -> dict[str, Look]:
    """The look of each variant. It follows from the order of the design alone, not from what was run."""
    colors = sns.color_palette("colorblind")
    return {
        variant["label"]: Look(
            colors[i % len(colors)], MARKERS[i % len(MARKERS)], _HATCHES[i % len(_HATCHES)]
        )
        for i, variant in enumerate(campaign.variants)
    }


@contextmanager
def style() -> Iterator[None]:
    """The settings in which a figure is made, and in which it is saved."""
    settings = sns.axes_style("whitegrid") | sns.plotting_context("notebook")
    settings |= {
        "axes.titlelocation": "left",
        "figure.constrained_layout.use": True,
        "hatch.linewidth": 0.5,
        "savefig.dpi": 150,
        "svg.fonttype": "path",  # the same on machines with other fonts
        "svg.hashsalt": "fecbench",  # identifiers would be random otherwise
    }
    with mpl.rc_context(settings):
        yield


def title(axes: Axes, question: str, detail: str) -> None:
    """The question in bold, and below it what was compared."""
    axes.set_title(question, fontweight="bold", pad=26)
    below = axes.annotate(detail, (0, 1), (0, 8), xycoords="axes fraction", textcoords="offset points")
    below.set_in_layout(False)  # a line wider than its panel would push the next panel away


def axis_label(name: str) -> str:
    """A parameter's name with its unit apart: `owd_ms` is "owd (ms)"."""
    words, _, unit = name.rpartition("_")
    return f"{words.replace('_', ' ')} ({_UNITS[unit]})" if unit in _UNITS else name


def round_ticks(axis: Axis) -> None:
    """Plain numbers at 1, 2 and 5 of each decade of a logarithmic axis."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def ratio_ticks(axis: Axis, reach: float) -> None:
    """Round numbers on a logarithmic axis of ratios that reaches `reach` (a log ratio, above 0) from 1.

    Most ratios lie within one decade, where 1, 2 and 5 would leave a tick or two.
    """
    round_ticks(axis)
    if reach < math.log(4):
        axis.set_major_locator(FixedLocator(_near_one(reach)))


def _near_one(reach: float) -> Sequence[float]:
    if reach >= math.log(2.2):
        return [0.3, 0.4, 0.5, 0.6, 0.8, 1, 1.25, 1.5, 2, 3]
    if reach >= math.log(1.6):
        return [0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 1.75, 2]
    farthest = math.exp(reach) - 1
    step = next((step for step in (0.001, 0.002, 0.005, 0.01, 0.02, 0.05) if farthest / step <= 6), 0.1)
    return [round(1 + i * step, 3) for i in range(-6, 7)]


def around_one(ratios: pd.Series) -> TwoSlopeNorm:
    """The scale of RATIO_COLORS for log2 ratios: 1 in the middle, the farthest 2 % share the ends."""
    reach = max(float(np.abs(np.log2(ratios)).quantile(0.98)), math.log2(1.05))
    return TwoSlopeNorm(0, -reach, reach)


def ratio_colorbar(figure: Figure, axes: Axes | Sequence[Axes], drawn: ScalarMappable, label: str) -> None:
    """The scale beside panels whose colours are log2 ratios, with ratios as ticks."""
    bar = figure.colorbar(drawn, ax=axes, label=label)
    bar.ax.yaxis.set_major_formatter(lambda value, _: f"{2**value:.2f}")


def legend_below(figure: Figure, handles: Sequence[Artist]) -> None:
    figure.legend(
        handles=list(handles), loc="outside lower center", ncols=min(len(handles), 3), frameon=False
    )


def box(axes: Axes, position: float, width: float, values: NDArray[Any], look: Look) -> None:
    """A box of values at a position, and the values as dots while they can be told apart; none for none."""
    if not len(values):
        return
    crowded = len(values) > _MAX_DOTS
    axes.boxplot(
        values,
        positions=[position],
        widths=width,
        manage_ticks=False,
        patch_artist=True,
        showfliers=crowded,
        boxprops={"facecolor": (*look.color, 0.6), "hatch": look.hatch},
        medianprops={"color": "black", "linewidth": 2},
        flierprops={"marker": look.marker, "markersize": 3, "markerfacecolor": look.color},
    )
    if not crowded:
        # Offsets by a generator of our own: a figure of the same data is the same figure.
        offsets = np.random.default_rng(0).uniform(-0.35, 0.35, len(values)) * width
        axes.scatter(
            position + offsets,
            values,
            s=14,
            marker=look.marker,
            color=look.color,
            edgecolor="black",
            linewidth=0.5,
            zorder=3,
        )
