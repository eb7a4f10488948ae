"""Tables for a person. Every cell is shown as it is: nothing in it is markup or the name of an emoji."""

import sys
from collections.abc import Collection, Iterable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fecbench.runners.commands.console.terminal import one_line

PIPE_COLUMNS = 200


def table_of(headings: Sequence[str], rows: Iterable[Sequence[object]], right: Collection[str] = ()) -> Table:
    """A table with a cell for each heading in each row; the columns named in `right` are of numbers."""
    table = Table(box=box.SIMPLE_HEAD)
    for heading in headings:
        table.add_column(_cell(heading), justify="right" if heading in right else "left")
    for row in rows:
        table.add_row(*map(_cell, row))
    return table


def print_table(table: Table) -> None:
    # A pipe has no width: a table that is cut would lose what scripts look for.
    console = Console() if sys.stdout.isatty() else Console(width=PIPE_COLUMNS)
    console.print(table)


def _cell(value: object) -> Text:
    return Text(one_line(str(value)))
