"""Tasks and answers of a simulator, a line of JSON each (quic-impls/contract/simulators.md).

A simulator is not trusted: what it answers is parsed strictly, and what does not fit its task is refused.
"""

import base64
import hashlib
import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    NonNegativeInt,
    ValidationError,
)

from fecbench.complaint import complaint
from fecbench.dropper.command import Counters
from fecbench.dropper.loss_model import LossModel
from fecbench.runners.tasks.outcome import Competition, DropperOutcome, EndpointOutcome, Outcome
from fecbench.runners.tasks.requests import Dialogue, Instant, Said
from fecbench.runners.tasks.task import RELAY, ROLES, VIRTUAL, Task, endpoint_name
from fecbench.runners.tasks.task import Place as PlaceOfEndpoint
from fecbench.runners.trial import assignment, competition
from fecbench.runners.trial.endpoint import STDERR_TAIL_BYTES, MetricName
from fecbench.runners.trial.plain_text import one_line, plain
from fecbench.runners.workloads import asked_series
from fecbench.topologies.link import DIRECTIONS, Direction
from fecbench.topologies.link_report import DROPS, EFFECTS, DirectionReport, LinkReport
from fecbench.topologies.topology import layout_of
from fecbench.topologies.written import written_whole

VERSION = 2
"""Version of the contract with simulators."""
RECORDED = 1 << 20
"""Verdicts that a simulator records, as many as the dropper does."""

_compact = json.JSONEncoder(separators=(",", ":")).encode

EndpointName = Literal["client", "relay", "server", "background_client", "background_server"]


class AnswerError(ValueError):
    """The fault of an answer in one line."""


@dataclass(frozen=True)
class Place:
    """The folders of one task."""

    certificates: Path
    logs: Path
    """A folder for each endpoint is in it, if the task leaves files."""

    def log_folder(self, pair: int, role: str) -> Path:
        """The folder of one endpoint."""
        return self.of_pair(pair) / role

    def of_pair(self, pair: int) -> Path:
        """Return the folder for the logs of a pair."""
        return self.logs / "background" if pair else self.logs


def leaves_files(task: Task) -> bool:
    """Whether the endpoints of a task leave anything in their log folders."""
    return task.capture or task.once(_has_series)


def _has_series(task: Task) -> bool:
    return any(asked_series(pair.end(role), pair.workload) for pair in task.pairs for role in ROLES)


# The task


def line_of(task: Task, number: int, place: Place) -> bytes:
    """Return the line that asks for a task. The same task, number and place have the same line."""
    of_trial = {
        "number": number,
        "links": {link: _link(task, link) for link in task.links},
        "seed": seed_of_endpoints(task),
        "capture": str(place.logs) if task.capture else None,
    }
    pairs = ",".join(_pair(task, pair, place) for pair in range(len(task.pairs)))
    line = f'{_union(task.once(_of_repetitions), _compact(of_trial))[:-1]},"pairs":[{pairs}]}}\n'
    return line.encode()


def _union(one: str, other: str) -> str:
    """Return the JSON of an object with the fields of both of these, neither of which is empty."""
    return f"{one[:-1]},{other[1:]}"


def _of_repetitions(task: Task) -> str:
    """Return the JSON of the fields of a line that all repetitions of a task have in common, but its
    pairs."""
    return _compact(
        {
            "version": VERSION,
            "completion": task.completion,
            "timeout_s": task.timeout_s,
            "filling": _filling(task) if len(task.pairs) > 1 else None,
            "processor": task.processor.model_dump(),
        }
    )


def seed_of_endpoints(task: Task) -> int:
    """Return the seed of all randomness of the endpoints: all variants of a repetition have the same."""
    content = task.content_seed.to_bytes(8, "little")
    return int.from_bytes(hashlib.blake2b(content, digest_size=8, person=b"endpoints").digest(), "little")


