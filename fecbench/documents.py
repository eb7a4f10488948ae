"""The numbers of JSON documents. JSON itself has neither NaN nor ∞."""

import math


def number(value: float) -> float | str | None:
    """Return a number as documents have it: null if it is unknown, "Infinity" beside a timeout."""
    if math.isnan(value):
        return None
    if math.isfinite(value):
        return value
    return "Infinity" if value > 0 else "-Infinity"
