"""A trace of mahimahi: a line is the time (ms) of an opportunity to send 1,500 bytes of IP.

The last one is the period.
"""

from itertools import pairwise

from fecbench.topologies.link import FULL_FRAME_BYTES
from fecbench.topologies.link_formats.lines import Imported, lines_of, whole
from fecbench.topologies.trace import Trace, TraceError


def read(content: bytes) -> Imported:
    lines = lines_of(content)
    times = [whole(line, f"line {number}") for number, line in enumerate(lines, start=1)]
    for number, (before, after) in enumerate(pairwise(times), start=2):
        if after < before:
            raise TraceError(f"line {number}: {after} comes after {before}: times must not fall")
    period = times[-1]
    if period == 0:
        raise TraceError("it lasts 0 ms: the last line is the period")
    bursts: dict[int, int] = {}
    for time in times:  # an opportunity at 0 is that at the end of the previous period
        bursts[time or period] = bursts.get(time or period, 0) + FULL_FRAME_BYTES
    ends = sorted(bursts)
    keep = [1000 * (end - begin) for begin, end in pairwise([0, *ends])]
    return Imported(Trace.of(tuple(keep), burst_bytes=tuple(bursts[end] for end in ends)))
