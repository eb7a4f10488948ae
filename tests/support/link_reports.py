"""Reports of links that were never there: what a test says of one, and else nothing."""

from collections.abc import Mapping
from typing import Any

from fecbench.topologies.link_report import DirectionReport, LinkReport


def direction_report(frames: int = 0, **fields: Any) -> DirectionReport:
    """Return a report in which so many frames of 1,000 bytes came, and all of them left."""
    none = ("max_queue_bytes", "max_queue_packets", "lateness_us", "read_lag_us")
    zero = ("queue_dropped", "oversize_dropped", "in_flight", "write_errors", "kernel_dropped", "late")
    carried = {
        "frames_in": frames,
        "frames_out": frames,
        "bytes_in": 1000 * frames,
        "bytes_out": 1000 * frames,
    }
    usual = dict.fromkeys(none) | dict.fromkeys(zero, 0) | carried | {"conserved": True}
    return DirectionReport(**{**usual, **fields})


def link_report(directions: Mapping[str, DirectionReport], **fields: Any) -> LinkReport:
    unknown = ("version", "command", "configuration", "scheduling", "cpu_s", "elapsed_s")
    usual = dict.fromkeys(unknown) | {"backend": "wire", "late_bound_us": 1000, "directions": directions}
    return LinkReport(**{**usual, **fields})
