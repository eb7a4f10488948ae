"""The share of packets lost of which the number alone is known: nobody knows how many were lost in a row.

Bursts make that share less sure. With b lost in a row on average, n packets tell as much as n / b do (the
design effect: Kish, "Survey Sampling", 1965), and up to LONGEST in a row are allowed for.
"""

import numpy as np

from fecbench.runners.paths.path import Estimate

LONGEST = 4.0
_DRAWS = 20_000
_SEED = 2026


def counted(lost: int, packets: int) -> Estimate:
    """Return the share of so many losses."""
    value = lost / packets
    generator = np.random.default_rng(_SEED)
    draws = generator.beta(lost / LONGEST + 0.5, (packets - lost) / LONGEST + 0.5, _DRAWS)
    low, high = np.quantile(draws, [0.025, 0.975])
    return Estimate(value, float(min(low, value)) if lost else 0.0, float(max(high, value)))
