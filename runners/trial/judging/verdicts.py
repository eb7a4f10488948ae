"""Whether the packets that were lost are those that should be: the dropper beside the oracle."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import dropper.model
from dropper.model import LossModel
from runners.trial.outcome import DropperOutcome


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


def compare(recorded: DropperOutcome, model: LossModel, seed: int) -> VerdictCheck:
    """The dropper's recorded verdicts against the oracle's, packet by packet, and the total."""
    held = min(recorded.packets, 8 * len(recorded.bitmap))
    predicted = dropper.model.verdicts(model, seed, held)
    differing = np.flatnonzero(dropper.model.unpack(recorded.bitmap, held) != predicted)
    whole = held == recorded.packets
    dropped = int(predicted.sum()) if whole else dropper.model.dropped_packets(model, seed, recorded.packets)
    return VerdictCheck(
        packets=recorded.packets,
        dropped=dropped,
        differing=len(differing),
        first_difference=int(differing[0]) if len(differing) else None,
        same_total=recorded.counters.dropped == dropped,
    )


def doubts(recorded: DropperOutcome, check: VerdictCheck) -> Iterator[str]:
    """Why the harness cannot vouch for the losses of one direction."""
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
