"""Files of traces: our own form, those of others, and made ones.

Ours is CSV with a heading, or Parquet: keep_us (the duration of a step), and any of rate_bps, owd_us and
burst_bytes (bytes that may leave at the end of the step besides). Values that a file lacks are the constants
of the design.
"""

import csv
import hashlib
import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fecbench.errors import BadInput
from fecbench.quantities import counted
from fecbench.topologies.link import TopologyError
from fecbench.topologies.link_formats import irtt, mahimahi, rates, theaterq
from fecbench.topologies.link_formats.lines import Imported, lines_of, whole
from fecbench.topologies.trace import COLUMNS, MOST_STEPS, Trace, TraceError
from fecbench.unpacking import content_of

SUFFIXES = (".csv", ".parquet")
MOST_FILE_BYTES = 1 << 28
MOST_JSON_BYTES = 1 << 30
"""Largest file of irtt, which writes a page for each packet."""
_BLOCK_BYTES = 1 << 22
"""Block size of a file that is read: by measurement, the quickest."""
STEP_US = 100_000
"""Step of made traces."""


def read(path: Path) -> tuple[Trace, str]:
    """The trace of a file, and the file's SHA-256. Raises TopologyError, which names the file."""
    content = _content(path)
    try:
        if path.suffix == ".parquet":
            trace = _parquet(content)
        else:
            trace = _whole_numbers(content) or _native(lines_of(content))
        return trace, hashlib.sha256(content).hexdigest()
    except TraceError as error:
        raise TopologyError(f"{path}: {error}") from error


def text_of(trace: Trace) -> str:
    """The same as a file."""
    columns = {name: column.tolist() for name, column in trace.columns.items()}
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return written.getvalue()


def _content(path: Path) -> bytes:
    try:
        if path.stat().st_size > MOST_FILE_BYTES:
            raise TopologyError(f"{path}: has more than {MOST_FILE_BYTES >> 20} MiB")
        return path.read_bytes()
    except OSError as error:
        raise TopologyError(f"{path}: cannot be read: {error.strerror}") from error


def _whole_numbers(content: bytes) -> Trace | None:
    """The trace of a file that is right. None: it is not, and _native() says in which line and why.

    It reads ten million lines in about a second.
    """
    # Imported here: it takes longer to load than most commands take to run.
    import pyarrow as pa
    from pyarrow import csv as arrow

    if b"x" in content or b"X" in content:  # hexadecimal, or not a number
        return None
    read, kinds = arrow.ReadOptions(block_size=_BLOCK_BYTES), dict.fromkeys(COLUMNS, pa.int64())
    parse = arrow.ParseOptions(ignore_empty_lines=False)
    convert = arrow.ConvertOptions(column_types=kinds, null_values=[], strings_can_be_null=False)
    try:
        table = arrow.read_csv(pa.BufferReader(content), read, parse, convert)
        names = table.column_names
        if not _are_columns(names):
            return None
        columns = {name: table[name].to_numpy() for name in names}
        for column in columns.values():
            column.flags.writeable = False  # so that a trace needs no copy
        return Trace(**columns)
    except (pa.ArrowException, UnicodeDecodeError, TraceError):
        return None


