"""Tables for a person. Every cell is shown as it is: nothing in it is markup or the name of an emoji."""

import sys
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from rich import box
from rich.cells import cell_len
from rich.console import Console, Group, JustifyMethod, RenderableType
from rich.measure import Measurement
from rich.style import StyleType
from rich.table import Table
from rich.text import Text

from fecbench.runners.commands.console.terminal import one_line

PIPE_COLUMNS = 260
_WIDEST = 10_000
_WHOLE_WORD = 9  # letters: a longer word may be broken where a table is narrow
_BETWEEN = 2  # letters between two columns
_COLORS = {"helps": "#6a4a9c", "harms": "#e08214"}
"""Colours of verdicts, those of cards and pages; a terminal without colours, or NO_COLOR, shows none."""


def table_of(headings: Sequence[str], rows: Iterable[Sequence[object]], right: Collection[str] = ()) -> Table:
    """A table with a cell for each heading in each row; the columns named in `right` are of numbers."""
    table = Table(box=box.SIMPLE_HEAD)
    for heading in headings:
        side: JustifyMethod = "right" if heading in right else "left"
        table.add_column(_cell(heading), justify=side, style=_COLORS.get(heading, ""))
    for row in rows:
        table.add_row(*map(_cell, row))
    return table


def console() -> Console:
    """Return the console that tables are printed on."""
    # A pipe has no width: a table that is cut would lose what scripts look for.
    return Console() if sys.stdout.isatty() else Console(width=PIPE_COLUMNS)


def print_table(table: Table) -> None:
    """Print a table; one that is wider than the terminal is told in fewer and narrower columns."""
    to = console()
    content: RenderableType = table
    same: list[str] = []
    if is_narrow(to, table):
        content, same = fitted(table, to.width)
    to.print(content)
    if same:
        to.print(Text(f"  in all rows: {', '.join(same)}", style="dim"))


def is_narrow(to: Console, table: Table) -> bool:
    """Whether a terminal is narrower than a table."""
    whole = to.options.update(width=_WIDEST)
    return to.is_terminal and Measurement.get(to, whole, table).maximum > to.width


@dataclass(frozen=True)
class _Column:
    """A column of a narrow table. Its words go on in the next line, and its numbers stay whole."""

    heading: str
    cells: list[str]
    is_number: bool
    style: StyleType

    @property
    def needed(self) -> int:
        """Fewest letters that it is readable in."""
        texts = (
            self.heading.split() if self.is_number else [*self.heading.split(), *" ".join(self.cells).split()]
        )
        if self.is_number:
            return max(map(cell_len, [*texts, *self.cells]), default=0)
        return min(_WHOLE_WORD, max(map(cell_len, texts), default=0))

    def add_to(self, table: Table) -> None:
        is_wide = self.is_number and cell_len(self.heading) > self.needed
        table.add_column(
            self.heading.replace(" ", "\n") if is_wide else self.heading,
            justify="right" if self.is_number else "left",
            style=self.style,
            overflow="fold",
            no_wrap=self.is_number,
            min_width=self.needed,
        )


def fitted(table: Table, width: int) -> tuple[Group, list[str]]:
    """Return the columns that differ between rows, and what the other columns have in all rows. Columns that
    a width has no room for are in tables of their own below, beside those that name the rows."""
    columns, same = [], []
    for place, column in enumerate(table.columns):
        heading, cells = str(column.header), list(map(str, column.cells))
        if place and len(cells) > 1 and len(set(cells)) == 1:
            same.append(f"{heading} {cells[0]}")
        else:
            columns.append(_Column(heading, cells, column.justify == "right", column.style))
    numbers = [place for place, column in enumerate(columns) if column.is_number]
    count = max(1, numbers[0]) if numbers else 1
    names, others = columns[:count], columns[count:]
    if any(_width([*names, other]) > width for other in others):
        names = [_joined(names)]
    parts: list[list[_Column]] = [[]]
    for other in others:
        if parts[-1] and _width([*names, *parts[-1], other]) > width:
            parts.append([])
        parts[-1].append(other)
    return Group(*(_narrow([*names, *part]) for part in parts)), same


def _joined(columns: Sequence[_Column]) -> _Column:
    """Return one column of the words of several."""
    rows = zip(*(column.cells for column in columns), strict=True)
    heading = ", ".join(column.heading for column in columns)
    return _Column(heading, list(map(", ".join, rows)), False, columns[0].style)


def _width(columns: Sequence[_Column]) -> int:
    """Return the fewest letters that a table of these columns takes."""
    return sum(column.needed + _BETWEEN for column in columns)


def _narrow(columns: Sequence[_Column]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for column in columns:
        column.add_to(table)
    for row in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*map(Text, row))
    return table


def _cell(value: object) -> Text:
    return Text(one_line(str(value)))
