"""A trace of mahimahi: the rate of a path, and how it changes. It tells nothing else."""

import numpy as np

from fecbench.errors import BadInput
from fecbench.runners.paths.path import Estimate, Path
from fecbench.topologies.link import FULL_FRAME_BYTES
from fecbench.topologies.link_formats import mahimahi
from fecbench.topologies.trace import TraceError

_PACKET_BYTES = 1500
"""Bytes of IP of each opportunity."""
_WINDOW_US = 500_000
"""Window of a rate, as in mahimahi's own graphs."""


def path(content: bytes) -> Path:
    """Return the path of a trace. Raises BadInput, without the name of the file."""
    try:
        trace = mahimahi.read(content).trace
    except TraceError as error:
        raise BadInput(
            f"is no recording that is known here; as a trace of mahimahi: {error}. A CSV must have the"
            " columns timestamp (s) and rtt (ms), and -1 where a packet was lost"
        ) from None
    ends_us = np.cumsum(trace.keep_us)
    sizes = np.asarray(trace.burst_bytes, dtype=np.float64) * (_PACKET_BYTES / FULL_FRAME_BYTES)
    total = np.concatenate(([0.0], np.cumsum(sizes)))
    lasts_us = float(ends_us[-1])
    edges = np.arange(0, lasts_us - _WINDOW_US + 1, _WINDOW_US)
    sums = np.searchsorted(ends_us, edges + _WINDOW_US, "right"), np.searchsorted(ends_us, edges, "right")
    rates = (total[sums[0]] - total[sums[1]]) * 8 / _WINDOW_US
    mean = float(total[-1] * 8 / lasts_us)
    low, high = np.quantile(rates, [0.1, 0.9]) if rates.size > 1 else (mean, mean)
    notes = []
    if stops := int((rates == 0).sum()):
        notes.append(f"In {stops} of {rates.size} half seconds it carries nothing.")
    if high > 1.5 * max(low, 1e-9):
        notes.append("Its rate changes: 8 of 10 half seconds are within the interval. Its mean is looked up.")
    low = max(float(low), mean / 10)
    return Path(
        form="mahimahi",
        bandwidth_mbps=Estimate(mean, min(low, mean), max(float(high), mean)),
        lasts_s=lasts_us / 1e6,
        notes=tuple(notes),
    )
