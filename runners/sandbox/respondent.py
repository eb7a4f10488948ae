"""Starts a program that is asked something, confined, and tells how it answered: a question of JSON is on
standard input, the answer goes to standard output.

It is a process of its own, so that a harness with threads does not fork, and imports little: there is one for
each question. When it has ended, so has whatever the program started.
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runners.sandbox import kernel, rights
from runners.sandbox.isolation import die_with_parent, run_isolated
from runners.sandbox.view import INODES, View

OUTPUT_BYTES = 1 << 20
"""Of both outputs together. One that writes more is ended."""
HOME_BYTES = 16 << 20
LIMITS = {**rights.LIMITS, resource.RLIMIT_FSIZE: HOME_BYTES, resource.RLIMIT_DATA: 1 << 30}
END_LIMIT_S = 5.0
_READ_BYTES = 1 << 16


@dataclass(frozen=True)
class Question:
    """The program that is asked, and what it is given."""

    command: list[str]
    folder: str
    """Of its implementation, which it can read wherever it lies."""
    home: str
    """The only folder that it can write to, beside those for temporary files, and where it begins."""
    variables: dict[str, str]
    """Its environment."""
    limit_s: float
    harness: int
    """The process that asks, with which it ends."""


def main() -> None:
    question = Question(**json.load(sys.stdin))
    die_with_parent(question.harness)
    user = rights.own_user(os.getpid())
    if user is None:
        answer = _ask_as_same_user(question)
    else:
        limit_s = question.limit_s + END_LIMIT_S
        answer = run_isolated(lambda: _ask(question, lambda: _become(user, question)), limit_s)
    sys.stdout.buffer.write(answer)


def _become(user: int, question: Question) -> None:
    """Take all rights from this process, which is in PID and network namespaces of its own."""
    kernel.unshare(kernel.CLONE_NEWNS | kernel.CLONE_NEWIPC, "mount and IPC namespaces")
    home = Path(question.home)
    options = f"mode=700,uid={user},gid={user},size={HOME_BYTES},nr_inodes={INODES}"
    kernel.mount("tmpfs", home, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, options)
    View(user, home, [Path(question.folder), *rights.prefixes(Path(question.command[0]))], {}).make()
    rights.limit(LIMITS)
    kernel.become(user)


def _ask_as_same_user(question: Question) -> bytes:
    """Where there is no right to give away. Whatever it leaves behind becomes a child of this process."""
    kernel.adopt_orphans()
    try:
        return _ask(question, lambda: rights.limit_as_same_user(LIMITS))
    finally:
        _kill_children()


def _kill_children() -> None:
    """Until there are none: those of a child that was killed are children then."""
    with contextlib.suppress(ChildProcessError):  # there is none any more
        while True:
            number, _ = os.waitpid(-1, os.WNOHANG)
            if number == 0:
                for child in _children():
                    os.kill(child, signal.SIGKILL)
                os.waitpid(-1, 0)


def _children() -> Iterator[int]:
    """Not of /proc/self/task/N/children, which not every kernel has."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            _, _, fields = path.read_text(errors="replace").rpartition(")")
        except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            continue
        if int(fields.split()[1]) == os.getpid():
            yield int(path.parent.name)


def _ask(question: Question, give_up_rights: Callable[[], None]) -> bytes:
    """How it answered, or why it did not, as JSON."""
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
            question.command,
            preexec_fn=enter,
            cwd=question.home,
            env=question.variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except subprocess.SubprocessError:
        os.set_blocking(reading, False)
        reason = os.read(reading, 4096).decode(errors="replace")
        return _document(problem=f"cannot be confined: {reason}")
    except OSError as error:
        return _document(cannot_start=error.errno)
    try:
        output, errors = _outputs(process, question.limit_s)
    except _NoAnswer as problem:
        return _document(problem=str(problem))
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # it has not been awaited, so the number is its own
        process.wait()
    return _document(
        status=process.returncode,
        output=output.decode(errors="replace"),
        errors=errors.decode(errors="replace"),
    )


class _NoAnswer(Exception):
    """Says what it did instead."""


def _outputs(process: "subprocess.Popen[bytes]", limit_s: float) -> tuple[bytes, bytes]:
    """What it wrote on standard output and standard error until it ended, whoever holds them still."""
    assert process.stdout and process.stderr
    deadline = time.monotonic() + limit_s
    outputs = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
    ending = os.pidfd_open(process.pid)
    with selectors.DefaultSelector() as selector:
        selector.register(ending, selectors.EVENT_READ)
        for descriptor in outputs:
            os.set_blocking(descriptor, False)
            selector.register(descriptor, selectors.EVENT_READ)
        has_ended = False
        while not has_ended:
            ready = {key.fd for key, _ in selector.select(max(0.0, deadline - time.monotonic()))}
            if not ready or time.monotonic() > deadline:
                raise _NoAnswer(f"did not answer within {limit_s:g} s")
            has_ended = ending in ready
            for descriptor in outputs if has_ended else ready:
                if _read(descriptor, outputs, to_the_end=has_ended):
                    selector.unregister(descriptor)
    output, errors = outputs.values()
    return bytes(output), bytes(errors)


def _read(descriptor: int, outputs: dict[int, bytearray], *, to_the_end: bool) -> bool:
    """Take what is there; whether it was closed and is still watched."""
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


def _document(**answer: Any) -> bytes:
    return json.dumps(answer).encode()


if __name__ == "__main__":
    main()
