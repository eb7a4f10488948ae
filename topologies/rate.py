"""The rate of a direction of a link, for code that asks how fast it is: the judge, the competition,
calibration and admission.

A constant rate is one kind, a trace the other (`trace`). Bytes are those of frames, as the link counts them
(`link`).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol


class Rate(Protocol):
    """The bytes that a direction of a link can carry. Times are seconds since the link began."""

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


@dataclass(frozen=True)
class ShapedRate:
    """A rate with credit: what was idle may send `burst_bytes` at once besides."""

    bps: float
    burst_bytes: int

    def __str__(self) -> str:
        return f"{self.bps / 1e6:g} Mbit/s with bursts of {self.burst_bytes} bytes"

    @property
    def largest_bps(self) -> float:
        return self.bps

    def least_time_s(self, size_bytes: float) -> float:
        return max(0.0, 8 * (size_bytes - self.burst_bytes) / self.bps)

    def most_bytes(self, from_s: float, to_s: float) -> float:
        return self.burst_bytes + self.bps * (to_s - from_s) / 8


@dataclass(frozen=True)
class _Together:
    """Several rates at once, whose largest ones may come at the same time."""

    rates: tuple[Rate, ...]

    @property
    def largest_bps(self) -> float:
        return sum(rate.largest_bps for rate in self.rates)

    def least_time_s(self, size_bytes: float) -> float:
        low, high = 0.0, min(rate.least_time_s(size_bytes) for rate in self.rates)
        while high - low > 1e-9 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if self.most_bytes(0, middle) >= size_bytes else (middle, high)
        return low

    def most_bytes(self, from_s: float, to_s: float) -> float:
        return sum(rate.most_bytes(from_s, to_s) for rate in self.rates)


@dataclass(frozen=True)
class _InSeries:
    """Several rates one behind the other, the slowest of which decides."""

    rates: tuple[Rate, ...]

    @property
    def largest_bps(self) -> float:
        return min(rate.largest_bps for rate in self.rates)

    def least_time_s(self, size_bytes: float) -> float:
        return max(rate.least_time_s(size_bytes) for rate in self.rates)

    def most_bytes(self, from_s: float, to_s: float) -> float:
        return min(rate.most_bytes(from_s, to_s) for rate in self.rates)


def in_series(rates: Iterable[Rate]) -> Rate:
    """Return a rate that links one behind the other cannot exceed."""
    return _InSeries(tuple(rates))


def together(rates: Iterable[Rate]) -> Rate:
    """The rate of several links that carry at once."""
    several = tuple(rates)
    constant = [rate for rate in several if isinstance(rate, ConstantRate)]
    if len(constant) == len(several):
        return ConstantRate(sum(rate.bps for rate in constant))
    return several[0] if len(several) == 1 else _Together(several)
