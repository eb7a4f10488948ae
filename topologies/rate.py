"""How fast a direction of a link is, for whoever asks: the judge, the competition, calibration, admission.

A constant rate is the only kind. Bytes are those of frames, as the link counts them (`link`).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol


class Rate(Protocol):
    """What a direction of a link carries. Times are seconds since the link began."""

    @property
    def largest_bps(self) -> float:
        """The largest rate that it ever has, in bit/s."""

    def least_time_s(self, size_bytes: float) -> float:
        """The least time in which it can carry so many bytes, whenever that begins."""

    def most_bytes(self, from_s: float, to_s: float) -> float:
        """The most bytes that it can carry between two instants."""


@dataclass(frozen=True)
class ConstantRate:
    """The same rate at all times."""

    bps: float

    def __str__(self) -> str:
        return f"{self.bps / 1e6:g} Mbit/s"

    @property
    def largest_bps(self) -> float:
        return self.bps

    def least_time_s(self, size_bytes: float) -> float:
        return 8 * size_bytes / self.bps

    def most_bytes(self, from_s: float, to_s: float) -> float:
        return self.bps * (to_s - from_s) / 8


def together(rates: Iterable[ConstantRate]) -> ConstantRate:
    """The rate of several links that carry at once."""
    return ConstantRate(sum(rate.bps for rate in rates))
