"""Answers of programs that the tests of a session share."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fecbench.runners.implementations import implementation
from fecbench.runners.sandbox import question
from fecbench.runners.sandbox.question import Answer, NoAnswer
from tests.support import answers

REFUSAL = Answer(1, "", "no such options\n")


class Program:
    """A program that counts its questions: it refuses `bad`, and does not answer `none`."""

    def __init__(self, root: Path, store: Path) -> None:
        self.folder, self._store = root / "mine", store
        self.folder.mkdir(parents=True)
        self.path = self.folder / "program"
        self.path.write_text("one build")
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
        return answers.ask(self._store, commands, self.folder, Path("/nowhere"), {}, 1.0)


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    (tmp_path / "store").mkdir()
    program = Program(tmp_path / "quic-impls", tmp_path / "store")
    monkeypatch.setattr(question, "ask", program.answer)
    monkeypatch.setattr(implementation, "IMPLEMENTATIONS", tmp_path / "quic-impls")
    return program


def test_a_question_is_put_once_whatever_others_go_with_it(program: Program) -> None:
    for _ in range(2):
        assert program.ask("a", "b") == [Answer(0, "a", ""), Answer(0, "b", "")]
    assert program.ask("b", "c") == [Answer(0, "b", ""), Answer(0, "c", "")]
    assert program.questions == ["a", "b", "c"]


def test_a_refusal_is_kept_and_ends_the_answers(program: Program) -> None:
    for _ in range(2):
        assert program.ask("a", "bad", "b") == [Answer(0, "a", ""), REFUSAL]
    assert program.questions == ["a", "bad"]
    assert program.ask("b", "bad", "c") == [Answer(0, "b", ""), REFUSAL]


def test_a_program_that_does_not_answer_is_asked_again(program: Program) -> None:
    for _ in range(2):
        assert program.ask("a", "none", "b") == [Answer(0, "a", ""), NoAnswer("hung")]
    assert program.questions == ["a", "none", "none"]


def test_a_program_that_was_built_anew_is_asked_anew(program: Program) -> None:
    program.ask("a")
    program.path.write_text("another")
    program.ask("a")
    os.utime(program.path, ns=(1, 1))
    program.ask("a")
    assert program.questions == ["a", "a", "a"]


def test_a_program_of_a_test_is_asked_each_time(program: Program, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(implementation, "IMPLEMENTATIONS", tmp_path / "elsewhere")
    assert program.ask("a") == program.ask("a")
    assert program.questions == ["a", "a"]
