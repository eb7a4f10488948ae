"""Asks a running client for objects: what it is to read is written to its standard input when it is due."""

import math
import os
import time

from fecbench.runners.tasks.requests import Dialogue, Line, Object, Progress
from fecbench.runners.tasks.validity import USUAL
from fecbench.runners.trial.endpoint import Endpoint
from fecbench.runners.trial.supervisor import Supervisor

CLOCK_S = USUAL.clock_s
"""Largest difference between the clocks of an endpoint and of the harness."""


class Asker:
    """Carries on a dialogue with a client that was started with a pipe as its standard input."""

    def __init__(self, client: Endpoint, dialogue: Dialogue, supervisor: Supervisor) -> None:
        self._client, self._dialogue, self._supervisor = client, dialogue, supervisor
        assert client.process.stdin
        os.set_blocking(client.process.stdin.fileno(), False)
        self._lines: list[Line] = []
        self._asked = 0
        self._tell_every_s: float | None = None
        """Interval of progress reports of the last object."""
        self._told_s = -math.inf
        """Time of the last progress report."""
        self._begun_s = time.monotonic()
        client.hear = self._hear
        self._proceed(dialogue.begin(self._begun_s))

    def close(self) -> None:
        """The client has nothing more to read."""
        self._supervisor.set_alarm(self._client.name, None, self._write)
        stdin = self._client.process.stdin
        if stdin and not stdin.closed:
            stdin.close()

    def _hear(self, message: Object | Progress) -> None:
        if self._dialogue.ended == self._asked:
            self._client.refuse(f"said that {message.bytes} bytes have arrived, and was not asked for them")
            return
        now_s, from_s = time.monotonic(), message.requested_at
        to_s = message.done_at if isinstance(message, Object) else message.at
        if not self._begun_s - CLOCK_S <= from_s <= to_s <= now_s + CLOCK_S:
            self._client.refuse(
                f"said that {message.bytes} bytes came from {from_s:.6f} to {to_s:.6f}: by CLOCK_MONOTONIC it"
                f" was started at {self._begun_s:.6f}, and it is {now_s:.6f}"
            )
            return
        if isinstance(message, Progress):
            if self._tell_every_s is None or to_s < self._told_s + self._tell_every_s - CLOCK_S:
                self._client.refuse(
                    f"told at {to_s:.6f} of {message.bytes} bytes, which is more often than it was asked"
                )
                return
            self._told_s = to_s
        self._proceed(self._dialogue.heard(message))

    def _proceed(self, lines: list[Line]) -> None:
        self._lines = lines
        self._write()

    def _write(self) -> None:
        """Write what is due, and come back for the rest."""
        stdin = self._client.process.stdin
        if stdin is None or stdin.closed:
            return
        while self._lines and self._lines[0].at_s <= time.monotonic():
            line = self._lines.pop(0)
            text = line.text
            if text is None:
                self._lines.clear()
                self.close()
                return
            if line.get is not None:
                self._asked += 1
                self._tell_every_s, self._told_s = line.tell_every_s, -math.inf
            try:
                os.write(stdin.fileno(), text.encode() + b"\n")
            except (BrokenPipeError, BlockingIOError):  # its end is seen elsewhere, or it reads nothing
                return
        due_s = self._lines[0].at_s if self._lines else None
        self._supervisor.set_alarm(self._client.name, due_s, self._write)
