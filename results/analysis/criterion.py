"""A question that a cross-check asks of differences between virtual and emulated trials, and its answer."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fecbench.results.analysis.intervals import LEVEL
from fecbench.results.analysis.quantiles import normal_quantile
from fecbench.results.analysis.tolerances import FAR_EITHER_SHARE

Verdict = Literal["agrees", "differs", "cannot tell"]
Statistic = Literal["median", "mean", "far", "either", "tail"]
Stratum = Literal["all", "met a loss", "met none", "high losses"]
STRATA: tuple[Stratum, ...] = ("all", "met a loss", "met none", "high losses")
ENOUGH = 20
"""Trials that show that no more than FAR_SHARE are far off, though one of them is. A stratum of fewer may
differ, and need not agree: the whole bounds what it could hide."""
HIGH_SHARE = 0.1
"""The share of trials that have high losses: those that lost most of their packets. At least ENOUGH."""
POWER = 0.8
Z = normal_quantile(1 - LEVEL / 2)
Z_POWER = normal_quantile(POWER)

_MOST = 1_000_000  # trials: a greater estimate counts as none

Floats = NDArray[np.float64]
Interval = tuple[float, float]


@dataclass(frozen=True)
class Differences:
    """The differences of some trials: one value each."""

    y: Floats
    """-∞ and ∞ for a timeout of one of the two, and where one of the two alone is 0."""
    low: Floats
    high: Floats
    far: float
    """The distance beyond `low` and `high` from which a trial is far off."""
    mean_by: float
    """The distance beyond them that the mean may have."""
    met_a_loss: NDArray[np.bool_]
    far_either: float = FAR_EITHER_SHARE
    """The share of trials that may be far off, on either side."""
    loss_share: Floats | None = None
    """The share of each trial's packets that were lost; None where it is not known."""
    times: tuple[Floats, Floats] | None = None
    """The logarithms of the virtual values and of the emulated ones, for their tail; None where it is not
    asked."""

    def of(self, stratum: Stratum) -> Differences:
        """Return the differences of the trials of a stratum."""
        if stratum == "all":
            return self
        mask = {
            "met a loss": lambda: self.met_a_loss,
            "met none": lambda: ~self.met_a_loss,
            "high losses": self._high_losses,
        }[stratum]()
        return replace(
            self,
            y=self.y[mask],
            low=self.low[mask],
            high=self.high[mask],
            met_a_loss=self.met_a_loss[mask],
            loss_share=None,
            times=None,
        )

    def _high_losses(self) -> NDArray[np.bool_]:
        """Return whether each trial is one with high losses; none is, unless these are fewer than those
        that met a loss."""
        high = np.zeros(len(self.y), dtype=np.bool_)
        count = max(ENOUGH, math.ceil(HIGH_SHARE * len(self.y)))
        if self.loss_share is not None and count < self.met_a_loss.sum():
            high[np.argsort(-self.loss_share, kind="stable")[:count]] = True
        return high


@dataclass(frozen=True)
class Criterion:
    """One question, and its answer."""

    stratum: Stratum
    statistic: Statistic
    n: int
    value: float
    interval: Interval
    """The interval of confidence 1 - LEVEL; NaN for too few trials."""
    tolerance: Interval
    p_value: float
    """The p-value that the value is within the tolerance; 1 for too few trials."""
    more: int | None
    """The number of further trials of the stratum that would tell, with POWER, if they were as these: 0
    where these do, None where no number does."""
    differs: bool = False
    """Whether it is by this answer that the comparison differs."""

    @property
    def verdict(self) -> Verdict:
        if self.differs:
            return "differs"
        (low, high), (least, greatest) = self.interval, self.tolerance
        return "agrees" if least <= low and high <= greatest else "cannot tell"

    @property
    def is_needed(self) -> bool:
        """Whether a comparison agrees only if this answer does."""
        return self.stratum == "all" or self.n >= ENOUGH


def fewest(tells: Callable[[float], bool], first: int) -> float:
    """Return the least number from `first` on that tells; ∞ where none up to _MOST does."""
    few, many = first, first
    while not tells(many):
        few, many = many, 2 * many
        if many > _MOST:
            return math.inf
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if tells(middle) else (middle, many)
    return many


def more_than(n: int, needed: float) -> int | None:
    """Return the number of trials that are lacking, if so many are needed."""
    return None if needed > _MOST else max(0, math.ceil(needed) - n)
