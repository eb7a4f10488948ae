"""A trace of TheaterQ, in its form SIMPLE (five columns, of which the last two may lack) or EXTENDED (ten).

A line that begins with no digit is a comment. A RATE of -1 is none: the link is not limited. A LOSS of 100 %
carries nothing; another LOSS gets a remark, as does everything else that a trace has no place for.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fecbench.complaint import wrong_value
from fecbench.quantities import counted
from fecbench.topologies.link_formats.lines import Imported, lines_of, number, numbered
from fecbench.topologies.trace import MOST_BPS, Trace, TraceError

SIMPLE = ("KEEP", "LATENCY", "RATE", "LOSS", "LIMIT")
EXTENDED = (
    *("KEEP", "LATENCY", "JITTER", "RATE", "LOSS", "LIMIT"),
    *("DUP_PROB", "DUP_DELAY", "ROUTE_ID", "QUEUE_ID"),
)
_FEWEST = 3
_CERTAIN = 2**32 - 1
"""A LOSS of 100 %."""
_Columns = dict[str, NDArray[np.float64]]


def read(content: bytes) -> Imported:
    lines = lines_of(content)
    heading = _heading(lines)
    rows = [(place, columns) for place, columns in numbered(lines) if columns and columns[0][:1].isdigit()]
    if not rows:
        raise TraceError("has no line that begins with a digit: none of its lines is an entry")
    names = _form(rows, heading)
    values = [[_whole(text, f"line {place}") for text in columns] for place, columns in rows]
    columns = {name: np.array([row[at] for row in values]) for at, name in enumerate(names)}
    for name, least, most in (("RATE", -1, MOST_BPS), ("LOSS", 0, _CERTAIN), ("LATENCY", 0, 1e12)):
        for (place, _), value in zip(rows, columns.get(name, np.array([])), strict=False):
            if not least <= value <= most:
                raise TraceError(f"line {place}: {name} = {value:g}: must be {least} to {most:g}")
    loss = columns.get("LOSS", np.zeros(len(rows))) / _CERTAIN
    rate = np.where(columns["RATE"] < 0, MOST_BPS, columns["RATE"])
    rate[loss >= 1] = 0
    unlimited = bool((columns["RATE"] < 0).all() and (loss < 1).all())
    trace = Trace.of(
        [round(keep_us) for keep_us in columns["KEEP"].tolist()],
        rate_bps=None if unlimited else [round(bps) for bps in rate.tolist()],
        owd_us=[round(latency_ns / 1e3) for latency_ns in columns["LATENCY"].tolist()],
    )
    return Imported(trace, tuple(_notes(columns, loss)))


def _whole(text: str, where: str) -> float:
    """Return a whole number, as all of this form are: one with a fraction has another unit."""
    value = number(text, where)
    if not value.is_integer():
        raise TraceError(wrong_value(where, text.strip()[:40], "a whole number"))
    return value


def _heading(lines: list[str]) -> tuple[str, ...]:
    """The names of a heading, if there is one; refuse another tool's."""
    for place, line in enumerate(lines, start=1):
        names = tuple(name.strip(" <>#;").upper() for name in line.strip(" #;").split(","))
        if len(names) > 1 and (names[0] == "KEEP" or (place == 1 and line[:1].isalpha())):
            if names not in (SIMPLE[: max(_FEWEST, len(names))], EXTENDED):
                forms = " or ".join(",".join(form) for form in (SIMPLE, EXTENDED))
                raise TraceError(f"line {place}: {line[:60]!r}: must be {forms}")
            return names
    return ()


def _form(rows: list[tuple[int, list[str]]], heading: tuple[str, ...]) -> tuple[str, ...]:
    """The names of the columns, by how many there are."""
    count = len(rows[0][1])
    names = EXTENDED if count == len(EXTENDED) else SIMPLE[:count]
    if count < _FEWEST or len(names) != count:
        raise TraceError(
            f"line {rows[0][0]}: has {counted(count, 'column')}: must have {len(SIMPLE)} (SIMPLE) or"
            f" {len(EXTENDED)}"
            " (EXTENDED)"
        )
    for place, columns in rows:
        if len(columns) != count:
            raise TraceError(
                f"line {place}: has {counted(len(columns), 'column')}; line {rows[0][0]} has {count}"
            )
    if heading and heading[:3] != names[:3]:
        raise TraceError(f"line {rows[0][0]}: has {counted(count, 'column')}; the heading has {len(heading)}")
    return names


def _notes(columns: _Columns, loss: NDArray[np.float64]) -> Iterator[str]:
    steps, keep = len(loss), columns["KEEP"]
    if certain := int((loss >= 1).sum()):
        yield f"LOSS of 100 % in {certain:,} of {counted(steps, 'step')}: they carry nothing."
    part = np.where(loss < 1, loss, 0)
    if part.any():
        mean = float((part * keep).sum() / keep.sum())
        if (loss == loss[0]).all():
            yield (
                f'LOSS of {100 * mean:.3g} % is not in the trace: write loss.model = "uniform" and'
                f" loss.p = {mean:.6g}."
            )
        else:
            yield (
                f"LOSS of {100 * part.min():.3g} to {100 * part.max():.3g} % ({100 * mean:.3g} % in the mean)"
                " is left out: losses are no part of a trace."
            )
    if unlimited := int((columns["RATE"] < 0).sum()):
        limit = _limit(unlimited, steps)
        yield f"{unlimited:,} of {counted(steps, 'step')} have no limit (RATE -1): {limit}."
    if "LIMIT" in columns and columns["LIMIT"].any():
        limits = columns["LIMIT"]
        yield f"LIMIT of {limits.min():g} to {limits.max():g} is left out: a design has the queue."
    for name, meaning in (("JITTER", "a design has jitter_ms"), ("DUP_PROB", "nothing is sent twice here")):
        if name in columns and columns[name].any():
            yield f"{name} is left out: {meaning}."


def _limit(unlimited: int, steps: int) -> str:
    return "the design's rate holds" if unlimited == steps else f"{MOST_BPS // 10**9} Gbit/s stand for it"
