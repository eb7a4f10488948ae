"""A map of two factors: the variant to take in each network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from fecbench.quantities import counted
from fecbench.results.analysis.margins import percent
from fecbench.results.figures.seaborn_alone import sns
from fecbench.results.figures.sheet import Given, sheet
from fecbench.results.figures.style import Color, look, wide
from fecbench.results.figures.style import across as panels_across
from fecbench.results.metrics.units import axis_label, quantity

_PANEL = 4.6  # inches wide
_CELL = 0.6  # inches high
_COLORS = 0.55  # their share of a mixture with white: numbers are read on each of them


def choice_map(
    table: pd.DataFrame,
    variants: Sequence[str],
    across: str,
    up: str,
    question: str,
    detail: str,
    *,
    ax: Given = None,
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
    colors = {label: _light(look(place).color) for place, label in enumerate(variants)}
    colors[variants[0]] = (1.0, 1.0, 1.0)
    shades, places = ListedColormap(list(colors.values())), list(colors)
    panels = list(table.groupby("panel", observed=True, sort=False))
    columns, rows = (sorted(set(table[factor])) for factor in (across, up))
    in_row = panels_across(_PANEL)
    size = (wide(), 1.5 + -(-len(panels) // in_row) * (0.8 + _CELL * len(rows)))
    with sheet(len(panels), size, ax, columns=in_row, what="leave one panel in the table") as page:
        for axes, (name, cells) in zip(page.panels, panels, strict=True):
            grid = cells.assign(
                place=cells["variant"].map(places.index).astype(float),
                words=[_text(cell, variants[0]) for cell in cells.to_dict("records")],
                column=cells[across].map(columns.index).astype(int),
                row=cells[up].map(rows.index).astype(int),
            )
            shown, in_words = (
                grid.pivot(index="row", columns="column", values=name)
                .reindex(range(len(rows)))
                .reindex(columns=range(len(columns)))
                for name in ("place", "words")
            )
            sns.heatmap(
                shown.astype(np.float64),
                annot=in_words.astype(object).fillna(""),
                fmt="",
                annot_kws={"fontsize": "x-small", "color": "black"},
                cmap=shades,
                norm=BoundaryNorm(np.arange(len(places) + 1) - 0.5, len(places)),
                cbar=False,
                linewidths=0.5,
                linecolor="0.6",
                ax=axes,
            )
            axes.invert_yaxis()
            axes.set(xlabel=axis_label(across), ylabel="")
            axes.set_xticks(range(len(columns) + 1), _edges(across, columns), rotation=0)
            axes.set_yticks(range(len(rows) + 1), _edges(up, rows), rotation=0)
            axes.set_title(str(name), fontsize="medium")
        page.label_up(axis_label(up))
        taken = set(table["variant"])
        page.legend(
            [
                Patch(facecolor=color, edgecolor="black", label=label)
                for label, color in colors.items()
                if label in taken
            ]
        )
        page.heading(question, " · ".join([detail, *_remarks(table, variants[0])]))
    return page.figure


def _light(color: Color) -> Color:
    red, green, blue = (1 - _COLORS * (1 - part) for part in color)
    return red, green, blue


def _text(cell: Mapping[Any, Any], baseline: str) -> str:
    if pd.isna(cell["chosen"]):
        return f"?\n{cell['unknown']} of {cell['points']}"
    mark = "!" if cell["timed_out"] else ""
    if cell["variant"] == baseline:
        return mark
    differ = "" if cell["halves_agree"] else "*"
    return f"{cell['ratio']:.2f}{differ}{mark}\n{cell['low']:.2f}–{cell['high']:.2f}"


def _remarks(table: pd.DataFrame, baseline: str) -> Iterator[str]:
    """Yield how it was chosen, the meaning of the marks of a map, and what is left out."""
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
        yield f"{counted(dropped, 'repetition', 'is/are')} left out, in which not every variant has a value"


def _labels(cells: pd.DataFrame) -> str:
    """The variants that failed or timed out in these cells, and in how many of them."""
    counts = cells["timed_out"].explode().value_counts(sort=False)
    return ", ".join(f"{label} ({count})" for label, count in counts.items())


def _edges(factor: str, cells: Sequence[pd.Interval]) -> list[str]:
    return [quantity(factor, edge) for edge in (*(cell.left for cell in cells), cells[-1].right)]
