"""Whether the packets that were lost are those that should be: the dropper beside the oracle."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fecbench.dropper import model as dropper_model
from fecbench.dropper.model import LossModel
from fecbench.runners.tasks.outcome import DropperOutcome

_LEAST_KEPT, _MOST_KEPT = 256, 1 << 16
"""Packets of the sequences of verdicts that are kept, 64 of them: some megabytes at the most."""


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
    predicted = _predicted(model, seed, held)
    differing = np.flatnonzero(dropper_model.unpack(recorded.bitmap, held) != predicted)
    whole = held == recorded.packets
    dropped = int(predicted.sum()) if whole else dropper_model.dropped_packets(model, seed, recorded.packets)
    return VerdictCheck(
        packets=recorded.packets,
        dropped=dropped,
        differing=len(differing),
        first_difference=int(differing[0]) if len(differing) else None,
        same_total=recorded.counters.dropped == dropped,
    )


def _predicted(model: LossModel, seed: int, packets: int) -> NDArray[np.bool_]:
    """The oracle's verdicts. Those of a short sequence begin those of a longer one: the variants of a group
    share them."""
    if packets > _MOST_KEPT:
        return dropper_model.verdicts(model, seed, packets)
    return _kept(model, seed, max(_LEAST_KEPT, 1 << packets.bit_length()))[:packets]


@lru_cache(maxsize=64)
def _kept(model: LossModel, seed: int, packets: int) -> NDArray[np.bool_]:
    return dropper_model.verdicts(model, seed, packets)


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
