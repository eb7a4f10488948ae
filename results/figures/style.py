"""The one style of all figures: what a variant looks like, titles, ticks of ratios, boxes, legends.

A variant has the same colour, marker and hatch in every figure of a campaign: they follow from its place in
the design. Colours are told apart by people who cannot tell red from green, and are never the only sign.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import combinations, pairwise
from pathlib import Path
from textwrap import fill
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.cm import ScalarMappable
from matplotlib.colors import TwoSlopeNorm, to_rgb
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, Locator, MaxNLocator, NullLocator
from numpy.typing import NDArray

from fecbench.results.metrics import Metric
from fecbench.results.store.records import CampaignInfo

WIDTH = 10.0  # inches, of every figure: on a page, all have letters of one size
ACROSS = 3  # panels in a row
FONT = 12.0  # points, of all but the ticks' labels
# Ten colours that people who cannot tell red from green tell apart: Seaborn's palette "colorblind".
PALETTE = tuple(
    to_rgb(color)
    for color in (
        *("#0173b2", "#de8f05", "#029e73", "#d55e00", "#cc78bc"),
        *("#ca9161", "#fbafe4", "#949494", "#ece133", "#56b4e9"),
    )
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
RATIO_COLORS = "PuOr_r"  # orange above 1, purple below: told apart by people who cannot tell red from green
_HATCHES = ("", "///", "...", "xxx", "\\\\\\", "ooo", "+++", "---")
_LETTER = 0.6  # of the font's size: more than the mean width of a letter
_BOLD = 1.15  # times as wide
_MARK = 0.9  # inches, of a legend's mark and the room around it
_LEGEND_LINES = 4  # for so many lines of a legend, a figure has room
_LEGEND_LINE = 0.25  # inches, of each line more
_MAX_DOTS = 400  # more single trials in one box hide it
_MOST_VECTORS = 2000  # marks in one figure: as vectors, more make a file that no program opens with ease
_WIDE = 20  # times as great as the least value: what is wide is shown on a logarithmic scale

Choices = Callable[[float, float], Iterable[Sequence[float]]]
"""Of ticks, between the ends of the range that is seen."""
Label = Callable[[float], str]
"""Of a tick."""


@dataclass(frozen=True)
class Look:
    """The colour, marker and hatch of a variant."""

    color: tuple[float, float, float]
    marker: str
    hatch: str


def looks(campaign: CampaignInfo) -> dict[str, Look]:
    """The look of each variant. It follows from the order of the design alone, not from what was run."""
    return {
        variant["label"]: Look(
            PALETTE[i % len(PALETTE)], MARKERS[i % len(MARKERS)], _HATCHES[i % len(_HATCHES)]
        )
        for i, variant in enumerate(campaign.variants)
    }


@contextmanager
def style() -> Iterator[None]:
    """The settings in which a figure is made, and in which it is saved."""
    with mpl.rc_context(_settings()):
        yield


@cache
def _settings() -> mpl.RcParams:
    return mpl.rc_params_from_file(Path(__file__).with_name("fecbench.mplstyle"), use_default_template=False)


def inches(text: str) -> float:
    """About how long a line is."""
    return len(text) * _LETTER * FONT / 72


def wrapped(text: str, width: float) -> str:
    """The text in lines that are no wider than this, in inches."""
    return fill(text, max(8, int(width / inches("n"))))


def heading(figure: Figure, question: str, detail: str = "") -> None:
    """The question in bold at the figure's top, and below it what was compared; above all panels."""
    width, height = figure.get_size_inches()
    line, top = 1.25 * FONT / 72, 0.08
    for text, weight, wide in ((question, "bold", _BOLD), (detail, "normal", 1.0)):
        lines = wrapped(text, (width - 0.2) / wide)
        figure.text(0.1 / width, 1 - top / height, lines, fontsize=FONT, fontweight=weight, va="top")
        top += line * len(lines.splitlines()) + 0.04
    layout = figure.get_layout_engine()
    assert isinstance(layout, ConstrainedLayoutEngine)
    layout.set(rect=(0, 0, 1, 1 - top / height))


def title(axes: Axes, question: str, detail: str) -> None:
    """Of a panel: the question in bold, and below it what was compared; as wide as the panel may be."""
    spec = axes.get_subplotspec()
    assert spec is not None and axes.figure is not None
    width = axes.figure.get_figure(root=True).get_figwidth() / spec.get_gridspec().ncols - 0.8
    below = wrapped(detail, width)
    pad = 12 + 1.2 * FONT * len(below.splitlines())
    axes.set_title(wrapped(question, width / _BOLD), fontweight="bold", pad=pad)
    note = axes.annotate(below, (0, 1), (0, 8), xycoords="axes fraction", textcoords="offset points")
    note.set_in_layout(False)  # the title's pad keeps its room


