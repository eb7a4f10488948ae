"""The noise of a link's delay, written apart from the link: whole numbers, from the formulas of
docs/losses-and-links.md."""

import ctypes
from functools import cache
from itertools import pairwise
from statistics import NormalDist

UNIFORM, NORMAL, PARETO = LAWS = (1, 2, 3)
MOST = {UNIFORM: 2, NORMAL: 2, PARETO: 18.5}
"""Largest noise of each law, in means."""
_WORD = 2**64


class Jitter(ctypes.Structure):
    _fields_ = (("law", ctypes.c_int), ("mean_ns", ctypes.c_uint64), ("seed", ctypes.c_uint64))


def drawn(seed: int, number: int) -> int:
    """32 bits: SplitMix64, begun at the seed, at its place `number`."""
    state = (seed + (number + 1) * 0x9E3779B97F4A7C15) % _WORD
    state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 % _WORD
    state = (state ^ state >> 27) * 0x94D049BB133111EB % _WORD
    return (state ^ state >> 31) // 2**32


def noise_ns(law: int, mean_ns: int, seed: int, number: int) -> int:
    draw = drawn(seed, number)
    match law:
        case 1:
            return 2 * mean_ns * draw // 2**32
        case 2:
            side, far = divmod(draw, 2**31)
            cell, within = divmod(far, 2**23)
            low, high = quantiles()[cell]
            away_ns = mean_ns * (low + (high - low) * within // 2**23) // 2**30
            return mean_ns + away_ns if side else mean_ns - away_ns
        case 3:
            # u = (2^32 + 999 d) / (1000 · 2^32); its inverse with 54 bits of fraction, whose root has 18.
            root = cube_root((1000 * 2**32 << 54) // (2**32 + 999 * draw))
            return 37 * mean_ns * (root - 2**18) // (18 * 2**18)
    return 0


@cache
def quantiles() -> list[tuple[int, int]]:
    """Return the quantiles of each of 256 cells of the half normal distribution that ends at two standard
    deviations."""
    normal = NormalDist()
    to = normal.cdf(2) - 0.5
    return list(pairwise(round(2**29 * normal.inv_cdf(0.5 + to * cell / 256)) for cell in range(257)))


def cube_root(number: int) -> int:
    low, high = 0, 2**22
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**3 <= number else (low, middle)
    return low
