"""The ratio of the times of the slowest downloads of a new build: that of the 95th percentiles.

At each place it is the 95th percentile of new over the repetitions, divided by that of old. Of fewer than 20
repetitions it is the longest one. All places have the same weight.

The interval is a permutation test turned round (Good, "Permutation Tests", 2000, §3.2). If new takes just
that much longer than old, the two arms of a repetition can be exchanged, with all its workloads, and nothing
changes. This works for a longest value, too, where the bootstrap is too narrow. The same pairs make the same
interval.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from fecbench.results.analysis.point_statistic import place_of_p95
from fecbench.results.gate.overall import NEW, OLD, UNKNOWN, Floats, Ratio, Whole, half_width

EXCHANGES = 200
"""The exchanges of each network. The variances of dozens of networks are added, so each may be rough."""


def tail_ratio_of(pairs: pd.DataFrame, level: float) -> Ratio:
    """Return the ratio of `overall.pairs_of`, with its interval of confidence 1 - `level`; without one where
    a network has a single pair."""
    if pairs.empty:
        return UNKNOWN
    workloads, points = pairs["workload"].factorize(sort=True)[0], pairs["point"].to_numpy(np.int64)
    repetitions = pairs["repetition"].to_numpy(np.int64)
    new, old = (pairs[arm].to_numpy(np.float64) for arm in (NEW, OLD))
    networks = _groups(points)
    places = [[network[place] for place in _groups(workloads[network])] for network in networks]
    logs = [
        np.log(_p95(new[place][None]) / _p95(old[place][None])) for network in places for place in network
    ]
    mean = float(np.mean(logs))
    random = np.random.default_rng(0)
    parts, freedoms = [], []
    for network, of_network in zip(networks, places, strict=True):
        there, numbers = np.unique(repetitions[network], return_inverse=True)
        number_of = dict(zip(network.tolist(), numbers.tolist(), strict=True))
        exchanged = random.random((EXCHANGES, len(there))) < 0.5
        moves = np.zeros(EXCHANGES)
        for place in of_network:
            flips = exchanged[:, [number_of[pair] for pair in place.tolist()]]
            one, other = new[place], old[place] * math.exp(mean)
            moves += np.log(_p95(np.where(flips, other, one)) / _p95(np.where(flips, one, other)))
        parts.append(float((moves**2).mean()))
        freedoms.append(len(there) - 1.0)
    if min(freedoms) == 0:
        return Ratio(math.exp(mean), math.nan, math.nan)
    half = half_width(np.array(parts) / len(logs) ** 2, np.array(freedoms), level)
    return Ratio(*(math.exp(end) for end in (mean, mean - half, mean + half)))


def _p95(values: Floats) -> Floats:
    """Return the 95th percentile of each row."""
    count = values.shape[1]
    place = place_of_p95(count)
    is_longest = place == count - 1  # which is found sooner
    percentiles: Floats = values.max(axis=1) if is_longest else np.partition(values, place, axis=1)[:, place]
    return percentiles


def _groups(numbers: Whole) -> list[Whole]:
    """Return the places of each distinct number, in the order of the numbers."""
    order = np.argsort(numbers, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1)
