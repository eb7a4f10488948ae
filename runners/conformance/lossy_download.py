"""Counters of an implementation where packets are lost: a download over an emulated link with seeded losses,
with FEC off and on. The counters of both ends are compared with the frames that the link and the loss model
counted.

A stack that counts a packet twice, such as a repair packet in `packets_sent`, too, or that never notices a
loss is found here alone: over loopback its two ends agree. So is a code that waits for a full block or for
the end, and has sent no repair symbol when a short download is over.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fecbench.results.store.records import TrialKey
from fecbench.runners.conformance import complaints
from fecbench.runners.conformance.emulated import LINK, download
from fecbench.runners.conformance.part import Part
from fecbench.runners.engines.engine import EngineError, Finished
from fecbench.runners.engines.programs import engine_for
from fecbench.runners.implementations.implementation import Implementation
from fecbench.runners.refusal import Refusal
from fecbench.runners.sandbox import isolation
from fecbench.runners.tasks.outcome import Outcome
from fecbench.runners.tasks.task import ROLES, Role
from fecbench.runners.trial import ends
from fecbench.runners.trial.judge import judge
from fecbench.runners.trial.judging import plausibility
from fecbench.runners.trial.judging.plausibility import Packets
from fecbench.topologies.link import Direction

PART = "counters under losses"
SHORT_PART = "{0} bytes under losses, FEC on"
REPAIR_PART = "repair symbols under losses"
SIZE_BYTES = 1_000_000
SHORT_BYTES = (15_000, 30_000, 50_000)
"""More than the ten packets of which it is enough that one of the ends has sent a repair symbol; after losses
it is enough of twenty, too."""
_LOSSES: dict[Direction, dict[str, object]] = {
    "up": {"model": "uniform", "p": 0.03},
    "down": {"model": "uniform", "p": 0.03},
}
SLACK = 20
"""Most packets that may share a frame with another, as in handshakes, or close a connection after the report
of the end that counts."""
_IN_BOTH = " (are repair packets in both? those that carry data, too, are repair_shared_sent and _received)"
ATTEMPTS = 3
WAYS: tuple[tuple[Direction, Role, Role], ...] = (("up", "client", "server"), ("down", "server", "client"))


def check(implementation: Implementation) -> Iterator[Part]:
    """Yield a part for each switch of FEC, or one that says why nothing was tried."""
    name, declared = implementation.declaration.name, implementation.declaration
    if "download" not in declared.workloads:
        yield Part(PART, True, "only a download tells, and it has none", tried=False)
        return
    try:
        isolation.require(f"fecbench implementations --check {name}")
    except Refusal as refusal:
        yield Part(PART, True, f"emulated losses: {refusal}", tried=False)
        return
    switch, on = declared.fec, implementation.options_with_fec()
    off = {} if switch is None else dict(switch.off)
    yield _part(implementation, Try(PART, off, SIZE_BYTES, 0), [])
    if on is None:
        return
    repair: list[float] = []
    yield _part(implementation, Try(f"{PART}, FEC on", on, SIZE_BYTES, 1), repair)
    for number, size_bytes in enumerate(SHORT_BYTES, 2):
        yield _part(implementation, Try(SHORT_PART.format(size_bytes), on, size_bytes, number), repair)
    yield complaints.seen_repair(REPAIR_PART, repair)


@dataclass(frozen=True)
class Try:
    """A download that checks a part."""

    part: str
    chosen: Mapping[str, object]
    """Options that differ from the defaults."""
    size_bytes: int
    number: int


def _part(implementation: Implementation, tried: Try, repair: list[float]) -> Part:
    """Return the outcome; `repair` gets how many repair packets were sent, where both ends have told it."""
    part = tried.part
    options = implementation.options(tried.chosen, implementation.declaration.name)
    client, server = ends.pair_of((implementation, options), (implementation, options))
    task = download(client, server, tried.size_bytes, {way: dict(model) for way, model in _LOSSES.items()})
    why = ""
    for _ in range(ATTEMPTS):
        try:
            with engine_for("local", {implementation.declaration.name: implementation}) as engine:
                (finished,) = engine.run([(TrialKey("check", part, tried.number, 0), task)])
                judgement = judge(finished.task, finished.outcome)
                engine.judged(finished, valid=True)
        except EngineError as error:
            return Part(part, True, str(error), tried=False)
        repair.append(_repair_sent(finished.outcome))
        if judgement.state == "ok":
            return _part_of(part, finished)
        why = f"{judgement.state}: {judgement.reason}"
        why += complaints.hint_of_repair(judgement.reason, implementation, tried.chosen)
        if judgement.state != "invalid":
            return Part(part, False, "; ".join(_problems_of_ended(finished.outcome)) or why)
    return Part(part, True, why, tried=False)


def _repair_sent(outcome: Outcome) -> float:
    return sum((end.metrics or {}).get("repair_sent", 0) for end in outcome.endpoints.values())


def _part_of(part: str, finished: Finished) -> Part:
    outcome = finished.outcome
    problems = list(problems_of_counters(outcome))
    lost = dropped(outcome, "down")
    return Part(
        part, not problems, "; ".join(problems) or f"{lost} packets were lost; {_sums_and_frames(outcome)}"
    )


def _problems_of_ended(outcome: Outcome) -> Iterator[str]:
    """Yield faults of the counters, if both ends have reported them."""
    if all(role in outcome.endpoints and outcome.endpoints[role].metrics for role in ROLES):
        yield from problems_of_counters(outcome)


def problems_of_counters(outcome: Outcome) -> Iterator[str]:
    """Yield differences between the counters of both ends and of the link, a sentence each."""
    for way, sender, receiver in WAYS:
        frames, lost = _came(outcome, way), dropped(outcome, way)
        sent = outcome.endpoints[sender].metrics or {}
        received = outcome.endpoints[receiver].metrics or {}
        if "packets_sent" in sent:
            yield from _differs_from_frames(
                sender, plausibility.packets_sent(sent), frames, "came to the link"
            )
        if "packets_received" in received:
            yield from _differs_from_frames(
                receiver, plausibility.packets_received(received), frames - lost, "arrived"
            )
    yield from _unnoticed(outcome)


def _differs_from_frames(end: str, packets: Packets, frames: int, deed: str) -> Iterator[str]:
    counted = f"{end}: {packets.names} = {packets.values}"
    if packets.total > frames + SLACK:
        in_both = packets.repair and packets.total - packets.repair <= frames + SLACK
        yield f"{counted}: but {frames} frames {deed}{_IN_BOTH if in_both else ''}"
    elif packets.total < frames - SLACK:
        yield f"{counted}: but {frames} frames {deed}, each with a packet at least"


def _unnoticed(outcome: Outcome) -> Iterator[str]:
    """Yield losses that a sender of data does not report."""
    server, lost = outcome.endpoints["server"].metrics or {}, dropped(outcome, "down")
    recovered = (outcome.endpoints["client"].metrics or {}).get("packets_recovered", 0)
    for counter in ("packets_lost", "losses_declared"):
        if server.get(counter) == 0 and lost > recovered + SLACK / 2:
            yield f"server: {counter} = 0: but {lost} packets that it sent were lost"


def _came(outcome: Outcome, way: Direction) -> int:
    return outcome.links[LINK].directions[way].frames_in


def dropped(outcome: Outcome, way: Direction) -> int:
    """Packets that were lost on the link, or behind it."""
    report = outcome.links[LINK].directions[way]
    return report.frames_in - report.frames_out + outcome.droppers[LINK][way].counters.dropped


def _sums_and_frames(outcome: Outcome) -> str:
    """Return the sums of both ends and the frames, in words."""
    server, client = (outcome.endpoints[role].metrics or {} for role in ("server", "client"))
    sums = [
        f"{role} {counter} = {metrics[counter]:g}"
        for role, metrics, counters in (
            ("server", server, ("packets_sent", "repair_sent", "packets_lost")),
            ("client", client, ("packets_received", "packets_recovered")),
        )
        for counter in counters
        if counter in metrics
    ]
    frames = f"the link counted {_came(outcome, 'down')} frames"
    return ", ".join([*sums, frames]) if sums else f"no end counts packets; {frames}"
