"""Decides whether a trial can be vouched for, and what its state is.

The order matters: a trial whose network was not as asked for is `invalid`, whatever its endpoints report. An
endpoint's own fault, or an impossible report of it, makes the trial `failed`. Each subject has a module of
its own in `judging`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fecbench.results.store.records import State
from fecbench.runners import workloads
from fecbench.runners.tasks import series
from fecbench.runners.tasks.outcome import FullPacket, Outcome
from fecbench.runners.tasks.packet_sizes import FRAME_BYTES
from fecbench.runners.tasks.series import SeriesError
from fecbench.runners.tasks.task import Task
from fecbench.runners.trial.judging import (
    conservation,
    endpoints,
    field_hosts,
    plausibility,
    processor,
    verdicts,
)
from fecbench.runners.trial.judging.endpoints import completion_s
from fecbench.runners.trial.judging.verdicts import VerdictCheck
from fecbench.runners.trial.plain_text import one_line
from fecbench.runners.workloads.workload import Impossible
from fecbench.topologies.link import Direction
from fecbench.topologies.rate import Rate, together

if TYPE_CHECKING:
    import pyarrow as pa

Series = dict[tuple[str, str], "pa.Table"]


@dataclass(frozen=True)
class Checks:
    """Measurements that vouch for a trial. None: unknown."""

    verdicts: dict[tuple[str, Direction], VerdictCheck] = field(default_factory=dict)
    """The check of each link and direction."""
    late_max_ms: float | None = None
    """Lateness of the latest frame that left its link after the link's bound."""
    late_sum_ms: float | None = None
    """Time for which such frames were overdue, in the worse direction."""
    stalled_s: float | None = None
    """Time for which endpoints could not run, within the completion time."""
    watch_gap_s: float | None = None
    """Longest interval in which nobody watched whether endpoints ran."""
    stolen_s: float | None = None
    """Time for which a hypervisor stopped a CPU while the client ran."""
    lost_elsewhere: dict[str, dict[str, int]] = field(default_factory=dict)
    """Packets lost outside of link and dropper while the client ran, by node and place."""
    backlog_drops: int = 0
    """Frames of anybody that the machine's CPUs discarded meanwhile."""
    virtual_s: float | None = None
    """Length of the trial in virtual time; None: a real trial."""
    path: dict[str, object] | None = None
    """The path in the field (`judging.field.document`); None: it was ours."""


@dataclass(frozen=True)
class Judgement:
    """The state of a trial, and what was checked."""

    state: State
    reason: str
    """The reason in one line, for every state but `ok`."""
    checks: Checks = field(default_factory=Checks)
    series: Series = field(default_factory=dict)
    """Series that endpoints recorded, by endpoint and name."""
    metrics: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Measurements of the harness itself, below the workload's name."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "reason", one_line(self.reason))  # it may quote what an endpoint wrote


def judge(task: Task, outcome: Outcome) -> Judgement:
    """The state of the trial of `task` that ended with `outcome`."""
    if outcome.failure:
        return Judgement("invalid", outcome.failure)
    if outcome.no_answer:
        return Judgement("failed", outcome.no_answer)
    workload = workloads.of(task.pairs[0].workload)
    task = workload.settled(task, outcome)
    checks = _checks(task, outcome)
    if doubts := list(_doubts(task, outcome, checks)):
        return Judgement("invalid", "; ".join(doubts), checks, _probes(outcome))
    state, reason = endpoints.state(task, outcome)
    tables, problem = _series(task, outcome)
    if state == "ok" and problem:
        state, reason = "failed", problem
    if state != "ok":
        return Judgement(state, reason, checks, tables)
    try:
        measured = workload.measure(task, outcome)
    except (SeriesError, Impossible) as error:
        return Judgement("failed", str(error), checks, tables)
    if measured is None:
        return Judgement("ok", "", checks, tables)
    return Judgement("ok", "", checks, {**tables, **measured.series}, {workload.name: measured.metrics})


