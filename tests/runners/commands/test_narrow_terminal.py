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


@pytest.mark.parametrize("width", [36, 40, 60, 80, 100, 120])
def test_rows_are_named_and_numbers_whole_in_every_part_of_a_wide_table(
    terminal: Terminal, width: int
) -> None:
    """A cut number is another number, and a ratio without its workload is of none."""
    stream = terminal(width)
    numbers = [[f"{row}.{n}1 [0.{n}{row}, 1.{n}{row}5]" for n in range(6)] for row in range(1, 4)]
    rows = [["XOR 4/5", f"{row}0 kB", *cells] for row, cells in enumerate(numbers, 1)]
    heads = ["variant", "workload", *(f"no difference {n}" for n in range(6))]
    print_table(table_of(heads, rows, right=heads[2:]))
    lines = stream.getvalue().splitlines()
    assert all(len(line.rstrip()) <= width for line in lines)
    for row, cells in enumerate(numbers, 1):
        for cell in cells:
            (place,) = (place for place, line in enumerate(lines) if cell in line)
            assert f"{row}0 kB" in lines[place] + lines[place + 1]  # what is long goes on below
    assert stream.getvalue().count("difference") == 6


def test_a_table_that_fits_is_shown_as_it_is(terminal: Terminal) -> None:
    stream = terminal(80)
    print_table(table_of(["name", "same"], [["a", "1"], ["b", "1"]]))
    assert stream.getvalue().count("1") == 2
