"""The share of packets lost where nobody knows how many were lost in a row: of a number alone, or of none.

Bursts make that share less sure. With b lost in a row on average, n packets tell as much as n / b do (the
design effect: Kish, "Survey Sampling", 1965), and up to LONGEST in a row are allowed for.
"""

import numpy as np

from fecbench.runners.paths.path import LONGEST, Estimate

_DRAWS = 20_000
_SEED = 2026
_UNSEEN = 0.05


def of_none(packets: int) -> Estimate:
    """Return the share of losses of which none was seen: 0 to what goes unseen in 5 of 100 recordings
    (Hanley and Lippman-Hand, JAMA 249, 1983)."""
    return Estimate(0.0, 0.0, 1 - _UNSEEN ** (LONGEST / packets) if packets else 1.0)


def counted(lost: int, packets: int) -> Estimate:
    """Return the share of so many losses."""
    if not lost:
        return of_none(packets)
    value = lost / packets
    generator = np.random.default_rng(_SEED)
    draws = generator.beta(lost / LONGEST + 0.5, (packets - lost) / LONGEST + 0.5, _DRAWS)
    low, high = np.quantile(draws, [0.025, 0.975])
    return Estimate(value, float(min(low, value)), float(max(high, value)))
