"""A running simulator: lines are sent to it and received from it, and the harness never waits for it."""

import contextlib
import os
import select
import selectors
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from fecbench.checkout import REPOSITORY
from fecbench.runners.engines.launcher import COMMAND, Order
from fecbench.runners.sandbox import rights
from fecbench.runners.trial.endpoint import STDERR_TAIL_BYTES
from fecbench.runners.trial.plain_text import plain

READ_BYTES = 1 << 20
END_LIMIT_S = 1.0
"""Longest time from the end of its output to its own end."""
LINE_BYTES = 64 << 20
"""Greatest length of an answer. Endpoints that obey the contract need less than half of it: four messages of
64 KiB and their standard errors, two records of 2²⁰ verdicts and times of arrival."""


class SimulatorEnded(Exception):
    """The end of a simulator, in one line."""


class NotStarted(SimulatorEnded):
    """The harness could not start it: nothing is known of the simulator itself."""


class Simulator:
    """One process. Its selector tells when `step` has something to do; closed, it does not run any more."""

    def __init__(
        self,
        command: Sequence[str],
        implementation: Path,
        folder: Path,
        cgroup: str,
        selector: selectors.BaseSelector,
        papers: Sequence[Path] = (),
    ) -> None:
        """`folder` is the one that it can write to, and `papers` are files that it is to read. The name of
        its cgroup begins with `cgroup`."""
        reading, writing = os.pipe()
        order = Order(
            command=list(command),
            implementation=implementation,
            folder=folder,
            cgroup=cgroup,
            papers=list(papers),
            harness=os.getpid(),
            complaint=writing,
        )
        self._process = subprocess.Popen(
            [*COMMAND, order.written()],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=[writing],
            start_new_session=True,  # a Ctrl-C is for the harness alone
        )
        os.close(writing)
        os.set_blocking(reading, False)
        self._complaint = os.fdopen(reading, "rb")
        self.folder = folder
        self.user = rights.own_user(self._process.pid)
        """User that it runs as; None: that of the harness."""
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
        self._is_full = False
        """Whether the selector waits until it takes more."""
        self._unread = bytearray()
        self._said = b""

    def send(self, line: bytes) -> None:
        """Queue a line for it to read."""
        self._unsent += line
        self._write()

    def step(self) -> list[bytes]:
        """Write what it takes; the lines that it has answered since, of one read: it may write without end.

        Raises SimulatorEnded when it has ended, and has answered nothing more before.
        """
        self._write()
        self._listen()
        try:
            data = os.read(self._output, READ_BYTES)
        except BlockingIOError:
            return []
        if not data:
            how = self._end()
            why = (self._complaint.read() or b"").decode(errors="replace")
            raise NotStarted(plain(why)) if why else SimulatorEnded(how)
        *lines, rest = data.split(b"\n")
        if lines:
            lines[0] = bytes(self._unread + lines[0])
            self._unread.clear()
        self._unread += rest
        if max(map(len, (self._unread, *lines))) > LINE_BYTES:
            raise SimulatorEnded(f"wrote a line of more than {LINE_BYTES} bytes")
        return lines

    def close(self) -> None:
        """Kill it, and whatever it has started in its session."""
        self._kill()
        for descriptor in (self._input, self._output, self._errors):
            if descriptor in self._selector.get_map():
                self._selector.unregister(descriptor)
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr, self._complaint):
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
            pass
        except BrokenPipeError:  # the end of its output says so, too
            self._unsent.clear()
        if self._is_full == bool(self._unsent):
            return
        self._is_full = not self._is_full
        if self._is_full:
            self._selector.register(self._input, selectors.EVENT_WRITE, self)
        else:
            self._selector.unregister(self._input)

    def _listen(self) -> None:
        """Read its standard error as far as it is there: all that a pipe holds."""
        with contextlib.suppress(BlockingIOError):
            data = os.read(self._errors, READ_BYTES)
            self._said = (self._said + data)[-STDERR_TAIL_BYTES:]
            if not data and self._errors in self._selector.get_map():  # closed: it would be ready for ever
                self._selector.unregister(self._errors)

    def _kill(self) -> int:
        """Kill it and return its status. Once it is awaited, its number may be another's."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        return self._process.wait()

    def _end(self) -> str:
        """Return how it ended: a moment after its output did, or by a kill."""
        if self._process.returncode is None:
            with os.fdopen(os.pidfd_open(self._process.pid), "rb") as ending:
                select.select([ending], [], [], END_LIMIT_S)
        status = self._kill()
        self._listen()
        how = signal.Signals(-status).name if status < 0 else f"status {status}"
        return f"ended with {how}: {self.last_words}"
