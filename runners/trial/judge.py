"""Decides whether a trial can be vouched for, and what its state is.

The order matters: a trial whose network was not what was asked for is `invalid`, whatever its endpoints say.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

import dropper.model
from dropper.model import LossModel
from runners.trial.endpoint import UNSUPPORTED
from runners.trial.task import DropperOutcome, EndpointOutcome, Outcome, Task, loss_name
from topologies.link import LinkSettings

State = Literal["ok", "failed", "timeout", "unsupported", "invalid"]

# A packet is late when it left the emulator later than this, and a trial is when more than this share was.
LATE_SHARE_OF_OWD = 0.05
LATE_AT_LEAST_MS = 1.0
LATE_SHARE_OF_PACKETS = 0.01

# However short a download is, its endpoints may be kept from running for this long.
STALLED_AT_LEAST_S = 0.005


@dataclass(frozen=True)
class Judgement:
    """The state of a trial, the reason of every state but `ok`, and what was checked."""

    state: State
    reason: str
    checks: dict[str, Any]


def late_bound_us(link: LinkSettings) -> int:
    """How late a packet may leave a link before it counts as late: 5 % of the smaller OWD, or 1 ms."""
    owd_ms = min(link.up.owd_ms, link.down.owd_ms)
    return round(max(LATE_AT_LEAST_MS, LATE_SHARE_OF_OWD * owd_ms) * 1000)


def judge(task: Task, outcome: Outcome) -> Judgement:
    """The state of the trial of `task` that ended with `outcome`."""
    if outcome.failure:
        return Judgement("invalid", outcome.failure, {})
    checks: dict[str, Any] = {"verdicts": {}, "links": {}}
    doubts = []
    for link, directions in task.losses.items():
        for direction, parameters in directions.items():
            name = loss_name(link, direction)
            model = dropper.model.loss_model(parameters)
            verdicts = compare_verdicts(outcome.droppers[name], model, task.seeds[name])
            checks["verdicts"][name] = verdicts
            doubts += _doubts_of_dropper(name, outcome.droppers[name], verdicts)
            doubts += _doubts_of_link(name, outcome.links[link], direction, outcome.droppers[name])
    checks["stalled_s"] = outcome.stalled_s
    doubts += _doubts_of_endpoints(task, outcome)
    if doubts:
        return Judgement("invalid", "; ".join(doubts), checks)
    state, reason = _state_of_endpoints(outcome)
    return Judgement(state, reason, checks)


def compare_verdicts(recorded: DropperOutcome, model: LossModel, seed: int) -> dict[str, Any]:
    """The dropper's recorded verdicts against the oracle's, packet by packet, and the total."""
    predicted = dropper.model.verdicts(model, seed, recorded.packets)
    bitmap = base64.b64decode(recorded.bitmap_base64)
    held = min(recorded.packets, 8 * len(bitmap))
    differing = np.flatnonzero(dropper.model.unpack(bitmap, held) != predicted[:held])
    return {
        "packets": recorded.packets,
        "dropped": int(predicted.sum()),
        "differing": len(differing),
        "first_difference": int(differing[0]) if len(differing) else None,
        "same_total": recorded.counters["dropped"] == int(predicted.sum()),
    }


def _doubts_of_dropper(name: str, recorded: DropperOutcome, verdicts: Mapping[str, Any]) -> list[str]:
    doubts = []
    if verdicts["differing"]:
        doubts.append(
            f"{name}: {verdicts['differing']} of {recorded.packets} verdicts differ from the oracle's, "
            f"first at packet {verdicts['first_difference']}"
        )
    if not verdicts["same_total"]:
        dropped = recorded.counters["dropped"]
        doubts.append(f"{name}: {dropped} packets dropped, the oracle says {verdicts['dropped']}")
    for kind in ("gso", "truncated"):
        if recorded.counters[kind]:
            doubts.append(f"{name}: {recorded.counters[kind]} {kind} packets were judged as one each")
    return doubts


def _doubts_of_link(
    name: str, report: Mapping[str, Any], direction: str, recorded: DropperOutcome
) -> list[str]:
    counted = report["directions"][direction]
    doubts = []
    if not counted["conserved"]:
        doubts.append(f"{name}: the link did not conserve its packets: {counted}")
    crossed = recorded.counters["seen"] + recorded.counters["other"]
    if counted["frames_out"] is not None and crossed != counted["frames_out"]:
        doubts.append(f"{name}: the link sent {counted['frames_out']} packets, the dropper met {crossed}")
    late, sent = counted["late"], counted["frames_out"]
    if late and late > LATE_SHARE_OF_PACKETS * sent:
        doubts.append(f"{name}: {late} of {sent} packets left the emulator later than its bound")
    return doubts


def _doubts_of_endpoints(task: Task, outcome: Outcome) -> list[str]:
    """A completion time or a timeout is doubtful when endpoints lacked CPU; how a program failed is not."""
    duration_s = task.timeout_s if outcome.timed_out else _dct_s(outcome)
    bound_s = max(STALLED_AT_LEAST_S, task.stall_share * duration_s)
    if outcome.stalled_s is None or not duration_s or outcome.stalled_s <= bound_s:
        return []
    stalled_ms, bound_ms = 1e3 * outcome.stalled_s, 1e3 * bound_s
    return [f"the endpoints were kept from running for {stalled_ms:.1f} ms, the bound is {bound_ms:.1f}"]


def _state_of_endpoints(outcome: Outcome) -> tuple[State, str]:
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
    if not _dct_s(outcome) > 0.0:
        return "failed", "client reported no dct_s above 0"
    return "ok", ""


def _unready(endpoints: Mapping[str, EndpointOutcome]) -> str:
    name, server = next((name, each) for name, each in endpoints.items() if not each.ready)
    return f"{name} was not ready in time: {_tail(server)}"


def _dct_s(outcome: Outcome) -> float:
    """The download completion time that the client reported; 0 when it reported none."""
    client = outcome.endpoints.get("client")
    return (client.metrics or {}).get("dct_s", 0.0) if client else 0.0


def _tail(endpoint: EndpointOutcome) -> str:
    lines = endpoint.stderr.strip().splitlines()
    return lines[-1] if lines else "it said nothing"


def _last_line(endpoints: Mapping[Any, EndpointOutcome], otherwise: str) -> str:
    said = [endpoint.stderr.strip().splitlines() for endpoint in endpoints.values()]
    return next((lines[-1] for lines in said if lines), otherwise)