def _parquet(content: bytes) -> Trace:
    """The trace of a table of whole numbers."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(pa.BufferReader(content))
        names = file.schema_arrow.names
        if not _are_columns(names):
            raise TraceError(f"its columns are {','.join(names)[:60]!r}: they must be {_COLUMN_NAMES}")
        if file.metadata.num_rows > MOST_STEPS:  # refused before anything large is unpacked
            raise TraceError(f"has {file.metadata.num_rows} rows; at most {MOST_STEPS} steps")
        table = file.read()
        for name in names:
            if not pa.types.is_integer(table[name].type) or table[name].null_count:
                raise TraceError(f"{name} must have a whole number in each row")
        columns = {name: table[name].cast(pa.int64()).to_numpy() for name in names}
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        why = str(error).partition(". ")[0].splitlines()[0]
        raise TraceError(f"is no Parquet that can be read: {why[:80]}") from None
    for column in columns.values():
        column.flags.writeable = False
    return Trace(**columns)


_COLUMN_NAMES = "keep_us and any of " + ", ".join(name for name in COLUMNS if name != "keep_us")


def _are_columns(names: Sequence[str]) -> bool:
    """Whether these names, in any order, are those of a trace."""
    return len(names) == len(set(names) & COLUMNS.keys()) > 1 and "keep_us" in names


def _native(lines: list[str]) -> Trace:
    heading, *rows = csv.reader(lines)
    names = [name.strip() for name in heading]
    if not _are_columns(names):
        raise TraceError(f"line 1: {','.join(names)[:60]!r}: must be {_COLUMN_NAMES}")
    columns: dict[str, list[int]] = {name: [] for name in names}
    for number, row in enumerate(rows, start=2):
        if len(row) != len(names):
            raise TraceError(
                f"line {number}: has {counted(len(row), 'column')}; the heading has {len(names)}"
            )
        for name, text in zip(names, row, strict=True):
            columns[name].append(whole(text, f"line {number}: {name}"))
    rates, delays, bursts = (columns.get(name) for name in ("rate_bps", "owd_us", "burst_bytes"))
    return Trace.of(columns["keep_us"], rates, delays, bursts)


# Formats of other projects


def imported(kind: str, path: Path, column: str = "", holds: rates.Holds = "after") -> Trace:
    """Return the trace alone of `read_other()`."""
    return read_other(kind, path, column, holds).trace


def read_other(kind: str, path: Path, column: str = "", holds: rates.Holds = "after") -> Imported:
    """Return the trace of a file of another tool, of FORMATS, with remarks.

    `column` chooses where irtt has several. `holds` says of rates whether each holds after its time or before
    it. Raises TopologyError, which names the file.
    """
    try:
        content = content_of(path, MOST_FILE_BYTES if kind != "irtt" else MOST_JSON_BYTES)
    except BadInput as error:
        raise TopologyError(str(error)) from None
    try:
        if kind == "irtt":
            return irtt.read(content, column)
        if kind == "rates":
            return rates.read(content, holds)
        return _READERS[kind](content)
    except TraceError as error:
        raise TopologyError(f"{path}: {error}") from error


_READERS: Mapping[str, Callable[[bytes], Imported]] = {"mahimahi": mahimahi.read, "theaterq": theaterq.read}
FORMATS = ("mahimahi", "theaterq", "irtt", "rates")


# Made traces


@dataclass(frozen=True)
class Kind:
    """A kind of link. The logarithm of its rate wanders about that of its median, and forgets where it was
    after `memory_s`."""

    summary: str
    median_mbps: float
    spread: float
    """Standard deviation of the rate's natural logarithm."""
    memory_s: float
    owd_ms: tuple[float, float]
    """The range: one value between handovers."""
    owd_noise_ms: float
    """Mean of what comes on top, exponential, for each step."""
    handover_s: float
    """The time between two handovers: the mean, or always this time if they are `regular`."""
    regular: bool
    outage_ms: tuple[float, float]
    """The range of the time for which a handover carries nothing."""
    fade_every_s: float
    fade_s: tuple[float, float]
    fade_share: float
    """The share of the rate that remains in a fade."""


KINDS: Mapping[str, Kind] = {
    "lte": Kind(
        "a phone on LTE that moves", 12, 0.8, 2, (20, 30), 3, 40, False, (50, 100), 15, (0.3, 1.0), 0.05
    ),
    "5g": Kind(
        "a phone on 5G in a city", 60, 1.0, 1, (8, 14), 1.5, 25, False, (30, 60), 10, (0.5, 2.0), 0.03
    ),
    "starlink": Kind(
        "a dish, whose satellite changes every 15 s",
        60,
        0.3,
        5,
        (15, 35),
        2,
        15,
        True,
        (50, 150),
        60,
        (0.2, 1.0),
        0.1,
    ),
    "wifi": Kind("a busy Wi-Fi", 25, 0.5, 0.5, (2, 3), 2, 1e9, False, (0, 0), 8, (0.1, 0.4), 0.1),
}
"""Round numbers of ours, in the range of recordings: no recorded trace is in them."""


def make(kind: str, seed: int, duration_s: float) -> Trace:
    """A made trace of one of KINDS, in steps of STEP_US."""
    of = KINDS[kind]
    rng = np.random.default_rng([seed, *kind.encode()])
    count, step_s = max(1, round(duration_s * 1e6 / STEP_US)), STEP_US / 1e6
    keeps = math.exp(-step_s / of.memory_s)
    wander = np.empty(count)
    wander[0] = rng.normal()
    for step, shock in enumerate(rng.normal(size=count - 1), start=1):
        wander[step] = keeps * wander[step - 1] + math.sqrt(1 - keeps**2) * shock
    rate_mbps = of.median_mbps * np.exp(of.spread * wander)
    for begin_s in _times(rng, of.fade_every_s, duration_s):
        lasts_s = rng.uniform(*of.fade_s)
        rate_mbps[round(begin_s / step_s) : round((begin_s + lasts_s) / step_s) + 1] *= of.fade_share
    owd_ms = np.full(count, rng.uniform(*of.owd_ms))
    if of.regular:
        handovers = list(np.arange(rng.uniform(0, of.handover_s), duration_s, of.handover_s))
    else:
        handovers = list(_times(rng, of.handover_s, duration_s))
    for begin_s in handovers:
        step = round(begin_s / step_s)
        owd_ms[step:] = rng.uniform(*of.owd_ms)
        # The step keeps the part of its rate for the time that the outage leaves.
        rate_mbps[step : step + 1] *= max(0.0, 1 - rng.uniform(*of.outage_ms) / (1e3 * step_s))
    owd_ms = owd_ms + rng.exponential(of.owd_noise_ms, count)
    return Trace.of(
        (STEP_US,) * count,
        rate_bps=tuple(int(rate) for rate in np.round(1e6 * rate_mbps)),
        owd_us=tuple(int(owd) for owd in np.round(1e3 * owd_ms)),
    )


def _times(rng: np.random.Generator, mean_s: float, duration_s: float) -> Iterator[float]:
    """Yield the times of a Poisson process."""
    at_s = rng.exponential(mean_s)
    while at_s < duration_s:
        yield at_s
        at_s += rng.exponential(mean_s)
