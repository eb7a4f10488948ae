"""What comes from outside is shown as it is written, and no terminal obeys it."""

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from results.store.database import TrialKey
from runners.commands.progress import Reporter
from runners.commands.tables import table_of
from runners.commands.terminal import one_line, printable
from runners.trial.judge import Judgement

CLEAR_SCREEN, NEW_TITLE, C1 = "\x1b[2J", "\x1b]0;mine\x07", "\x9b2J"


def shown(*cells: object) -> str:
    """A table of one row as a wide pipe gets it."""
    console = Console(file=io.StringIO(), width=500)
    console.print(table_of([f"column {n}" for n in range(len(cells))], [cells]))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@given(st.text())
def test_no_control_character_is_printed_but_line_breaks_and_tabs(text: str) -> None:
    controls = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0))]
    kept = printable(text)
    assert not set(kept) & (set(controls) - {"\n", "\t"})
    assert kept == "".join(letter for letter in text if letter not in controls or letter in "\n\t")
    assert not set(one_line(text)) & set(controls)


@pytest.mark.parametrize(
    "label", ["rQUIC [xor]", "rQUIC [bold]", "[/4]", "[link=x]y[/link]", ":warning: FEC", "a \\[b]"]
)
def test_a_label_that_looks_like_markup_is_shown_as_it_is(label: str) -> None:
    assert label in shown(label)


def test_a_cell_is_one_line_without_control_characters() -> None:
    text = shown(f"a{CLEAR_SCREEN}b\nc", C1)
    assert "a[2Jb c" in text
    assert not set(text) & set("\x1b\x9b\x07")


def test_a_reason_that_clears_the_screen_does_not_while_a_campaign_goes_on(
    capfd: pytest.CaptureFixture[str],
) -> None:
    reporter = Reporter()
    reporter.begun("c", 1, 0)
    judgement = Judgement("failed", f"gone {CLEAR_SCREEN}{NEW_TITLE}[error] no route", {})
    reporter.ended(TrialKey("rQUIC [xor]", "download", 0, 0), judgement, None, False)
    reporter.close()
    printed = capfd.readouterr().err
    assert "rQUIC [xor], download" in printed
    assert "gone [2J]0;mine[error] no route" in printed
    assert not set(printed) & set("\x1b\x07")


def test_an_error_that_clears_the_screen_does_not_when_it_ends_the_command(fecbench_here: Any) -> None:
    line = fecbench_here("plan", f"{CLEAR_SCREEN}.toml").refusal()
    assert "[2J.toml: cannot be read" in line
    assert "\x1b" not in line
