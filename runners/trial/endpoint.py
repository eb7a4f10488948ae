"""Starts endpoints and follows their messages (the contract is in quic-impls/README.md).

An endpoint is never trusted to behave: what it prints is bounded, what it says is parsed strictly, and it is
ended with everything that it started by signals to the process group that it was given.
"""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Annotated, Literal

from pydantic import BaseModel, ConfigDict, FiniteFloat, StringConstraints, ValidationError

from runners.refusal import first_problem

Role = Literal["client", "server"]

MESSAGES_LIMIT_BYTES = 1 << 20
MESSAGE_LIMIT_BYTES = 1 << 16
STDERR_TAIL_BYTES = 4096
UNSUPPORTED = 127
# How long an endpoint may take to obey SIGINT, then SIGTERM, before the next stronger signal.
OBEY_LIMIT_S = 3.0
DRAIN_LIMIT_S = 1.0


# A metric becomes a column, a key and a label of an axis.
MetricName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,64}\z")]


class Message(BaseModel):
    """One line of an endpoint's standard output."""

    model_config = ConfigDict(extra="forbid")
    event: Literal["ready", "done"]
    metrics: dict[MetricName, FiniteFloat] = {}


class Endpoint:
    """One running endpoint: its messages, the end of its standard error, and its exit code in the end."""

    def __init__(self, name: str, process: subprocess.Popen[bytes]) -> None:
        self.name = name
        self.process = process
        self.events: list[Literal["ready", "done"]] = []
        self.ready = False
        self.metrics: dict[str, float] | None = None
        self.complaint = ""  # what was wrong with its messages, if anything
        self.exit_code: int | None = None
        self.exited_at: float | None = None  # seconds of the monotonic clock
        self._line = b""
        self._stdout_bytes = 0
        self._stderr = b""

    @property
    def stderr(self) -> str:
        """The end of its standard error, without what is no text; PostgreSQL takes NUL for none."""
        return self._stderr.decode(errors="replace").replace("\0", "\ufffd")

    @property
    def rest(self) -> bytes:
        """What it wrote on standard output after the end of the last line."""
        return self._line

    def take_stdout(self, data: bytes) -> None:
        """Parse what it wrote; the first thing that is wrong becomes its complaint, and it is killed."""
        self._stdout_bytes += len(data)
        if self.complaint:
            return
        if self._stdout_bytes > MESSAGES_LIMIT_BYTES:
            self._refuse(f"wrote more than {MESSAGES_LIMIT_BYTES} bytes of messages")
            return
        *lines, self._line = (self._line + data).split(b"\n")
        for line in lines:
            self._take_message(line)
        if len(self._line) > MESSAGE_LIMIT_BYTES:
            self._refuse(f"wrote a message of more than {MESSAGE_LIMIT_BYTES} bytes")

    def take_stderr(self, data: bytes) -> None:
        self._stderr = (self._stderr + data)[-STDERR_TAIL_BYTES:]

    def _take_message(self, line: bytes) -> None:
        if self.complaint:
            return
        try:
            message = Message.model_validate_json(line)
        except ValidationError as error:
            cause = " ".join(first_problem(error).split())[:200]
            self._refuse(f"wrote {line[:80]!r}, which is neither a ready nor a done message: {cause}")
            return
        self.events.append(message.event)
        if message.event == "ready":
            self.ready = True
        else:
            self.metrics = message.metrics

    def _refuse(self, complaint: str) -> None:
        self.complaint = complaint
        self.signal(signal.SIGKILL)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to its process group, unless it has been reaped."""
        if self.exit_code is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)


class Supervisor:
    """Follows several endpoints at once, in one thread: output, messages and ends."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self.endpoints: list[Endpoint] = []

    def follow(self, name: str, process: subprocess.Popen[bytes]) -> Endpoint:
        """Follow a process that was started in a process group of its own with both outputs piped."""
        endpoint = Endpoint(name, process)
        assert process.stdout and process.stderr
        self._read(process.stdout, endpoint.take_stdout)
        self._read(process.stderr, endpoint.take_stderr)
        ended = os.pidfd_open(process.pid)

        def reap() -> None:
            self._selector.unregister(ended)
            os.close(ended)
            endpoint.exited_at = time.monotonic()
            endpoint.exit_code = process.wait()

        self._selector.register(ended, selectors.EVENT_READ, reap)
        self.endpoints.append(endpoint)
        return endpoint

    def _read(self, stream: IO[bytes], take: Callable[[bytes], None]) -> None:
        descriptor = stream.fileno()
        os.set_blocking(descriptor, False)

        def read() -> None:
            data = os.read(descriptor, 1 << 16)
            if data:
                take(data)
            else:
                self._selector.unregister(descriptor)

        self._selector.register(descriptor, selectors.EVENT_READ, read)

    def wait(self, until: Callable[[], bool], limit_s: float) -> bool:
        """Follow the endpoints until `until()` holds (True) or the limit passes (False)."""
        deadline = time.monotonic() + limit_s
        while not until():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            for key, _ in self._selector.select(left):
                key.data()
        return True

    def end(self, endpoint: Endpoint) -> None:
        """SIGINT, then SIGTERM, then SIGKILL to its process group, each after it did not obey the one before.

        Whatever it wrote before its end has been taken when this returns.
        """
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            if endpoint.exit_code is not None:
                break
            endpoint.signal(number)
            self.wait(lambda: endpoint.exit_code is not None, OBEY_LIMIT_S)
        self.drain()

    def drain(self) -> None:
        """Take what is readable now; bounded, because an orphan of an endpoint may go on writing."""
        deadline = time.monotonic() + DRAIN_LIMIT_S
        while time.monotonic() < deadline and (ready := self._selector.select(0)):
            for key, _ in ready:
                key.data()


def assignment(
    role: Role,
    *,
    address: str,
    port: int,
    server_name: str,
    workload: dict[str, object],
    content_seed: int,
    options: dict[str, object],
    certificates: Path,
    log_folder: Path,
    deadline_s: float,
) -> dict[str, object]:
    """The JSON document that tells an endpoint what to do."""
    document: dict[str, object] = {
        "version": 1,
        "role": role,
        "address": address,
        "port": port,
        "server_name": server_name,
        "workload": workload,
        "content_seed": content_seed,
        "options": options,
        "authority": str(certificates / "authority.pem"),
        "log_folder": str(log_folder),
        "deadline_s": deadline_s,
    }
    if role == "server":
        document["certificate"] = str(certificates / "server.pem")
        document["private_key"] = str(certificates / "server.key")
    return document


def command(arguments: Sequence[str], document: dict[str, object], folder: Path) -> list[str]:
    """Writes the task of an endpoint into `folder` and returns the command that runs it."""
    path = folder / f"{document['role']}.json"
    path.write_text(json.dumps(document, indent=1))
    return [*arguments, str(path)]
