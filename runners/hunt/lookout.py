"""The looks of a hunt, one after another: each is numbered, has seeds of its own, and is counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from fecbench.quantities import counted
from fecbench.runners.hunt.budget import ARMS, Budget
from fecbench.runners.hunt.measured import Judging
from fecbench.runners.hunt.space import Network


@dataclass(frozen=True)
class Look:
    """Networks that are to be measured together."""

    number: int
    """Number within the hunt, from 0: it decides the seeds of the trials."""
    name: str
    networks: Sequence[Network]
    """Each of them once."""
    repetitions: int
    noise_ms: float = 0.0
    """Mean noise of the delay that links have besides what the design says; 0: none."""


class TimeIsOver(Exception):
    """Raised by a laboratory that may not measure a look to its end."""


Outcome = TypeVar("Outcome", bound=Judging, covariant=True)
Laboratory = Callable[[Look], Outcome]
"""A function that runs the trials of a look."""


class Lookout(Generic[Outcome]):
    """Hands looks to a laboratory, and counts what is left of the budget."""

    def __init__(
        self, laboratory: Laboratory[Outcome], budget: Budget, tell: Callable[[str], None] = lambda _: None
    ) -> None:
        self._laboratory = laboratory
        self._budget = budget
        self._tell = tell
        self._looks = 0
        self._pairs = 0

    @property
    def trials(self) -> int:
        """Number of trials that were looked at."""
        return ARMS * self._pairs

    @property
    def left(self) -> int:
        """Number of pairs that may still be run."""
        return self._budget.pairs - self._pairs

    def look(
        self, name: str, networks: Sequence[Network], repetitions: int, noise_ms: float = 0.0
    ) -> Outcome:
        """Measure these networks, each of them once, over so many repetitions that no look had before."""
        count = len(networks)
        many = f"{counted(count, 'network')}, {counted(repetitions, 'repetition')}"
        self._tell(f"{name}: {many}")
        measured = self._laboratory(Look(self._looks, name, networks, repetitions, noise_ms))
        self._looks += 1
        self._pairs += count * repetitions
        return measured
