"""Starts a confined program, asks it questions, and reports its answers: the questions are on standard input
as JSON, the answers go to standard output.

It is a process of its own, so that a harness with threads does not fork. When it has an answer,
whatever the program started for that has ended.
"""

import contextlib
import json
import os
import resource
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from fecbench.runners.sandbox import kernel, rights
from fecbench.runners.sandbox.isolation import IsolationError, die_with_parent, run_isolated, why_not
from fecbench.runners.sandbox.view import INODES, View

OUTPUT_BYTES = 1 << 16
"""Limit of both outputs together. A program that writes more is ended."""
HOME_BYTES = 16 << 20
LIMITS = {**rights.LIMITS, resource.RLIMIT_FSIZE: HOME_BYTES, resource.RLIMIT_DATA: 1 << 30}
END_LIMIT_S = 5.0
_READ_BYTES = 1 << 16


class Questions(NamedTuple):
    """The program to ask, and its questions."""

    commands: list[list[str]]
    """Commands to run one after another, up to the first that does not answer with status 0."""
    folder: str
    """Folder of its implementation, which it can read wherever it lies."""
    home: str
    """The only folder that it can write to, beside those for temporary files, and where it begins."""
    variables: dict[str, str]
    """The program's environment."""
    limit_s: float
    """Time limit of each question."""
    harness: int
    """The process that asks, with which it ends."""


def main() -> None:
    questions = Questions(**json.load(sys.stdin))
    die_with_parent(questions.harness)
    user = rights.own_user(os.getpid())
    if user is None:
        kernel.adopt_orphans()
    answers = []
    for command in questions.commands:
        answer = _answer(command, user, questions)
        answers.append(answer)
        if answer.get("status") != 0:
            break
    print(json.dumps(answers))


def _answer(command: list[str], user: int | None, questions: Questions) -> dict[str, Any]:
    if user is None:
        return _ask_as_same_user(command, questions)
    limit_s = questions.limit_s + END_LIMIT_S
    try:
        document = run_isolated(lambda: _ask_in_namespaces(command, user, questions), limit_s)
    except IsolationError as error:
        return {"problem": f"was not started: fecbench {why_not(error)}"}
    answer: dict[str, Any] = json.loads(document)
    return answer


def _ask_in_namespaces(command: list[str], user: int, questions: Questions) -> bytes:
    answer = _ask(command, questions, lambda: _become(user, command[0], questions))
    return json.dumps(answer).encode()


def _become(user: int, program: str, questions: Questions) -> None:
    """Take all rights from this process, which is in PID and network namespaces of its own."""
    kernel.unshare(kernel.CLONE_NEWNS | kernel.CLONE_NEWIPC, "mount and IPC namespaces")
    home = Path(questions.home)
    options = f"mode=700,uid={user},gid={user},size={HOME_BYTES},nr_inodes={INODES}"
    kernel.mount("tmpfs", home, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, options)
    View(user, home, [Path(questions.folder), *rights.prefixes(Path(program))], {}).make()
    rights.limit(LIMITS)
    kernel.become(user)


def _ask_as_same_user(command: list[str], questions: Questions) -> dict[str, Any]:
    """Ask a program as this user, where another user is not possible. Processes that it leaves become our
    children."""
    readable = [Path(questions.folder), *rights.prefixes(Path(command[0]))]
    home = Path(questions.home)
    try:
        return _ask(command, questions, lambda: rights.keep_as_same_user(LIMITS, readable, home))
    finally:
        _kill_children()


def _kill_children() -> None:
    """Kill all children until there are none: children of a killed child become ours."""
    with contextlib.suppress(ChildProcessError):  # there is none any more
        while True:
            number, _ = os.waitpid(-1, os.WNOHANG)
            if number == 0:
                for child in _children():
                    os.kill(child, signal.SIGKILL)
                os.waitpid(-1, 0)


def _children() -> Iterator[int]:
    """Yield our child processes, without /proc/self/task/N/children, which some kernels lack."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            _, _, fields = path.read_text(encoding="utf-8", errors="replace").rpartition(")")
        except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            continue
        if int(fields.split()[1]) == os.getpid():
            yield int(path.parent.name)


def _ask(command: list[str], questions: Questions, give_up_rights: Callable[[], None]) -> dict[str, Any]:
    """Return the answer of a program, or why there is none."""
    parent = os.getpid()
    reading, writing = os.pipe()

    def enter() -> None:
        try:
            os.umask(0o022)
            rights.offer_to_be_killed()
            give_up_rights()
            die_with_parent(parent)  # a change of user forgets it
        except BaseException as error:
            os.write(writing, str(error).encode())
            raise

    try:
        process = subprocess.Popen(
            command,
            preexec_fn=enter,
            cwd=questions.home,
            env=questions.variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except subprocess.SubprocessError:
        os.set_blocking(reading, False)
        reason = os.read(reading, 4096).decode(errors="replace")
        return {"problem": f"cannot be confined: {reason}"}
    except OSError as error:
        return {"problem": f"cannot be started: {error.strerror}", "can_start": False}
    finally:
        os.close(reading)
        os.close(writing)
    with process:
        try:
            output, errors = _outputs(process, questions.limit_s)
        except _NoAnswer as problem:
            return {"problem": str(problem)}
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # it has not been awaited, so the number is its own
    return {
        "status": process.returncode,
        "output": output.decode(errors="replace"),
        "errors": errors.decode(errors="replace"),
    }


class _NoAnswer(Exception):
    """The program's failure to answer: the message says what it did instead."""


def _outputs(process: "subprocess.Popen[bytes]", limit_s: float) -> tuple[bytes, bytes]:
    """Return standard output and standard error of a program until it ended, even if another process holds
    them open."""
    assert process.stdout and process.stderr
    deadline = time.monotonic() + limit_s
    outputs = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
    with selectors.DefaultSelector() as selector, os.fdopen(os.pidfd_open(process.pid), "rb") as ending:
        selector.register(ending, selectors.EVENT_READ)
        for descriptor in outputs:
            os.set_blocking(descriptor, False)
            selector.register(descriptor, selectors.EVENT_READ)
        has_ended = False
        while not has_ended:
            ready = {key.fd for key, _ in selector.select(max(0.0, deadline - time.monotonic()))}
            if not ready or time.monotonic() > deadline:
                raise _NoAnswer(f"did not answer within {limit_s:g} s")
            has_ended = ending.fileno() in ready
            for descriptor in outputs if has_ended else ready:
                if _read(descriptor, outputs, to_the_end=has_ended):
                    selector.unregister(descriptor)
    output, errors = outputs.values()
    return bytes(output), bytes(errors)


def _read(descriptor: int, outputs: dict[int, bytearray], *, to_the_end: bool) -> bool:
    """Read what is there; return whether the descriptor was closed and is still watched."""
    while True:
        try:
            data = os.read(descriptor, _READ_BYTES)
        except BlockingIOError:
            return False
        outputs[descriptor] += data
        if sum(map(len, outputs.values())) > OUTPUT_BYTES:
            raise _NoAnswer(f"wrote more than {OUTPUT_BYTES} bytes")
        if not data or not to_the_end:
            return not data and not to_the_end


if __name__ == "__main__":
    main()
