"""Trials that were carried out in two ways, in pairs."""

from dataclasses import dataclass

import numpy as np

from fecbench.results.store.records import TrialKey, TrialRecord, VerdictLog


@dataclass(frozen=True)
class Pair:
    """A trial that was carried out in two ways."""

    key: TrialKey
    records: tuple[TrialRecord, TrialRecord]

    @property
    def states(self) -> tuple[str, str]:
        one, other = self.records
        return one.state, other.state

    @property
    def ok(self) -> bool:
        return self.states == ("ok", "ok")

    @property
    def same_losses(self) -> bool:
        """Whether the packets that were sent both times were lost both times or neither time."""
        one, other = (record.verdicts for record in self.records)
        return [_place(log) for log in one] == [_place(log) for log in other] and all(
            np.array_equal(_verdicts(a)[: b.packets], _verdicts(b)[: a.packets])
            for a, b in zip(one, other, strict=True)
        )

    def values(self, metric: str) -> tuple[float, float]:
        """Return what the client reported, both times."""
        one, other = (record.metrics["client"][metric] for record in self.records)
        return one, other


def pairs(one: dict[TrialKey, TrialRecord], other: dict[TrialKey, TrialRecord]) -> list[Pair]:
    """Return every trial of two runs of one design, by workload, point and variant.

    Raises ValueError when only one of them has a trial.
    """
    if alone := sorted(one.keys() ^ other.keys()):
        raise ValueError(f"{len(alone)} trials are in one of the two only, such as {alone[0]}")
    keys = sorted(one, key=lambda key: (key.workload, key.point, key.variant, key.repetition))
    return [Pair(key, (one[key], other[key])) for key in keys]


def _place(log: VerdictLog) -> tuple[str, str]:
    return log.link, log.direction


def _verdicts(log: VerdictLog) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    return np.unpackbits(np.frombuffer(log.bitmap, np.uint8), bitorder="little")[: log.packets]
