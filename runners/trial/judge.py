"""Decides whether a trial can be vouched for, and what its state is.

The order matters: a trial whose network was not what was asked for is `invalid`, whatever its endpoints say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

import dropper.model
from dropper.model import LossModel
from results.store.records import State
from runners.trial import series
from runners.trial.endpoint import UNSUPPORTED
from runners.trial.outcome import DropperOutcome, EndpointOutcome, Outcome
from runners.trial.series import SeriesError
from runners.trial.task import Task
from topologies.link import Direction, LinkSettings
from topologies.link_report import DirectionReport

if TYPE_CHECKING:
    import pyarrow as pa

# A packet is late when it left the emulator later than this, and a trial is when more than this share was.
LATE_SHARE_OF_OWD = 0.05
LATE_AT_LEAST_MS = 1.0
LATE_SHARE_OF_PACKETS = 0.01

# However short a download is, its endpoints may be kept from running for this long.
STALLED_AT_LEAST_S = 0.005

Series = dict[tuple[str, str], "pa.Table"]


@dataclass(frozen=True)
class VerdictCheck:
    """The recorded verdicts of one direction beside the oracle's."""

    packets: int
    """That the dropper judged."""
    dropped: int
    """By the oracle."""
    differing: int
    first_difference: int | None
    same_total: bool
    """Whether as many were dropped, those beyond the recorded ones included."""


@dataclass(frozen=True)
class Judgement:
    """The state of a trial, and what was checked."""

    state: State
    reason: str
    """Of every state but `ok`."""
    verdicts: dict[tuple[str, Direction], VerdictCheck] = field(default_factory=dict)
    """Of each link and direction."""
    stalled_s: float | None = None
    series: Series = field(default_factory=dict)
    """What was left over time: by endpoint and name."""


def late_bound_us(link: LinkSettings) -> int:
    """How late a packet may leave a link before it counts as late: 5 % of the smaller OWD, or 1 ms."""
    owd_ms = min(link.up.owd_ms, link.down.owd_ms)
    return round(max(LATE_AT_LEAST_MS, LATE_SHARE_OF_OWD * owd_ms) * 1000)


def judge(task: Task, outcome: Outcome) -> Judgement:
    """The state of the trial of `task` that ended with `outcome`."""
    if outcome.failure:
        return Judgement("invalid", outcome.failure)
    verdicts: dict[tuple[str, Direction], VerdictCheck] = {}
    doubts: list[str] = []
    for name, link in task.links.items():
        for direction, parameters in link.losses.items():
            recorded = outcome.droppers[name][direction]
            model = dropper.model.loss_model(parameters)
            check = compare_verdicts(recorded, model, task.seeds.losses[name][direction])
            verdicts[name, direction] = check
            report = outcome.links[name].directions[direction]
            of_direction = [*_doubts_of_dropper(recorded, check), *_doubts_of_link(report, recorded)]
            doubts += [f"{name}/{direction}: {doubt}" for doubt in of_direction]
    doubts += _doubts_of_endpoints(task, outcome)
    if doubts:
        return Judgement("invalid", "; ".join(doubts), verdicts, outcome.stalled_s)
    state, reason = _state_of_endpoints(task, outcome)
    tables, problem = _series(outcome)
    if state == "ok" and problem:
        state, reason = "failed", problem
    return Judgement(state, reason, verdicts, outcome.stalled_s, tables)


def compare_verdicts(recorded: DropperOutcome, model: LossModel, seed: int) -> VerdictCheck:
    """The dropper's recorded verdicts against the oracle's, packet by packet, and the total."""
    predicted = dropper.model.verdicts(model, seed, recorded.packets)
    held = min(recorded.packets, 8 * len(recorded.bitmap))
    differing = np.flatnonzero(dropper.model.unpack(recorded.bitmap, held) != predicted[:held])
    dropped = int(predicted.sum())
    return VerdictCheck(
        packets=recorded.packets,
        dropped=dropped,
        differing=len(differing),
        first_difference=int(differing[0]) if len(differing) else None,
        same_total=recorded.counters.dropped == dropped,
    )