def grid(figure: Figure, panels: int, across: int) -> list[Axes]:
    """So many panels with one vertical axis, at most `across` in a row."""
    columns = min(panels, across)
    places = list(figure.subplots(-(-panels // columns), columns, squeeze=False, sharey=True).flat)
    for unused in places[panels:]:
        unused.remove()
    return places[:panels]


def is_wide(values: pd.Series) -> bool:
    """Whether a factor with these values is shown, and cut into cells, on a logarithmic scale."""
    return bool(
        pd.api.types.is_numeric_dtype(values) and values.min() > 0 and values.max() / values.min() > _WIDE
    )


def is_log(values: pd.Series, scales: Mapping[str, str]) -> bool:
    """Whether a factor is shown on a logarithmic scale: that of the design (`CampaignInfo.scales`), or, where
    the design has none, as its values are wide."""
    scale = scales.get(str(values.name))
    return is_wide(values) if scale is None else scale == "log" and bool(values.min() > 0)


def round_ticks(axis: Axis) -> None:
    """Plain numbers at 1, 2 and 5 of each decade of a logarithmic axis, or fewer where they would touch.

    Within one decade, where that leaves a tick or two, any round numbers.
    """
    _sparse_ticks(axis, _round_numbers)


def plain_ticks(axis: Axis) -> None:
    """Round numbers on a linear axis."""
    _sparse_ticks(axis, _evenly_apart)


def ratio_ticks(axis: Axis, reach: float) -> None:
    """Round numbers on a logarithmic axis of ratios that reaches `reach` (a log ratio, above 0) from 1.

    Most ratios lie within one decade, where 1, 2 and 5 would leave a tick or two.
    """
    near = _near_one(reach)
    one = near.index(1)
    thinned = [near[one % step :: step] for step in range(1, len(near))]

    def choices(low: float, high: float) -> Iterable[Sequence[float]]:
        """What is seen may be more than `reach`: a decade each way where all ratios are 1."""
        return _round_numbers(low, high) if max(1 / low, high) >= 4 else thinned

    _sparse_ticks(axis, choices)


def few_ticks(axis: Axis, values: Sequence[float], label: Label) -> None:
    """At each of a few values, or at as many of them as have room for their labels."""

    def choices(*_: float) -> Iterable[Sequence[float]]:
        return (some for count in range(len(values), 0, -1) for some in combinations(values, count))

    _sparse_ticks(axis, choices, label)


def _number(value: float) -> str:
    return f"{value:.10g}"


def _sparse_ticks(axis: Axis, choices: Choices, label: Label = _number) -> None:
    axis.set_major_locator(_Sparse(axis, choices, label))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: label(value)))


class _Sparse(Locator):
    """Of several choices of ticks, most ticks first, the first whose labels don't touch."""

    def __init__(self, axis: Axis, choices: Choices, label: Label) -> None:
        self.of_axis, self.choices, self.label = axis, choices, label

    def __call__(self) -> Sequence[float]:
        low, high = sorted(self.of_axis.get_view_interval())
        ticks: Sequence[float] = []
        for choice in self.choices(low, high):
            ticks = [tick for tick in choice if low <= tick <= high]
            if self._stand_apart(ticks):
                break
        return ticks

    def _stand_apart(self, ticks: Sequence[float]) -> bool:
        axes = self.of_axis.axes
        across = self.of_axis is axes.xaxis
        trans = axes.get_xaxis_transform() if across else axes.get_yaxis_transform()
        at = [trans.transform((tick, tick))[0 if across else 1] for tick in ticks]
        (dots_an_inch, _), _ = axes.figure.dpi_scale_trans.transform([(1, 1), (0, 0)])
        places = [pixels / dots_an_inch for pixels in at]
        lengths = [inches(f"{self.label(tick)} ") if across else 1.5 * FONT / 72 for tick in ticks]
        return all(
            right - left > (first + second) / 2
            for (left, right), (first, second) in zip(pairwise(places), pairwise(lengths), strict=True)
        )


def _round_numbers(low: float, high: float) -> Iterator[Sequence[float]]:
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [m * 10.0**decade for decade in decades for m in (1, 2, 5)]
    if sum(low <= tick <= high for tick in ticks) >= 3:
        yield ticks
        yield from ([10.0**decade for decade in decades if decade % step == 0] for step in range(1, 9))
    else:
        yield from _evenly_apart(low, high)


def _evenly_apart(low: float, high: float) -> Iterator[Sequence[float]]:
    steps = [1, 2, 2.5, 5, 10]
    return (
        list(MaxNLocator(most, steps=steps, min_n_ticks=1).tick_values(low, high)) for most in range(8, 0, -1)
    )


def _near_one(reach: float) -> list[float]:
    if reach >= math.log(2.2):
        return [0.3, 0.4, 0.5, 0.6, 0.8, 1, 1.25, 1.5, 2, 3]
    if reach >= math.log(1.6):
        return [0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 1.75, 2]
    farthest = math.exp(reach) - 1
    step = next((step for step in (0.001, 0.002, 0.005, 0.01, 0.02, 0.05) if farthest / step <= 6), 0.1)
    return [round(1 + i * step, 3) for i in range(-6, 7)]


def as_pixels(marks: int) -> bool:
    """Whether a figure with so many marks has them as pixels in SVG and PDF; text and axes stay vectors."""
    return marks > _MOST_VECTORS


def label_ratios(figure: Figure, metric: Metric, baseline: str) -> None:
    """The label of the vertical axis of ratios that all panels share."""
    lines = wrapped(metric.ratio_to(baseline), figure.get_figheight() - 1)
    below, above = metric.sides
    figure.supylabel(f"{lines}\n◀ {below}      {above} ▶", fontsize=FONT)


def around_one(ratios: pd.Series) -> TwoSlopeNorm:
    """The scale of RATIO_COLORS for log2 ratios: 1 in the middle, the farthest 2 % share the ends."""
    numbers = numbers_of(ratios)
    reach = float(np.abs(np.log2(numbers)).quantile(0.98)) if len(numbers) else 0.0
    reach = max(reach, math.log2(1.05))
    return TwoSlopeNorm(0, -reach, reach)


def numbers_of(ratios: pd.Series) -> pd.Series:
    """Those of the ratios that have a place on a logarithmic axis: 0 and ∞, of timeouts, have none."""
    return ratios[(ratios > 0) & (ratios < math.inf)]


def greatest_log(ratios: pd.Series) -> float:
    """The greatest |log ratio|: how far an axis has to reach from 1; 0 for none."""
    numbers = numbers_of(ratios)
    return float(np.abs(np.log(numbers)).max()) if len(numbers) else 0.0


def to_ends(ratios: pd.Series, reach: float | None = None) -> pd.Series:
    """The ratios as they are drawn, 0 and ∞ at the ends of an axis that reaches so far from 1 (None: a little
    farther than the others)."""
    end = 1.1 * max(greatest_log(ratios), math.log(1.05)) if reach is None else reach
    return ratios.clip(math.exp(-end), math.exp(end))


def ratio_colorbar(figure: Figure, axes: Axes | Sequence[Axes], drawn: ScalarMappable, label: str) -> None:
    """The scale beside panels whose colours are log2 ratios, with ratios as ticks."""
    bar = figure.colorbar(drawn, ax=axes, label=wrapped(label, figure.get_figheight() - 0.8))
    bar.ax.yaxis.set_major_formatter(lambda value, _: f"{2**value:.2f}")


def legend_below(figure: Figure, handles: Sequence[Artist]) -> None:
    """A legend below all panels, in as many columns as there is room for; a long one makes the figure higher,
    and leaves the panels their room."""
    width = figure.get_figwidth()
    labels = [wrapped(str(handle.get_label()), width - _MARK) for handle in handles]
    column = _MARK + max(inches(line) for label in labels for line in label.splitlines())
    columns = max(1, min(len(handles), int(width / column)))
    lines = -(-sum(label.count("\n") + 1 for label in labels) // columns)
    figure.set_figheight(figure.get_figheight() + max(0, lines - _LEGEND_LINES) * _LEGEND_LINE)
    figure.legend(
        handles=list(handles),
        labels=labels,
        loc="outside lower center",
        ncols=columns,
        frameon=False,
    )


def box(
    axes: Axes, position: float, width: float, values: NDArray[Any], look: Look, line: float | None = None
) -> None:
    """A box of values at a position, and the values as dots while they can be told apart; none for none.

    Its line is at `line`, by default at the median of the values. One at ∞ or NaN is not drawn.
    """
    if not len(values):
        return
    crowded = len(values) > _MAX_DOTS
    lines = None if line is None or not math.isfinite(line) else [line]
    axes.boxplot(
        values,
        positions=[position],
        widths=width,
        manage_ticks=False,
        patch_artist=True,
        showfliers=crowded,
        boxprops={"facecolor": (*look.color, 0.6), "hatch": look.hatch},
        usermedians=lines,
        medianprops={"color": "black", "linewidth": 2, "visible": line is None or lines is not None},
        flierprops={
            "marker": look.marker,
            "markersize": 3,
            "markerfacecolor": look.color,
            "rasterized": as_pixels(len(values)),
        },
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
