"""Answers of the programs of this checkout, which later commands need not ask for."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fecbench.runners.implementations import kept_answers
from fecbench.runners.sandbox import question
from fecbench.runners.sandbox.question import Answer, NoAnswer

REFUSAL = Answer(1, "", "no such options\n")


class Program:
    """A program that counts its questions: it refuses `bad`, and does not answer `none`."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "mine"
        self.folder.mkdir(parents=True)
        self.path = self.folder / "program"
        self.path.write_bytes(b"\x7fELF one build")
        self.questions: list[str] = []

    def answer(self, commands: Sequence[Sequence[str]], *_: Any) -> list[Answer | NoAnswer]:
        replies: list[Answer | NoAnswer] = []
        for _, word in commands:
            self.questions.append(word)
            replies.append({"bad": REFUSAL, "none": NoAnswer("hung")}.get(word, Answer(0, word, "")))
            if word in ("bad", "none"):
                break
        return replies

    def ask(self, *words: str) -> list[Answer | NoAnswer]:
        commands = [[str(self.path), word] for word in words]
        return kept_answers.ask(commands, self.folder, Path("/nowhere"), {}, 1.0)


@pytest.fixture
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.setattr(kept_answers, "NAME", "answers.json")
    return tmp_path / "caches" / "fecbench"


@pytest.fixture
def program(tmp_path: Path, caches: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    program = Program(tmp_path / "quic-impls")
    monkeypatch.setattr(question, "ask", program.answer)
    monkeypatch.setattr(kept_answers, "DECLARATIONS", tmp_path / "quic-impls")
    assert not caches.exists()
    return program


def test_a_question_is_put_once_whatever_others_go_with_it(program: Program) -> None:
    for _ in range(2):
        assert program.ask("a", "b") == [Answer(0, "a", ""), Answer(0, "b", "")]
    assert program.ask("b", "c", "a") == [Answer(0, word, "") for word in ("b", "c", "a")]
    assert program.questions == ["a", "b", "c"]


@pytest.mark.parametrize(("word", "reply"), [("bad", REFUSAL), ("none", NoAnswer("hung"))])
def test_a_refusal_ends_the_answers_and_is_asked_for_again(
    program: Program, word: str, reply: Answer | NoAnswer
) -> None:
    for _ in range(2):
        assert program.ask("a", word, "b") == [Answer(0, "a", ""), reply]
    assert program.questions == ["a", word, word]
    program.ask("b")
    assert program.ask("a", word, "b") == [Answer(0, "a", ""), reply]


def test_a_program_that_was_built_anew_is_asked_anew(program: Program) -> None:
    program.ask("a")
    program.path.write_bytes(b"\x7fELF another")
    program.ask("a")
    os.utime(program.path, ns=(1, 1))
    program.ask("a")
    assert program.questions == ["a", "a", "a"]


def test_a_program_outside_of_the_checkout_is_asked_each_time(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_answers, "DECLARATIONS", tmp_path / "elsewhere")
    assert program.ask("a") == program.ask("a")
    assert program.questions == ["a", "a"]


def test_a_script_is_asked_each_time(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(program.folder)
    (program.folder / "module.py").touch()
    assert program.ask("module.py") == program.ask("module.py")
    program.path.write_text("#!/bin/sh\n")
    assert program.ask("a") == program.ask("a")
    assert program.questions == ["module.py", "module.py", "a", "a"]


def test_the_latest_answers_are_kept(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_answers, "MOST", 2)
    for words in (["a", "b", "c"], ["b", "c"], ["a"]):
        program.ask(*words)
    assert program.questions == ["a", "b", "c", "a"]


@pytest.mark.parametrize("content", [b"", b"\xff", b"no JSON", b"[]"])
def test_a_file_that_is_no_record_of_answers_is_made_anew(
    program: Program, caches: Path, content: bytes
) -> None:
    caches.mkdir(parents=True)
    (caches / "answers.json").write_bytes(content)
    for _ in range(2):
        assert program.ask("a") == [Answer(0, "a", "")]
    assert program.questions == ["a"]


def test_answers_that_are_no_outputs_are_not_taken(program: Program, caches: Path) -> None:
    program.ask("a")
    file = caches / "answers.json"
    (key,) = json.loads(file.read_text())
    for value in (3, None, "ab", [], ["a"], ["a", 1], {"a": 1, "b": 2}):
        file.write_text(json.dumps({key: value}))
        assert program.ask("a") == [Answer(0, "a", "")]
    assert program.questions == ["a"] * 8


def test_nothing_is_kept_where_the_folder_cannot_be_written(program: Program, caches: Path) -> None:
    caches.parent.mkdir()
    caches.touch()
    assert program.ask("a") == program.ask("a") == [Answer(0, "a", "")]
    assert program.questions == ["a", "a"]
