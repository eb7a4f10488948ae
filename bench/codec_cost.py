"""µs per operation of the codes, on the rows of the thesis' Tables 4.1 to 4.10, beside klauspost/reedsolomon,
the library that the thesis used. Symbols are of 1,000 bytes.

Ours are medians by criterion, klauspost's are means of Go's testing package, one after the other in the same
run. The thesis measured on an i5-3337U of 2.7 GHz.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from os import environ
from pathlib import Path

from rich.console import Console
from rich.table import Table

FEC = Path(__file__).parents[1] / "quic-impls" / "fec"
LOCK_TOOL = FEC.parent / "crates_lock.py"
PEER_TIME = "500ms"
US_PER_NS = 1e-3
XOR_BYTES_PER_NS = 5.0  # at least
SYMBOL_BYTES = 1000
WIDTH = 100  # no figure is cut


@dataclass(frozen=True)
class Row:
    """A figure of the thesis, ns per operation, and the names of the same operation in our output and the
    peer's."""

    table: str
    code: str
    operation: str
    ours: str
    thesis_ns: float | None = None
    peer: str | None = None
    bound_ns: float | None = None


# For each (n, k, L): Table 4.1, Table 4.2.
RLC = {4: (21260, 15332), 8: (40275, 41986), 20: (97472, 353654), 40: (192123, 2211082)}
# For each k of (k + 1, k): Tables 4.3 to 4.6.
XOR = {
    4: (2031, 1863, 9013, 8958),
    8: (4282, 3504, 20196, 18939),
    20: (11431, 8097, 54198, 49672),
    40: (23454, 16176, 110603, 103315),
}
# For each (n, k): Tables 4.7 to 4.10.
REED_SOLOMON = {
    (5, 4): (1757, 3287, 4522, 8444),
    (6, 4): (2738, 4340, 5756, 9660),
    (13, 10): (6998, 8590, 21458, 28685),
    (20, 15): (14923, 16239, 54276, 66868),
    (50, 30): (101043, 145624, 99370, 431735),
}
BOUNDS_NS = {
    "rs-20-15-encode": 10_000.0,
    "rs-20-15-decode": 15_000.0,
    "rlc-3-2-20-encode": 500.0,
    "rlc-3-2-40-decode": 150_000.0,
    "worst-step": 1_000_000.0,
    "worst-step-portable": 1_000_000.0,
    **{f"xor-{k + 1}-{k}-encode": k * SYMBOL_BYTES / XOR_BYTES_PER_NS for k in XOR},
}
# Operations that may take no longer than the peer's, in the same run.
NO_SLOWER_THAN_PEER = frozenset({"rs-50-30-decode"})
KEPT, MISSED = "≤", "MISSED:"
OPERATIONS = ("encode", "decode")
KINDS = {"-portable": ", no SIMD", "-uncached": ", uncached"}


def rows() -> Iterator[Row]:
    """Yield the rows in the order of the thesis' tables."""
    for (place, operation), length in product(enumerate(OPERATIONS), RLC):
        name = f"rlc-3-2-{length}-{operation}"
        yield _row(1 + place, f"RLC (3, 2, {length})", operation, name, RLC[length][place])
    kinds = enumerate(product(("", "-portable"), OPERATIONS))
    for (place, (kind, operation)), k in product(kinds, XOR):
        name = f"xor-{k + 1}-{k}-{operation}"
        peer = None if kind else name
        yield _row(3 + place, f"XOR ({k + 1}, {k})", operation, name + kind, XOR[k][place], peer)
    kinds = enumerate(product(("", "-uncached"), OPERATIONS))
    for (place, (kind, operation)), (n, k) in product(kinds, REED_SOLOMON):
        name = f"rs-{n}-{k}-{operation}{kind}"
        yield _row(7 + place, f"RS ({n}, {k})", operation, name, REED_SOLOMON[n, k][place], name)
    for kind in ("", "-portable"):
        yield _row(None, "hostile peer", "symbol", f"worst-step{kind}")


