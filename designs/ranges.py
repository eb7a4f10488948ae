"""Factors and constants of a design, made from ranges of parameters, and the lines that write both.

A range whose ends are equal is a constant. A factor varies by orders of magnitude, unless it begins at 0.
"""

from collections.abc import Mapping
from typing import Any

import tomli_w

Range = tuple[float, float]


def divided(ranges: Mapping[str, Range]) -> tuple[dict[str, Range], dict[str, float]]:
    """Return the ranges that vary, and the values of the others."""
    varied = {name: (low, high) for name, (low, high) in ranges.items() if written(low) != written(high)}
    return varied, {name: low for name, (low, _) in ranges.items() if name not in varied}


def factor(ends: Range) -> dict[str, Any]:
    """Return the factor of a range."""
    low, high = ends
    return {"min": low, "max": high, "scale": "log" if low > 0 else "linear"}


def written(end: float) -> str:
    """Return the end of a range in 12 digits. Ends that differ by less are equal."""
    return f"{end:.12g}"


def nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Return tables in which `loss.p` stands in the table `loss`."""
    tables = dict[str, Any]()
    for name, value in flat.items():
        group, dot, key = name.partition(".")
        (tables.setdefault(group, {}) if dot else tables)[key or group] = value
    return tables


def entry(name: str, value: Any) -> str:
    """Return a line of a file; a dotted name stays one."""
    return f"{name} = {tomli_w.dumps({'x': value}).removeprefix('x = ').rstrip()}"