def _doubts(task: Task, outcome: Outcome, checks: Checks) -> Iterator[str]:
    """Yield the reasons why the harness cannot vouch for the trial."""
    duration_s = task.timeout_s if outcome.timed_out else completion_s(task, outcome)
    if outcome.path is not None:
        yield from field_hosts.doubts(task, outcome, duration_s)
        return
    for (link, direction), check in checks.verdicts.items():
        recorded = outcome.droppers[link][direction]
        report, settings = outcome.links[link].directions[direction], task.settings_of(link)
        of_direction = [
            *verdicts.doubts(recorded, check),
            *conservation.doubts_of_link(
                report, recorded, task.validity, duration_s, conservation.icmp_back(outcome, link, direction)
            ),
            *conservation.doubts_of_bytes(
                report, settings.of(direction), _elapsed_s(outcome, link), task.family
            ),
            *conservation.doubts_of_queue(report, settings.queue_limit(direction)),
            *conservation.doubts_of_effects(report, settings.of(direction)),
            *conservation.doubts_of_sizes(
                report, recorded, task.links[link].models[direction].only_longer_than
            ),
            *conservation.doubts_of_configuration(outcome.links[link], settings, direction),
        ]
        yield from (f"{link}/{direction}: {doubt}" for doubt in of_direction)
    yield from conservation.doubts_of_losses(task, outcome)
    if outcome.competition is not None:
        rate = together(link.settings.down.rate for link in task.links.values())
        lasted_s = outcome.competition.lasted_s or duration_s
        share = task.validity.rate_share * (1 + _before_s(task, rate) / lasted_s if lasted_s else 1)
        yield from conservation.doubts_of_competition(outcome.competition, rate, share)
    yield from plausibility.doubts_of_clock(task, outcome)
    yield from processor.doubts(outcome, task.validity, duration_s)


def _before_s(task: Task, rate: Rate) -> float:
    """Return how long before a transfer began what arrives during it may have been sent, in s: as far as the
    delay of a link can fall, and a frame that each link was sending."""
    frames_s = len(task.links) * FRAME_BYTES * 8 / rate.largest_bps
    return max(link.settings.down.delay_span_ms for link in task.links.values()) / 1e3 + frames_s


def _elapsed_s(outcome: Outcome, link: str) -> float | None:
    """Return how long this link existed."""
    return outcome.links[link].elapsed_s if outcome.virtual_s is None else outcome.virtual_s


def _checks(task: Task, outcome: Outcome) -> Checks:
    if outcome.path is not None:
        return Checks(
            stalled_s=outcome.stalled_s,
            watch_gap_s=outcome.longest_gap_s,
            stolen_s=outcome.stolen_s,
            path=field_hosts.document(outcome.path),
        )
    reports = [report for link in outcome.links.values() for report in link.directions.values()]
    knows_lateness = all(report.late is not None for report in reports)
    return Checks(
        verdicts={
            (link, direction): verdicts.compare(
                outcome.droppers[link][direction], model, task.losses_seed(link, direction)
            )
            for link, link_task in task.links.items()
            for direction, model in link_task.models.items()
        },
        late_max_ms=1e3 * max(map(conservation.longest_late_s, reports)) if knows_lateness else None,
        late_sum_ms=1e3 * max(map(conservation.late_s, reports)) if knows_lateness else None,
        stalled_s=outcome.stalled_s,
        watch_gap_s=outcome.longest_gap_s,
        stolen_s=outcome.stolen_s,
        lost_elsewhere=outcome.discarded,
        backlog_drops=outcome.backlog_drops,
        virtual_s=outcome.virtual_s,
    )


def _probes(outcome: Outcome) -> Series:
    """Return the probes of a path in the field: `rtt_ms` is 0 where no answer came."""
    if outcome.path is None or not outcome.path.probes:
        return {}
    # Imported here: no other trial needs it.
    import pyarrow as pa

    probes = outcome.path.probes
    columns = {
        "t_s": [probe.sent_s for probe in probes],
        "rtt_ms": [probe.rtt_ms or 0.0 for probe in probes],
        "lost_up": [int(probe.lost_up) for probe in probes],
        "lost_down": [int(probe.rtt_ms is None and not probe.lost_up) for probe in probes],
    }
    return {("path", "probes"): pa.table(columns)} | _volley(outcome.path.volley)


def _volley(volley: Sequence[FullPacket]) -> Series:
    """Return the packets of a volley; a time below 0: it did not come."""
    if not volley:
        return {}
    import pyarrow as pa

    columns = {"t_s": [packet.sent_s for packet in volley]}
    for name in ("came_s", "answered_s", "answer_s"):
        times = [getattr(packet, name) for packet in volley]
        columns[name] = [-1.0 if time is None else time for time in times]
    return {("path", "volley"): pa.table(columns)}


def _series(task: Task, outcome: Outcome) -> tuple[Series, str]:
    """Return the series that endpoints recorded, and the fault of the first unreadable one, or nothing."""
    tables: Series = _probes(outcome)
    of_workload = workloads.of(task.pairs[0].workload).series
    for endpoint, endpoint_outcome in outcome.endpoints.items():
        for name, content in endpoint_outcome.series.items():
            if name in of_workload:  # read with that of the other end
                continue
            try:
                tables[endpoint, name] = series.table(name, content)
            except SeriesError as error:
                return {}, f"{endpoint}: {error}"
    return tables, ""
