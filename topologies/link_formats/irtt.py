"""A recording of irtt: the JSON that `irtt client -o` writes, or a CSV that is made of it, as LENS has it.

The CSV has columns by a heading: timestamp (in s, or a whole number of ms, µs or ns by its digits), and
uplink, downlink or rtt (ms). A packet that was lost in either direction has no delay: −1 or 0 in a column, or
`lost` of the JSON. Then the delay is that of before, and before the first answer that of the first.

Times of the JSON are those of its clock that never steps, where it has them.

Clocks drift: of an uplink or downlink that is below 0 otherwise, nothing can be known, and the file is
refused.
"""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from fecbench.quantities import counted
from fecbench.topologies.link_formats.lines import Imported, lines_of, number, steps_us, time_s
from fecbench.topologies.trace import Trace, TraceError

DELAYS = {"rtt": "rtt", "uplink": "send", "downlink": "receive"}
"""The columns that may be chosen, and how the JSON names them."""
_UNITS = {13: 1e3, 16: 1e6, 19: 1e9}
"""Units in a second, by the digits of a time since 1970."""

_Row = tuple[str, float, float | None]
"""The place in the file, the time (s), and the delay (ms); None: the packet was lost."""


def answers(content: bytes) -> list[tuple[float, float | None]]:
    """Return the time (s) of each packet and its round-trip time (ms); None: it was lost."""
    rows = _rows(content, "rtt")
    for place, _, delay in rows:
        if delay is not None and delay < 0:
            raise TraceError(f"{place}: rtt = {delay:g}: must not be below 0")
    return [(at_s, delay) for _, at_s, delay in rows]


def lost_by_direction(content: bytes) -> dict[str, int]:
    """Return how many packets the JSON says were lost up and down; empty where it does not know of one."""
    if not _is_json(content):
        return {}
    lost = Counter(str(trip["lost"]).lower() for trip in _trips(content))
    losses = {direction: lost[f"true_{direction}"] for direction in ("up", "down")}
    return losses if sum(losses.values()) == sum(lost.values()) - lost["false"] > 0 else {}


def _is_json(content: bytes) -> bool:
    return content.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{"


def _rows(content: bytes, chosen: str) -> list[_Row]:
    return list(_round_trips(content, chosen) if _is_json(content) else _lines(content, chosen))


def read(content: bytes, column: str = "") -> Imported:
    kind = column or "rtt"
    if kind not in DELAYS:
        raise TraceError(f"column {kind[:40]!r}: must be one of {', '.join(DELAYS)}")
    rows = _rows(content, kind)
    delay_before = next((delay for _, _, delay in rows if delay is not None), None)
    if delay_before is None:
        raise TraceError(f"has no answer: all of its {counted(len(rows), 'packet', 'was/were')} lost")
    delays, lost = list[float](), 0
    for place, _, delay in rows:
        if delay is not None and delay < 0:
            raise TraceError(f"{place}: {kind} = {delay:g}: clocks differ; correct them, or take rtt")
        lost += delay is None
        delay_before = delay_before if delay is None else delay
        delays.append(delay_before / 2 if kind == "rtt" else delay_before)
    keep = steps_us([at_s for _, at_s, _ in rows], [place for place, _, _ in rows])
    trace = Trace.of(keep, owd_us=[round(1e3 * delay) for delay in delays])
    note = (
        f"{lost:,} of {counted(len(rows), 'packet')} were lost: the delay is that of before, and losses"
        " are no part of it."
    )
    return Imported(trace, (note,) if lost else ())


def _lines(content: bytes, kind: str) -> Iterator[_Row]:
    lines = lines_of(content)
    names = [name.strip() for name in lines[0].split(",")]
    if "timestamp" not in names or kind not in names:
        raise TraceError(f"line 1: {lines[0][:60]!r}: must have the columns timestamp and {kind}")
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise TraceError(f"line 1: {repeated[:40]!r}: is the name of several columns")
    at, place = names.index("timestamp"), names.index(kind)
    others, begin = [names.index(name) for name in DELAYS if name in names], None
    for line_number, line in enumerate(lines[1:], start=2):
        values = line.split(",")
        if len(values) != len(names):
            raise TraceError(
                f"line {line_number}: has {counted(len(values), 'column')}; the heading has {len(names)}"
            )
        delays = {other: _delay(values[other], f"line {line_number}") for other in others}
        is_lost = any(delay in (-1, 0) for delay in delays.values())
        time, units = _time(values[at], f"line {line_number}")
        begin = time if begin is None else begin  # 19 digits are more than a float can hold
        yield f"line {line_number}", float(time - begin) / units, None if is_lost else delays[place]


def _delay(text: str, where: str) -> float:
    if text.strip().lower() in ("", "nan"):
        raise TraceError(f"{where}: {text.strip()!r} is no delay: that of a packet that was lost is -1")
    return number(text, where)


def _time(text: str, where: str) -> tuple[int | float, float]:
    """A time, and its units of a second."""
    stripped = text.strip()
    if stripped.isascii() and stripped.isdigit() and len(stripped) in _UNITS:
        return int(stripped), _UNITS[len(stripped)]
    return time_s(text, where), 1.0


def _trips(content: bytes) -> list[Any]:
    try:
        document = json.loads(content.decode("utf-8-sig"))
        trips = document["round_trips"]
    except (ValueError, RecursionError) as error:
        raise TraceError(f"is no whole JSON: {error}") from None
    except KeyError:
        trips = None
    if not isinstance(trips, list) or not trips:
        raise TraceError("is no recording of irtt: it has no round_trips")
    return trips


def _round_trips(content: bytes, kind: str) -> Iterator[_Row]:
    trips = _trips(content)
    begin_ns, clock = None, _clock(trips)
    for place, trip in enumerate(trips):
        where = f"round trip {place}"
        try:
            at_ns = trip["timestamps"]["client"]["send"].get(clock) or 0
            is_lost, delays = str(trip["lost"]).lower() != "false", trip["delay"]
        except (KeyError, TypeError, AttributeError):
            raise TraceError(f"{where}: must have lost, delay and timestamps.client.send") from None
        at_ns = _whole_ns(at_ns, where)
        begin_ns = at_ns if begin_ns is None else begin_ns
        yield where, (at_ns - begin_ns) / 1e9, _delay_ms(delays, kind, is_lost, where)


def _clock(trips: list[Any]) -> str:
    """The clock by which times are compared: the computer's own may be set while irtt runs."""
    try:
        ends = [trip["timestamps"]["client"]["send"] for trip in trips]
        only_wall = any(end.get("wall") and not end.get("monotonic") for end in ends[1:])
        return "wall" if only_wall else "monotonic"
    except (KeyError, TypeError, AttributeError):
        return "wall"  # the round trip that lacks it is refused


def _delay_ms(delays: Any, kind: str, is_lost: bool, where: str) -> float | None:
    if is_lost:
        return None
    delay_ns = delays.get(DELAYS[kind]) if isinstance(delays, dict) else None
    if delay_ns is None:
        raise TraceError(
            f"{where}: has no delay {DELAYS[kind]!r}: a server without timestamps tells rtt alone"
        )
    return _whole_ns(delay_ns, where) / 1e6


def _whole_ns(value: Any, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= 1 << 63:
        raise TraceError(f"{where}: {str(value)[:40]!r}: must be a whole number of ns")
    return value
