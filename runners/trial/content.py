"""The transferred content. Both ends make it themselves (quic-impls/README.md, "Workloads"); the harness
makes it for those that cannot."""

import hashlib

import numpy as np

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def content(seed: int, size_bytes: int) -> bytes:
    """The content of a transfer: 64-bit words of SplitMix64, little-endian, cut at `size_bytes`."""
    with np.errstate(over="ignore"):  # modulo 2⁶⁴
        words = np.arange(1, -(-size_bytes // 8) + 1, dtype=np.uint64) * _GAMMA + np.uint64(seed)
        words = (words ^ (words >> np.uint64(30))) * _MIX[0]
        words = (words ^ (words >> np.uint64(27))) * _MIX[1]
        words = words ^ (words >> np.uint64(31))
    return words.astype("<u8").tobytes()[:size_bytes]


def sha256(seed: int, size_bytes: int) -> str:
    """The hash of a content, in hexadecimal."""
    return hashlib.sha256(content(seed, size_bytes)).hexdigest()
