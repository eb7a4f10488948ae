"""Sizes and times of seeded chance, for the generators of workloads.

Only random() of Python's generators is used: only this one promises the same numbers in later versions.
"""

import math
import random
from statistics import NormalDist


class Sizes:
    """Sizes and times of seeded chance."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def lognormal(self, median: float, sigma: float) -> float:
        """Draw a number from the lognormal distribution of this median; sigma is the standard deviation of
        the logarithm."""
        # random() gives 53 bits and may give 0, which has no quantile.
        quantile = (self._random.random() * 2**53 + 0.5) / (2**53 + 1)
        return median * math.exp(sigma * NormalDist().inv_cdf(quantile))

    def uniform(self, low: float, high: float) -> float:
        return low + (high - low) * self._random.random()
