"""Tables for a person. Every cell is shown as it is: nothing in it is markup or the name of an emoji."""

import sys
from collections.abc import Collection, Iterable, Sequence

from rich import box
from rich.console import Console, JustifyMethod
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from fecbench.runners.commands.console.terminal import one_line

PIPE_COLUMNS = 260
_WIDEST = 10_000
_WHOLE_WORD = 9  # letters: a longer word may be broken where a table is narrow
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
    same: list[str] = []
    if is_narrow(to, table):
        table, same = fitted(table)
    to.print(table)
    if same:
        to.print(Text(f"  in all rows: {', '.join(same)}", style="dim"))


def is_narrow(to: Console, table: Table) -> bool:
    """Whether a terminal is narrower than a table."""
    whole = to.options.update(width=_WIDEST)
    return to.is_terminal and Measurement.get(to, whole, table).maximum > to.width


def fitted(table: Table) -> tuple[Table, list[str]]:
    """Return the columns that differ between rows, whose words go on in the next line and whose numbers stay
    whole; and what the other columns have in all rows."""
    narrow, same = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False), []
    kept: list[list[Text]] = []
    for place, column in enumerate(table.columns):
        heading, cells = str(column.header), [Text(str(cell)) for cell in column.cells]
        if place and len(cells) > 1 and len({cell.plain for cell in cells}) == 1:
            same.append(f"{heading} {cells[0].plain}")
            continue
        is_number = column.justify == "right"
        words = [word for text in (heading, *(cell.plain for cell in cells)) for word in text.split()]
        narrow.add_column(
            heading,
            justify=column.justify,
            style=column.style,
            overflow="fold",
            no_wrap=is_number,
            min_width=None if is_number else min(_WHOLE_WORD, max(map(len, words), default=0)),
        )
        kept.append(cells)
    for row in zip(*kept, strict=True):
        narrow.add_row(*row)
    return narrow, same


def _cell(value: object) -> Text:
    return Text(one_line(str(value)))
