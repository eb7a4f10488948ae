"""The help of every command is the one that was looked at, and fits a terminal of 80 columns."""

import difflib

import pytest

from tests import help as helps


def test_the_help_of_every_command_is_as_it_was_looked_at() -> None:
    looked_at = helps.PATH.read_text(encoding="utf-8")
    if looked_at.partition("\n")[0] != helps.versions():
        pytest.skip(f"set by {looked_at.partition(chr(10))[0]}, and here is {helps.versions()}")
    now = helps.text()
    assert max(map(len, now.splitlines())) <= 80
    difference = list(difflib.unified_diff(looked_at.splitlines(), now.splitlines(), lineterm="", n=1))
    assert not difference, "\n".join([*difference, "python -m tests.help takes it over"])
