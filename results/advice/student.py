"""Student's distribution by a finite sum: `scipy.special`, which has it, takes longer to load than advice
takes to find."""

import math

_HALVINGS = 60


def two_sided_quantile(share: float, freedom: int) -> float:
    """Return the value that a variable of Student's distribution, with so many degrees of freedom, is within
    on either side of 0 with this probability."""
    low, high = 0.0, math.pi / 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < share else (low, middle)
    return math.sqrt(freedom) * math.tan(low)


def _within(angle: float, freedom: int) -> float:
    """Return the probability to be within √freedom · tan(angle) on either side of 0 (Abramowitz and Stegun,
    "Handbook of Mathematical Functions", 26.7.3 and 26.7.4)."""
    cosine, is_odd = math.cos(angle), freedom % 2
    term, total = (cosine, 0.0) if is_odd else (1.0, 0.0)
    for power in range(is_odd, freedom - 1, 2):
        total += term
        term *= (power + 1) / (power + 2) * cosine**2
    total *= math.sin(angle)
    return 2 / math.pi * (angle + total) if is_odd else total
