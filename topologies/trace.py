"""Changes of the rate and the delay of one direction of a link with time: steps one behind the other.

The link follows them from the client's first frame on (`wire/schedule.h` has the law). A step has a rate, a
one-way delay, and a burst that may leave at its end besides. A value that a trace lacks is the constant of
the link's settings.
"""

import copy
import hashlib
import mmap
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import PlainSerializer, PlainValidator

from fecbench.errors import BadInput
from fecbench.quantities import counted
from fecbench.topologies.left_out import left_out

Repeat = Literal["loop", "hold", "end"]
"""The continuation after the last step: all of them again, the last one for good, or the constants."""
REPEATS: tuple[Repeat, ...] = ("loop", "hold", "end")

MOST_STEPS = 10_000_000
MOST_EXACT_STEPS = 100_000
"""The most steps whose windows are computed exactly. Of a longer trace, bundles of steps give the most
that a window carries: somewhat too much."""
LONGEST_US = 10**12
MOST_BPS, MOST_OWD_US, MOST_BURST_BYTES = 10**11, 10**9, 1 << 26
COLUMNS = {
    "keep_us": (1, LONGEST_US),
    "rate_bps": (0, MOST_BPS),
    "owd_us": (0, MOST_OWD_US),
    "burst_bytes": (0, MOST_BURST_BYTES),
}
"""The least and the most of each column."""
_BLOCK = 1 << 14
_ACCURACY, _NS = 1e-9, 1e-9

Column = NDArray[np.int64]
"""A number for each step; it is never changed."""

STEP = np.dtype([(name, "=u8") for name in ("end_ns", "rate_bps", "delay_ns", "burst_bytes")])
"""`struct schedule_step` of the wire."""


class TraceError(BadInput):
    """Says in one line what is wrong with a trace."""


def _column(values: Any) -> Column:
    """Raises TraceError, which names the first step that has no whole number."""
    if isinstance(values, np.ndarray) and values.dtype == np.int64 and not values.flags.writeable:
        return values
    for number, value in enumerate(values if np.asarray(values).dtype != np.int64 else ()):
        if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= 1 << 63:
            raise TraceError(f"step {number}: {value!r}: must be a whole number")
    column = np.array(values, np.int64)
    column.flags.writeable = False
    return column


_RequiredColumn = Annotated[Column, PlainValidator(_column), PlainSerializer(lambda column: column.tolist())]
_Column = Annotated[_RequiredColumn | None, left_out()]


