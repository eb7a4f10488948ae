"""Units stand at the end of names (`owd_ms`); here they become words for a person.

It loads no library, so that a unit is there at once.
"""

from __future__ import annotations

import math

# The units at the ends of names, as people write them.
UNITS = {
    "mbps": "Mbit/s",
    "kbps": "kbit/s",
    "us": "µs",
    "ms": "ms",
    "s": "s",
    "bytes": "bytes",
    "packets": "packets",
    "bdp": "BDP",
}

_PROBABILITIES = {"p", "r", "k", "h", "rate"}  # of a loss model: `loss.p`, or of one link and direction


def unit_of(name: str) -> str:
    """The unit that a name ends with, as people write it; "" when it ends with none."""
    _, underscore, suffix = name.rpartition("_")
    return UNITS.get(suffix, "") if underscore else ""


def axis_label(name: str) -> str:
    """A parameter's name with its unit apart: `owd_ms` is "owd (ms)"."""
    unit = unit_of(name)
    return f"{name.rpartition('_')[0].replace('_', ' ')} ({unit})" if unit else name


def quantity(name: str, value: float) -> str:
    """A value of a factor with its unit: 0.021 of `loss.p` is "2.1 %", 50000 of `size_bytes` "50 kB"."""
    if _is_probability(name):
        return f"{100 * value:.12g} %"
    unit = unit_of(name)
    if unit == UNITS["bytes"]:
        return size(round(value))
    return f"{value:.12g} {unit}" if unit else f"{value:.12g}"


def _is_probability(name: str) -> bool:
    *path, last = name.split(".")
    return "loss" in path and last in _PROBABILITIES


def size(size_bytes: int) -> str:
    """A size as people say it, exact: 50000 is "50 kB"."""
    for factor, unit in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size_bytes >= factor:
            return f"{size_bytes / factor:.12g} {unit}"
    return f"{size_bytes} B"


def number(value: float, form: str = ".2f") -> str:
    """A ratio in this format, for a person; "∞" for that of a variant that failed or timed out."""
    return f"{value:{form}}".replace("inf", "∞")


def estimate(value: float, low: float, high: float) -> str:
    """A ratio with its interval, in the digits that the interval allows: "0.95 [0.83, 1.02]"; without one
    (NaN) the ratio alone."""
    if math.isnan(low):
        return number(value)
    form = f".{decimals(low, high)}f"
    return f"{number(value, form)} [{number(low, form)}, {number(high, form)}]"


def ratio_text(value: float | None, low: float | None, high: float | None) -> str:
    """A ratio as a table has it: with its interval, or with the remark that it has none; a dash for none."""
    if value is None or math.isnan(value):
        return "–"
    if low is None or high is None or math.isnan(low):
        return f"{number(value)} (no interval)"
    return estimate(value, low, high)


def decimals(low: float, high: float) -> int:
    """Return the number of decimals of a ratio with this interval: they show its uncertainty, and no digit
    more."""
    half = (high - low) / 2
    if not math.isfinite(half):
        return 2
    return next((count for count, least in enumerate((5, 0.5, 0.005)) if half >= least), 3)


def change(share: float, *, points: bool = False) -> str:
    """A relative difference, for a table, or one of shares in percentage points."""
    # Adding 0 makes a rounded -0 a 0.
    value = number(round(100 * share, 2) + 0, "+.2f")
    return "-" if math.isnan(share) else f"{value} {'points' if points else '%'}"


def difference(value: float, low: float, high: float, unit: str) -> str:
    """An amount with its interval, in the digits that it allows: "54 ms [34, 74]"; seconds below one are
    milliseconds."""
    if unit == "s" and max(abs(low), abs(high)) < 1:
        value, low, high, unit = 1000 * value, 1000 * low, 1000 * high, "ms"
    half = (high - low) / 2
    places = next((count for count, least in enumerate((2, 0.2)) if half >= least), 2)
    places = 0 if half == 0 and abs(value) >= 1 else places
    one, *ends = (f"{round(end, places) + 0:.{places}f}" for end in (value, low, high))
    return f"{one} {unit} [{ends[0]}, {ends[1]}]"


def change_text(ratio: float, low: float, high: float) -> str:
    """Return a ratio with its interval as a change: "−3 % [−4, −2]"."""
    places = max(decimals(low, high) - 2, 0)
    # Adding 0 makes a rounded -0 a 0.
    value, *ends = (number(round(100 * (end - 1), places) + 0, f"+.{places}f") for end in (ratio, low, high))
    return f"{value} % [{ends[0]}, {ends[1]}]"
