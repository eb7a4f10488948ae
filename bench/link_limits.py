"""Accuracy of the emulated link's delay, and its capacity.

The delay stands beside the same traffic over a veth, which has no delay to keep, and beside a thread that
sleeps until a time, which is all that a program can ask of the kernel. The traffic of the second table comes
in few sends of many packets, of which the kernel makes frames at the TAP: a sender that makes a system call a
packet would need the processor that the link has to have.
"""

import socket
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from bench.link_cost import SIDES, configure, real_time, sockets, two_namespaces
from bench.table import Row, print_table
from fecbench.runners.calibration.laboratory import Laboratory
from fecbench.topologies.link import LinkEnd, LinkSettings
from fecbench.topologies.wire_link import WireLink

ROUNDS = 5
PROBES = 2000
OWD_MS = 10
SLEEP_S = 0.001
MOST_US = {50: 15, 99: 60}
"""The bounds of the delay's error, by its quantile."""
RATES_GBPS = (0.5, 1, 1.5, 2, 2.5, 3)
LEAST_GBPS = 2.5
LOAD = 0.95
LEAST_OFFERED = 0.98
"""Least share of that load."""
SECONDS = 1.0
PAYLOAD_BYTES, FRAME_BYTES, FRAMES_A_SEND = 1400, 1442, 30
QUEUE_PACKETS = 5000
LATE_US = 1000
UDP_SEGMENT = 103


@dataclass(frozen=True)
class Load:
    """A round at one rate."""

    offered_gbps: float
    """Load that the sender reached, of the link's rate times LOAD."""
    cpu_share: float
    lost: int
    """Frames that nobody's law drops: the kernel's, or those that the link refused."""
    late_share: float
    """Share of the frames that left more than LATE_US late."""


def run() -> list[str]:
    """Print both tables. A line for each bound that is missed."""
    laboratory = Laboratory("wire")
    ways: dict[str, Callable[[], NDArray[np.float64]]] = {
        "a sleep": _sleep_error_us,
        "veth": lambda: laboratory.prober_error_us(PROBES),
        "wire": lambda: laboratory.delay_error_us(LinkSettings.symmetric(1000, OWD_MS), PROBES),
    }
    rounds = [{name: way() for name, way in ways.items()} for _ in range(ROUNDS)]
    lines = []
    for q, most_us in MOST_US.items():
        rows = [Row(name, [float(np.percentile(errors[name], q)) for errors in rounds]) for name in ways]
        print_table(f"error of a delay of {OWD_MS} ms, p{q} of {PROBES} packets, {ROUNDS} rounds", "µs", rows)
        if rows[-1].median > most_us:
            lines.append(f"missed: link, delay error p{q}: {rows[-1].median:.0f} µs; the bound is {most_us}")
    return [*lines, *_rates()]


def _sleep_error_us() -> NDArray[np.float64]:
    """Return how long after its time a thread of the real-time class wakes."""
    errors_us = []
    with real_time():
        for _ in range(PROBES):
            due = time.monotonic() + SLEEP_S
            time.sleep(SLEEP_S)
            errors_us.append(1e6 * (time.monotonic() - due))
    return np.array(errors_us)


def _rates() -> Iterator[str]:
    table = Table(title=f"link, frames of {FRAME_BYTES} bytes at {LOAD:.0%} load", title_justify="left")
    for heading in ("Gbit/s", "offered", "CPU of a core", "frames lost", f"later than {LATE_US} µs"):
        table.add_column(heading, justify="right")
    top = 0.0
    for gbps in RATES_GBPS:
        loads = [_load(gbps) for _ in range(ROUNDS)]
        lost = _median(load.lost for load in loads)
        offered_gbps = _median(load.offered_gbps for load in loads)
        table.add_row(
            f"{gbps:g}",
            f"{offered_gbps:.2f}",
            f"{_median(load.cpu_share for load in loads):.0%}",
            f"{lost:.0f}",
            f"{_median(load.late_share for load in loads):.2%}",
        )
        # A sender that is too slow tries nothing.
        if not lost and offered_gbps >= LEAST_OFFERED * LOAD * gbps:
            top = gbps
    Console().print(table)
    if top < LEAST_GBPS:
        yield f"missed: link, top rate without loss: {top:g} Gbit/s; the bound is {LEAST_GBPS:g}"


def _median(values: Iterable[float]) -> float:
    return float(np.median(list(values)))


def _load(gbps: float) -> Load:
    settings = LinkSettings.symmetric(1000 * gbps, OWD_MS, queue_packets=QUEUE_PACKETS)
    with _wire(settings) as (link, sender):
        begun = time.monotonic()
        sent = _flood(sender, gbps)
        took_s = time.monotonic() - begun
        time.sleep(10 * OWD_MS / 1e3)  # all are out
        report = link.finish()
    up = report.directions["up"]
    assert report.cpu_s is not None
    assert up.late is not None
    return Load(
        offered_gbps=sent * FRAME_BYTES * 8 / took_s / 1e9,
        cpu_share=report.cpu_s / took_s,
        lost=sent - up.frames_out - up.queue_dropped,
        late_share=up.late / up.frames_out,
    )


def _flood(sender: socket.socket, gbps: float) -> int:
    """Send at the rate for SECONDS; how many frames."""
    sender.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, PAYLOAD_BYTES)
    data = bytes(PAYLOAD_BYTES * FRAMES_A_SEND)
    interval_s = FRAME_BYTES * FRAMES_A_SEND * 8 / (gbps * 1e9 * LOAD)
    with real_time():
        begun = time.monotonic()
        for n in range(round(SECONDS / interval_s)):
            time.sleep(max(0.0, begun + n * interval_s - time.monotonic()))
            sender.send(data)
    return FRAMES_A_SEND * round(SECONDS / interval_s)


@contextmanager
def _wire(settings: LinkSettings) -> Iterator[tuple[WireLink, socket.socket]]:
    """A link, and a socket that sends along it."""
    with two_namespaces() as namespaces:
        near, far = (LinkEnd(namespaces[side], side) for side in SIDES)
        link = WireLink(near, far, settings, late_bound_us=LATE_US)
        try:
            link.wait_ready()
            configure(namespaces)
            with sockets(namespaces) as sender:
                yield link, sender
        finally:
            link.close()
