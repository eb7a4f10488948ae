"""The one style of all figures: what a variant looks like, what a colour means, and how large things are.

A variant has the same colour, marker and hatch in every figure of a campaign: they follow from its place in
the design. Purple, orange and grey are verdicts, and no variant has them. All are told apart by people who
cannot tell red from green, and colour is never the only sign.

Our settings give way to those that the reader of a notebook has chosen in Matplotlib's rcParams, and to the
style of a paper (`on_page`). Lengths are inches where letters have 12 points; smaller letters make all of it
smaller.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from textwrap import fill
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.colors import Colormap, TwoSlopeNorm, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fecbench.results.metrics import Metric
from fecbench.results.store.records import CampaignInfo

# Seven colours of variants. None is near those of verdicts (`cards.VERDICT_COLORS`), nor the purple and
# orange of `ratio_colors`. With eight markers, 56 looks differ.
PALETTE = tuple(
    to_rgb(color) for color in ("#1c3f66", "#029e73", "#56b4e9", "#8c1c13", "#e6d800", "#8fd175", "#111111")
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_HATCHES = ("", "///", "...", "xxx", "\\\\\\", "ooo", "+++", "---")
_FONT = 12.0  # points of the letters for which all lengths are given
_WIDTH = 10.0  # inches, of a figure on a page: all have letters of one size
_LETTER = 0.6  # of the font's size: more than the mean width of a letter
_PANEL = 3.2  # inches, the least width of a panel among others
_MOST_VECTORS = 2000  # marks in one figure: as vectors, more make a file that no program opens with ease
# Settings of a notebook that are no matter of style.
_NO_STYLE = ("backend", "date.", "docstring", "interactive", "keymap", "savefig.directory", "timezone", "tk.")
STYLES = Path(__file__).with_name("styles")

Color = tuple[float, float, float]


@dataclass(frozen=True)
class Look:
    """The colour, marker and hatch of a variant."""

    color: Color
    marker: str
    hatch: str


def looks(campaign: CampaignInfo) -> dict[str, Look]:
    """The look of each variant. It follows from the order of the design alone, not from what was run."""
    places = {label: place for place, label in enumerate(campaign.all_labels)}
    return {variant["label"]: look(places[variant["label"]]) for variant in campaign.variants}


def variant_marks(campaign: CampaignInfo, variants: Iterable[str]) -> list[Line2D]:
    """Return an entry of a legend for each of these variants, in the order of the design."""
    labels = set(variants)
    return [
        Line2D([], [], color=look.color, marker=look.marker, markeredgecolor="black", label=variant)
        for variant, look in looks(campaign).items()
        if variant in labels
    ]


def look(place: int) -> Look:
    """The look of the variant at this place of a design."""
    return Look(PALETTE[place % len(PALETTE)], MARKERS[place % len(MARKERS)], _HATCHES[place % len(_HATCHES)])


def ratio_colors(metric: Metric) -> Colormap:
    """The colours of log ratios of a metric: purple where it helps, orange where it harms."""
    return mpl.colormaps["PuOr" if metric.more_is_better else "PuOr_r"]


@dataclass
class Page:
    """A page for a figure: its width and its style."""

    width: float = _WIDTH
    """Inches."""
    is_fixed: bool = False
    """Whether no figure may be wider."""
    titled: bool = True
    """Whether the question and what was compared stand above the panels."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Matplotlib's, before ours and the reader's."""
    question: str = ""
    """Question of the figure that was drawn last; `detail`: what was compared in it."""
    detail: str = ""


_page: ContextVar[Page | None] = ContextVar("page", default=None)


def page() -> Page:
    """The page for which figures are drawn now."""
    return _page.get() or Page()


@contextmanager
def on_page(page: Page) -> Iterator[Page]:
    """Draw and save figures for this page."""
    token = _page.set(page)
    try:
        yield page
    finally:
        _page.reset(token)


