"""Workloads whose content becomes due by a timetable, in one direction: `messages` and `live`.

Both ends note when each part was sent and had arrived, and the harness computes everything from that. What
arrives after a playout delay is too late for a player that waits no longer.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

from fecbench.runners.options import Option
from fecbench.runners.refusal import Refusal
from fecbench.runners.tasks.demand import Demand
from fecbench.runners.tasks.outcome import Outcome
from fecbench.runners.tasks.task import Task
from fecbench.runners.workloads import timed
from fecbench.runners.workloads.json_file import find_document
from fecbench.runners.workloads.timetable_file import TimetableFile
from fecbench.runners.workloads.workload import Impossible, Measured, Surroundings, Workload

MOST_PLAYOUTS = 50


class Timetabled(Workload):
    documents = "traces"
    trace_file: ClassVar[type[TimetableFile]]
    stored_as: ClassVar[str]
    """The name by which a campaign keeps the rows of a trace."""
    replaced: ClassVar[Sequence[str]]
    """Parameters that a trace replaces."""
    usual_playouts_ms: ClassVar[Sequence[float]]
    measuring: ClassVar[ModuleType]
    """The module that reads what both ends noted, and computes metrics and rows from it."""
    judging: ClassVar[ModuleType]
    """The module that says whether it can be."""

    def playouts(self, choices: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the playout delays in ms, the one to compare by first."""
        delays = choices.get("playout_ms", self.usual_playouts_ms)
        return tuple(delays) if isinstance(delays, list | tuple) else (delays,)

    def check(self, choices: Mapping[str, Any], labels: Collection[str], where: str) -> None:  # noqa: ARG002
        """Refuse parameters that do not fit. Absent ones have their defaults."""
        self.check_values({name: value for name, value in choices.items() if name != "playout_ms"}, where)
        where = f"{where}: workload {self.name}"
        _check_playouts(self.playouts(choices), self.parameters["playout_ms"], where)
        for parameter in self.replaced if choices.get("trace") else ():
            if parameter in choices:
                trace = choices["trace"]
                raise Refusal(
                    f"{where}: trace = {trace!r} says sizes and times itself: leave out {parameter}"
                )

    def compared_with(self, choices: Mapping[str, Any]) -> str:
        """Return the share that is usable by the first playout delay."""
        return f"{self.name}.on_time_ratio_{self.playouts(choices)[0]:g}ms"

    def document(self, choices: Mapping[str, Any], folders: Sequence[Path]) -> tuple[str, Path] | None:
        name = str(choices.get("trace", ""))
        where = f"workload {self.name}: trace"
        return (name, find_document(folders, "trace", name, where)) if name else None

    def read_document(self, path: Path) -> dict[str, Any]:
        return self.trace_file.stored(path, self.stored_as)

    def from_trace(self, choices: Mapping[str, Any], around: Surroundings) -> list[list[int]] | None:
        """Return the rows of a trace that are due before `duration_s`; None: there is no trace."""
        if not choices.get("trace"):
            return None
        rows: list[list[int]] = around.documents[choices["trace"]][self.stored_as]
        if "duration_s" in choices:
            rows = [row for row in rows if row[0] < 1e6 * choices["duration_s"]]
        if not rows:
            kind = self.trace_file.rows_are.removesuffix("s")
            raise Refusal(
                f"workload {self.name}: trace = {choices['trace']!r}: no {kind} is due before duration_s ="
                f" {choices['duration_s']:g}"
            )
        return rows

    def demand_of_rows(
        self, workload: Mapping[str, Any], rows: Sequence[Sequence[int]], may_be_lost: bool
    ) -> Demand:
        """Return the demand: the last row is due at its time, and nobody knows earlier that no other follows.

        Content that may be lost need not arrive.
        """
        size_bytes = sum(size for _, size, *_ in rows)
        down = workload["direction"] == "down"
        return Demand(
            up_bytes=0 if down else size_bytes,
            down_bytes=size_bytes if down else 0,
            round_trips=1,
            pauses_s=max(due_us for due_us, *_ in rows) / 1e6,
            may_be_lost=may_be_lost,
        )

    def measure(self, task: Task, outcome: Outcome) -> Measured:
        noted = self.measuring.read(task, outcome)
        for problem in self.judging.problems(task, outcome, noted):
            raise Impossible(problem)
        pair, (series,) = task.pairs[0], self.series
        _, receiver = timed.ends(pair)
        keeps_rows = series in pair.end(receiver).series
        return Measured(
            metrics=self.measuring.measure(noted, pair.playout_ms, timed.sent_bytes(task, outcome)),
            series={(receiver, series): self.measuring.rows(noted)} if keeps_rows else {},
        )


def _check_playouts(playouts: Sequence[Any], option: Option, where: str) -> None:
    """Refuse playout delays: too many, equal ones, or one that the option does not allow."""
    subject = f"{where}: playout_ms = {list(playouts)!r:.200}"
    if not 1 <= len(playouts) <= MOST_PLAYOUTS:
        raise Refusal(f"{subject}: must be 1 to {MOST_PLAYOUTS} numbers")
    for playout_ms in playouts:
        if problem := option.problem_of(playout_ms):
            raise Refusal(f"{subject}: each {problem}")
    if len(set(playouts)) < len(playouts):
        raise Refusal(f"{subject}: each must be another")
