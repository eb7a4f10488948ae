"""The help of every command at 80 columns, in one file.

`python -m tests.help` writes it anew; `tests/runners/commands/test_help.py` compares. The libraries that set
the text belong to it, so that other versions of them are no difference.
"""

import os
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from unittest import mock

from typer.main import get_command
from typer.testing import CliRunner

from fecbench.runners.commands.command_line import app

PATH = Path(__file__).parent / "runners" / "commands" / "data" / "help.txt"
_TERMINAL = {"COLUMNS": "80", "LINES": "40", "TERM": "dumb", "NO_COLOR": "1"}


def versions() -> str:
    """Return the first line of the file: the libraries that set the text."""
    return ", ".join(f"{name} {version(name)}" for name in ("typer", "rich"))


def text() -> str:
    """Return the help of every command."""
    with mock.patch.dict(os.environ, _TERMINAL):
        for name in [name for name in os.environ if name.startswith("FECBENCH_")]:
            del os.environ[name]
        parts = [f"$ fecbench {' '.join([*words, '--help'])}\n{_help(words)}" for words in _commands()]
    return f"{versions()}\n\n" + "\n\n".join(parts) + "\n"


def _commands() -> Iterator[list[str]]:
    """Yield the words of every command, those of groups included."""
    yield []
    for name, command in getattr(get_command(app), "commands").items():  # noqa: B009 - a group has them
        yield [name]
        yield from ([name, inner] for inner in getattr(command.load(), "commands", {}))


def _help(words: list[str]) -> str:
    result = CliRunner().invoke(app, [*words, "--help"], prog_name="fecbench", catch_exceptions=False)
    assert result.exit_code == 0, words
    return "\n".join(line.rstrip() for line in result.output.strip("\n").splitlines())


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