def _row(
    table: int | None,
    code: str,
    operation: str,
    ours: str,
    thesis_ns: float | None = None,
    peer: str | None = None,
) -> Row:
    kind = next((text for suffix, text in KINDS.items() if ours.endswith(suffix)), "")
    place = "" if table is None else f"4.{table}"
    return Row(place, code, operation + kind, ours, thesis_ns, peer, BOUNDS_NS.get(ours))


def run() -> list[str]:
    """Build both programs, run them, and print the table; a line for each bound that was missed."""
    _call([sys.executable, str(LOCK_TOOL), "restore", str(FEC)])
    _call(["cargo", "build", "--quiet", "--release", "--locked", "--package", "fec-bench"], FEC)
    _call(["go", "build", "-o", "build/peer", "."], FEC / "peer")
    with tempfile.TemporaryDirectory(prefix="fecbench-criterion-") as folder:
        _call([str(FEC / "target/release/tables"), "--bench"], environment={"CRITERION_HOME": folder})
        ours = {row.ours: _median_ns(Path(folder) / row.ours) for row in rows()}
    peer = json.loads(_call([str(FEC / "peer/build/peer"), "-time", PEER_TIME]))
    print_rows(ours, peer)
    return missed(ours, peer)


def missed(ours: Mapping[str, float], peer: Mapping[str, float]) -> list[str]:
    """A line for each bound that these times, in ns, do not keep."""
    return [
        f"missed: {row.code}, {row.operation}: {_us(ours[row.ours])} µs; "
        f"the bound is {_us(_bound_ns(row, peer))} µs"
        for row in rows()
        if _verdict(row, ours, peer) == MISSED
    ]


def _call(command: Sequence[str], folder: Path = FEC, environment: Mapping[str, str] | None = None) -> str:
    """Return a command's output; its standard error is shown if it fails."""
    all_of_it = {**environ, **(environment or {})}
    ran = subprocess.run(command, cwd=folder, env=all_of_it, capture_output=True, text=True)
    if ran.returncode != 0:
        sys.exit(f"{' '.join(command)}: status {ran.returncode}\n{ran.stderr}")
    return ran.stdout


def _median_ns(measurement: Path) -> float:
    estimates = json.loads((measurement / "new" / "estimates.json").read_text())
    return float(estimates["median"]["point_estimate"])


def print_rows(ours: Mapping[str, float], peer: Mapping[str, float]) -> None:
    """The table of these times, in ns by the names that the rows have for them."""
    title = "codes, symbols of 1,000 bytes, µs per operation"
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    for heading in ("table", "code", "operation"):
        table.add_column(heading, no_wrap=True)
    for heading in ("thesis", "ours", "klauspost", "bound"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows():
        there = None if row.peer is None else peer[row.peer]
        figures = [_us(row.thesis_ns), _us(ours[row.ours]), _us(there), _bound(row, ours, peer)]
        table.add_row(row.table, row.code, row.operation, *figures)
    Console(width=WIDTH).print(table)


def _us(ns: float | None) -> str:
    return "" if ns is None else f"{ns * US_PER_NS:.2f}"


def _bound_ns(row: Row, peer: Mapping[str, float]) -> float | None:
    if row.peer is not None and row.ours in NO_SLOWER_THAN_PEER:
        return peer[row.peer]
    return row.bound_ns


def _bound(row: Row, ours: Mapping[str, float], peer: Mapping[str, float]) -> str:
    bound_ns = _bound_ns(row, peer)
    return "" if bound_ns is None else f"{_verdict(row, ours, peer)} {float(_us(bound_ns)):g}"


def _verdict(row: Row, ours: Mapping[str, float], peer: Mapping[str, float]) -> str:
    bound_ns = _bound_ns(row, peer)
    return KEPT if bound_ns is None or ours[row.ours] <= bound_ns else MISSED
