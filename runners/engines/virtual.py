"""The engine of virtual time: simulators, each of which plays one trial after another.

It needs no rights, and no machine that can keep time.

A simulator that dies, hangs or answers nonsense costs its current trial; a new simulator runs the others.
After several such failures without an answer between, the engine abandons the implementation and skips its
other tasks. It still carries out those of other implementations, and then fails with the last reason.
"""

import contextlib
import os
import selectors
import shutil
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from fecbench.results.store.records import TrialKey
from fecbench.runners import scratch, workloads
from fecbench.runners.engines.admission import Jobs
from fecbench.runners.engines.engine import EngineError, Finished
from fecbench.runners.engines.simulator import NotStarted, Simulator, SimulatorEnded
from fecbench.runners.sandbox import handed_over
from fecbench.runners.tasks import series
from fecbench.runners.tasks.outcome import Outcome
from fecbench.runners.tasks.requests import Dialogue
from fecbench.runners.tasks.series import SeriesError
from fecbench.runners.tasks.task import ROLES, VIRTUAL, Task, endpoint_name
from fecbench.runners.trial import certificates, cgroup, logs, simulation
from fecbench.runners.trial.assignment import SERVER_NAME
from fecbench.runners.trial.simulation import AnswerError, Place
from fecbench.runners.workloads import asked_series

LIMIT_S = 120.0
"""Longest silence of a simulator, by the machine's clock: after that it hangs."""
AHEAD = 8
"""Number of tasks that a simulator has at a time, so that it never waits for the harness."""
MOST_FAILURES = 10
"""Greatest number of consecutive failures of an implementation's simulators without an answer."""


@dataclass(frozen=True)
class Job:
    """A task that a simulator has."""

    key: TrialKey
    task: Task
    number: int
    place: Place
    dialogue: Dialogue | None
    """Dialogue with its client; None: the client gets no message in the course of the trial."""


@dataclass
class Seat:
    """A trial of those that run at a time: the simulators that play it, one for each implementation."""

    simulators: dict[str, Simulator] = field(default_factory=dict)
    implementation: str = ""
    """Implementation whose simulator is at work."""
    jobs: deque[Job] = field(default_factory=deque)
    """Orders of that simulator, in their order."""
    begun: float = 0.0
    """Moment at which it began with the first order; seconds of the monotonic clock."""

    @property
    def simulator(self) -> Simulator:
        """The simulator at work."""
        return self.simulators[self.implementation]

    def takes(self, implementation: str) -> bool:
        """Whether it can take a task of this implementation now."""
        return not self.jobs or (self.implementation == implementation and len(self.jobs) < AHEAD)


