"""Text from outside is shown as it is written, and no terminal obeys it."""

import io
import sys
import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from fecbench.results.analysis.cards import VERDICT_COLORS
from fecbench.results.store.database import TrialKey  # type: ignore[attr-defined]
from fecbench.runners.commands.console import progress
from fecbench.runners.commands.console.progress import Reporter
from fecbench.runners.commands.console.terminal import one_line, printable, say, say_next, tame
from fecbench.runners.commands.console.terminal_tables import fitted, table_of
from fecbench.runners.trial.judge import Judgement

CLEAR_SCREEN, NEW_TITLE, C1 = "\x1b[2J", "\x1b]0;mine\x07", "\x9b2J"


def shown(*cells: object) -> str:
    """A table of one row as a wide pipe gets it."""
    console = Console(file=io.StringIO(), width=500)
    console.print(table_of([f"column {n}" for n in range(len(cells))], [cells]))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@given(st.text(st.characters() | st.sampled_from("\x1b\x9b\n\t\u202e\ud800")))
def test_no_control_character_is_printed_but_line_breaks_and_tabs(text: str) -> None:
    controls = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0))]
    directions = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    output = printable(text)
    gone = {*controls, *directions} - {"\n", "\t"}
    others = [letter for letter in text if letter not in gone]
    assert output == "".join("\ufffd" if "\ud800" <= letter <= "\udfff" else letter for letter in others)
    assert not set(one_line(text)) & set(controls)


def test_a_label_that_looks_like_markup_is_shown_as_it_is() -> None:
    for label in ("rQUIC [xor]", "rQUIC [bold]", "[/4]", "[link=x]y[/link]", ":warning: FEC", "a \\[b]"):
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
    assert "gone \ufffd[2J\ufffd]0;mine\ufffd[error] no route" in printed
    assert not set(printed) & set("\x1b\x07")


def test_trials_in_virtual_time_have_a_line_a_second_and_those_that_are_not_ok_each_one(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "TELL_S", 1e6)
    reporter = Reporter(each=False)
    reporter.begun("c", 100, 0)
    for number in range(100):
        state: Any = "failed" if number == 50 else "ok"
        judgement = Judgement(state, "it died" if state == "failed" else "", {})
        reporter.ended(TrialKey("off", "download", number, 0), judgement, 0.5, False)
    reporter.close()
    lines = [line.partition("]")[0] for line in capfd.readouterr().err.splitlines()[1:]]
    assert lines == ["[1/100", "[51/100", "[100/100"]


def test_no_warning_and_no_mistake_of_ours_clears_the_screen(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    tame()
    warnings.showwarning(f"doubtful {CLEAR_SCREEN}", UserWarning, "file.py", 1)
    error = RuntimeError(f"gone {NEW_TITLE}")
    sys.excepthook(RuntimeError, error, None)
    printed = capsys.readouterr().err
    assert "UserWarning: doubtful [2J" in printed
    assert "RuntimeError: gone ]0;mine" in printed
    assert not set(printed) & set("\x1b\x07")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_lines_that_end_at_words_and_a_pipe_gets_them_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sentence = "safe changes the download completion time of no FEC by -5 % on average."
    monkeypatch.setenv("COLUMNS", "30")
    for stream, lines in ((Terminal(), 3), (io.StringIO(), 1)):
        monkeypatch.setattr(sys, "stdout", stream)
        say(f"  {sentence}")
        written = stream.getvalue().splitlines()
        assert len(written) == lines
        assert " ".join(" ".join(written).split()) == sentence
        assert all(line.startswith("  ") for line in written)


def test_a_command_and_a_line_of_a_design_stay_whole_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    lines = ["fecbench replay 7 --db results.sqlite --output trial-7", 'loss.down.drop = "3,7-9,12,15,19-21"']
    monkeypatch.setattr(sys, "stdout", terminal := Terminal())
    for line in lines:
        say(line)
    assert terminal.getvalue().splitlines() == lines


def test_a_word_that_is_longer_than_a_line_stays_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setattr(sys, "stdout", terminal := Terminal())
    command = "--implementations=/a/path/that-has-no-blank"
    say(f"To go on, run {command} and wait.")
    assert command in terminal.getvalue().splitlines()


def test_only_a_person_is_told_the_next_command(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream, expected in ((Terminal(), "next: fecbench show\n"), (io.StringIO(), "")):
        monkeypatch.setattr(sys, "stdout", stream)
        say_next("fecbench show")
        assert stream.getvalue() == expected


@pytest.mark.parametrize("width", [80, 24])
def test_verdicts_have_their_colours_in_a_terminal_that_has_some(
    monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    table = table_of(
        ("variant", "helps", "harms"), [("safe", "12", "3"), ("tail", "7", "1")], right=("helps",)
    )
    written = {}
    for no_color in ("", "1"):
        monkeypatch.setenv("NO_COLOR", no_color)
        to = Console(file=io.StringIO(), force_terminal=True, color_system="truecolor", width=width)
        to.print(fitted(table, width)[0] if width < 80 else table)
        assert isinstance(to.file, io.StringIO)
        written[no_color] = to.file.getvalue()
    for color in (VERDICT_COLORS["gain"], VERDICT_COLORS["harm"]):
        assert f"\x1b[38;2;{';'.join(str(part) for part in bytes.fromhex(color[1:]))}m" in written[""]
    assert "\x1b[38" not in written["1"]