@contextmanager
def style() -> Iterator[None]:
    """The settings in which a figure is made, and in which it is saved."""
    chosen = {**_of_the_reader(), **page().settings}
    settings: Any = {**_ours(_FONT * em()), **chosen}
    with mpl.rc_context(settings):
        yield


@cache
def _ours(font: float) -> dict[str, Any]:
    """Our settings, with letters of so many points."""
    from fecbench.results.figures.seaborn_alone import sns

    return {
        **sns.axes_style("whitegrid"),
        **sns.plotting_context("notebook", font_scale=font / _FONT),
        **settings_of(Path(__file__).with_name("fecbench.mplstyle")),
    }


def settings_of(file: Path) -> dict[str, Any]:
    """The settings of a file of Matplotlib's own kind (.mplstyle)."""
    settings: Any = mpl.rc_params_from_file(file, use_default_template=False)
    return dict(settings)


def _of_the_reader() -> dict[str, Any]:
    """Return the settings that a notebook or a matplotlibrc changed from Matplotlib's defaults."""
    # Of a dict: asking Matplotlib for its backend would choose one.
    default = dict(dict.items(mpl.rcParamsDefault))
    return {
        name: value
        for name, value in dict.items(mpl.rcParams)
        if not name.startswith(_NO_STYLE) and value != default[name]
    }


def em() -> float:
    """Return the size of letters, in units of the letters for which all lengths are given."""
    chosen = mpl.rcParams["font.size"]  # by the reader, or by us within `style`
    ours = _FONT if chosen == mpl.rcParamsDefault["font.size"] else chosen
    return float(page().settings.get("font.size", ours)) / _FONT


def wide() -> float:
    """The width of a figure."""
    return page().width / em()


def across(panel: float = _PANEL) -> int:
    """Return how many panels, so wide at least, have room in a row."""
    return max(1, int(wide() / panel))


def new_figure(width: float, height: float) -> Figure:
    """A figure of so many inches; one that is to be wider than a page for which that is fixed is not."""
    width = min(width, wide()) if page().is_fixed else width
    return Figure(figsize=(width * em(), height * em()))


def width_of(figure: Any) -> float:
    return float(figure.get_figwidth()) / em()


def height_of(figure: Any) -> float:
    return float(figure.get_figheight()) / em()


def line(times: float = 1.0) -> float:
    """The width of a line, in usual ones."""
    return times * float(mpl.rcParams["lines.linewidth"])


def mark(times: float = 1.0) -> float:
    """The area of a mark of so many times the usual size, as `scatter` wants it."""
    return (times * float(mpl.rcParams["lines.markersize"])) ** 2


def inches(text: str) -> float:
    """Return the approximate length of a line, in inches."""
    return len(text) * _LETTER * _FONT / 72


def wrapped(text: str, width: float) -> str:
    """The text in lines that are no wider than this, in inches."""
    return fill(text, max(8, int(width / inches("n"))))


def as_pixels(marks: int) -> bool:
    """Whether a figure with so many marks has them as pixels in SVG and PDF; text and axes stay vectors."""
    return marks > _MOST_VECTORS


def around_one(ratios: pd.Series) -> TwoSlopeNorm:
    """The scale of `ratio_colors` for log2 ratios: 1 in the middle, the farthest 2 % share the ends."""
    numbers = numbers_of(ratios)
    reach = float(np.abs(np.log2(numbers)).quantile(0.98)) if len(numbers) else 0.0
    reach = max(reach, math.log2(1.05))
    return TwoSlopeNorm(0, -reach, reach)


def numbers_of(ratios: pd.Series) -> pd.Series:
    """Return the ratios that have a place on a logarithmic axis: 0 and ∞, of timeouts, have none."""
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


def order_of(labels: Sequence[str], drawn: pd.Series) -> list[str]:
    """Return the labels that are drawn, in their order."""
    there = set(drawn)
    return [label for label in labels if label in there]
