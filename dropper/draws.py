"""The draws that decide what is lost, the bitmaps of what was, and the refusals of the loss models.

Normative rules (the BPF program follows them to the bit):

- `draw(n, j)` is the upper 32 bits of SplitMix64's output function applied to
  `seed + (2n + j + 1) · 0x9E3779B97F4A7C15` modulo 2⁶⁴ (Steele, Lea, Flood, OOPSLA 2014).
- An event of probability q happens iff `draw < threshold(q)`.
"""

from numbers import Real

import numpy as np
from numpy.typing import NDArray

from fecbench.complaint import wrong_value
from fecbench.errors import BadInput

GOLDEN_GAMMA = 0x9E3779B97F4A7C15
SEEDS = 2**64
LONGEST = 2**24
"""Packets in the longest sequence of verdicts, as in the BPF program: a bitmap of 2 MiB."""


class LossModelError(BadInput):
    """A loss model, or what is asked of one, is wrong: the text says key, value and what is right."""


def require_probability(name: str, value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= value <= 1:
        raise LossModelError(wrong_value(name, value, "a probability, from 0 to 1"))


def require_integer(name: str, value: object, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
        raise LossModelError(wrong_value(name, value, f"an integer from {least} to {most}"))


def require_time(name: str, value: float, least: float, most: float, unit: str) -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or not least <= value <= most:
        raise LossModelError(wrong_value(name, value, f"a time from {least:g} to {most:g} {unit}"))


def threshold(probability: float) -> int:
    """round(q · 2³²), halves rounded to even; the product itself is exact."""
    return round(probability * 2**32)


def draws(seed: int, first: int, packets: int, j: int) -> NDArray[np.uint64]:
    """draw(n, j) for n = first, first + 1, …: 32-bit values, shape (packets,)."""
    n = np.arange(first, first + packets, dtype=np.uint64)
    offset = np.uint64((seed + (j + 1) * GOLDEN_GAMMA) % SEEDS)
    z = n * np.uint64(2 * GOLDEN_GAMMA % SEEDS) + offset
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z ^ (z >> np.uint64(31))) >> np.uint64(32)


def happens(draw: NDArray[np.uint64], probability: float) -> NDArray[np.bool_]:
    return draw < np.uint64(threshold(probability))


def pack(verdicts: NDArray[np.bool_]) -> bytes:
    """The bitmap of these verdicts: bit n % 8 of byte n // 8 is packet n."""
    return np.packbits(verdicts, bitorder="little").tobytes()


def unpack(bitmap: bytes, packets: int) -> NDArray[np.bool_]:
    """The verdicts of a bitmap, shape (packets,). Raises LossModelError if it holds fewer."""
    require_integer("packets", packets, 0, 8 * len(bitmap))
    bits = np.unpackbits(np.frombuffer(bitmap, dtype=np.uint8), count=packets, bitorder="little")
    return bits.astype(np.bool_)
