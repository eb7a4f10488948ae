"""Tables fit a terminal of 80 columns, and of 100: no cell is cut, and no number is broken."""

import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from fecbench.results.store.database import Database
from fecbench.runners.commands.console import campaign_summary, terminal_tables
from fecbench.runners.commands.console.terminal_tables import print_table, table_of

Terminal = Callable[[int], io.StringIO]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A function that returns the stream of a terminal of so many columns."""

    def of(width: int) -> io.StringIO:
        stream = io.StringIO()
        to = Console(file=stream, width=width, force_terminal=True, color_system=None)
        for module in (terminal_tables, campaign_summary):
            monkeypatch.setattr(module, "console", lambda: to)
        return stream

    return of


@pytest.mark.parametrize("width", [80, 100])
def test_the_summary_of_a_campaign_is_whole(terminal: Terminal, planted: Path, width: int) -> None:
    stream = terminal(width)
    with Database.open(str(planted)) as database:
        campaign_summary.print_summary(database, database.campaigns()[0])
    lines = stream.getvalue().splitlines()
    assert all(len(line.rstrip()) <= width for line in lines)
    assert "…" not in stream.getvalue()
    (row,) = (line for line in lines if line.strip().startswith("XOR 4/5"))
    assert re.search(r"0\.\d\d \[0\.\d\d, 0\.\d\d\] +\d+ ms \[\d+, \d+\]", row)
    assert "FEC off" in stream.getvalue()  # what both are compared with


def test_a_wide_table_tells_what_all_rows_have_in_common_once(terminal: Terminal) -> None:
    stream = terminal(80)
    heads = ["name", *(f"a_number_of_something_{n}" for n in range(5)), "other"]
    rows = [[f"row {n} with words that go on", *["17"] * 5, f"{n}23456789"] for n in range(3)]
    print_table(table_of(heads, rows, right=heads[1:]))
    output = stream.getvalue()
    assert "223456789" in output
    assert output.count("17") == 5
    assert "in all rows: a_number_of_something_0 17," in output


def test_a_table_that_fits_is_shown_as_it_is(terminal: Terminal) -> None:
    stream = terminal(80)
    print_table(table_of(["name", "same"], [["a", "1"], ["b", "1"]]))
    assert stream.getvalue().count("1") == 2
