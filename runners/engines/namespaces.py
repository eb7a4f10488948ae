"""The engine of this machine: workers, each of which runs a trial at a time in namespaces of its own.

One thread assigns tasks and yields outcomes as they arrive.
"""

import contextlib
import math
import os
import select
import selectors
import shutil
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic import ValidationError

from fecbench.checkout import REPOSITORY
from fecbench.results.store.records import TrialKey
from fecbench.runners import scratch
from fecbench.runners.engines.admission import Ended, Jobs, admission
from fecbench.runners.engines.engine import Finished
from fecbench.runners.engines.trial_worker import ANSWER_LINES, MARGIN_S, Order, outcome_in
from fecbench.runners.tasks.outcome import Outcome
from fecbench.runners.tasks.task import Task
from fecbench.runners.trial import certificates, cgroup
from fecbench.runners.trial.assignment import SERVER_NAME
from fecbench.runners.trial.site import Bundles, Commands, Site

READ_BYTES = 1 << 20
STOP_LIMIT_S = 5.0
RETRY_AFTER_TRIALS = 10


@dataclass
class Job:
    """A trial that a worker runs."""

    key: TrialKey
    order: Order
    begun_at: float
    """Seconds since the epoch."""
    begun: float
    """Seconds of the monotonic clock."""
    cpu_s_before: float
    trials_at_once: int = 1

    @property
    def task(self) -> Task:
        return self.order.task

    @property
    def overdue_at(self) -> float:
        """Moment by which its trial, which limits itself, must have answered; s of the monotonic clock."""
        return self.begun + self.task.timeout_s + 2 * MARGIN_S


@dataclass(frozen=True)
class Return:
    """A job that has ended."""

    job: Job
    outcome: Outcome
    duration_s: float
    cpu_s: float
    """Time of a processor of all processes that were awaited; 0 when the worker was lost."""


class Worker:
    """A worker process and its current job."""

    def __init__(self, harness: str) -> None:
        """`harness` is the name of its folder; the worker names what it makes after it."""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "fecbench.runners.engines.trial_worker", str(os.getpid()), harness],
            cwd=REPOSITORY,
            # Mininet imports distutils, and setuptools' stand-in for it takes 50 ms to load.
            env={**os.environ, "SETUPTOOLS_USE_DISTUTILS": "stdlib"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # a Ctrl-C is for the harness alone
        )
        self._job: Job | None = None
        self._answer = bytearray()

    @property
    def stdout(self) -> int:
        assert self.process.stdout
        return self.process.stdout.fileno()

    @property
    def is_idle(self) -> bool:
        return self._job is None

    @property
    def job(self) -> Job:
        assert self._job
        return self._job

    def give(self, key: TrialKey, order: Order) -> None:
        assert self.process.stdin
        cpu_s = _cpu_s_of_children(self.process.pid)
        self._job = Job(key, order, time.time(), time.monotonic(), cpu_s)
        self._answer.clear()
        with contextlib.suppress(BrokenPipeError):  # it has ended: the end of its output says so, too
            self.process.stdin.write(order.model_dump_json().encode() + b"\n")
            self.process.stdin.flush()

    def read(self) -> Return | None:
        """Return its result once the answer is complete, or a failure if the worker has ended."""
        data = os.read(self.stdout, READ_BYTES)
        if not data:
            return self.lost(f"the worker ended with {self.process.wait()} before it answered")
        self._answer += data
        if self._answer.count(b"\n") < ANSWER_LINES:
            return None
        try:
            return self._return(outcome_in(bytes(self._answer)))
        except ValidationError as error:
            return self.lost(f"the worker's answer cannot be read: {error.errors()[0]['msg']}")

    def lost(self, why: str) -> Return:
        """Abandon its trial, and kill it."""
        self.stop()
        return self._return(Outcome(failure=why))

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

    def _return(self, outcome: Outcome) -> Return:
        job, self._job = self.job, None
        cpu_s = max(0.0, _cpu_s_of_children(self.process.pid) - job.cpu_s_before)
        return Return(job, outcome, time.monotonic() - job.begun, cpu_s)