def _doubts_of_dropper(recorded: DropperOutcome, check: VerdictCheck) -> Iterator[str]:
    counters = recorded.counters
    if check.differing:
        yield (
            f"{check.differing} of {check.packets} verdicts differ from the oracle's,"
            f" first at packet {check.first_difference}"
        )
    if not check.same_total:
        yield f"{counters.dropped} packets dropped, the oracle says {check.dropped}"
    for kind, count in (("gso", counters.gso), ("truncated", counters.truncated)):
        if count:
            yield f"{count} {kind} packets were judged as one each"


def _doubts_of_link(report: DirectionReport, recorded: DropperOutcome) -> Iterator[str]:
    if not report.conserved:
        yield f"the link did not conserve its packets: {report.model_dump()}"
    crossed = recorded.counters.seen + recorded.counters.other
    if crossed != report.frames_out:
        yield f"the link sent {report.frames_out} packets, the dropper met {crossed}"
    if report.late and report.late > LATE_SHARE_OF_PACKETS * report.frames_out:
        yield f"{report.late} of {report.frames_out} packets left the emulator later than its bound"


def _doubts_of_endpoints(task: Task, outcome: Outcome) -> Iterator[str]:
    """A completion time or a timeout is doubtful when endpoints lacked CPU; how a program failed is not."""
    duration_s = task.timeout_s if outcome.timed_out else completion_s(task, outcome)
    bound_s = max(STALLED_AT_LEAST_S, task.stall_share * duration_s)
    if outcome.stalled_s is not None and duration_s and outcome.stalled_s > bound_s:
        stalled_ms, bound_ms = 1e3 * outcome.stalled_s, 1e3 * bound_s
        yield f"the endpoints were kept from running for {stalled_ms:.1f} ms, the bound is {bound_ms:.1f}"


def _state_of_endpoints(task: Task, outcome: Outcome) -> tuple[State, str]:
    """The state of a trial whose network can be vouched for."""
    endpoints = outcome.endpoints
    for name, endpoint in endpoints.items():
        if endpoint.complaint:
            return "failed", f"{name} {endpoint.complaint}"
    if any(endpoint.exit_code == UNSUPPORTED for endpoint in endpoints.values()):
        return "unsupported", _last_line(endpoints, "unsupported by an endpoint")
    if outcome.timed_out and "client" not in endpoints:
        return "timeout", "the background transfer did not fill the link in time"
    if outcome.timed_out:
        return "timeout", "the client did not end in time"
    for name, endpoint in endpoints.items():
        if name == "background_client":  # it is ended with the client's transfer
            continue
        if endpoint.exit_code != 0:
            return "failed", f"{name} ended with {endpoint.exit_code}: {_tail(endpoint)}"
        if endpoint.metrics is None:
            return "failed", f"{name} ended without a done message"
    if "background_client" in endpoints and not outcome.background_lasted:
        return "failed", f"background_client ended first: {_tail(endpoints['background_client'])}"
    if "client" not in endpoints:
        return "failed", _unready(endpoints)
    if not completion_s(task, outcome) > 0.0:
        return "failed", f"client reported no {task.completion} above 0"
    return "ok", ""


def _series(outcome: Outcome) -> tuple[Series, str]:
    """What the endpoints left over time, and what is wrong with the first that cannot be read, or nothing."""
    tables: Series = {}
    for endpoint, ended in outcome.endpoints.items():
        for name, content in ended.series.items():
            try:
                tables[endpoint, name] = series.table(name, content)
            except SeriesError as error:
                return {}, f"{endpoint}: {error}"
    return tables, ""


def completion_s(task: Task, outcome: Outcome) -> float:
    """What the client reported as the time that its transfer took, in s; 0 when it reported none."""
    client = outcome.endpoints.get("client")
    return (client.metrics or {}).get(task.completion, 0.0) if client else 0.0


def _unready(endpoints: Mapping[str, EndpointOutcome]) -> str:
    name, server = next((name, endpoint) for name, endpoint in endpoints.items() if not endpoint.ready)
    return f"{name} was not ready in time: {_tail(server)}"


def _tail(endpoint: EndpointOutcome) -> str:
    lines = endpoint.stderr.strip().splitlines()
    return lines[-1] if lines else "it said nothing"


def _last_line(endpoints: Mapping[str, EndpointOutcome], otherwise: str) -> str:
    ends = [endpoint.stderr.strip().splitlines() for endpoint in endpoints.values()]
    return next((lines[-1] for lines in ends if lines), otherwise)
