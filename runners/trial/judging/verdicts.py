"""Whether the packets that were lost are those that should be: the dropper beside the oracle."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fecbench.dropper.clocked import Timed, verdicts_at
from fecbench.dropper.draws import pack, unpack
from fecbench.dropper.loss_model import LossModel
from fecbench.dropper.model import Counted, dropped_packets, verdicts
from fecbench.runners.tasks.outcome import DropperOutcome

_LEAST_KEPT, _MOST_KEPT = 256, 1 << 16
"""Packets of the sequences of verdicts that are kept, 64 of them: some megabytes at the most."""


@dataclass(frozen=True)
class VerdictCheck:
    """The recorded verdicts of one direction beside the oracle's."""

    packets: int
    """Number of packets that the dropper judged."""
    dropped: int
    """Number of packets that the oracle drops."""
    differing: int
    first_difference: int | None
    same_total: bool
    """Whether as many were dropped, those beyond the recorded ones included. False where losses follow from
    the time of arrival, and some packets have none: the oracle cannot say."""


def compare(recorded: DropperOutcome, model: LossModel, seed: int) -> VerdictCheck:
    """The dropper's recorded verdicts against the oracle's, packet by packet, and the total."""
    count = min(recorded.packets, 8 * len(recorded.bitmap))
    if isinstance(model, Timed):
        arrivals = np.frombuffer(recorded.arrivals or b"", "<u8")[:count].astype(np.int64)
        count, predicted = len(arrivals), verdicts_at(model, seed, arrivals)
    else:
        assert isinstance(model, Counted)
        if count == recorded.packets <= _MOST_KEPT:
            bitmap = _first(_bitmap(model, seed, _size(count)), count)
            if recorded.bitmap == bitmap:
                dropped = int.from_bytes(bitmap).bit_count()
                return VerdictCheck(count, dropped, 0, None, recorded.counters.dropped == dropped)
        predicted = _predicted(model, seed, count)
    is_whole = count == recorded.packets
    if is_whole or isinstance(model, Timed):
        dropped = int(predicted.sum())
    else:
        assert isinstance(model, Counted)
        dropped = dropped_packets(model, seed, recorded.packets)
    differing = np.flatnonzero(unpack(recorded.bitmap, count) != predicted)
    return VerdictCheck(
        packets=recorded.packets,
        dropped=dropped,
        differing=len(differing),
        first_difference=int(differing[0]) if len(differing) else None,
        same_total=recorded.counters.dropped == dropped and (is_whole or not isinstance(model, Timed)),
    )


def _predicted(model: Counted, seed: int, packets: int) -> NDArray[np.bool_]:
    """Return the oracle's verdicts. A shorter sequence is the beginning of a longer one, so the variants of a
    group share them."""
    if packets > _MOST_KEPT:
        return verdicts(model, seed, packets)
    return _keep_mask(model, seed, _size(packets))[:packets]


def _size(packets: int) -> int:
    """Return the length of the sequence that is kept for so many packets."""
    return max(_LEAST_KEPT, 1 << packets.bit_length())


@lru_cache(maxsize=64)
def _keep_mask(model: Counted, seed: int, packets: int) -> NDArray[np.bool_]:
    return verdicts(model, seed, packets)


@lru_cache(maxsize=64)
def _bitmap(model: Counted, seed: int, packets: int) -> bytes:
    return pack(_keep_mask(model, seed, packets))


def _first(bitmap: bytes, packets: int) -> bytes:
    """Return the bitmap of the first packets of a longer one."""
    whole, rest = divmod(packets, 8)
    return bitmap[:whole] + bytes([bitmap[whole] & ((1 << rest) - 1)]) * (rest > 0)


def doubts(recorded: DropperOutcome, check: VerdictCheck) -> Iterator[str]:
    """Yield why the harness cannot vouch for the losses of one direction."""
    counters = recorded.counters
    if check.differing:
        yield (
            f"{check.differing} of {check.packets} verdicts differ from the oracle's,"
            f" first at packet {check.first_difference}"
        )
    times = len(recorded.arrivals or b"") // 8
    if recorded.arrivals is not None and times < check.packets:
        yield f"{times} of {check.packets} packets have a time of arrival, and the oracle needs all of them"
    elif recorded.arrivals and any(recorded.arrivals[:8]):
        yield "packet 0 has not arrived at 0, from which all times of arrival count"
    elif not check.same_total:
        yield f"{counters.dropped} packets dropped, the oracle says {check.dropped}"
    for kind, count in (("gso", counters.gso), ("truncated", counters.truncated)):
        if count:
            yield f"{count} {kind} packets were judged as one each"