class VirtualEngine:
    """A simulator for each implementation and trial that may run at a time (`Engine`)."""

    deterministic = True

    def __init__(
        self, jobs: Jobs, simulators: Mapping[str, list[str]], implementations: Mapping[str, Path]
    ) -> None:
        """Take of each implementation the command that starts its simulator, and its folder."""
        self._commands = simulators
        self._implementations = implementations
        count = len(os.sched_getaffinity(0)) if jobs == "auto" else jobs
        self._seats = [Seat() for _ in range(count)]
        self._next: deque[tuple[TrialKey, Task]] = deque()
        self._begun = self._started = 0
        self._failures: dict[str, int] = {}
        """Failures of each implementation's simulators, since the last answer."""
        self._given_up: dict[str, str] = {}
        """The abandoned implementations, and the reason for each."""
        self._resources = contextlib.ExitStack()

    def __enter__(self) -> Self:
        cgroup.remove_abandoned()
        self._folder = self._resources.enter_context(scratch.folder(scratch.memory()))
        self._selector = self._resources.enter_context(selectors.DefaultSelector())
        self._resources.callback(cgroup.remove, self._folder.name)
        self._resources.callback(self._close)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._resources.close()

    def run(self, tasks: Iterable[tuple[TrialKey, Task]]) -> Iterator[Finished]:
        waiting = iter(tasks)
        while self._hand_out(waiting):
            yield from self._wait()
        if self._given_up:
            raise EngineError(f"{'; '.join(self._given_up.values())}; its other trials are left undone")

    def again(self, key: TrialKey, task: Task) -> None:
        raise NotImplementedError(f"{key}, {task.topology}: ends the same way each time")

    def judged(self, finished: Finished, *, valid: bool) -> None:  # noqa: ARG002
        if finished.folder is not None:
            shutil.rmtree(finished.folder, ignore_errors=True)  # it may have been moved away

    def _close(self) -> None:
        for seat in self._seats:
            for simulator in seat.simulators.values():
                simulator.close()
            seat.simulators.clear()

    def _hand_out(self, waiting: Iterator[tuple[TrialKey, Task]]) -> bool:
        """Assign tasks to all seats that can take one. Return whether any seat has one."""
        while upcoming := self._upcoming(waiting):
            key, task = upcoming
            implementation = task.pairs[0].client.implementation
            if implementation in self._given_up:
                continue
            seats = [seat for seat in self._seats if seat.takes(implementation)]
            if not seats:
                self._next.appendleft(upcoming)
                break
            self._give(min(seats, key=lambda seat: len(seat.jobs)), implementation, key, task)
        return any(seat.jobs for seat in self._seats)

    def _upcoming(self, waiting: Iterator[tuple[TrialKey, Task]]) -> tuple[TrialKey, Task] | None:
        """Return the next task; None if no task remains, or if each implementation is abandoned."""
        if self._given_up.keys() >= self._commands.keys():
            return None
        return self._next.popleft() if self._next else next(waiting, None)

    def _give(self, seat: Seat, implementation: str, key: TrialKey, task: Task) -> None:
        if implementation not in seat.simulators:
            seat.simulators[implementation] = self._start(implementation)
        simulator = seat.simulators[implementation]
        job = Job(key, task, self._begun, self._make_place(task, simulator), _dialogue(task))
        self._begun += 1
        if not seat.jobs:
            seat.implementation, seat.begun = implementation, time.monotonic()
        seat.jobs.append(job)
        simulator.send(simulation.line_of(task, job.number, job.place))

    def _start(self, implementation: str) -> Simulator:
        """A new simulator, with a folder and certificates of its own."""
        folder = self._folder / f"simulator-{self._started}"
        self._started += 1
        handed_over.make_folder(folder)
        certificates.write(folder, SERVER_NAME)
        simulator = Simulator(
            self._commands[implementation],
            self._implementations[implementation],
            folder,
            self._folder.name,
            self._selector,
            [folder / name for name in certificates.FOR_ALL],
        )
        if simulator.user is not None:
            key = folder / "server.key"
            os.chown(key, 0, simulator.user)
            key.chmod(0o440)
        return simulator

    def _make_place(self, task: Task, simulator: Simulator) -> Place:
        if not simulation.leaves_files(task):
            return Place(simulator.folder, simulator.folder / "none")
        place = Place(simulator.folder, simulator.folder / f"trial-{self._begun}")
        folders = [
            folder
            for pair in range(len(task.pairs))
            for folder in (place.of_pair(pair), *(place.log_folder(pair, role) for role in task.places))
        ]
        for folder in folders:
            handed_over.make_own_folder(folder)
        if simulator.user is not None:
            # From the inside out: into a folder of its own it may lay a link to something of ours.
            for folder in reversed(folders):
                os.chown(folder, simulator.user, simulator.user, follow_symlinks=False)
        return place

    def _wait(self) -> list[Finished]:
        """Return the trials that have ended when a simulator answers, or one hangs."""
        busy = [seat for seat in self._seats if seat.jobs]
        left_s = min(seat.begun for seat in busy) + LIMIT_S - time.monotonic()
        ready = {id(key.data) for key, _ in self._selector.select(max(0.0, left_s))}
        finished: list[Finished] = []
        for seat in self._seats:
            for implementation, simulator in list(seat.simulators.items()):
                if id(simulator) in ready:
                    finished += self._heard(seat, implementation, len(busy))
            if seat.jobs and seat.begun + LIMIT_S <= time.monotonic():
                why = f"did not answer within {LIMIT_S:g} s: {seat.simulator.last_words}"
                finished.append(self._failed(seat, why, len(busy)))
        return finished

    def _heard(self, seat: Seat, implementation: str, at_once: int) -> Iterator[Finished]:
        """Yield the answers of a simulator, or how it ended."""
        at_work = bool(seat.jobs) and implementation == seat.implementation
        try:
            for line in seat.simulators[implementation].step():
                if not (seat.jobs and at_work):
                    raise AnswerError(f"answered {line[:80]!r}, and was not asked")
                job = seat.jobs[0]
                if simulation.is_question(line):
                    reply = simulation.reply_to(line, job.dialogue, job.number)
                    seat.simulators[implementation].send(reply)
                    continue
                outcome = simulation.outcome_of(line, job.task, job.number)
                self._failures[implementation] = 0
                yield self._finished(seat, outcome, at_once)
        except (AnswerError, SimulatorEnded) as problem:
            if seat.jobs and at_work:
                yield self._failed(seat, str(problem), at_once, by_harness=isinstance(problem, NotStarted))
            else:
                self._drop(seat, implementation, str(problem))

    def _finished(self, seat: Seat, outcome: Outcome, at_once: int) -> Finished:
        """Finish the first job of a seat with this outcome."""
        job, now = seat.jobs.popleft(), time.monotonic()
        duration_s, seat.begun = now - seat.begun, now
        if job.dialogue is not None:
            outcome.said = job.dialogue.said
        folder = None
        if simulation.leaves_files(job.task):
            folder = self._folder / job.place.logs.name
            logs.copy(job.place.logs, folder)
            shutil.rmtree(job.place.logs, ignore_errors=True)
            _collect(job.task, Place(job.place.certificates, folder), outcome)
        return Finished(
            key=job.key,
            task=job.task,
            outcome=outcome,
            begun_at=time.time() - duration_s,
            duration_s=duration_s,
            trials_at_once=at_once,
            folder=folder,
        )

    def _failed(self, seat: Seat, why: str, at_once: int, *, by_harness: bool = False) -> Finished:
        """Fail the first job of a seat, which has no answer, perhaps `by_harness`; assign the others
        again."""
        implementation = seat.implementation
        reason = f"the simulator of {implementation} {why}"
        outcome = (
            Outcome(backend=VIRTUAL, failure=reason)
            if by_harness
            else Outcome(backend=VIRTUAL, no_answer=reason)
        )
        finished = self._finished(seat, outcome, at_once)
        for job in reversed(seat.jobs):
            self._next.appendleft((job.key, job.task))
        seat.jobs.clear()
        self._drop(seat, implementation, why)
        return finished

    def _drop(self, seat: Seat, implementation: str, why: str) -> None:
        """Drop this simulator; abandon the implementation if that has happened too often."""
        simulator = seat.simulators.pop(implementation)
        simulator.close()
        shutil.rmtree(simulator.folder, ignore_errors=True)
        self._failures[implementation] = self._failures.get(implementation, 0) + 1
        if self._failures[implementation] >= MOST_FAILURES:
            self._given_up[implementation] = (
                f"the simulator of {implementation} failed {MOST_FAILURES} times, one after another: it {why}"
            )


def _dialogue(task: Task) -> Dialogue | None:
    pair = task.pairs[0]
    conversation = workloads.of(pair.workload).conversation(pair.session)
    return None if conversation is None else Dialogue(conversation)


def _collect(task: Task, copied: Place, outcome: Outcome) -> None:
    """Take the series that endpoints left into the outcome: from our copy, in which no link leads astray."""
    for number, pair in enumerate(task.pairs):
        for role in ROLES:
            ended = outcome.endpoints.get(endpoint_name(number, role))
            # A trial that has failed owes none.
            if ended is not None and ended.metrics is not None:
                folder = copied.log_folder(number, role)
                try:
                    ended.series = series.collect(folder, asked_series(pair.end(role), pair.workload))
                except SeriesError as error:
                    ended.complaint = str(error)
