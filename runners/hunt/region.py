"""The region around a network: the largest of a few boxes of which much is like it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fecbench.designs.factor import RangeFactor
from fecbench.results.analysis.intervals import LEVEL
from fecbench.runners.hunt.budget import START_REPETITIONS
from fecbench.runners.hunt.hunt_finding import Box
from fecbench.runners.hunt.lookout import Lookout
from fecbench.runners.hunt.measured import Judging
from fecbench.runners.hunt.space import Network, Space

WIDTHS = (0.2, 0.05, 0.01)
"""Half widths of the boxes, as a share of each axis."""
NETWORKS = 8
"""Looked at in each box."""
MUCH = 0.5
PAIRS = len(WIDTHS) * NETWORKS * START_REPETITIONS
"""Number of pairs that are run for one network."""


def boxes(
    space: Space, lookout: Lookout[Judging], networks: Sequence[Network], random: np.random.Generator
) -> list[Box | None]:
    """The box of each network; None where there is too little left to look."""
    count = min(len(networks), lookout.left // PAIRS)
    within = [[_within(space, network, width, random) for width in WIDTHS] for network in networks[:count]]
    looked_at = list(dict.fromkeys(each for of_network in within for of_box in of_network for each in of_box))
    if not looked_at:
        return [None for _ in networks]
    judged = lookout.look("region", looked_at, START_REPETITIONS).judged(LEVEL)
    sure = {network for network, is_sure in zip(looked_at, judged.is_sure, strict=True) if is_sure}
    found: list[Box | None] = [
        _largest(space, network, of_boxes, sure) for network, of_boxes in zip(networks, within, strict=False)
    ]
    return found + [None] * (len(networks) - count)


def _within(space: Space, network: Network, width: float, random: np.random.Generator) -> list[Network]:
    """Networks at random places of a box, with the choices of the network."""
    low, high = _ends(space, network, width)
    return [space.at(random.uniform(low, high)) for _ in range(NETWORKS)]


def _ends(space: Space, network: Network, width: float) -> tuple[np.ndarray, np.ndarray]:
    place = space.place(network)
    reach = width * space.is_ranged
    return np.clip(place - reach, 0, 1), np.clip(place + reach, 0, 1)


def _largest(
    space: Space, network: Network, of_boxes: Sequence[Sequence[Network]], sure: set[Network]
) -> Box:
    """The largest box of which much is like the network, else the smallest."""
    shares = [sum(each in sure for each in of_box) / len(of_box) for of_box in of_boxes]
    chosen = next((index for index, share in enumerate(shares) if share >= MUCH), len(shares) - 1)
    low, high = (space.at(end).point for end in _ends(space, network, WIDTHS[chosen]))
    ends = {
        name: (float(low[name]), float(high[name]))
        for name, factor in space.factors.items()
        if isinstance(factor, RangeFactor)
    }
    return Box(ends, shares[chosen], len(of_boxes[chosen]))
