"""Shows how a comparison of two builds goes on: one bar from its beginning to the end of its time, with the
ratio so far and when it may be decided."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from rich.progress import BarColumn, ProgressColumn, TextColumn

from fecbench.looks import looks_of_builds
from fecbench.quantities import counted
from fecbench.results.analysis.intervals import LEVEL
from fecbench.results.gate.overall import Ratio, pairs_of, ratio_of, read
from fecbench.results.gate.verdict import margins_for, shown
from fecbench.results.store.database import Database
from fecbench.runners.commands.console.progress import Reporter
from fecbench.runners.commands.console.terminal import one_line
from fecbench.runners.commands.console.time_left import duration

TELL_S = 10.0
"""Time between two lines, at least, without a terminal."""


class GateReporter(Reporter):
    """A reporter of one bar. Trials that are not ok have a line each."""

    def __init__(
        self, database: Database, limit_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(each=False)
        self._database = database
        self._limit_s = limit_s
        self._clock = clock
        self._began = self._line_at = clock()
        self._campaign = ""
        self._standing = "no pair yet"

    def _columns(self) -> list[ProgressColumn]:
        return [
            BarColumn(20),
            TextColumn("{task.fields[standing]}", markup=False),
        ]

    def _announce(self, campaign: str, trials: int) -> None:
        self._campaign = campaign
        already = f"; {counted(trials, 'trial', 'is/are')} there already" if trials else ""
        self._say(f"campaign {campaign}: until it is decided, {duration(self._limit_s)} at most{already}")
        self._bar.start()
        self._bar.add_task(one_line(campaign), total=self._limit_s, standing=self._text())

    def more(self, trials: int, why: str) -> None:  # noqa: ARG002 - a lot is of no interest
        """Called between two lots of trials."""
        self._standing = standing(self._database, self._campaign, self._clock() - self._began)
        if not self._console.is_terminal and self._clock() - self._line_at >= TELL_S:
            self._line_at = self._clock()
            self._say(self._text())
        self._move(0, "")

    def elsewhere(self, trials: int) -> None:
        """Another harness has run so many of the trials: they count as any."""

    def _is_due(self, count: int) -> bool:  # noqa: ARG002 - no line for a trial that is ok
        return False

    def _line(self, count: int, rest: str, trial: str) -> str:  # noqa: ARG002 - others are to come
        return trial

    def _move(self, count: int, rest: str) -> None:  # noqa: ARG002 - time is what the bar shows
        for task in self._bar.tasks:
            self._bar.update(task.id, completed=self._clock() - self._began, standing=self._text())

    def _text(self) -> str:
        left_s = max(0.0, self._limit_s - (self._clock() - self._began))
        return f"{self._standing}; {duration(left_s)} left at most"


def standing(database: Database, campaign: str, took_s: float) -> str:
    """Return how many pairs there are, their ratio so far, and when it may be decided, in words."""
    info = database.campaign(campaign)
    if info is None:
        return "no pair yet"
    pairs = pairs_of(read(database, info), info)
    if pairs.empty:
        return "no pair yet"
    ratio = ratio_of(pairs, LEVEL)
    places = len(info.points) * len(info.workloads)
    repetitions = len(pairs) / places
    look = next_look(ratio, margins_for(info).overall, repetitions, looks_of_builds(info.repetitions))
    when = "not decided by its repetitions"
    if look is not None:
        when = f"decides in about {duration(took_s * (look / repetitions - 1))}"
    return f"{counted(len(pairs), 'pair')}, new / old = {shown(ratio)}, {when}"


def next_look(ratio: Ratio, margin: float, repetitions: float, looks: tuple[int, ...]) -> int | None:
    """Return the number of repetitions at which the ratio over all networks is decided if its interval
    shrinks as the root of their number, so that it has neither end of the margin within. None: at no look."""
    ahead = [look for look in looks if look > repetitions]
    if math.isnan(ratio.low):
        return ahead[0] if ahead else None
    value, half = math.log(ratio.value), math.log(ratio.high / ratio.low) / 2
    distance = abs(abs(value) - math.log1p(margin))
    needed = repetitions * (half / distance) ** 2 if distance else math.inf
    return next((look for look in ahead if look >= needed), None)