def _pair(task: Task, number: int, place: Place) -> str:
    """Return the JSON of the assignments of a pair."""
    pair, certificates = task.pairs[number], str(place.certificates)
    assignments = []
    for role, of_repetitions in task.once(_assignments)[number].items():
        of_trial = assignment.of_trial(
            role,
            pair.client if role == RELAY else pair.end(role),
            content_seed=task.content_seed,
            certificates=certificates,
            log_folder=str(place.log_folder(number, role)),
        )
        assignments.append(f'"{role}":{_union(of_repetitions, _compact(of_trial))}')
    return f"{{{','.join(assignments)}}}"


def _assignments(task: Task) -> list[dict[PlaceOfEndpoint, str]]:
    """Return the JSON of what assignments have in common in all repetitions, by pair and role."""
    return [
        {role: _compact(document) for role, document in _assignments_of(task, number).items()}
        for number in range(len(task.pairs))
    ]


def _assignments_of(task: Task, number: int) -> dict[PlaceOfEndpoint, dict[str, Any]]:
    pair, layout = task.pairs[number], layout_of(task.topology, task.family)
    hosts: dict[str, str] = dict(zip(ROLES, layout.pairs[number], strict=True))
    if layout.relay is not None:
        hosts[RELAY] = layout.relay
    addresses = {role: layout.addresses(host)[0] for role, host in hosts.items()}
    return {
        role: assignment.of_repetitions(
            role,
            pair.client if role == RELAY else pair.end(role),
            workload=pair.workload,
            server_address=addresses[RELAY if task.has_relay and role != "server" else "server"],
            upstream=assignment.upstream(pair, addresses["server"]) if role == RELAY else None,
            local_addresses=layout.addresses(hosts[role]),
            deadline_s=task.timeout_s,
        )
        for role in task.places
    }


def _link(task: Task, link: str) -> dict[Direction, str]:
    """The text of each direction, which lanes read."""
    link_task = task.links[link]
    texts, models = link_task.texts, link_task.models
    if link_task.settings.drawn:
        settings = task.settings_of(link)
        texts = {direction: written_whole(settings, direction) for direction in DIRECTIONS}
    family = "" if task.family == "ipv4" else f"family {task.family}\n"
    return {
        direction: texts[direction]
        + family
        + _of_losses(models[direction], task.losses_seed(link, direction))
        for direction in DIRECTIONS
    }


@lru_cache(maxsize=16)
def _of_losses(model: LossModel, seed: int) -> str:
    return model.written(seed)


def _filling(task: Task) -> dict[str, float]:
    first_link, *_ = task.links.values()
    return {
        "full_share": competition.FULL_SHARE,
        "window_s": competition.window_s(first_link.settings),
        "interval_s": competition.INTERVAL_S,
    }


# The answer


class _Part(BaseModel):
    # Strict: "12" and true are no numbers.
    model_config = ConfigDict(extra="forbid", strict=True)


class _Endpoint(_Part):
    ready: bool
    exit_code: int | None
    metrics: dict[MetricName, FiniteFloat] | None
    stderr: str


class _Competition(_Part):
    filling_s: FiniteFloat
    foreground_mbps: FiniteFloat | None
    background_mbps: FiniteFloat | None


_OF_DROPPER = {"dropped", "packets", "bitmap", "arrivals", "counted"}
"""Fields of a report that are no counters of frames."""
_SHORTER = "shorter"
"""The lane's counter of packets that its losses do not count, since only longer ones do."""


def _effect(name: str) -> str:
    if name not in EFFECTS and name != _SHORTER:
        raise ValueError(f"{name} is no counter of a link")
    return name


_Effect = Annotated[str, AfterValidator(_effect)]


