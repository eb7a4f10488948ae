"""Answers of the programs of this checkout to questions about their options, each asked for once.

A question takes processes and an eighth of a second of CPU, and tests of campaigns put the same ones again
and again. A program outside of `quic-impls`, such as one that a test wrote, is asked each time; one that was
built anew is asked anew.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import takewhile
from pathlib import Path

from fecbench.runners.implementations import implementation
from fecbench.runners.sandbox import question
from fecbench.runners.sandbox.question import Answer, NoAnswer

_folders: list[Path] = []


UNKNOWN = Answer(0, "", "")
"""The stand-in for an answer that is not there yet."""


def keep_in(*folders: Path) -> None:
    """Have this process look for answers in a folder, which other processes may share, and keep them there.
    Without a folder, each question is put to a program."""
    _folders[:] = folders
    implementation.ask = partial(ask, *folders) if folders else question.ask  # type: ignore[attr-defined]


def folders() -> list[Path]:
    """Return the folder with the answers of this process, if it has one."""
    return list(_folders)


def ask(
    store: Path,
    commands: Sequence[Sequence[str]],
    folder: Path,
    home: Path,
    variables: Mapping[str, str],
    limit_s: float,
) -> list[Answer | NoAnswer]:
    """Return the answers of a program as `question.ask` does, from the store if they are there."""
    if folder.parent != implementation.IMPLEMENTATIONS:
        return question.ask(commands, folder, home, variables, limit_s)
    paths = [store / _name(command) for command in commands]
    replies: dict[Path, Answer | NoAnswer] = {path: _read(path) for path in paths if path.exists()}
    front = _to_the_first_refusal(paths, replies)
    missing = [(command, path) for command, path in zip(commands, front, strict=False) if path not in replies]
    if missing:
        fresh = question.ask([command for command, _ in missing], folder, home, variables, limit_s)
        for reply, (_, path) in zip(fresh, missing, strict=False):
            replies[path] = reply
            if isinstance(reply, Answer):
                _write(path, json.dumps(reply))
    return [replies[path] for path in _to_the_first_refusal(paths, replies)]


def _to_the_first_refusal(paths: Sequence[Path], replies: Mapping[Path, Answer | NoAnswer]) -> list[Path]:
    """Return the paths up to the first whose reply is there and has not status 0."""
    accepted = takewhile(lambda path: getattr(replies.get(path, UNKNOWN), "status", None) == 0, paths)
    return list(paths[: len(list(accepted)) + 1])


def _name(command: Sequence[str]) -> str:
    """Return a name for a command and the files that it names, as they are now."""
    states = [
        (state.st_ino, state.st_size, state.st_mtime_ns)
        for state in (
            Path(word).stat() for word in command if Path(word).is_absolute() and Path(word).exists()
        )
    ]
    return hashlib.sha256(json.dumps([list(command), states]).encode()).hexdigest()


def _read(path: Path) -> Answer:
    return Answer(*json.loads(path.read_text()))


def _write(path: Path, text: str) -> None:
    """Write a file that no other process sees before it is whole."""
    descriptor, name = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    Path(name).replace(path)