@dataclass(frozen=True, eq=False)
class Trace:
    """The steps of one direction. Columns have a number for each step; None: the link's constant."""

    keep_us: _RequiredColumn
    rate_bps: _Column = None
    owd_us: _Column = None
    burst_bytes: _Column = None
    """Bytes that leave at the end of the step at once, if they wait then."""
    repeat: Repeat = "loop"
    offset_ns: Annotated[int | None, left_out()] = None
    """The time in the trace at which the link begins; None: each repetition draws its own."""
    _hash: ClassVar[list[bytes]]

    def __post_init__(self) -> None:
        """Raises TraceError."""
        # The hash of the columns, made on demand: traces that begin elsewhere in the same columns share it.
        hashed: list[bytes] = []
        object.__setattr__(self, "_hash", hashed)
        for name in COLUMNS:
            if (column := getattr(self, name)) is not None:
                object.__setattr__(self, name, _column(column))
        if not 0 < len(self.keep_us) <= MOST_STEPS:
            raise TraceError(f"{counted(len(self.keep_us), 'step')}; there must be 1 to {MOST_STEPS}")
        for name, (least, most) in COLUMNS.items():
            if (column := getattr(self, name)) is not None:
                if len(column) != len(self.keep_us):
                    raise TraceError(
                        f"{name} has {counted(len(column), 'value')} for {counted(len(self.keep_us), 'step')}"
                    )
                _check(name, column, least, most)
        if self.changes_rate and not any(
            column is not None and column.any() for column in (self.rate_bps, self.burst_bytes)
        ):
            raise TraceError("it never carries anything: each rate and burst is 0")
        if self.period_ns > 10**3 * LONGEST_US:
            raise TraceError(f"it lasts {self.period_ns / 1e9:g} s; at most {LONGEST_US / 1e6:g} s")

    @classmethod
    def of(
        cls,
        keep_us: Sequence[int],
        rate_bps: Sequence[int] | None = None,
        owd_us: Sequence[int] | None = None,
        burst_bytes: Sequence[int] | None = None,
        repeat: Repeat = "loop",
        offset_ns: int | None = None,
    ) -> Self:
        """The trace with columns of these numbers. Raises TraceError."""
        rates, delays, bursts = (
            None if column is None else _column(column) for column in (rate_bps, owd_us, burst_bytes)
        )
        return cls(_column(keep_us), rates, delays, bursts, repeat, offset_ns)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trace) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[bytes, Repeat, int | None]:
        if not self._hash:
            self._hash.append(self._columns_hash())
        return self._hash[0], self.repeat, self.offset_ns

    def _columns_hash(self) -> bytes:
        digest = hashlib.sha256()
        for name, column in self.columns.items():
            digest.update(f"{name} {len(column)} ".encode())
            digest.update(column.data)
        return digest.digest()

    @property
    def columns(self) -> dict[str, Column]:
        """The columns that it has, by name."""
        return {name: column for name in COLUMNS if (column := getattr(self, name)) is not None}

    @property
    def changes_rate(self) -> bool:
        return self.rate_bps is not None or self.burst_bytes is not None

    @cached_property
    def period_ns(self) -> int:
        # A sum of floats, since a sum that is far too large must be noticed.
        total_us = self.keep_us.sum(dtype=float)
        return 1000 * (int(self.keep_us.sum()) if total_us < 1 << 62 else int(total_us))

    @cached_property
    def mean_bps(self) -> float:
        """The mean rate over all steps, bursts included."""
        keep = self.keep_us.astype(float)
        bits = 0.0 if self.rate_bps is None else (self.rate_bps.astype(float) * keep / 1e6).sum()
        of_bursts = 0 if self.burst_bytes is None else int(self.burst_bytes.sum())
        return float((bits + 8.0 * of_bursts) / (keep.sum() / 1e6))

    @cached_property
    def largest_rate_bps(self) -> int | None:
        """The largest rate of a step, without bursts; None: the trace does not change the rate."""
        if not self.changes_rate:
            return None
        return 0 if self.rate_bps is None else int(self.rate_bps.max())

    @cached_property
    def owd_span_us(self) -> tuple[int, int] | None:
        """The least and the greatest delay; None: it does not change it."""
        return None if self.owd_us is None else (int(self.owd_us.min()), int(self.owd_us.max()))

    def placed(self, draw: int) -> "Trace":
        """The same with its offset, of which a draw of 64 bits decides unless it is given."""
        return self if self.offset_ns is not None else self.begun_at(draw * self.period_ns >> 64)

    def begun_at(self, offset_ns: int | None) -> "Trace":
        """The same with this offset. It shares the columns, and what is known of them."""
        other = copy.copy(self)
        object.__setattr__(other, "offset_ns", offset_ns)
        return other

    def steps(self, rate_bps: int, delay_ns: int, into: mmap.mmap | None = None) -> NDArray[np.void]:
        """End (ns), rate, delay (ns) and burst of each step, with these constants, as STEP; `into` memory, if
        there is some."""
        count, ends_at_us = len(self.keep_us), 0
        steps = np.empty(count, STEP) if into is None else np.frombuffer(into, STEP, count)
        constant_bps = 0 if self.changes_rate else rate_bps
        for first in range(0, count, _BLOCK):  # the data of so many stays in the processor's cache
            part = slice(first, first + _BLOCK)
            ends_us = ends_at_us + np.cumsum(self.keep_us[part])
            block, ends_at_us = steps[part], int(ends_us[-1])
            block["end_ns"] = 1000 * ends_us
            block["rate_bps"] = constant_bps if self.rate_bps is None else self.rate_bps[part]
            block["delay_ns"] = delay_ns if self.owd_us is None else 1000 * self.owd_us[part]
            block["burst_bytes"] = 0 if self.burst_bytes is None else self.burst_bytes[part]
        return steps


def _check(name: str, column: Column, least: int, most: int) -> None:
    if column.min() < least or column.max() > most:
        number = int(np.flatnonzero((column < least) | (column > most))[0])
        raise TraceError(f"step {number}: {name} = {column[number]}: must be {least} to {most}")


