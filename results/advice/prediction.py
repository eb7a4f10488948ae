"""The ratio of one more network: an interval that holds it in 90 of 100 such networks.

The reader's network is one more draw among networks like it, so the interval is made of quantiles of the
ratios of the recorded networks nearest to it. Which quantiles is calibrated: each recorded network is left
out in turn, and placed among the ratios of its own nearest. The quantiles are those that hold 90 of 100 of
them (a conformal prediction: Vovk, Gammerman and Shafer, "Algorithmic Learning in a Random World", 2005).

Between two recorded sizes, FEC may do what it does at neither: it harms in bands of sizes. The interval there
is that of both sizes, and wider by what it took where one of the two was left out and predicted from those
beside it.

Ratios are logarithms here.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fecbench.results.advice.likeness import NEAR, Floats, distances, places
from fecbench.results.advice.recorded_rows import Rows

HELD = 0.9
"""The share of networks left out that the interval holds."""
Interval = tuple[float, float]
Numbers = NDArray[np.int64]
_LEAST = 0.015  # for a size twice as long: what a band of sizes may do that is not seen at those beside it

_QUANTILES = np.arange(1, NEAR + 1) / (NEAR + 1)
"""The quantiles that the lowest, the second lowest, … of NEAR ratios are, on average."""


@dataclass(frozen=True)
class Ratios:
    """The ratios of one controller under one kind of losses at one size, one of each recorded network."""

    networks: Numbers
    """Numbers that tell networks apart, at any size."""
    places: Floats
    logs: Floats

    @cached_property
    def level(self) -> float:
        """The quantile on either side: the highest that holds HELD of the networks, each left out. It is no
        lower than that of the lowest ratio of all that are near."""
        near = np.sort(_near(self.places, self, self.networks), axis=1)
        below = np.array(
            [
                np.interp(log, of_network, _QUANTILES, 0, 1)
                for log, of_network in zip(self.logs, near, strict=True)
            ]
        )
        in_order = np.sort(np.minimum(below, 1 - below))
        may_be_missed = math.floor((1 - HELD) * (len(in_order) + 1))
        return max(float(in_order[max(may_be_missed - 1, 0)]), float(_QUANTILES[0]))


def by_size(rows: Rows, *, by_queue: bool) -> dict[int, Ratios]:
    """The ratios of each size, shortest first, of rows that `record.by_kind` has numbered."""
    return {
        size: Ratios(
            of_size["network"],
            places(of_size, by_queue=by_queue),
            np.log(of_size["ratio"].astype(np.float64)),
        )
        for size in map(int, np.unique(rows["size_bytes"]))
        for of_size in [rows.at(rows["size_bytes"] == size)]
    }


def interval(here: Floats, of_sizes: Mapping[int, Ratios], beside: Sequence[int]) -> Interval:
    """The interval at a place, of a download of the one size of `beside`, or one between its two."""
    ((low, high),) = intervals(here, of_sizes, beside)
    return float(low), float(high)


def intervals(
    here: Floats, of_sizes: Mapping[int, Ratios], beside: Sequence[int], own: Numbers | None = None
) -> Floats:
    """The intervals (here × 2) at places; `own` has the numbers of the networks there, whose own ratios are
    left out."""
    hull = _hull(here, [of_sizes[size] for size in beside], own)
    if len(beside) == 1:
        return hull
    below, above = widening(of_sizes, beside)
    return np.column_stack([hull[:, 0] - below, hull[:, 1] + above])


def widening(of_sizes: Mapping[int, Ratios], beside: Sequence[int]) -> Interval:
    """Return by how much the interval between two sizes is wider than those of both, below and above.

    Each recorded size from the one to the other is left out and predicted from the sizes on either side of
    it. The widening that holds 95 of 100 networks there on each side counts by as much as the gap that is
    asked for is of that gap, in orders of magnitude. It is at least _LEAST for each doubling of the size.
    """
    shorter, longer = beside
    below = above = _LEAST * math.log2(longer / shorter)
    recorded = sorted(of_sizes)
    for before, left_out, after in zip(recorded, recorded[1:], recorded[2:], strict=False):
        if shorter <= left_out <= longer:
            share = math.log(longer / shorter) / math.log(after / before)
            misses = _misses(of_sizes[left_out], (of_sizes[before], of_sizes[after]))
            below, above = max(below, share * misses[0]), max(above, share * misses[1])
    return below, above


def _hull(here: Floats, of_sizes: Sequence[Ratios], own: Numbers | None = None) -> Floats:
    """Return the lowest and the highest end of the intervals of all these sizes (here × 2)."""
    ends = np.array([_quantiles(here, ratios, own) for ratios in of_sizes])
    return np.column_stack([ends[:, :, 0].min(axis=0), ends[:, :, 1].max(axis=0)])


def _quantiles(here: Floats, ratios: Ratios, own: Numbers | None = None) -> Floats:
    """The intervals (here × 2) of one size."""
    levels = [ratios.level, 1 - ratios.level]
    ends: Floats = np.quantile(_near(here, ratios, own), levels, axis=1, method="weibull").T
    return ends


def _near(here: Floats, ratios: Ratios, own: Numbers | None = None) -> Floats:
    """The ratios (here × NEAR) of the networks nearest to each place."""
    apart = distances(here, ratios.places)
    if own is not None:
        apart[own[:, np.newaxis] == ratios.networks] = math.inf
    return ratios.logs[np.argpartition(apart, NEAR - 1, axis=1)[:, :NEAR]]


def _misses(left_out: Ratios, beside: Sequence[Ratios]) -> Interval:
    """Return how far 95 of 100 ratios are at most below and above the intervals of the sizes beside."""
    hull = _hull(left_out.places, beside, left_out.networks)
    below, above = hull[:, 0] - left_out.logs, left_out.logs - hull[:, 1]
    return max(_upper(below, (1 + HELD) / 2), 0.0), max(_upper(above, (1 + HELD) / 2), 0.0)


def _upper(values: Floats, share: float) -> float:
    """Return the bound that one more such value does not exceed, with this probability."""
    return float(np.sort(values)[min(math.ceil(share * (len(values) + 1)), len(values)) - 1])
