"""The content of a transfer: the little-endian words mix(seed + (j + 1) · 0x9E3779B97F4A7C15) for
j = 0, 1, …, where mix is SplitMix64's output function."""

import hashlib

import numpy as np

GOLDEN_GAMMA = 0x9E3779B97F4A7C15
STEP = 1 << 20
"""Bytes that are made at once for a hash."""


def content(seed: int, offset: int, size: int) -> bytes:
    """Return `size` bytes of a seed's content from `offset` on."""
    first = offset // 8
    words = np.arange(first + 1, (offset + size + 7) // 8 + 1, dtype=np.uint64)
    mixed = words * np.uint64(GOLDEN_GAMMA) + np.uint64(seed)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    begin = offset - 8 * first
    return mixed.astype("<u8").tobytes()[begin : begin + size]


def content_hash(seed: int, size: int) -> str:
    """The SHA-256 of `size` bytes, in hexadecimal."""
    digest = hashlib.sha256()
    for offset in range(0, size, STEP):
        digest.update(content(seed, offset, min(STEP, size - offset)))
    return digest.hexdigest()