class _Report(_Part):
    frames_in: NonNegativeInt
    bytes_in: NonNegativeInt
    frames_out: NonNegativeInt
    bytes_out: NonNegativeInt
    queue_dropped: NonNegativeInt
    oversize_dropped: NonNegativeInt
    outage_dropped: NonNegativeInt = 0
    """Optional for a link without outages."""
    in_flight: NonNegativeInt
    max_queue_bytes: NonNegativeInt
    max_queue_packets: NonNegativeInt
    dropped: NonNegativeInt
    counted: dict[_Effect, NonNegativeInt] = Field(default_factory=dict)
    """Counters of effects that most links lack."""
    conserved: bool
    packets: NonNegativeInt
    bitmap: str
    arrivals: str | None = None
    times: Annotated[str, Field(pattern="^[0-9a-f]{16}$")] | None = None


class _Answer(_Part):
    number: int
    endpoints: dict[EndpointName, _Endpoint]
    timed_out: bool
    background_lasted: bool
    competition: _Competition | None
    links: dict[str, dict[Direction, _Report]]
    client_s: FiniteFloat | None
    virtual_s: FiniteFloat


class _Error(_Part):
    number: int
    error: str


class _Disturbance(_Part):
    number: int
    invalid: str


class _Asked(_Part):
    number: int
    objects: list[Said]
    now_s: Instant


def is_question(line: bytes) -> bool:
    """Whether a simulator asks what its client is to read, in the middle of a trial."""
    return b'"objects":' in line[:60]


def reply_to(line: bytes, dialogue: Dialogue | None, number: int) -> bytes:
    """Return the next lines for the client, as a line of JSON for the simulator. Raises AnswerError."""
    try:
        question = _Asked.model_validate_json(line)
    except ValidationError as error:
        problem = one_line(complaint(error))[:200]
        raise AnswerError(f"asked {line[:80]!r}, which is no question: {problem}") from None
    if question.number != number or dialogue is None:
        raise AnswerError(f"asked {line[:80]!r}, and nothing is to be read in task {number}")
    if len(question.objects) > 1 or bool(question.objects) == (dialogue.begun is False):
        raise AnswerError(f"asked {line[:80]!r}: one event is told at a time, and none at first")
    lines = dialogue.heard(question.objects[0]) if question.objects else dialogue.begin(question.now_s)
    reply_lines = [[round(1e9 * line_at.at_s), line_at.text] for line_at in lines]
    return _compact({"number": number, "lines": reply_lines}).encode() + b"\n"


def outcome_of(line: bytes, task: Task, number: int) -> Outcome:
    """Return the outcome that a simulator answers to a task. Raises AnswerError if this is no answer to
    it."""
    answer = _parsed(line)
    if answer.number != number:
        raise AnswerError(f"answered task {answer.number}, and was asked for task {number}")
    if isinstance(answer, _Error):
        return Outcome(backend=VIRTUAL, no_answer=f"the simulator: {one_line(answer.error)[:500]}")
    if isinstance(answer, _Disturbance):
        return Outcome(backend=VIRTUAL, failure=f"the simulator {one_line(answer.invalid)[:500]}")
    for name in task.links:
        if answer.links.get(name, {}).keys() != set(DIRECTIONS):
            raise AnswerError(f"answered without both directions of link {name}")
    if answer.client_s is not None and not 0 <= answer.client_s <= answer.virtual_s:
        raise AnswerError(
            f"answered with a client of {answer.client_s:g} s in a trial of {answer.virtual_s:g} s"
        )
    expected = {endpoint_name(pair, role) for pair in range(len(task.pairs)) for role in task.places}
    if not {"server"} <= answer.endpoints.keys() <= expected:
        answered_names, expected_names = ", ".join(answer.endpoints) or "none", ", ".join(sorted(expected))
        raise AnswerError(f"answered with the endpoints {answered_names}, of {expected_names}")
    return Outcome(
        backend=VIRTUAL,
        endpoints={
            name: EndpointOutcome(
                ready=endpoint.ready,
                metrics=endpoint.metrics,
                exit_code=endpoint.exit_code,
                stderr=plain(endpoint.stderr[-STDERR_TAIL_BYTES:]),
            )
            for name, endpoint in answer.endpoints.items()
        },
        timed_out=answer.timed_out,
        background_lasted=answer.background_lasted,
        competition=None
        if answer.competition is None
        else Competition(**dict(answer.competition), lasted_s=answer.client_s),
        links={name: _link_report(answer.links[name]) for name in task.links},
        droppers={
            name: {direction: _dropped(name, direction, answer.links[name]) for direction in DIRECTIONS}
            for name in task.links
        },
        client_s=answer.client_s,
        # Nothing of this machine delays what happens in virtual time.
        stalled_s=0.0,
        stolen_s=0.0,
        virtual_s=answer.virtual_s,
    )


