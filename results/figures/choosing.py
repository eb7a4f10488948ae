"""Which variant to take in which networks, as a map of two factors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from results.analysis.units import axis_label, quantity
from results.figures.style import FONT, WIDTH, grid, heading, legend_below, style

_ACROSS = 2  # panels in a row
_CELL = 0.6  # inches high
_COLORS = 0.55  # their opacity: numbers are read on each of them


def choice_map(
    table: pd.DataFrame, variants: Sequence[str], across: str, up: str, question: str, detail: str
) -> Figure:
    """A panel for each value of the column `panel`, and in it a cell for each row: those of
    `analysis.choosing.choices`, where `across` and `up` are factors cut into intervals (`pandas.cut`).

    The colour of a cell is the variant that is taken there, of `variants`, the first of which is the one that
    the others are compared with. Where it is another one, the numbers are its ratio and the interval's ends.
    A cell that timeouts leave open has a "?", with the number of networks that have one.
    """
    palette = sns.color_palette("colorblind", len(variants) - 1)
    colors = dict(zip(variants, [(1.0, 1.0, 1.0), *palette], strict=True))
    panels = list(table.groupby("panel", observed=True, sort=False))
    columns, rows = (sorted(set(table[factor])) for factor in (across, up))
    with style():
        figure = Figure(figsize=(WIDTH, 1.5 + -(-len(panels) // _ACROSS) * (0.8 + _CELL * len(rows))))
        for axes, (name, cells) in zip(grid(figure, len(panels), _ACROSS), panels, strict=True):
            for cell in cells.to_dict("records"):
                place = (columns.index(cell[across]), rows.index(cell[up]))
                _draw_cell(axes, place, colors[cell["variant"]], _text(cell, variants[0]))
            axes.grid(False)
            axes.set(xlim=(0, len(columns)), ylim=(0, len(rows)), xlabel=axis_label(across))
            axes.set_xticks(range(len(columns) + 1), _edges(across, columns))
            axes.set_yticks(range(len(rows) + 1), _edges(up, rows))
            axes.set_title(str(name), fontsize=FONT)
        figure.supylabel(axis_label(up), fontsize=FONT)
        taken = set(table["variant"])
        legend_below(
            figure,
            [
                Patch(facecolor=(*color, _COLORS), edgecolor="black", label=label)
                for label, color in colors.items()
                if label in taken
            ],
        )
        heading(figure, question, f"{detail}{_of_timeouts(table)}")
    return figure


def _draw_cell(
    axes: Axes,
    place: tuple[int, int],
    color: tuple[float, float, float],
    text: str,
) -> None:
    axes.add_patch(Rectangle(place, 1, 1, facecolor=(*color, _COLORS), edgecolor="0.6"))
    if text:
        middle = (place[0] + 0.5, place[1] + 0.5)
        axes.annotate(text, middle, ha="center", va="center", fontsize="x-small")


def _text(cell: Mapping[Any, Any], baseline: str) -> str:
    if cell["unknown"]:
        return f"?\n{cell['unknown']} of {cell['points']}"
    if cell["variant"] == baseline:
        return ""
    return f"{cell['ratio']:.2f}\n{cell['low']:.2f}–{cell['high']:.2f}"


def _of_timeouts(table: pd.DataFrame) -> str:
    """What the "?" of a map are, and by whom; "" for none."""
    of_cells = table.loc[table["unknown"] > 0, "timed_out"]
    if of_cells.empty:
        return ""
    labels = dict.fromkeys(label for cell in of_cells for label in cell)
    return f" · ?: not known, for timeouts in so many of the networks, of {', '.join(labels)}"


def _edges(factor: str, cells: Sequence[pd.Interval]) -> list[str]:
    return [quantity(factor, edge) for edge in (*(cell.left for cell in cells), cells[-1].right)]
