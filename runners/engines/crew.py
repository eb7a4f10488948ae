"""The worker processes of a campaign: hands out tasks and yields outcomes as they come, in one thread."""

import contextlib
import math
import os
import select
import selectors
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic import ValidationError

from fecbench.checkout import REPOSITORY
from results.store.records import TrialKey
from runners.engines.admission import Ended, Jobs, admission
from runners.engines.worker import MARGIN_S
from runners.trial.task import Outcome, Task

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
    begun: float  # seconds of the monotonic clock
    duration_s: float
    cpu_s: float  # of all processes that were awaited, 0 when the worker was lost
    trials_at_once: int  # most that ran during this one, itself included


class Worker:
    """One worker process and the task that it is at."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "runners.engines.worker", str(os.getpid())],
            cwd=REPOSITORY,
            # Mininet imports distutils, and setuptools' stand-in for it takes 50 ms to load.
            env={**os.environ, "SETUPTOOLS_USE_DISTUTILS": "stdlib"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # a Ctrl-C is for the harness alone
        )
        self.key: TrialKey | None = None
        self.trials_at_once = 0
        self._task: Task | None = None
        self._begun_at = 0.0
        self._begun = 0.0
        self._cpu_s_before = 0.0
        self._answer = bytearray()

    @property
    def stdout(self) -> int:
        assert self.process.stdout
        return self.process.stdout.fileno()

    @property
    def task(self) -> Task:
        assert self._task
        return self._task

    @property
    def overdue_at(self) -> float:
        """When its trial, which limits itself, must have answered; seconds of the monotonic clock."""
        return self._begun + self.task.timeout_s + 2 * MARGIN_S

    def give(self, key: TrialKey, task: Task) -> None:
        assert self.process.stdin
        self.key, self._task = key, task
        self._begun_at, self._begun = time.time(), time.monotonic()
        self._cpu_s_before = cpu_s_of_children(self.process.pid)
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
        assert self.key
        finished = Finished(
            key=self.key,
            task=self.task,
            outcome=outcome,
            begun_at=self._begun_at,
            begun=self._begun,
            duration_s=time.monotonic() - self._begun,
            cpu_s=max(0.0, cpu_s_of_children(self.process.pid) - self._cpu_s_before),
            trials_at_once=self.trials_at_once,
        )
        self.key = self._task = None
        return finished


class Crew:
    """A worker for each trial that may run at a time. A context manager: at its end no worker is left."""

    def __init__(self, jobs: Jobs) -> None:
        self._admission = admission(jobs)
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
            yield from self._wait(self.fill())

    def fill(self) -> float:
        """Hand tasks out while another trial may begin; the seconds until the next one perhaps may."""
        while self._pending:
            wait_s = self._admission.wait_s(self._pending[0][1], [worker.task for worker in self.busy])
            if wait_s > 0:
                return wait_s
            worker = self._idle.pop() if self._idle else Worker()
            self.busy.append(worker)
            worker.trials_at_once = 0
            worker.give(*self._pending.popleft())
            for each in self.busy:
                each.trials_at_once = max(each.trials_at_once, len(self.busy))
            self._admission.began()
        return math.inf

    def judged(self, finished: Finished, *, valid: bool) -> None:
        """Tell what was found of a trial: how many may run at once depends on it."""
        overhead_s = finished.duration_s - finished.outcome.phases_s.get("client", 0.0)
        self._admission.ended(
            Ended(
                finished.task,
                finished.begun,
                finished.duration_s,
                finished.cpu_s,
                overhead_s,
                disturbed=not valid,
            )
        )

    def _wait(self, limit_s: float) -> list[Finished]:
        """What has ended when a worker has something to say or is overdue, or when the limit has passed."""
        overdue_s = min(worker.overdue_at for worker in self.busy) - time.monotonic()
        with selectors.DefaultSelector() as selector:
            for worker in self.busy:
                selector.register(worker.stdout, selectors.EVENT_READ, worker)
            ready = [key.data for key, _ in selector.select(max(0.0, min(overdue_s, limit_s)))]
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


def cpu_s_of_children(process: int) -> float:
    """The CPU time of the descendants of a process that it and they have awaited; 0 when it has ended."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    user, system = stat.rpartition(")")[2].split()[13:15]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
