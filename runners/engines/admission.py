"""Decides when another trial may begin beside those that run: `--jobs N`, or `--jobs auto`.

Trials wait for the network, not for the CPU, so many fit on few cores. A trial that occupies the CPU when
another one needs it changes the other's results. `Auto` therefore keeps much of the machine idle, starts
trials one after another, and admits fewer after a trial that the harness cannot vouch for. Its clock and its
machine are arguments.
"""

import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from fecbench.runners.refusal import Refusal
from fecbench.runners.sandbox import priority
from fecbench.runners.tasks.task import Task

Jobs = int | Literal["auto"]

# Trials take this share of the cores, by what they were measured to take.
# Mininet-HiFi (CoNEXT 2012) vouches for its runs when 35 % stay idle.
BUSY_SHARE = 0.65
# Nothing begins beside another trial while /proc/stat says that less is idle. It is less than what trials
# leave, for the harness: at the same bound, it would stop trials that fit, for a whole window each time.
IDLE_SHARE = 0.2
IDLE_WINDOW_S = 0.5
# More trials at once than this move the results of single trials, though the CPU would suffice.
TRIALS_PER_CORE = 6
# Cores that a trial takes before any was measured: set-up and waiting, and all that handles packets.
CORES_PER_ENDPOINT = 0.03
CORES_PER_MBPS = 0.01
# Seconds of CPU of a whole trial, the start of a worker included, before any was measured.
CPU_S = 0.6
LEARNING_RATE = 0.1
BACK_OFF = 0.6
RECOVERY = 0.02


@dataclass(frozen=True)
class Ended:
    """A trial that has ended."""

    task: Task
    begun: float
    """Moment of its begin in s, by the clock of the admission."""
    duration_s: float
    cpu_s: float
    """Time of a processor of all its processes."""
    disturbed: bool
    """Whether the harness cannot vouch for it."""


class Admission(Protocol):
    """Is asked before a trial begins, and told of all that begin and end."""

    def wait_s(self, task: Task, running: Sequence[Task]) -> float:
        """Return how long `task` must still wait: 0 when it may begin, inf until one of `running` ends."""

    def began(self) -> None: ...

    def ended(self, trial: Ended) -> None: ...


class AtMost:
    """A fixed number of trials at a time."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs

    def wait_s(self, task: Task, running: Sequence[Task]) -> float:  # noqa: ARG002
        return 0.0 if len(running) < self._jobs else math.inf

    def began(self) -> None:
        pass

    def ended(self, trial: Ended) -> None:
        pass


@dataclass(frozen=True)
class ProcessorTime:
    """Time that all cores together have spent, in any unit."""

    idle: int
    total: int


class Auto:
    """Admission of as many trials as do not disturb each other; always at least one."""

    def __init__(
        self, cores: int, clock: Callable[[], float], processor_time: Callable[[], ProcessorTime] | None
    ) -> None:
        """`processor_time` is None where endpoints run ahead of others, so that it does not matter."""
        self._cores = cores
        self._clock = clock
        self._processor_time = processor_time
        self._window_began = clock()
        self._at_window = processor_time() if processor_time else ProcessorTime(0, 0)
        self._idle_share = 1.0
        self._last_began = -math.inf
        self._cpu_s = CPU_S
        self._cost_factor = 1.0  # measured cost ÷ expected cost
        self._throttle = 1.0
        self._backed_off_at = -math.inf

    def wait_s(self, task: Task, running: Sequence[Task]) -> float:
        if not running:
            return 0.0
        if not self._fits(task, running):
            return math.inf
        return max(self._until_afforded_s(), self._until_idle_s())

    def began(self) -> None:
        self._last_began = self._clock()

    def ended(self, trial: Ended) -> None:
        measured = trial.cpu_s / trial.duration_s / expected_cores(trial.task)
        self._cost_factor += LEARNING_RATE * (measured - self._cost_factor)
        self._cpu_s += LEARNING_RATE * (trial.cpu_s - self._cpu_s)
        if not trial.disturbed:
            self._throttle = min(1.0, self._throttle + RECOVERY)
        elif trial.begun > self._backed_off_at:  # one that began earlier has been answered already
            self._throttle *= BACK_OFF
            self._backed_off_at = self._clock()

    def _fits(self, task: Task, running: Sequence[Task]) -> bool:
        cost = self._cost_factor * sum(expected_cores(trial) for trial in [task, *running])
        limit = self._throttle * self._cores
        return cost <= BUSY_SHARE * limit and len(running) + 1 <= TRIALS_PER_CORE * limit

    def _until_afforded_s(self) -> float:
        """Nearly all of a short trial's CPU is its set-up: they are spread, and not begun together."""
        cores = BUSY_SHARE * self._throttle * self._cores
        return max(0.0, self._last_began + self._cpu_s / cores - self._clock())

    def _until_idle_s(self) -> float:
        if self._processor_time is None:
            return 0.0
        now = self._clock()
        if now - self._window_began >= IDLE_WINDOW_S:
            reading = self._processor_time()
            passed = reading.total - self._at_window.total
            self._idle_share = (reading.idle - self._at_window.idle) / passed if passed else 1.0
            self._window_began, self._at_window = now, reading
        return 0.0 if self._idle_share >= IDLE_SHARE else self._window_began + IDLE_WINDOW_S - now


def expected_cores(task: Task) -> float:
    """Return the cores that a trial takes while it lasts, by the rates of its links and its endpoints.

    A link counts with the faster of its directions.
    """
    rates_mbps = (
        max(link.settings.up.rate.largest_bps, link.settings.down.rate.largest_bps) / 1e6
        for link in task.links.values()
    )
    return CORES_PER_ENDPOINT * 2 * len(task.pairs) + CORES_PER_MBPS * sum(rates_mbps)


def processor_time() -> ProcessorTime:
    """Return the times of /proc/stat. Time that a hypervisor took away is not idle."""
    fields = Path("/proc/stat").read_text(encoding="utf-8").splitlines()[0].split()[1:9]
    user, nice, system, idle, iowait, interrupt, softirq, steal = map(int, fields)
    waiting = idle + iowait
    return ProcessorTime(waiting, waiting + user + nice + system + interrupt + softirq + steal)


def parse_jobs(option: str, text: str) -> Jobs:
    """Return the number of trials at a time that a user gave. Raises Refusal that names the option."""
    if text == "auto":
        return "auto"
    if not text.isascii() or not text.isdecimal() or int(text) < 1:
        raise Refusal(f"{option} {text}: must be auto or a whole number from 1 on")
    return int(text)


def admission(jobs: Jobs, *, ahead: bool = False) -> Admission:
    """The admission that a user asked for, for this machine; if endpoints are to run `ahead` of others."""
    if jobs == "auto":
        others = None if ahead and priority.is_granted() else processor_time
        return Auto(len(os.sched_getaffinity(0)), time.monotonic, others)
    return AtMost(jobs)
