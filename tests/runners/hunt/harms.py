"""Harms of six kinds, each of any width: the share of the space that it has."""

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from scipy.stats import qmc

from fecbench.runners.hunt.space import Network, Space
from tests.runners.hunt.planted import Effect, design

HARM = 1.25
SPACE = Space(design(1))
AXES = {name: index for index, name in enumerate([*SPACE.factors, "workload"])}
Places = dict[str, float]


@cache
def _place(network: Network) -> Places:
    place = SPACE.place(network).tolist()
    return {name: place[index] for name, index in AXES.items()}


def _of(is_harmed: Callable[[Places], bool], harm: float = HARM) -> Effect:
    return lambda network: harm if is_harmed(_place(network)) else 1.0


def box(width: float) -> Effect:
    """Harm in the middle of three ranges."""
    half = width ** (1 / 3) / 2
    names = ("bandwidth_mbps", "owd_ms", "workload.size_bytes")
    return _of(lambda at: all(abs(at[name] - 0.4) <= half for name in names))


def size(width: float) -> Effect:
    """Harm at some sizes only, as at a window's edge: 1 % of the axis is 9 % of a size."""
    return _of(lambda at: abs(at["workload.size_bytes"] - 0.27) <= width / 2)


def jitter(width: float) -> Effect:
    """Harm beyond an amount of jitter, in most networks."""
    return _of(lambda at: at["jitter_ms"] >= 1 - width)


def small_queue(width: float) -> Effect:
    """Harm in small queues with one of the congestion controllers."""
    return _of(lambda at: at["queue_bdp"] <= 2 * width and at["option.congestion_control"] > 0.5)


def ridge(width: float) -> Effect:
    """Harm where the size is about what the link holds: rate × delay, over their whole ranges."""
    return _of(
        lambda at: (
            abs((at["bandwidth_mbps"] + at["owd_ms"]) / 2 - at["workload.size_bytes"]) <= width / 2 / 1.3
        )
    )


def under_losses(width: float) -> Effect:
    """Harm in a quarter of networks, those with bursts: a box of two ranges, half as large again."""
    half = math.sqrt(4 * width) / 2
    return _of(
        lambda at: (
            at["losses"] > 0.75
            and abs(at["owd_ms"] - 0.5) <= half
            and abs(at["workload.size_bytes"] - 0.5) <= half
        ),
        1.5,
    )


KINDS: dict[str, Callable[[float], Effect]] = {
    "box": box,
    "size": size,
    "jitter": jitter,
    "small queue": small_queue,
    "ridge": ridge,
    "under losses": under_losses,
}


def share(effect: Effect, networks: int = 2**14, seed: int = 1) -> float:
    """Return the share of the space with harm, by so many networks, a power of 2, that fill it evenly."""
    return float(np.mean([effect(network) > 1 for network in _spread(networks, seed)]))


@cache
def _spread(networks: int, seed: int) -> list[Network]:
    return list(map(SPACE.at, qmc.Sobol(SPACE.axes, rng=seed).random(networks)))
