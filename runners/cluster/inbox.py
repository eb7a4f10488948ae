"""What a worker is asked, and the process through which it is asked: kept running while the worker runs."""

import contextlib
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic import ValidationError

from fecbench.checkout import REPOSITORY
from runners import scratch
from runners.cluster import messages
from runners.cluster.address import Place
from runners.cluster.messages import Answer, Proposal
from runners.cluster.messenger import CONNECTED, Configuration, Line
from runners.refusal import first_problem
from runners.sandbox import rights

AGAIN_S = 2.0
"""How long a scheduler that is gone is left alone between two attempts to reach it."""
END_S = 5.0


@dataclass(frozen=True)
class Asked:
    """A proposal, and where its answer goes."""

    proposal: Proposal
    number: int
    process: "subprocess.Popen[str]"


class Inbox:
    """A context manager: at its end the connection to the scheduler is closed."""

    def __init__(self, place: Place, host: str, tell: Callable[[str], None]) -> None:
        """`tell` is given a line when the connection comes or goes."""
        self._place = place
        self._host = host
        self._tell = tell
        self._asked: queue.Queue[Asked] = queue.Queue()
        self._put_back: Asked | None = None
        self._writing = threading.Lock()
        self._over = threading.Event()
        self._process: subprocess.Popen[str] | None = None
        self._resources = contextlib.ExitStack()

    def __enter__(self) -> Self:
        self._folder = self._resources.enter_context(scratch.folder()) / "messenger"
        self._folder.mkdir(mode=0o700)
        self._user = rights.own_user(os.getpid())
        if self._user is not None:
            self._folder.parent.chmod(0o711)
            os.chown(self._folder, self._user, self._user)
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
        self._resources.close()

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
        """One whose connection is gone meanwhile is not told: it will be asked again."""
        line = Line(number=asked.number, text=answer.model_dump_json()).model_dump_json()
        assert asked.process.stdin
        with self._writing, contextlib.suppress(BrokenPipeError, ValueError):
            asked.process.stdin.write(line + "\n")
            asked.process.stdin.flush()

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
        """Why a messenger has ended, and whether it had reached the scheduler."""
        process = subprocess.Popen(
            [sys.executable, "-m", "runners.cluster.messenger"],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # a Ctrl-C is for the worker alone
        )
        self._process = process
        assert process.stdin and process.stdout and process.stderr
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(self._configuration().model_dump_json() + "\n")
            process.stdin.flush()
        was_connected = False
        for text in process.stdout:
            if text.strip() == CONNECTED:
                was_connected = True
                self._tell(f"connected to {self._place.address}")
            else:
                self._hear(text, process)
        words = process.stderr.read().strip().splitlines()
        process.wait()
        with self._writing, contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        process.stdout.close()
        process.stderr.close()
        return (words[-1] if words else f"the messenger ended with {process.returncode}"), was_connected

    def _hear(self, text: str, process: "subprocess.Popen[str]") -> None:
        try:
            line = Line.model_validate_json(text)
        except ValidationError:
            self._tell(f"the messenger said what is no proposal: {text[:80]!r}")
            process.kill()
            return
        try:
            proposal = messages.PROPOSALS.validate_json(line.text)
        except ValidationError as error:
            why = f"the proposal cannot be read, as one of another version: {first_problem(error)}"
            refused = Answer(host=self._host, refused=why)
            answer = Line(number=line.number, text=refused.model_dump_json()).model_dump_json()
            assert process.stdin
            with self._writing, contextlib.suppress(BrokenPipeError):
                process.stdin.write(answer + "\n")
                process.stdin.flush()
            return
        self._asked.put(Asked(proposal, line.number, process))

    def _configuration(self) -> Configuration:
        papers = self._place.papers
        return Configuration(
            address=self._place.address,
            authority=papers.authority if papers else "",
            certificate=papers.certificate if papers else "",
            key=papers.key if papers else "",
            name=f"{self._host}-{os.getpid()}-{time.monotonic_ns()}",
            folder=Path(self._folder),
            user=self._user,
            worker=os.getpid(),
        )
