"""Time that endpoints take of a processor in virtual time, from the values of a point: none, unless a design
has `processor.handshake_ms` or `processor.datagram_us`.

Emulated endpoints take what they take, so that nothing else carries out such a design.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from fecbench.complaint import wrong_value
from fecbench.runners.refusal import Refusal
from fecbench.runners.tasks.task import ProcessorTask

PREFIX = "processor."
HANDSHAKE, DATAGRAM = f"{PREFIX}handshake_ms", f"{PREFIX}datagram_us"
NAMES = {HANDSHAKE, DATAGRAM}
_NS = {HANDSHAKE: 1_000_000, DATAGRAM: 1_000}
_LONGEST_NS = 1_000_000_000


def processor_task(values: Mapping[str, Any]) -> ProcessorTask:
    """Return the times in the values of a point. Raises Refusal for a value that is not a time of at most a
    second."""
    return ProcessorTask(handshake_ns=_ns(values, HANDSHAKE), datagram_ns=_ns(values, DATAGRAM))


def _ns(values: Mapping[str, Any], name: str) -> int:
    value: float = values.get(name, 0)
    longest = _LONGEST_NS // _NS[name]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (is_number and math.isfinite(value) and 0 <= value <= longest):
        raise Refusal(wrong_value(name, value, f"a number from 0 to {longest}"))
    return round(value * _NS[name])


def spans(points: Iterable[Mapping[str, Any]]) -> dict[str, tuple[float, float]]:
    """Return the least and the most of each name in the values of points, as a campaign stores them."""
    times_of: dict[str, list[float]] = {}
    for values in points:
        for name in NAMES & values.keys():
            times_of.setdefault(name.removeprefix(PREFIX), []).append(values[name])
    return {name: (min(times), max(times)) for name, times in sorted(times_of.items())}
