"""Quantities as people write them: `80ms`, `50kB`, `20Mbit/s`, `3%`. A bare number has the unit of its name.

Sizes are decimal, as networks count: 1 kB is 1,000 bytes, 1 KiB 1,024.
"""

import math
import re
from collections.abc import Mapping
from typing import Literal

from fecbench.errors import BadInput

Kind = Literal["ms", "s", "Mbit/s", "bytes", "share", "number"]

_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_BITS = {"bit": 1.0, "kbit": 1e3, "Mbit": 1e6, "Gbit": 1e9}
_RATES = (
    {f"{unit}/s": 1e-6 * factor for unit, factor in _BITS.items()}
    | {f"{unit}ps": 1e-6 * factor for unit, factor in _BITS.items()}
    | {"bps": 1e-6, "kbps": 1e-3, "Mbps": 1.0, "Gbps": 1e3}
)
_BYTES = {"B": 1.0, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_UNITS: Mapping[Kind, Mapping[str, float]] = {
    "ms": {unit: 1e3 * factor for unit, factor in _SECONDS.items()},
    "s": _SECONDS,
    "Mbit/s": _RATES,
    "bytes": _BYTES,
    "share": {"%": 0.01, "‰": 0.001},
    "number": {},
}
_EXAMPLES: Mapping[Kind, str] = {
    "ms": "80ms or 0.08s",
    "s": "2s or 500ms",
    "Mbit/s": "20Mbit/s or 800kbit/s",
    "bytes": "50kB or 1MiB",
    "share": "3% or 0.03",
    "number": "2, or a range such as 1..4",
}
_FORM = re.compile(r"\s*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)\s*(\S*)\s*")


def counted(count: int, noun: str, verbs: str = "") -> str:
    """Return a count with its noun, and with the one of two verbs that it takes.

    "1 network", "1,000 networks"; with the verbs "is/are" "1 network is", "2 networks are".
    """
    of_one, _, of_several = verbs.partition("/")
    several = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    words = (noun, of_one) if count == 1 else (several, of_several)
    return f"{count:,} {' '.join(words)}".rstrip()


def quantity(text: str, kind: Kind) -> float:
    """Return a quantity in the unit that `kind` names: "0.08s" as "ms" is 80. A bare number has that unit.

    Case of a unit does not matter, but a `b` in the place of a `B` may be a bit, and is refused. Raises
    BadInput, with examples of what would be right.
    """
    parts = _FORM.fullmatch(text)
    if parts is not None:
        number, unit = float(parts[1]), parts[2]
        factor = 1.0 if not unit else _factor(unit, kind)
        if factor is not None and math.isfinite(value := number * factor):
            # A decimal of a few digits stays one: 3 % is 0.03, not 0.030000000000000002.
            return float(f"{value:.15g}")
    raise BadInput(f"{text!r}: must be {_described(kind)} such as {_EXAMPLES[kind]}")


def quantities(text: str, kind: Kind) -> tuple[float, float]:
    """Return the ends of a range `LOW..HIGH`; of a single value, it is both.

    A low end without a unit has that of the high end: "5..50ms" begins at 5 ms. Raises BadInput.
    """
    low, dots, high = text.partition("..")
    if not dots:
        value = quantity(text, kind)
        return value, value
    parts = _FORM.fullmatch(low)
    if parts is not None and not parts[2] and (high_parts := _FORM.fullmatch(high)) is not None:
        low += high_parts[2]
    try:
        ends = quantity(low, kind), quantity(high, kind)
    except BadInput as error:
        raise BadInput(f"{text!r}: {error}") from None
    if ends[0] > ends[1]:
        raise BadInput(f"{text!r}: the low end comes first")
    return ends


def _factor(unit: str, kind: Kind) -> float | None:
    units = _UNITS[kind]
    if unit in units:
        return units[unit]
    if kind == "bytes" and unit.endswith("b"):
        return None
    alike = {factor for name, factor in units.items() if name.lower() == unit.lower()}
    return alike.pop() if len(alike) == 1 else None


def _described(kind: Kind) -> str:
    return {
        "ms": "a time",
        "s": "a time",
        "Mbit/s": "a rate",
        "bytes": "a size",
        "share": "a share",
        "number": "a number",
    }[kind]
