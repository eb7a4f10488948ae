"""How the rate and the delay of one direction of a link change with time: steps one behind the other.

The link follows them from the client's first frame on (`wire/schedule.h` has the law). A step has a rate, a
one-way delay, and a burst that may leave at its end besides; what a trace does not say is the constant of the
link's settings.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, repeat
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from fecbench.errors import BadInput

Repeat = Literal["loop", "hold", "end"]
"""What comes after the last step: all of them again, the last one for good, or the constants."""
REPEATS: tuple[Repeat, ...] = ("loop", "hold", "end")

MOST_STEPS = 10_000_000
LONGEST_US = 10**12
MOST_BPS, MOST_OWD_US, MOST_BURST_BYTES = 10**11, 10**9, 1 << 26
_ACCURACY, _NS = 1e-9, 1e-9

_Column = Annotated[tuple[int, ...] | None, Field(exclude_if=lambda column: column is None)]


class TraceError(BadInput):
    """Says in one line what is wrong with a trace."""


@dataclass(frozen=True)
class Trace:
    """The steps of one direction. Columns have a number for each step; None: the link's constant."""

    keep_us: tuple[int, ...]
    rate_bps: _Column = None
    owd_us: _Column = None
    burst_bytes: _Column = None
    """That leave at the end of the step at once, if they wait then."""
    repeat: Repeat = "loop"
    offset_ns: Annotated[int | None, Field(exclude_if=lambda offset_ns: offset_ns is None)] = None
    """Where in it the link begins; None: each repetition draws its own."""

    def __post_init__(self) -> None:
        """Raises TraceError."""
        if not 0 < len(self.keep_us) <= MOST_STEPS:
            raise TraceError(f"{len(self.keep_us)} steps; there must be 1 to {MOST_STEPS}")
        _check("keep_us", self.keep_us, 1, LONGEST_US)
        for name, most in (
            ("rate_bps", MOST_BPS),
            ("owd_us", MOST_OWD_US),
            ("burst_bytes", MOST_BURST_BYTES),
        ):
            column = getattr(self, name)
            if column is not None:
                if len(column) != len(self.keep_us):
                    raise TraceError(f"{name} has {len(column)} values for {len(self.keep_us)} steps")
                _check(name, column, 0, most)
        if self.changes_rate and not any(self.rate_bps or ()) and not any(self.burst_bytes or ()):
            raise TraceError("it never carries anything: each rate and burst is 0")
        if self.period_ns > 10**3 * LONGEST_US:
            raise TraceError(f"it lasts {self.period_ns / 1e9:g} s; at most {LONGEST_US / 1e6:g} s")

    @property
    def changes_rate(self) -> bool:
        return self.rate_bps is not None or self.burst_bytes is not None

    @cached_property
    def ends_ns(self) -> tuple[int, ...]:
        """When each step ends."""
        return tuple(1000 * end for end in accumulate(self.keep_us))

    @property
    def period_ns(self) -> int:
        return self.ends_ns[-1]

    @cached_property
    def mean_bps(self) -> float:
        """The mean rate over all steps, bursts included."""
        keep = np.array(self.keep_us, float)
        bits = (np.array(self.rate_bps, float) * keep / 1e6).sum() if self.rate_bps else 0.0
        return float((bits + 8.0 * sum(self.burst_bytes or ())) / (keep.sum() / 1e6))

    def placed(self, draw: int) -> "Trace":
        """The same with its offset, of which a draw of 64 bits decides unless it is given."""
        return self if self.offset_ns is not None else replace(self, offset_ns=draw * self.period_ns >> 64)

    def steps(self, rate_bps: int, delay_ns: int) -> Sequence[tuple[int, int, int, int]]:
        """End (ns), rate, delay (ns) and burst of each step, with these constants."""
        rates = self.rate_bps or repeat(0 if self.burst_bytes is not None else rate_bps)
        delays = repeat(delay_ns) if self.owd_us is None else (1000 * owd for owd in self.owd_us)
        return list(zip(self.ends_ns, rates, delays, self.burst_bytes or repeat(0), strict=False))

    def packed(self, rate_bps: int, delay_ns: int) -> bytes:
        """The same as `struct schedule_step` of the wire."""
        return b"".join(struct.pack("=4Q", *step) for step in self.steps(rate_bps, delay_ns))