@dataclass(frozen=True)
class TraceRate:
    """The rate of a trace, wherever in it the link begins (`rate.Rate`)."""

    trace: Trace
    constant_bps: float
    """The rate after the end of the trace."""
    _most: dict[float, float] = field(default_factory=dict, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.trace.mean_bps / 1e6:g} Mbit/s on average"

    @cached_property
    def largest_bps(self) -> float:
        """The largest in any second."""
        return 8 * self.most_bytes(0, 1)

    @cached_property
    def _curve(self) -> tuple[np.ndarray, np.ndarray]:
        """The bytes that have been carried by each time (s), over two periods; a burst is a step of the
        curve."""
        trace = self.trace
        keep_s, none = trace.keep_us / 1e6, np.zeros(len(trace.keep_us))
        rates = none if trace.rate_bps is None else trace.rate_bps.astype(float)
        bursts = none if trace.burst_bytes is None else trace.burst_bytes.astype(float)
        if trace.repeat == "loop":
            keep_s, rates, bursts = (np.tile(column, 2) for column in (keep_s, rates, bursts))
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

    @cached_property
    def _bundles(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Times (s) at which bundles of steps begin and end, over two periods if it loops, and the bytes
        that have been carried by then, without and with a burst at that time."""
        trace = self.trace
        keep_s = trace.keep_us / 1e6
        carried = np.zeros(len(keep_s)) if trace.rate_bps is None else trace.rate_bps * keep_s / 8
        bursts = np.zeros(len(keep_s)) if trace.burst_bytes is None else trace.burst_bytes
        edges = np.arange(0, len(keep_s), -(-len(keep_s) // MOST_EXACT_STEPS))
        ends = [*(edges[1:] - 1), len(keep_s) - 1]
        times_s, with_bursts = np.cumsum(keep_s)[ends], np.cumsum(carried + bursts)[ends]
        at_ends = bursts[ends]
        if trace.repeat == "loop":
            times_s = np.concatenate([times_s, times_s[-1] + times_s])
            with_bursts = np.concatenate([with_bursts, with_bursts[-1] + with_bursts])
            at_ends = np.concatenate([at_ends, at_ends])
        zero = [0.0]
        return (
            np.concatenate([zero, times_s]),
            np.concatenate([zero, with_bursts - at_ends]),
            np.concatenate([zero, with_bursts]),
        )

    def _most_of_bundles(self, lasts_s: float, last_bps: float) -> float:
        """No less than the most that a window carries that begins in any of them: it may begin anywhere in
        one, and end anywhere in another."""
        times_s, without, carried = self._bundles
        begins = len(times_s) // 2 if self.trace.repeat == "loop" else len(times_s) - 1
        latest_s = times_s[1 : begins + 1] + lasts_s + _NS
        place = np.searchsorted(times_s, latest_s)
        beyond = np.clip(latest_s - times_s[-1], 0, None) * last_bps / 8
        until = carried[np.clip(place, None, len(times_s) - 1)] + beyond
        most = float((until - without[:begins]).max())
        if self.trace.burst_bytes is not None:
            return most
        # If the window is shorter than a bundle, the largest rate is a better bound.
        return min(most, max(self.trace.largest_rate_bps or 0, last_bps) * lasts_s / 8)

    def _most_in(self, lasts_s: float) -> float:
        period_s, whole = self.trace.period_ns / 1e9, 0.0
        if self.trace.repeat == "loop":
            periods = lasts_s // period_s
            whole, lasts_s = periods * period_s * self.trace.mean_bps / 8, lasts_s - periods * period_s
        last_bps = self.constant_bps if self.trace.repeat == "end" else 0.0  # a trace that loops has no end
        if self.trace.repeat == "hold" and self.trace.rate_bps is not None:
            last_bps = float(self.trace.rate_bps[-1])
        if len(self.trace.keep_us) > MOST_EXACT_STEPS:
            return whole + max(self._most_of_bundles(lasts_s, last_bps), last_bps * lasts_s / 8)
        times_s, carried = self._curve
        end_s = times_s[-1]

        def until(at_s: np.ndarray, side: Literal["left", "right"]) -> np.ndarray:
            """Return the bytes that have been carried by then, without a burst at that time ("left"), or
            with it."""
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
        if self.trace.repeat == "loop":  # a window that begins in the first period may end in the second
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