def _parsed(line: bytes) -> _Answer | _Error | _Disturbance:
    kind: type[_Answer | _Error | _Disturbance] = _Answer
    if b'"endpoints"' not in line[:200]:
        kinds = ((b'"error":', _Error), (b'"invalid":', _Disturbance))
        kind = next((shorter for key, shorter in kinds if key in line[:200]), _Answer)
    try:
        return kind.model_validate_json(line)
    except ValidationError as error:
        problem = one_line(complaint(error))[:200]
        raise AnswerError(f"answered {line[:80]!r}, which is no answer: {problem}") from None


def _link_report(directions: dict[Direction, _Report]) -> LinkReport:
    return LinkReport(
        backend=VIRTUAL,
        version=None,
        command=None,
        configuration=None,
        scheduling=None,
        cpu_s=None,
        elapsed_s=None,
        late_bound_us=None,
        directions={direction: _direction_report(report) for direction, report in directions.items()},
    )


def _direction_report(report: _Report) -> DirectionReport:
    fields = {name: value for name, value in vars(report).items() if name not in _OF_DROPPER}
    fields |= {name: count for name, count in report.counted.items() if name != _SHORTER}
    accounted = report.frames_out + report.in_flight + sum(fields.get(name, 0) for name in DROPS)
    # Its word alone would be no proof.
    fields["conserved"] = report.conserved and report.frames_in == accounted
    return DirectionReport(
        **fields,
        write_errors=0,
        kernel_dropped=0,
        lateness_us=None,
        read_lag_us=None,
        late=0,
        late_sum_us=0.0,
    )


def _dropped(link: str, direction: Direction, directions: dict[Direction, _Report]) -> DropperOutcome:
    report = directions[direction]
    shorter = report.counted.get(_SHORTER, 0)
    judged = report.packets - shorter
    if judged < 0:
        raise AnswerError(f"{link}/{direction}: answered with {shorter} shorter packets of {report.packets}")
    try:
        bitmap = base64.b64decode(report.bitmap, validate=True)
    except ValueError:
        raise AnswerError(f"{link}/{direction}: answered with a bitmap that is no base64") from None
    if len(bitmap) != (min(judged, RECORDED) + 7) // 8:
        raise AnswerError(
            f"{link}/{direction}: answered with {len(bitmap)} bytes of verdicts for {judged} packets"
        )
    counters = Counters(judged, report.dropped, other=0, gso=0, truncated=0, fragments=0, shorter=shorter)
    arrivals = _arrivals(link, direction, report, judged)
    return DropperOutcome(counters=counters, packets=judged, bitmap=bitmap, arrivals=arrivals)


def _arrivals(link: str, direction: Direction, report: _Report, judged: int) -> bytes | None:
    if report.arrivals is None:
        return None
    try:
        arrivals = base64.b64decode(report.arrivals, validate=True)
    except ValueError:
        raise AnswerError(f"{link}/{direction}: answered with arrivals that are no base64") from None
    if len(arrivals) != 8 * min(judged, RECORDED):
        raise AnswerError(
            f"{link}/{direction}: answered with {len(arrivals)} bytes of arrivals for {judged} packets"
        )
    return arrivals
