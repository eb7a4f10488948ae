"""Asks a program of somebody else something: it is started with arguments, answers on its outputs, and ends.

It runs without rights, as endpoints do, and nothing of it is left when there is an answer.
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
from runners.sandbox.respondent import END_LIMIT_S, Question


class Answer(NamedTuple):
    """How it ended, and all that it wrote, without what is no text."""

    status: int
    output: str
    errors: str


class NoAnswerError(RuntimeError):
    """Says in a few words what the program did instead, or why it was not started."""


def ask(
    command: Sequence[str], folder: Path, home: Path, variables: Mapping[str, str], limit_s: float
) -> Answer:
    """What it answers: a program that reads `folder` wherever it lies, and begins in `home`, an empty folder.

    Raises OSError when it cannot be executed, NoAnswerError when it does not answer or cannot be confined.
    """
    question = Question(
        command=list(command),
        folder=str(folder),
        home=str(home),
        variables=dict(variables),
        limit_s=limit_s,
        harness=os.getpid(),
    )
    # Without packages of others (-S) it starts in half the time.
    respondent = [sys.executable, "-S", "-E", "-m", "runners.sandbox.respondent"]
    try:
        told = subprocess.run(
            respondent,
            cwd=REPOSITORY,
            input=json.dumps(asdict(question)).encode(),
            capture_output=True,
            start_new_session=True,  # a Ctrl-C is for the harness alone
            timeout=limit_s + 3 * END_LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        raise NoAnswerError("could not be ended") from None
    if told.returncode != 0:
        lines = told.stderr.decode(errors="replace").splitlines()
        raise NoAnswerError(f"cannot be confined: {lines[-1] if lines else f'status {told.returncode}'}")
    answer = json.loads(told.stdout)
    if "cannot_start" in answer:
        raise OSError(answer["cannot_start"], os.strerror(answer["cannot_start"]), command[0])
    if "problem" in answer:
        raise NoAnswerError(answer["problem"])
    return Answer(**answer)
