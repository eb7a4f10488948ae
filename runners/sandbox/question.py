"""Questions to a program of somebody else: it is started with arguments, answers on its outputs, and ends.

It runs without rights, as endpoints do, and nothing of it is left when there is an answer. A process of ours
stands between: to start that takes longer than a question, so several questions go together.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from fecbench.checkout import REPOSITORY
from fecbench.runners.sandbox.respondent import END_LIMIT_S, Questions


class Answer(NamedTuple):
    """A program's exit status and outputs, without bytes that are not text."""

    status: int
    output: str
    errors: str


class NoAnswer(NamedTuple):
    """A program's failure to answer."""

    problem: str
    """The program's failure, or why it was not started, in a few words."""
    can_start: bool = True
    """Whether its file is that of a program."""


def ask(
    commands: Sequence[Sequence[str]], folder: Path, home: Path, variables: Mapping[str, str], limit_s: float
) -> list[Answer | NoAnswer]:
    """Return a program's answer to each command, up to the first without an answer of status 0.

    The program can read `folder` wherever it lies, and begins in `home`, an empty folder. Each answer may
    take `limit_s`.
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
        respondent = subprocess.run(
            [
                sys.executable,
                "-S",  # without packages of others
                "-E",
                "-m",
                "fecbench.runners.sandbox.respondent",
            ],
            cwd=REPOSITORY,
            input=json.dumps(questions._asdict()).encode(),
            capture_output=True,
            start_new_session=True,  # a Ctrl-C is for the harness alone
            timeout=(limit_s + 2 * END_LIMIT_S) * len(commands),
        )
    except subprocess.TimeoutExpired:
        return [NoAnswer("could not be ended")]
    if respondent.returncode != 0:
        lines = respondent.stderr.decode(errors="replace").splitlines()
        reason = lines[-1] if lines else f"status {respondent.returncode}"
        return [NoAnswer(f"cannot be confined: {reason}")]
    return [
        Answer(**answer) if "status" in answer else NoAnswer(**answer)
        for answer in json.loads(respondent.stdout)
    ]
