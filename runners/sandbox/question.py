"""Asks a program of somebody else something: it is started with arguments, answers on its outputs, and ends.

It runs without rights, as endpoints do, and nothing of it is left when there is an answer. A process of ours
stands between: to start that takes longer than a question, so several questions go together.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from fecbench.checkout import REPOSITORY
from fecbench.runners.sandbox.respondent import END_LIMIT_S, Questions


class Answer(NamedTuple):
    """How it ended, and all that it wrote, without what is no text."""

    status: int
    output: str
    errors: str


class NoAnswer(NamedTuple):
    """There is none of a program."""

    problem: str
    """What it did instead, or why it was not started, in a few words."""
    can_start: bool = True
    """Whether its file is that of a program."""


def ask(
    commands: Sequence[Sequence[str]], folder: Path, home: Path, variables: Mapping[str, str], limit_s: float
) -> list[Answer | NoAnswer]:
    """What it answers to each command, up to the first that it does not answer with status 0.

    It reads `folder` wherever it lies, and begins in `home`, an empty folder. Each answer has `limit_s`.
    """
    questions = Questions(
        commands=[list(command) for command in commands],
        folder=str(folder),
        home=str(home),
        variables=dict(variables),
        limit_s=limit_s,
        harness=os.getpid(),
    )
    try:
        told = subprocess.run(
            [
                sys.executable,
                "-S",  # without packages of others
                "-E",
                "-m",
                "fecbench.runners.sandbox.respondent",
            ],
            cwd=REPOSITORY,
            input=json.dumps(asdict(questions)).encode(),
            capture_output=True,
            start_new_session=True,  # a Ctrl-C is for the harness alone
            timeout=(limit_s + 2 * END_LIMIT_S) * len(commands),
        )
    except subprocess.TimeoutExpired:
        return [NoAnswer("could not be ended")]
    if told.returncode != 0:
        lines = told.stderr.decode(errors="replace").splitlines()
        reason = lines[-1] if lines else f"status {told.returncode}"
        return [NoAnswer(f"cannot be confined: {reason}")]
    return [
        Answer(**answer) if "status" in answer else NoAnswer(**answer) for answer in json.loads(told.stdout)
    ]
