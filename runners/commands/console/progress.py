"""Shows how a campaign goes on: a bar with the time left on a terminal, one line per trial elsewhere."""

import math
import time
from collections import Counter
from collections.abc import Mapping

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)

from fecbench.quantities import counted
from fecbench.results.store.records import State, TrialKey
from fecbench.runners.commands.console.terminal import one_line
from fecbench.runners.commands.console.time_left import duration
from fecbench.runners.trial.judge import Judgement

TELL_S = 1.0
MEASURED_S = 2.0
"""Trials that end together, as those of a batch do, tell no rate; so long after them there is one."""


class Rate:
    """Rate at which trials end, since the first did: the time to begin is no measure of the rest."""

    def __init__(self) -> None:
        self._first: tuple[float, int] | None = None

    def left_s(self, now_s: float, done: int, planned: int) -> float | None:
        """The time that the rest will take if it goes on so; None while too few have ended to tell."""
        if done >= planned:
            return 0.0
        if self._first is None:
            self._first = (now_s, done)
        first_s, at_first = self._first
        if done == at_first or now_s - first_s < MEASURED_S:
            return None
        return (now_s - first_s) / (done - at_first) * (planned - done)


class Reporter:
    """Prints on standard error, so that standard output holds results alone."""

    def __init__(self, *, each: bool = True) -> None:
        """Print a line for each trial, or each second, where there is no terminal; a trial that is not ok
        always has one."""
        self._each = each
        self._told_at = -math.inf
        self._console = Console(stderr=True)
        self._bar = Progress(*self._columns(), console=self._console, disable=not self._console.is_terminal)
        self.states: Counter[str] = Counter()
        self._rate = Rate()
        self._planned = 0

    def _columns(self) -> list[ProgressColumn]:
        return [
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[states]}"),
            TimeElapsedColumn(),
            TextColumn("left: {task.fields[left]}"),
        ]

    def begun(self, campaign: str, planned: int, done: int) -> None:
        """Called once, before the first trial."""
        self._planned = planned - done
        self._announce(campaign, done)

    def _announce(self, campaign: str, trials: int) -> None:
        """Say what is to be run besides the trials that are there already, and begin the bar."""
        already = f", {trials} of {self._planned + trials} are there already" if trials else ""
        self._say(f"campaign {campaign}: {counted(self._planned, 'trial')} to run{already}")
        if self._planned:
            self._bar.start()
            self._bar.add_task(one_line(campaign), total=self._planned, states="", left="?")

    def ended(self, key: TrialKey, judgement: Judgement, completion_s: float | None, again: bool) -> None:
        """Called after each trial has been committed; `again` when it will be run again."""
        what = f"{judgement.state}{f' ({judgement.reason})' if judgement.reason else ''}"
        if not again:
            self.states[judgement.state] += 1
        done = self.states.total()
        left = duration(self._rate.left_s(time.monotonic(), done, self._planned))
        if self._bar.tasks:
            self._move(done, left)
        retried = ", again" if again else ""
        if self._console.is_terminal:
            if judgement.state != "ok":
                self._say(f"{key}: {what}{retried}")
        elif self._each or judgement.state != "ok" or self._is_due(done):
            taken = f" {completion_s:.3f} s" if completion_s else ""
            self._say(self._line(done, left, f"{key}: {what}{taken}{retried}"))

    def _line(self, count: int, rest: str, trial: str) -> str:
        return f"[{count}/{self._planned}] {trial}, left: {rest}"

    def _move(self, count: int, rest: str) -> None:
        counts = " ".join(f"{state} {count}" for state, count in sorted(self.states.items()))
        self._bar.update(self._bar.tasks[0].id, completed=count, states=counts, left=rest)

    def counted(self, states: Mapping[State, int]) -> None:
        """Show the number of trials that other processes have run of those to be run, by state."""
        if self.states == states:
            return
        self.states = Counter(states)
        done = self.states.total()
        left = duration(self._rate.left_s(time.monotonic(), done, self._planned))
        counts = " ".join(f"{state} {count}" for state, count in sorted(self.states.items()))
        if self._bar.tasks:
            self._bar.update(self._bar.tasks[0].id, completed=done, states=counts, left=left)
        if not self._console.is_terminal:
            self._say(f"[{done}/{self._planned}] {counts}, left: {left}")

    def _is_due(self, done: int) -> bool:
        """Whether nothing was told for a while, or this is the last."""
        now = time.monotonic()
        due = now - self._told_at >= TELL_S or done == self._planned
        if due:
            self._told_at = now
        return due

    def more(self, trials: int, why: str) -> None:
        """Report that so many are to be run besides those that have been."""
        self._say(f"{why}: {counted(trials, 'trial')} more to run")
        self._plan(self._planned + trials)

    def elsewhere(self, trials: int) -> None:
        """Another harness has run so many of the trials that were to be run here."""
        self._plan(self._planned - trials)

    def _plan(self, trials: int) -> None:
        self._planned = trials
        if self._bar.tasks:
            self._bar.update(self._bar.tasks[0].id, total=trials)

    def waiting(self, trials: int) -> None:
        """Nothing is left to be run here."""
        self._say(f"waiting for {counted(trials, 'trial')} that another fecbench is running")

    def dropped(self, key: TrialKey, why: str) -> None:
        """A trial was run that has a result already."""
        self._say(f"{key}: not kept: another fecbench has run it meanwhile ({why})")
        self.elsewhere(1)

    def note(self, line: str) -> None:
        """Something has happened that is no trial's end."""
        self._say(line)

    def close(self) -> None:
        """Leave the terminal as it was."""
        self._bar.stop()

    def _say(self, line: str) -> None:
        self._console.print(one_line(line), highlight=False, markup=False, soft_wrap=True)
