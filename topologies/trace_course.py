"""The course of a trace: its rate in windows, and the outages in which it carries nothing.

The delivery opportunities of mahimahi are a millisecond apart, and each carries a whole packet: only over a
window is that a rate. Gaps between them that are shorter than a window are no outages.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fecbench.topologies.trace import Trace

WINDOW_US = 500_000
"""The window of mahimahi's own graphs."""
_MOST_WINDOWS = 1_000_000
"""A trace that lasts longer has wider windows."""


@dataclass(frozen=True)
class Windows:
    """Mean rates over windows. The last one ends with the trace, up to half a window later or sooner."""

    edges_s: NDArray[np.float64]
    """Edges of the windows, one more than rates."""
    rates_mbps: NDArray[np.float64]
    window_s: float


@dataclass(frozen=True)
class Outage:
    """A time in which a trace carries nothing."""

    begin_s: float
    lasts_s: float


def windows(trace: Trace) -> Windows | None:
    """Return the rates of a trace; None if it does not change the rate."""
    if not trace.changes_rate:
        return None
    ends_us = np.cumsum(trace.keep_us)
    period_us = int(ends_us[-1])
    window_us = WINDOW_US * -(-period_us // (WINDOW_US * _MOST_WINDOWS))
    count = max(1, round(period_us / window_us))
    edges_us = np.append(window_us * np.arange(count), period_us)
    bits = _bits_by(trace, ends_us, edges_us)
    rates_mbps = np.diff(bits) / np.diff(edges_us)
    return Windows(edges_us / 1e6, rates_mbps, window_us / 1e6)


def _bits_by(trace: Trace, ends_us: NDArray[np.int64], at_us: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the bits that have been carried by these times, bursts at them included."""
    bits = np.zeros(len(at_us))
    if trace.rate_bps is not None:
        carried = np.cumsum(trace.rate_bps * (trace.keep_us / 1e6))
        bits += np.interp(at_us, np.concatenate([[0], ends_us]), np.concatenate([[0.0], carried]))
    if trace.burst_bytes is not None:
        bursts = np.concatenate([[0], np.cumsum(8 * trace.burst_bytes)])
        bits += bursts[np.searchsorted(ends_us, at_us, side="right")]
    return bits


def outages(trace: Trace) -> list[Outage]:
    """Return when a trace carries nothing: for any time if it has rates, for a window or longer if bursts."""
    if not trace.changes_rate:
        return []
    none = np.zeros(len(trace.keep_us), dtype=np.int64)
    idle = (none if trace.rate_bps is None else trace.rate_bps) == 0
    bursts = (none if trace.burst_bytes is None else trace.burst_bytes) > 0
    ends_us = np.cumsum(trace.keep_us)
    begins_us = ends_us - trace.keep_us
    # A run of idle steps ends behind a burst.
    before = np.concatenate([[False], idle[:-1] & ~bursts[:-1]])
    after = np.concatenate([idle[1:], [False]])
    first, last = np.flatnonzero(idle & ~before), np.flatnonzero(idle & (bursts | ~after))
    lasts_us = ends_us[last] - begins_us[first]
    least_us = 0 if trace.burst_bytes is None else WINDOW_US
    return [
        Outage(begin_us / 1e6, length_us / 1e6)
        for begin_us, length_us in zip(begins_us[first].tolist(), lasts_us.tolist(), strict=True)
        if length_us >= least_us
    ]
