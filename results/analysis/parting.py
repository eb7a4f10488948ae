"""The point where the courses of two trials part: the first packet that one of them sends otherwise than
the other.

Two trials that met the same losses go alike until one does something else. A few bytes more of a handshake
are no parting. A packet parts them if it is sent at another moment, is of another size, or meets another
fate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fecbench.results.analysis.trial_course import UNDER_WAY, Course, Crossing, Numbers

SIZE_BYTES = 40
"""Sizes that differ by less are alike: types and lengths of frames, transport parameters."""
TIME_SHARE = 0.05
"""Moments that differ by less than this share of the time from the first packet to its arrival are alike."""


@dataclass(frozen=True)
class Parting:
    """The first packet that two trials do not have alike, in one direction of one link."""

    direction: str
    packet: int
    """The number of the packet, from 1, among those of this direction."""
    at_s: tuple[float | None, float | None]
    """The time at which each of the two sent it; None: it had none left to send."""
    why: str
    """The difference in words: "size", "moment", "fate" or "number of packets"."""

    @property
    def first_s(self) -> float:
        """The time at which the first of the two sent it."""
        return min(at_s for at_s in self.at_s if at_s is not None)

    def sentence(self, labels: tuple[str, str]) -> str:
        """Return where the two, by their labels, part."""
        moments = [
            f"{label} sends it at {1000 * at_s:.1f} ms" if at_s is not None else f"{label} has no such packet"
            for label, at_s in zip(labels, self.at_s, strict=True)
        ]
        way = "to the client" if self.direction == "down" else "to the server"
        return f"They part at packet {self.packet} {way} ({self.why}): {', '.join(moments)}."


def partings(one: Course, other: Course) -> list[Parting]:
    """Return where two courses part, in each direction of each link in which they do; the first one first."""
    parts = [
        _of_direction(crossing, again)
        for crossing in one.crossings
        for again in other.crossings
        if (crossing.link, crossing.direction) == (again.link, again.direction)
    ]
    return sorted((part for part in parts if part is not None), key=lambda part: part.first_s)


def parting_of(one: Course, other: Course, labels: tuple[str, str]) -> str:
    """Return where two courses part, by the labels of their variants, in sentences."""
    return " ".join(part.sentence(labels) for part in partings(one, other)) or "They never part."


def _of_direction(one: Crossing, other: Crossing) -> Parting | None:
    common = min(one.sent_s.size, other.sent_s.size)
    differs = {
        "size": np.abs(_cut(one.payload_bytes, common) - _cut(other.payload_bytes, common)) >= SIZE_BYTES,
        "moment": np.abs(_cut(one.sent_s, common) - _cut(other.sent_s, common)) > TIME_SHARE * _way_s(one),
        "fate": _cut(_fate(one), common) != _cut(_fate(other), common),
    }
    firsts = {why: int(where.argmax()) for why, where in differs.items() if where.any()}
    if firsts:
        why = min(firsts, key=lambda name: firsts[name])
        return _at(one, other, firsts[why], why)
    if one.sent_s.size != other.sent_s.size:
        return _at(one, other, common, "number of packets")
    return None


def _at(one: Crossing, other: Crossing, place: int, why: str) -> Parting:
    first, second = (
        float(crossing.sent_s[place]) if place < crossing.sent_s.size else None for crossing in (one, other)
    )
    return Parting(one.direction, place + 1, (first, second), why)


def _cut(values: Numbers, count: int) -> Numbers:
    return values[:count].astype(np.float64)


def _fate(crossing: Crossing) -> Numbers:
    """Fate of each packet; one under way when its trial ended counts as arrived."""
    fates: Numbers = np.where(crossing.fates == UNDER_WAY, 0, crossing.fates)
    return fates


def _way_s(crossing: Crossing) -> float:
    """The least time from sending to arriving."""
    way_s = crossing.arrived_s - crossing.sent_s
    return float(np.nanmin(way_s, initial=np.inf)) if np.isfinite(way_s).any() else 0.0
