"""Engines that run the trials of a campaign: one small interface, and its results.

A campaign, the judge and the database know nothing else of where and how a trial is run. An engine decides
how many trials run at a time, and where; it makes certificates and folders itself, and leaves nothing behind.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from fecbench.errors import Failed
from fecbench.results.store.records import TrialKey
from fecbench.runners.tasks.outcome import Outcome
from fecbench.runners.tasks.task import Task


@dataclass(frozen=True)
class Finished:
    """A task that was carried out."""

    key: TrialKey
    task: Task
    outcome: Outcome
    begun_at: float
    """Seconds since the epoch."""
    duration_s: float
    """Time from the order to the answer."""
    trials_at_once: int
    """Greatest number of trials that ran at a time during this one, itself included."""
    folder: Path | None
    """Folder of its files on this machine, until `judged` is called; None: they are not here."""

    @property
    def overhead_s(self) -> float:
        """Duration without the client's own time."""
        return self.duration_s - self.outcome.phases_s.get("client", 0.0)


class EngineError(Failed):
    """The reason, in one line, why an engine cannot go on."""


class Engine(Protocol):
    """A context manager: at its end nothing runs any more."""

    @property
    def deterministic(self) -> bool:
        """Whether a task ends in the same way each time. If so, no task is run again, and an outcome that is
        lost before it is stored costs only time."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def run(self, tasks: Iterable[tuple[TrialKey, Task]]) -> Iterator[Finished]:
        """Carry out all tasks, each taken when it may begin, and those of `again`; yield each as it ends."""

    def again(self, key: TrialKey, task: Task) -> None:
        """Carry this task out again after a few others, when a disturbance may be over."""

    def judged(self, finished: Finished, *, valid: bool) -> None:
        """Release the trial's folder. How many trials run at a time may depend on `valid`."""
