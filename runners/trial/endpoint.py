"""A running endpoint and its messages (the contract is in quic-impls/README.md).

An endpoint is never trusted to behave: what it prints is bounded, and what it says is parsed strictly.
"""

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, FiniteFloat, StringConstraints, ValidationError, model_validator

from fecbench.complaint import complaint
from fecbench.runners.tasks import series
from fecbench.runners.tasks.outcome import EndpointOutcome
from fecbench.runners.tasks.requests import SAID, Object, Progress
from fecbench.runners.tasks.series import SeriesError
from fecbench.runners.trial.plain_text import plain

MESSAGE_LIMIT_BYTES = 1 << 16
STDERR_TAIL_BYTES = 4096
UNSUPPORTED = 127
OF_OBJECTS = (b'"object"', b'"progress"', b'"stopped"')
"""Events of a client that is told in the course of the trial what to ask for."""

# A metric becomes a column, a key and a label of an axis.
MetricName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,64}\z")]


class Message(BaseModel):
    """A line of an endpoint's standard output."""

    # Strict: "12" and true are no numbers.
    model_config = ConfigDict(extra="forbid", strict=True)
    event: Literal["ready", "done"]
    metrics: dict[MetricName, FiniteFloat] = {}

    @model_validator(mode="after")
    def _only_done_has_metrics(self) -> Self:
        if self.event == "ready" and self.metrics:
            raise ValueError("a ready message has no metrics")
        return self


class Endpoint:
    """A running endpoint: its messages, the end of its standard error, and in the end its exit code."""

    endings: tuple[signal.Signals, ...] = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
    """Signals that end an endpoint, in this order: the next is sent when the previous one had no effect."""

    def __init__(self, name: str, process: subprocess.Popen[bytes]) -> None:
        self.name = name
        self.process = process
        self.events: list[Literal["ready", "done"]] = []
        self.ready = False
        self.hear: Callable[[Object | Progress], None] | None = None
        """Takes what it says of objects; None: it is asked for nothing in the course of the trial."""
        self.metrics: dict[str, float] | None = None
        # The fault of its messages, if any.
        self.complaint = ""
        self.exit_code: int | None = None
        # Whether it was not ready in time, and whether it ran on for too long after it was asked to end.
        self.was_slow = False
        self.was_forced = False
        self.was_asked_to_end = False
        self._line = b""
        self._stderr = b""

    @property
    def stderr(self) -> str:
        """The end of its standard error, without what is no text."""
        return plain(self._stderr.decode(errors="replace"))

    @property
    def rest(self) -> bytes:
        """Return the bytes on standard output after the last whole line."""
        return self._line

    def outcome(self) -> EndpointOutcome:
        """Return how it ended, without its series."""
        return EndpointOutcome(
            ready=self.ready,
            metrics=self.metrics,
            complaint=self.complaint,
            exit_code=self.exit_code,
            was_slow=self.was_slow,
            was_forced=self.was_forced,
            stderr=self.stderr,
        )

    def outcome_with_series(self, log_folder: Path, limits: Mapping[str, int]) -> EndpointOutcome:
        """Return how it ended. An endpoint that was ended, or has failed, need not leave series."""
        outcome = self.outcome()
        if self.metrics is not None and not self.complaint:
            try:
                outcome.series = series.collect(log_folder, limits)
            except SeriesError as error:
                outcome.complaint = str(error)
        return outcome

    def look(self) -> None:
        """Check whether an endpoint is ready that does not report it."""

    def take_stdout(self, data: bytes) -> None:
        """Parse what it wrote; the first thing that is wrong becomes its complaint, and it is killed."""
        if self.complaint:
            return
        *lines, self._line = (self._line + data).split(b"\n")
        for line in lines:
            self._take_message(line)
        if len(self._line) > MESSAGE_LIMIT_BYTES:
            self.refuse(f"wrote a message of more than {MESSAGE_LIMIT_BYTES} bytes")

    def take_stderr(self, data: bytes) -> None:
        self._stderr = (self._stderr + data)[-STDERR_TAIL_BYTES:]

    def _take_message(self, line: bytes) -> None:
        if self.complaint:
            return
        of_object = self.hear is not None and any(mark in line[:40] for mark in OF_OBJECTS)
        message: Message | Object | Progress
        try:
            message = SAID.validate_json(line) if of_object else Message.model_validate_json(line)
        except ValidationError as error:
            cause = " ".join(complaint(error).split())[:200]
            kind = "no object message" if of_object else "neither a ready nor a done message"
            self.refuse(f"wrote {line[:80]!r}, which is {kind}: {cause}")
            return
        if "done" in self.events or message.event in self.events:
            before = " and ".join(self.events)
            self.refuse(f"wrote {line[:80]!r} after {before}: each is said once, and done is the last line")
            return
        if not isinstance(message, Message):
            assert self.hear
            self.hear(message)
            return
        self.events.append(message.event)
        if message.event == "ready":
            self.ready = True
        else:
            self.metrics = message.metrics

    def refuse(self, complaint: str) -> None:
        """Record this complaint about the endpoint's output, and kill the endpoint."""
        self.complaint = complaint
        self.signal(signal.SIGKILL)

    def ask_to_end(self) -> None:
        """Send the first of the signals that end it, and do not wait."""
        self.was_asked_to_end = True
        self.signal(self.endings[0])

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to its process group, unless it has been reaped."""
        if self.exit_code is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)
