"""A simulator that runs: lines go to it and come from it, and the harness never waits for it."""

import contextlib
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from fecbench.checkout import REPOSITORY
from runners.engines.launcher import Order
from runners.trial.endpoint import STDERR_TAIL_BYTES
from runners.trial.plain_text import plain

READ_BYTES = 1 << 20
LINE_BYTES = 64 << 20
"""The longest line that is taken as an answer."""


class SimulatorEnded(Exception):
    """Says in one line how it ended."""


class Simulator:
    """One process. Its selector tells when `step` has something to do; closed, it does not run any more."""

    def __init__(
        self,
        command: Sequence[str],
        implementation: Path,
        folder: Path,
        user: int | None,
        selector: selectors.BaseSelector,
    ) -> None:
        """`folder` is the one that it can write to; as whom it runs, None: as the harness."""
        order = Order(
            command=list(command),
            implementation=implementation,
            folder=folder,
            user=user,
            harness=os.getpid(),
        )
        self._process = subprocess.Popen(
            [sys.executable, "-m", "runners.engines.launcher", order.model_dump_json()],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # a Ctrl-C is for the harness alone
        )
        assert self._process.stdin and self._process.stdout and self._process.stderr
        self._input, self._output, self._errors = (
            stream.fileno() for stream in (self._process.stdin, self._process.stdout, self._process.stderr)
        )
        self._selector = selector
        for descriptor in (self._input, self._output, self._errors):
            os.set_blocking(descriptor, False)
        for descriptor in (self._output, self._errors):
            selector.register(descriptor, selectors.EVENT_READ, self)
        self._unsent = bytearray()
        self._unread = bytearray()
        self._said = b""

    def send(self, line: bytes) -> None:
        """Have it read a line as soon as it likes to."""
        if not self._unsent:
            self._selector.register(self._input, selectors.EVENT_WRITE, self)
        self._unsent += line
        self._write()

    def step(self) -> list[bytes]:
        """Write what it takes; the lines that it has answered since.

        Raises SimulatorEnded when it has ended, and has answered nothing more before.
        """
        self._write()
        self._listen()
        has_ended = False
        while not has_ended:
            try:
                data = os.read(self._output, READ_BYTES)
            except BlockingIOError:
                break
            has_ended = not data
            self._unread += data
        if has_ended and b"\n" not in self._unread:
            raise SimulatorEnded(self._end())
        *lines, rest = bytes(self._unread).split(b"\n") if b"\n" in self._unread else (self._unread,)
        self._unread = bytearray(rest)
        if len(self._unread) > LINE_BYTES:
            raise SimulatorEnded(f"wrote a line of more than {LINE_BYTES} bytes")
        return [bytes(line) for line in lines]

    def close(self) -> None:
        """Kill it, and whatever it has started in its session."""
        self._kill()
        registered = (self._output, self._errors, *((self._input,) if self._unsent else ()))
        for descriptor in registered:
            self._selector.unregister(descriptor)
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert stream
            with contextlib.suppress(BrokenPipeError):
                stream.close()

    @property
    def last_words(self) -> str:
        """The last line that it wrote on standard error."""
        lines = plain(self._said.decode(errors="replace")).strip().splitlines()
        return lines[-1] if lines else "it said nothing"

    def _write(self) -> None:
        if not self._unsent:
            return
        try:
            del self._unsent[: os.write(self._input, self._unsent)]
        except BlockingIOError:
            return
        except BrokenPipeError:  # the end of its output says so, too
            self._unsent.clear()
        if not self._unsent:
            self._selector.unregister(self._input)

    def _listen(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self._errors, READ_BYTES):
                self._said = (self._said + data)[-STDERR_TAIL_BYTES:]

    def _kill(self) -> int:
        """Its status. Its number is another's when it has been awaited."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        return self._process.wait()

    def _end(self) -> str:
        """How it ended: when its output did, it has ended, or is made to."""
        status = self._kill()
        self._listen()
        how = signal.Signals(-status).name if status < 0 else f"status {status}"
        return f"ended with {how}: {self.last_words}"
