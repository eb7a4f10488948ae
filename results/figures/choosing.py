"""Which variant to take in which networks, as a map of two factors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle, islice
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from fecbench.results.analysis.margins import percent
from fecbench.results.analysis.units import axis_label, quantity
from fecbench.results.figures.style import FONT, PALETTE, WIDTH, grid, heading, legend_below, style

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

    The caption says by which margin it was chosen, and what the marks mean: "?" for a cell that is open,
    since the first variant failed or timed out, with the number of networks in which one did; "*" for a
    number that is not of the colour's variant alone, since the halves of the repetitions choose differently;
    "!" for a cell in which others failed or timed out, and were not chosen for that.
    """
    palette = islice(cycle(PALETTE), len(variants) - 1)
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
        heading(figure, question, " · ".join([detail, *_remarks(table, variants[0])]))
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
    if pd.isna(cell["chosen"]):
        return f"?\n{cell['unknown']} of {cell['points']}"
    mark = "!" if cell["timed_out"] else ""
    if cell["variant"] == baseline:
        return mark
    differ = "" if cell["halves_agree"] else "*"
    return f"{cell['ratio']:.2f}{differ}{mark}\n{cell['low']:.2f}–{cell['high']:.2f}"


def _remarks(table: pd.DataFrame, baseline: str) -> Iterator[str]:
    """How it was chosen, what the marks of a map mean and of whom they are, and what is left out."""
    yield f"taken: the cheapest that is at most {percent(table['margin'].max())} worse than the best"
    is_open = table["chosen"].isna()
    if is_open.any():
        of_cells = _labels(table[is_open])
        yield f"?: not known, for failures or timeouts in so many of the networks, of {of_cells}"
    if (did := ~is_open & (table["unknown"] > 0)).any():
        yield f"!: without those that failed or timed out there: {_labels(table[did])}"
    if (~table["halves_agree"] & (table["variant"] != baseline)).any():
        yield "*: the halves of the repetitions choose differently, so the number is not of one variant alone"
    if dropped := int(table["dropped"].sum()):
        yield f"{dropped:,} repetitions are left out, in which not every variant has a value"


def _labels(cells: pd.DataFrame) -> str:
    """The variants that failed or timed out in these cells, and in how many of them."""
    counts = cells["timed_out"].explode().value_counts(sort=False)
    return ", ".join(f"{label} ({count})" for label, count in counts.items())


def _edges(factor: str, cells: Sequence[pd.Interval]) -> list[str]:
    return [quantity(factor, edge) for edge in (*(cell.left for cell in cells), cells[-1].right)]
