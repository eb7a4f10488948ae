"""The worker processes of a campaign: hands out tasks and yields outcomes as they come, in one thread."""

import contextlib
import os
import select
import selectors
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from pydantic import ValidationError

from results.database import TrialKey
from runners.implementations import REPOSITORY
from runners.messages import Outcome, Task
from runners.worker import MARGIN_S

READ_BYTES = 1 << 20
STOP_LIMIT_S = 5.0
RETRY_AFTER_TRIALS = 10


@dataclass(frozen=True)
class Finished:
    """A task that has been run: its outcome, and the seconds from its handing out to its answer."""

    key: TrialKey
    task: Task
    outcome: Outcome
    begun_at: float  # seconds since the epoch
    duration_s: float


class Worker:
    """One worker process and the task that it is at."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "runners.worker", str(os.getpid())],
            cwd=REPOSITORY,
            # Mininet imports distutils, and setuptools' stand-in for it takes 50 ms to load.
            env={**os.environ, "SETUPTOOLS_USE_DISTUTILS": "stdlib"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # a Ctrl-C is for the harness alone
        )
        self.key: TrialKey | None = None
        self._task: Task | None = None
        self._begun_at = 0.0
        self._begun = 0.0
        self._answer = bytearray()

    @property
    def stdout(self) -> int:
        assert self.process.stdout
        return self.process.stdout.fileno()

    @property
    def overdue_at(self) -> float:
        """When its trial, which limits itself, must have answered; seconds of the monotonic clock."""
        assert self._task
        return self._begun + self._task.timeout_s + 2 * MARGIN_S

    def give(self, key: TrialKey, task: Task) -> None:
        assert self.process.stdin
        self.key, self._task = key, task
        self._begun_at, self._begun = time.time(), time.monotonic()
        self._answer.clear()
        with contextlib.suppress(BrokenPipeError):  # it has ended: the end of its output says so, too
            self.process.stdin.write(task.model_dump_json().encode() + b"\n")
            self.process.stdin.flush()

    def read(self) -> Finished | None:
        """What it finished, once its answer is complete; a worker that has ended gives a failure."""
        data = os.read(self.stdout, READ_BYTES)
        if not data:
            return self.lost(f"the worker ended with {self.process.wait()} before it answered")
        self._answer += data
        if not data.endswith(b"\n"):
            return None
        try:
            return self._finished(Outcome.model_validate_json(self._answer))
        except ValidationError as error:
            return self.lost(f"the worker's answer cannot be read: {error.errors()[0]['msg']}")

    def lost(self, why: str) -> Finished:
        """Give its trial up, and kill it."""
        self.stop()
        return self._finished(Outcome(failure=why))

    def stop(self) -> None:
        """Kill the worker; the trial that it runs is killed with it, and has ended when this returns."""
        self.process.kill()
        self.process.wait()
        # The trial's first process holds the same standard output, so its end is the trial's.
        deadline = time.monotonic() + STOP_LIMIT_S
        while select.select([self.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
            if not os.read(self.stdout, READ_BYTES):
                break
        for stream in (self.process.stdin, self.process.stdout):
            if stream:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()

    def _finished(self, outcome: Outcome) -> Finished:
        assert self.key and self._task
        finished = Finished(self.key, self._task, outcome, self._begun_at, time.monotonic() - self._begun)
        self.key = self._task = None
        return finished


class Crew:
    """Up to `jobs` workers at a time. A context manager: at its end no worker is left."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._idle: list[Worker] = []
        self.busy: list[Worker] = []
        self._pending: deque[tuple[TrialKey, Task]] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._idle + self.busy:
            worker.stop()

    def add(self, key: TrialKey, task: Task) -> None:
        """Run this task after all others."""
        self._pending.append((key, task))

    def add_soon(self, key: TrialKey, task: Task) -> None:
        """Run this task after a few others: what disturbed it may have passed by then."""
        self._pending.insert(RETRY_AFTER_TRIALS, (key, task))

    def results(self) -> Iterator[Finished]:
        """Run all tasks, those added meanwhile included, and yield each as it ends."""
        while self._pending or self.busy:
            self.fill()
            yield from self._wait()

    def fill(self) -> None:
        """Hand tasks out while a worker is free."""
        while self._pending and len(self.busy) < self._jobs:
            worker = self._idle.pop() if self._idle else Worker()
            self.busy.append(worker)
            worker.give(*self._pending.popleft())

    def _wait(self) -> list[Finished]:
        """What has ended when at least one worker has something to say or is overdue."""
        limit = min(worker.overdue_at for worker in self.busy) - time.monotonic()
        with selectors.DefaultSelector() as selector:
            for worker in self.busy:
                selector.register(worker.stdout, selectors.EVENT_READ, worker)
            ready = [key.data for key, _ in selector.select(max(0.0, limit))]
        finished = [result for worker in ready if (result := worker.read())]
        now = time.monotonic()
        for worker in self.busy:
            if worker.key and worker.overdue_at < now:
                finished.append(worker.lost("the worker did not answer in time"))
        for worker in [worker for worker in self.busy if worker.key is None]:
            self.busy.remove(worker)
            if worker.process.poll() is None:
                self._idle.append(worker)
        return finished
