"""Likeness of two networks, by what makes FEC do the same in both.

A transfer meets a network in packets a round trip: the bandwidth-delay product decides in how many round
trips it ends, and what of it a queue holds. Timers have a length in time, so the round-trip time counts
beside it, but less. The weights are those, of the halves and doubles that were tried, that told most of
networks left out.
"""

import numpy as np
from numpy.typing import NDArray

from fecbench.results.advice.recorded_rows import Rows

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

NEAR = 40
"""Number of recorded networks that are asked, of each kind of losses."""
_WEIGHTS = {"bandwidth_delay": 1.0, "rtt": 0.5, "loss": 2.0, "burst": 0.5, "queue": 0.5}
"""Weights of an order of magnitude."""
_MEASURES = ("bandwidth_mbps", "rtt_ms", "loss", "burst", "queue_bdp")


def places(networks: Rows, *, by_queue: bool) -> Floats:
    """Return the places of networks of one kind of losses, a row each: alike networks are near each other."""
    numbers = {name: np.asarray(networks[name], np.float64) for name in _MEASURES}
    logs = {
        "bandwidth_delay": np.log10(numbers["bandwidth_mbps"] * numbers["rtt_ms"]),
        "rtt": np.log10(numbers["rtt_ms"]),
        "burst": np.log10(numbers["burst"]),
    }
    if (numbers["loss"] > 0).all():
        logs["loss"] = np.log10(numbers["loss"])
    if by_queue:
        logs["queue"] = np.log10(numbers["queue_bdp"])
    return np.column_stack([_WEIGHTS[name] * column for name, column in logs.items()])


def distances(here: Floats, there: Floats) -> Floats:
    """The distances (here × there) between places."""
    squares = np.zeros((len(here), len(there)))
    for measures in zip(here.T, there.T, strict=True):  # a norm over the few measures of each pair is slow
        squares += np.subtract.outer(*measures) ** 2
    return np.sqrt(squares)


def nearest(here: Floats, there: Floats) -> Indices:
    """The NEAR places of `there` that are nearest to one place, nearest first."""
    return np.argsort(distances(here, there)[0], kind="stable")[:NEAR]