class NamespaceEngine:
    """A worker for each trial that may run at a time (`Engine`)."""

    deterministic = False

    def __init__(
        self,
        jobs: Jobs,
        commands: Commands,
        implementations: Mapping[str, Path] | None = None,
        bundles: Bundles | None = None,
        *,
        ahead: bool = False,
    ) -> None:
        """`implementations` has the folder of each that `commands` starts, `bundles` those that have one.
        Endpoints run `ahead` of ordinary programs, where that is granted."""
        self._commands = commands
        self._implementations = implementations or {}
        self._bundles = bundles or {}
        self._ahead = ahead
        self._admission = admission(jobs, ahead=ahead)
        self._idle: list[Worker] = []
        self.busy: list[Worker] = []
        self._next: tuple[TrialKey, Task] | None = None
        self._again: deque[tuple[int, TrialKey, Task]] = deque()
        self._begun = 0
        self._returns: dict[TrialKey, Return] = {}
        self._resources = contextlib.ExitStack()

    def __enter__(self) -> Self:
        cgroup.remove_abandoned()
        self._folder = self._resources.enter_context(scratch.folder())
        certificates.write_each(self._folder, SERVER_NAME)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._idle + self.busy:
            worker.stop()
        cgroup.remove(self._folder.name)
        self._resources.close()

    def run(self, tasks: Iterable[tuple[TrialKey, Task]]) -> Iterator[Finished]:
        waiting = iter(tasks)
        while (wait_s := self._hand_out(waiting)) < math.inf or self.busy:
            for done in self._wait(wait_s):
                self._returns[done.job.key] = done
                yield _finished(done)

    def again(self, key: TrialKey, task: Task) -> None:
        self._again.append((self._begun + RETRY_AFTER_TRIALS, key, task))

    def judged(self, finished: Finished, *, valid: bool) -> None:
        done = self._returns.pop(finished.key)
        shutil.rmtree(done.job.order.site.folder, ignore_errors=True)  # absent when the trial did not begin
        self._admission.ended(
            Ended(
                task=finished.task,
                begun=done.job.begun,
                duration_s=done.duration_s,
                cpu_s=done.cpu_s,
                disturbed=not valid,
            )
        )

    def _hand_out(self, waiting: Iterator[tuple[TrialKey, Task]]) -> float:
        """Assign tasks while another trial may begin. Return the seconds until the next one may; infinity if
        a running trial must end first, or no task remains."""
        while upcoming := self._upcoming(waiting):
            key, task = upcoming
            wait_s = self._admission.wait_s(task, [worker.job.task for worker in self.busy])
            if wait_s > 0:
                self._next = upcoming
                return wait_s
            worker = self._idle.pop() if self._idle else Worker(self._folder.name)
            self.busy.append(worker)
            worker.give(key, self._order(task))
            for other in self.busy:
                other.job.trials_at_once = max(other.job.trials_at_once, len(self.busy))
            self._admission.began()
        return math.inf

    def _upcoming(self, waiting: Iterator[tuple[TrialKey, Task]]) -> tuple[TrialKey, Task] | None:
        """Return the next task, if there is one; a repeated task goes first when it is due."""
        if self._next is not None:
            upcoming, self._next = self._next, None
            return upcoming
        if self._again and self._again[0][0] <= self._begun:
            return self._again.popleft()[1:]
        following = next(waiting, None)
        if following is None and self._again:
            return self._again.popleft()[1:]
        return following

    def _order(self, task: Task) -> Order:
        self._begun += 1
        folder = self._folder / f"trial-{self._begun}"
        used = {end.implementation for pair in task.pairs for end in (pair.client, pair.server)}
        site = Site(
            commands={name: self._commands[name] for name in used},
            implementations={name: path for name, path in self._implementations.items() if name in used},
            bundles={name: bundle for name, bundle in self._bundles.items() if name in used},
            certificates=self._folder,
            folder=folder,
        )
        return Order(task=task, site=site, ahead=self._ahead)

    def _wait(self, limit_s: float) -> list[Return]:
        """Return the results when a worker answers or is overdue, or when the limit has passed."""
        overdue_s = min(worker.job.overdue_at for worker in self.busy) - time.monotonic()
        with selectors.DefaultSelector() as selector:
            for worker in self.busy:
                selector.register(worker.stdout, selectors.EVENT_READ, worker)
            ready: list[Worker] = [key.data for key, _ in selector.select(max(0.0, min(overdue_s, limit_s)))]
        returns = [done for worker in ready if (done := worker.read())]
        now = time.monotonic()
        for worker in self.busy:
            if not worker.is_idle and worker.job.overdue_at < now:
                returns.append(worker.lost("the worker did not answer in time"))
        for worker in [worker for worker in self.busy if worker.is_idle]:
            self.busy.remove(worker)
            if worker.process.poll() is None:
                self._idle.append(worker)
        return returns


def _finished(done: Return) -> Finished:
    job = done.job
    folder = job.order.site.folder
    return Finished(
        key=job.key,
        task=job.task,
        outcome=done.outcome,
        begun_at=job.begun_at,
        duration_s=done.duration_s,
        trials_at_once=job.trials_at_once,
        folder=folder if folder.is_dir() else None,
    )


def _cpu_s_of_children(process: int) -> float:
    """The CPU time of the descendants of a process that it and they have awaited; 0 when it has ended."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    user, system = stat.rpartition(")")[2].split()[13:15]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
