"""Sensitivity of networks, by virtual trials alone: how much a little time of a processor changes a result.

Emulated endpoints take such time, and virtual ones do not. Where it decides what a timer or an
acknowledgement finds, a few microseconds move a transfer by a round trip. The losses are the same in all runs
of a network.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fecbench.designs import Design
from fecbench.results.analysis.tolerances import TIME
from fecbench.runners.campaign.processors import DATAGRAM, HANDSHAKE
from fecbench.runners.hunt.both_engines import Dose
from fecbench.runners.hunt.measured import MOST, Floats

_DOSES: tuple[Dose, ...] = ({}, {HANDSHAKE: 0.5}, {DATAGRAM: 10.0}, {HANDSHAKE: 1.5, DATAGRAM: 30.0})
"""None first; emulated endpoints take about as much as the others."""


def doses(design: Design) -> list[Dose]:
    """The doses that a design can be given: a factor of it is left as it is."""
    possible = [{name: more for name, more in dose.items() if name not in design.factors} for dose in _DOSES]
    return [dose for index, dose in enumerate(possible) if dose not in possible[:index]]


def sensitivity(round_trips_s: Floats, values: Sequence[Floats]) -> Floats:
    """Return how far the result of each network moves at most, as a logarithm, beyond what is tolerated of a
    time at its round trip; NaN where its first run came to no end.

    `values`: the metric of each network, in one run after another; infinite for a timeout, and NaN for a run
    without a result, which says nothing.
    """
    low, _ = TIME.ends(round_trips_s)
    most = np.zeros(len(round_trips_s))
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.log(values[0])
        for later in values[1:]:
            most = np.fmax(most, np.abs(np.log(later) - first))
    sensitive: Floats = np.where(np.isfinite(first), np.minimum(most, MOST) + np.log1p(low), np.nan)
    return sensitive
