"""The panels of a figure: on a figure of ours with the question above them and a legend below, or in the axes
that a reader gives, which then keep the reader's settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from fecbench.results.figures.seaborn_alone import blank_labels
from fecbench.results.figures.style import (
    _FONT,
    em,
    height_of,
    inches,
    new_figure,
    page,
    style,
    width_of,
    wrapped,
)
from fecbench.results.metrics import Metric

Given: TypeAlias = "Axes | Sequence[Axes] | None"
"""The axes into which a reader wants a figure drawn, one for each of its panels; None: a figure of ours."""
Share = bool | Literal["none", "all", "row", "col"]

_BOLD = 1.15  # times as wide
_MARK = 0.9  # inches, of a legend's mark and the room around it
_LEGEND_LINES = 4  # for so many lines of a legend, a figure has room
_LEGEND_LINE = 0.25  # inches, of each line more


@dataclass(frozen=True)
class Sheet:
    """The panels of a figure, in rows of so many."""

    panels: list[Axes]
    columns: int
    own: bool
    """Whether the figure is ours: nothing stands in it but what is drawn."""

    @property
    def figure(self) -> Figure:
        figure = self.panels[0].get_figure(root=True)
        assert figure is not None
        return figure

    @property
    def first_column(self) -> list[Axes]:
        return self.panels[:: self.columns]

    @property
    def last_row(self) -> list[Axes]:
        """The lowest panel of each column."""
        return self.panels[-self.columns :]

    @property
    def width(self) -> float:
        """Approximate width of a panel, in inches."""
        return width_of(self.figure) / self.columns - 0.7

    def blank_labels(self) -> None:
        """`blank_labels` of a figure of ours; axes that were given may have labels."""
        for axes in self.panels if self.own else ():
            blank_labels(axes)

    def heading(self, question: str, detail: str = "") -> None:
        """The question in bold above all panels of a figure of ours, and below it what was compared."""
        if self.own:
            heading(self.figure, question, detail)

    def question(self, text: str) -> None:
        """The question alone, above panels that say themselves what was compared."""
        question(self.figure, text)

    def legend(self, handles: Sequence[Artist]) -> None:
        """A legend below all panels; in axes that were given, where it hides least."""
        if self.own:
            legend_below(self.figure, handles)
        else:
            self.panels[-1].legend(handles=list(handles))

    def label_across(self, label: str) -> None:
        """The horizontal axis that all panels share."""
        if self.own:
            self.figure.supxlabel(wrapped(label, width_of(self.figure) - 1), fontsize="medium")
        else:
            for axes in self.last_row:
                axes.set_xlabel(label)

    def label_up(self, label: str, more: str = "") -> None:
        """The vertical axis that all panels share; `more` is a line of its own."""
        if self.own:
            label = wrapped(label, height_of(self.figure) - 1)
            self.figure.supylabel("\n".join(filter(None, [label, more])), fontsize="medium")
        else:
            for axes in self.first_column:
                axes.set_ylabel("\n".join(filter(None, [label, more])))

    def label_ratios(self, metric: Metric, baseline: str) -> None:
        """The vertical axis of ratios that all panels share."""
        below, above = metric.sides
        self.label_up(metric.ratio_to(baseline), f"◀ {below}      {above} ▶")

    def colorbar(self, drawn: ScalarMappable, label: str) -> None:
        """The scale beside panels whose colours are log2 ratios."""
        ratio_colorbar(self.panels, drawn, label, height_of(self.figure) - 0.8 if self.own else 99.0)


def ratio_colorbar(panels: Sequence[Axes], drawn: ScalarMappable, label: str, height: float) -> None:
    """The scale beside panels whose colours are log2 ratios, with ratios as ticks."""
    figure = panels[0].figure
    assert figure is not None
    bar = figure.colorbar(drawn, ax=list(panels), label=wrapped(label, height))
    bar.ax.yaxis.set_major_formatter(lambda value, _: f"{2**value:.2f}")


@contextmanager
def sheet(
    panels: int,
    size: tuple[float, float],
    ax: Given = None,
    *,
    columns: int = 1,
    sharex: Share = False,
    sharey: Share = True,
    what: str = "",
) -> Iterator[Sheet]:
    """Yield a sheet of so many panels, `columns` in a row at most, of this width and height in inches.

    `ax`: the axes to draw into instead, one for each panel. Raises ValueError where there are not as many;
    `what` says how the caller chooses fewer panels.
    """
    columns = min(panels, columns)
    if ax is None:
        with style():
            figure = new_figure(*size)
            rows = -(-panels // columns)
            places = list(figure.subplots(rows, columns, squeeze=False, sharex=sharex, sharey=sharey).flat)
            for unused in places[panels:]:
                unused.remove()
            yield Sheet(places[:panels], columns, own=True)
        return
    given = list(np.ravel(np.asarray(ax, dtype=object)))
    if len(given) != panels:
        raise ValueError(
            f"ax: {len(given)} axes for a figure of {panels} panels: give as many axes as panels"
            f"{what and f', or {what}'}"
        )
    yield Sheet(given, columns, own=False)


def heading(figure: Figure, question: str, detail: str = "") -> None:
    """The question in bold at the figure's top, and below it what was compared; above all panels. A page
    without titles only keeps them, for a caption."""
    there = page()
    there.question, there.detail = question, detail
    if not there.titled:
        return
    width, height = width_of(figure), height_of(figure)
    line, top = 1.25 * _FONT / 72, 0.08
    for text, weight, wide in ((question, "bold", _BOLD), (detail, "normal", 1.0)):
        lines = wrapped(text, (width - 0.2) / wide)
        figure.text(0.1 / width, 1 - top / height, lines, fontsize="medium", fontweight=weight, va="top")
        top += line * len(lines.splitlines()) + 0.04
    layout = figure.get_layout_engine()
    assert isinstance(layout, ConstrainedLayoutEngine)
    layout.set(rect=(0, 0, 1, 1 - top / height))


def question(figure: Figure, text: str) -> None:
    """The question alone, above panels that say themselves what was compared."""
    there = page()
    there.question, there.detail = text, ""
    if there.titled:
        figure.suptitle(text, fontweight="bold", fontsize="medium", x=0.01, ha="left")


def title(axes: Axes, question: str, detail: str) -> None:
    """Title of a panel: the question in bold, and below it what was compared; as wide as the panel may be."""
    spec = axes.get_subplotspec()
    assert spec is not None and axes.figure is not None
    width = width_of(axes.figure.get_figure(root=True)) / spec.get_gridspec().ncols - 0.8
    below = wrapped(detail, width)
    pad = em() * (12 + 1.2 * _FONT * len(below.splitlines()))
    axes.set_title(wrapped(question, width / _BOLD), fontweight="bold", pad=pad)
    note = axes.annotate(below, (0, 1), (0, 8 * em()), xycoords="axes fraction", textcoords="offset points")
    note.set_in_layout(False)  # the title's pad keeps its room


def legend_below(figure: Figure, handles: Sequence[Artist]) -> None:
    """A legend below all panels, in as many columns as there is room for; a long one makes the figure higher,
    and leaves the panels their room."""
    width = width_of(figure)
    labels = [wrapped(str(handle.get_label()), width - _MARK) for handle in handles]
    column = _MARK + max(inches(line) for label in labels for line in label.splitlines())
    columns = max(1, min(len(handles), int(width / column)))
    lines = -(-sum(label.count("\n") + 1 for label in labels) // columns)
    more = max(0, lines - _LEGEND_LINES) * _LEGEND_LINE
    figure.set_figheight(figure.get_figheight() + more * em())
    figure.legend(
        handles=list(handles),
        labels=labels,
        loc="outside lower center",
        ncols=columns,
        frameon=False,
    )
