"""Time to start the trace of a link, from its file to a link that is ready: one of ten million rows, beside
one of a thousand."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

from bench.link_cost import two_namespaces
from bench.table import Row, print_table
from fecbench.topologies import link_traces
from fecbench.topologies.link import DirectionSettings, LinkEnd, LinkSettings
from fecbench.topologies.trace import MOST_STEPS
from fecbench.topologies.wire_link import WireLink

ROUNDS = 3
BOUND_S = 2.0


def run() -> list[str]:
    """The lines of bounds that were missed."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for count in (1000, MOST_STEPS):
            path = Path(folder) / f"{count}.csv"
            _write(path, count)
            times_s = [_start(path) for _ in range(ROUNDS)]
            rows += [
                Row(f"{count:,} rows: file read", [1e3 * read_s for read_s, _ in times_s]),
                Row(f"{count:,} rows: link ready", [1e3 * ready_s for _, ready_s in times_s]),
            ]
    print_table("Start of a link with a trace", "ms", rows)
    ready_s = rows[-1].median / 1e3
    if ready_s <= BOUND_S:
        return []
    return [f"a trace of {MOST_STEPS:,} rows starts in {ready_s:.1f} s: at most {BOUND_S:g}"]


def _write(path: Path, count: int) -> None:
    rng = np.random.default_rng(1)
    columns = {
        "keep_us": np.full(count, 1000),
        "rate_bps": rng.integers(10**6, 10**8, count),
        "owd_us": rng.integers(10_000, 50_000, count),
    }
    csv.write_csv(pa.table(columns), path, csv.WriteOptions(quoting_style="none"))


def _start(path: Path) -> tuple[float, float]:
    """Return the time in s until the file was read, and until the link was ready."""
    with _ends() as (near, far):
        begun = time.monotonic()
        trace, _ = link_traces.read(path)
        read = time.monotonic()
        settings = DirectionSettings(trace.mean_bps / 1e6, 10, queue_ms=100, trace=trace)
        link = WireLink(near, far, LinkSettings(settings, settings), late_bound_us=1000)
        link.wait_ready()
        ready = time.monotonic()
        link.close()
    return read - begun, ready - begun


@contextmanager
def _ends() -> Iterator[tuple[LinkEnd, LinkEnd]]:
    with two_namespaces() as paths:
        yield LinkEnd(paths["near"], "near"), LinkEnd(paths["far"], "far")