def _check(name: str, column: Sequence[int], least: int, most: int) -> None:
    for number, value in enumerate(column):
        if not least <= value <= most:
            raise TraceError(f"step {number}: {name} = {value}: must be {least} to {most}")


@dataclass(frozen=True)
class TraceRate:
    """The rate of a trace, wherever in it the link begins (`rate.Rate`)."""

    trace: Trace
    constant_bps: float
    """Where it has ended."""
    _most: dict[float, float] = field(default_factory=dict, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.trace.mean_bps / 1e6:g} Mbit/s on average"

    @cached_property
    def largest_bps(self) -> float:
        """The largest in any second."""
        return 8 * self.most_bytes(0, 1)

    @cached_property
    def _curve(self) -> tuple[np.ndarray, np.ndarray]:
        """What has been carried (bytes) by each time (s), two periods long; a burst is a step of it."""
        trace = self.trace
        keep_s = np.array(trace.keep_us) / 1e6
        rates = np.array(trace.rate_bps if trace.rate_bps is not None else np.zeros(len(keep_s)))
        bursts = np.array(trace.burst_bytes if trace.burst_bytes is not None else np.zeros(len(keep_s)))
        if trace.repeat == "loop":
            keep_s, rates, bursts = (np.tile(each, 2) for each in (keep_s, rates, bursts))
        ends_s = np.cumsum(keep_s)
        with_bursts = np.cumsum(rates * keep_s / 8 + bursts)
        times_s = np.concatenate([[0.0], np.repeat(ends_s, 2)])
        carried = np.concatenate([[0.0], np.column_stack([with_bursts - bursts, with_bursts]).ravel()])
        return times_s, carried

    def most_bytes(self, from_s: float, to_s: float) -> float:
        lasts_s = max(0.0, to_s - from_s)
        if lasts_s not in self._most:
            if len(self._most) > 10_000:
                self._most.clear()
            self._most[lasts_s] = self._most_in(lasts_s)
        return self._most[lasts_s]

    def _most_in(self, lasts_s: float) -> float:
        period_s, whole = self.trace.period_ns / 1e9, 0.0
        if self.trace.repeat == "loop":
            periods = lasts_s // period_s
            whole, lasts_s = periods * period_s * self.trace.mean_bps / 8, lasts_s - periods * period_s
        times_s, carried = self._curve
        end_s, last_bps = times_s[-1], self.constant_bps
        if self.trace.repeat == "hold":
            last_bps = self.trace.rate_bps[-1] if self.trace.rate_bps else 0.0

        def until(at_s: np.ndarray, side: Literal["left", "right"]) -> np.ndarray:
            """What has been carried by then, without a burst at that time ("left"), or with it."""
            place = np.searchsorted(times_s, at_s, side=side)
            before, after = np.clip(place - 1, 0, None), np.clip(place, None, len(times_s) - 1)
            span = times_s[after] - times_s[before]
            share = np.divide(at_s - times_s[before], span, out=np.zeros_like(at_s), where=span > 0)
            inside = carried[before] + share * (carried[after] - carried[before])
            beyond = carried[-1] + last_bps / 8 * np.clip(at_s - end_s, 0, None)
            carried_by: np.ndarray = np.where(at_s > end_s, beyond, inside)
            return carried_by

        # The most is carried in a window that begins or ends where a step does.
        begins_s = np.unique(np.concatenate([times_s, np.clip(times_s - lasts_s, 0, None)]))
        if self.trace.repeat == "loop":  # the second period has what a window needs that begins in the first
            begins_s = begins_s[begins_s <= period_s + _NS]
        else:
            begins_s = np.append(begins_s, end_s + lasts_s)
        # However times are rounded, a burst at an end of a window is in it.
        at_end = until(begins_s + lasts_s + _NS, "right")
        return whole + float((at_end - until(begins_s - _NS, "left")).max())

    def least_time_s(self, size_bytes: float) -> float:
        if size_bytes <= 0:
            return 0.0
        low, high = 0.0, 1e-3
        while self._most_in(high) < size_bytes:
            low, high = high, 2 * high
            if high > 1e9:
                return high  # it never is
        while high - low > _ACCURACY * high:
            middle = (low + high) / 2
            low, high = (low, middle) if self._most_in(middle) >= size_bytes else (middle, high)
        return low
