"""Commands, programs and options of an implementation: what is wrong is named, with what would be right."""

import json
from pathlib import Path

import pytest

from runners.implementations import implementation as implementations
from runners.implementations.implementation import load
from runners.refusal import Refusal


def test_commands_are_absolute_and_keep_their_arguments(folder: Path) -> None:
    implementation = load(folder)
    assert implementation.command("client") == [str(folder / "build/example"), "--fast"]
    assert implementation.programs() == [folder / "build/example"]


def test_options_that_are_not_chosen_have_their_defaults(folder: Path) -> None:
    options = load(folder).options({"code_rate": 0.75}, "x")
    assert options == {"scheme": "none", "code_rate": 0.75, "window": 20, "pacing": True}


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({"shceme": "xor"}, "no option 'shceme'; did you mean 'scheme'"),
        ({"scheme": "rs"}, "scheme = 'rs' must be one of none, xor"),
        ({"scheme": 1}, "must be of type string"),
        ({"code_rate": 0.4}, "at least 0.5"),
        ({"code_rate": 1.5}, "at most 1"),
        ({"code_rate": "0.9"}, "must be of type number"),
        ({"code_rate": True}, "must be of type number"),
        ({"code_rate": float("nan")}, "must be of type number"),
        ({"window": 2.5}, "must be of type integer"),
        ({"pacing": 1}, "must be of type boolean"),
    ],
)
def test_a_wrong_option_is_refused(folder: Path, chosen: dict[str, object], said: str) -> None:
    with pytest.raises(Refusal, match=said) as refusal:
        load(folder).options(chosen, "design.toml: variant 'a'")
    assert str(refusal.value).startswith("design.toml: variant 'a': ")
    assert "\n" not in str(refusal.value)


def test_a_missing_program_says_how_to_build_it(folder: Path) -> None:
    with pytest.raises(Refusal, match="run make build"):
        load(folder).check_built()


@pytest.fixture
def checked(folder: Path) -> Path:
    """The folder of an implementation that checks its options: a window of 7 goes with no code."""
    with (folder / "impl.toml").open("r+") as written:
        text = written.read()
        written.seek(0)
        written.write(text.replace("workloads =", 'check = ["check", "--all"]\nworkloads ='))
    (folder / "check").write_text(
        '#!/bin/sh\n[ "$1" = --all ] && echo "$2" >>"$0.asked"\n'
        'case "$2" in *\'"window": 7\'*) echo "example: window: 7 needs scheme none" >&2; exit 2 ;; esac\n'
    )
    (folder / "check").chmod(0o755)
    return folder


def test_a_check_is_asked_about_all_options_and_its_program_has_to_be_built(checked: Path) -> None:
    implementation = load(checked)
    assert checked / "check" in implementation.programs()
    implementation.check_together({"code_rate": 0.75}, "x")
    asked = (checked / "check.asked").read_text()
    assert json.loads(asked) == implementation.options({"code_rate": 0.75}, "x")


def test_options_that_do_not_fit_together_are_refused_with_what_the_check_says(checked: Path) -> None:
    said = "design.toml: variant 'a': scheme = 'xor', window = 7: example: window: 7 needs scheme none"
    with pytest.raises(Refusal, match=f"^{said}$"):
        load(checked).check_together({"scheme": "xor", "window": 7}, "design.toml: variant 'a'")


def test_a_check_that_fails_without_a_word_refuses(checked: Path) -> None:
    (checked / "check").write_text("#!/bin/sh\nexit 3\n")
    with pytest.raises(Refusal, match="x: window = 8: refused with 3"):
        load(checked).check_together({"window": 8}, "x")


def test_a_check_that_cannot_be_started_refuses(checked: Path) -> None:
    (checked / "check").write_bytes(b"\x7fELF, but cut off")
    with pytest.raises(Refusal, match=r"x: .*/check cannot be started: Exec format error: run make build"):
        load(checked).check_together({"window": 8}, "x")


def test_a_check_that_does_not_answer_refuses(checked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(implementations, "CHECK_LIMIT_S", 0.1)
    (checked / "check").write_text("#!/bin/sh\nexec sleep 60\n")
    with pytest.raises(Refusal, match="check did not answer within"):
        load(checked).check_together({}, "x")


def test_without_a_check_any_options_go_together(folder: Path) -> None:
    load(folder).check_together({"scheme": "xor", "window": 7}, "x")
