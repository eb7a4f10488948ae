"""Answers of the programs of this checkout, which are kept: a question takes processes and a twentieth of a
second of CPU, and each command puts the same ones again.

A program that was built anew is asked anew. A script, or a program elsewhere, is asked each time: its answer
may depend on other files. A refusal is not kept: it may come from the machine, such as one without memory.
"""

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from fecbench import caches
from fecbench.checkout import DECLARATIONS
from fecbench.runners.sandbox import isolation, question
from fecbench.runners.sandbox.question import Answer, NoAnswer

NAME = "answers.json"
MOST = 1000
"""Most answers that are kept: the latest."""


def ask(
    commands: Sequence[Sequence[str]], folder: Path, home: Path, variables: Mapping[str, str], limit_s: float
) -> list[Answer | NoAnswer]:
    """Return the answers of a program as `question.ask` does."""
    if folder.parent != DECLARATIONS or not all(map(_is_compiled, commands)) or not _can_start():
        return question.ask(commands, folder, home, variables, limit_s)
    outputs, keys = _outputs(), [_key(command) for command in commands]
    new = [command for command, key in zip(commands, keys, strict=True) if key not in outputs]
    fresh = iter(question.ask(new, folder, home, variables, limit_s) if new else ())
    answers: list[Answer | NoAnswer] = []
    for key in keys:
        answer = Answer(0, *outputs[key]) if key in outputs else next(fresh)
        answers.append(answer)
        if not isinstance(answer, Answer) or answer.status != 0:
            break
        outputs[key] = [answer.output, answer.errors]
    if new:
        caches.keep(NAME, json.dumps(dict(list(outputs.items())[-MOST:])))
    return answers


def _outputs() -> dict[str, Any]:
    """Return the outputs of each command that was answered, by `_key`."""
    with suppress(ValueError):
        outputs = json.loads(caches.read(NAME) or "{}")
        if isinstance(outputs, dict) and all(map(_is_output, outputs.values())):
            return outputs
    return {}


def _is_output(value: Any) -> bool:
    return isinstance(value, list) and list(map(type, value)) == [str, str]


@cache
def _can_start() -> bool:
    """Whether programs can be started here. Where none can, a question has to be put, which says why."""
    if os.geteuid() != 0:
        return True
    try:
        isolation.run_isolated(lambda: b"it can", isolation.TRY_LIMIT_S)
    except (isolation.IsolationError, OSError):
        return False
    return True


def _is_compiled(command: Sequence[str]) -> bool:
    """Whether a command is a compiled program, and names no other file, which may be a script."""
    program, *words = command
    try:
        with Path(program).open("rb") as file:
            return file.read(4) == b"\x7fELF" and not any(map(os.path.exists, words))
    except OSError:
        return False


def _key(command: Sequence[str]) -> str:
    """Return a text that tells a command, with its program as it is now, from others."""
    state = Path(command[0]).stat()
    as_it_is = state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns
    return json.dumps([list(command), as_it_is])
