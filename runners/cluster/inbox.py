"""The requests to a worker, and the process through which they come: kept running while the worker runs."""

import contextlib
import os
import queue
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from pydantic import ValidationError

from fecbench.complaint import complaint
from fecbench.runners.cluster import messages
from fecbench.runners.cluster.address import Place
from fecbench.runners.cluster.dask_worker import CONNECTED, THREADS, Line
from fecbench.runners.cluster.messages import Answer, Proposal
from fecbench.runners.cluster.messenger import LINE_BYTES, Quarters, last_words

MODULE = "fecbench.runners.cluster.dask_worker"
"""The program of the messenger."""
AGAIN_S = 2.0
"""Time between two attempts to reach a scheduler that is gone."""
END_S = 5.0


@dataclass(frozen=True)
class Asked:
    """A proposal, and where its answer goes."""

    proposal: Proposal
    number: int
    process: "subprocess.Popen[bytes]"


class Inbox:
    """A context manager: at its end the connection to the scheduler is closed."""

    def __init__(self, place: Place, host: str, tell: Callable[[str], None]) -> None:
        """`tell` is given a line when the connection comes or goes."""
        self._place = place
        self._host = host
        self._tell = tell
        self._asked: queue.Queue[Asked] = queue.Queue(THREADS)
        self._put_back: Asked | None = None
        self._writing = threading.Lock()
        self._over = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._quarters = Quarters(place, MODULE)

    def __enter__(self) -> Self:
        self._quarters.__enter__()
        self._keeper = threading.Thread(target=self._keep, name="messenger", daemon=True)
        self._keeper.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._process is not None:
            self._process.kill()
        self._keeper.join(END_S)
        self._quarters.__exit__(kind, error, trace)

    def get(self, wait_s: float | None = 0.0) -> Asked | None:
        """The next proposal; None when none comes within that time (None: wait for ever)."""
        if self._put_back is not None:
            asked, self._put_back = self._put_back, None
            return asked
        try:
            return self._asked.get(timeout=wait_s) if wait_s != 0 else self._asked.get_nowait()
        except queue.Empty:
            return None

    def put_back(self, asked: Asked) -> None:
        """Have it be the next one again."""
        self._put_back = asked

    def answer(self, asked: Asked, answer: Answer) -> None:
        """Answer a request. If its connection is gone meanwhile, it will be asked again."""
        with contextlib.suppress(ValueError):
            self._write(asked.process, asked.number, answer)

    def _keep(self) -> None:
        """Runs a messenger after another, until the end."""
        was_told = False
        while not self._over.is_set():
            why, was_connected = self._run_one()
            if self._over.is_set():
                return
            if was_connected or not was_told:
                self._tell(f"no connection to {self._place.address}: {why}; trying again until it is there")
                was_told = True
            self._over.wait(AGAIN_S)

    def _run_one(self) -> tuple[str, bool]:
        """Run a messenger; return why it has ended, and whether it had reached the scheduler."""
        process = self._quarters.start(f"{self._host}-{os.getpid()}-{time.monotonic_ns()}")
        self._process = process
        assert process.stdin and process.stdout and process.stderr
        was_connected = False
        while text := process.stdout.readline(LINE_BYTES):
            line = self._line(text)
            if line is None:
                process.kill()
                break
            if line.number == CONNECTED:
                was_connected = True
                self._tell(f"connected to {self._place.address}")
            else:
                self._hear(line, process)
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        words = last_words(process)
        with self._writing, contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        process.stdout.close()
        process.stderr.close()
        return words, was_connected

    def _line(self, text: bytes) -> Line | None:
        """None for what is none, and for one that is too long."""
        try:
            return Line.model_validate_json(text)
        except ValidationError:
            self._tell(f"the messenger said what is no proposal: {text[:80]!r}")
            return None

    def _hear(self, line: Line, process: "subprocess.Popen[bytes]") -> None:
        try:
            proposal = messages.PROPOSALS.validate_json(line.text)
        except ValidationError as error:
            why = f"the proposal cannot be read, as one of another version: {complaint(error)}"
            self._write(process, line.number, Answer(host=self._host, refused=why))
        else:
            self._asked.put(Asked(proposal, line.number, process))

    def _write(self, process: "subprocess.Popen[bytes]", number: int, answer: Answer) -> None:
        line = Line(number=number, text=answer.model_dump_json()).model_dump_json()
        assert process.stdin
        with self._writing, contextlib.suppress(BrokenPipeError):
            process.stdin.write(line.encode() + b"\n")
            process.stdin.flush()
