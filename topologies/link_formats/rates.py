"""Times (s) and rates (Mbit/s), two columns with a blank or a comma between. A # begins a comment.

A rate holds until the next time, or since the one before: that is as Pensieve reads its traces, in which the
first line says when the trace begins. More columns are another form, and are refused.
"""

from typing import Literal

from fecbench.quantities import counted
from fecbench.topologies.link_formats.lines import Imported, lines_of, number, numbered, steps_us, time_s
from fecbench.topologies.trace import Trace, TraceError

Holds = Literal["after", "before"]
"""Whether a rate holds after its time, or before it."""
_MOST_MBPS = 1e5


def read(content: bytes, holds: Holds = "after") -> Imported:
    times, rates, places = list[float](), list[int](), list[str]()
    for line_number, columns in numbered(lines_of(content)):
        if not columns or columns[0].startswith("#"):
            continue
        where = f"line {line_number}"
        if len(columns) != 2:
            raise TraceError(
                f"{where}: has {counted(len(columns), 'column')}: must have two, a time in s and a"
                " rate in Mbit/s"
            )
        if not times and columns[0][:1].isalpha():
            raise TraceError(
                f"{where}: {','.join(columns)[:40]!r}: is a heading: leave it out. The columns are a time in"
                " s and a rate in Mbit/s"
            )
        at_s, mbps = time_s(columns[0], where), number(columns[1], where)
        if not 0 <= mbps <= _MOST_MBPS:
            raise TraceError(f"{where}: {mbps:g} Mbit/s: must be 0 to 100000")
        times.append(at_s)
        rates.append(round(1e6 * mbps))
        places.append(where)
    if not times:
        raise TraceError("is empty")
    keep = steps_us(times, places)
    if holds == "after":
        return Imported(Trace.of(keep, rate_bps=rates))
    if len(times) < 2:
        raise TraceError("has one time: rates that hold before their time need two")
    return Imported(Trace.of(keep[:-1], rate_bps=rates[1:]))
