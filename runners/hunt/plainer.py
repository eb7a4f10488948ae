"""Plainer networks than a given one, the plainest first: as Hypothesis shrinks the input of a function.

A choice becomes the first of its list, and two directions alike; a number becomes a rounder one, a size a
smaller one as well, and a queue the usual one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache

from fecbench.designs.factor import RangeFactor
from fecbench.runners.hunt.space import Network, Space
from fecbench.topologies.link import DEFAULT_QUEUE_BDP

_LADDERS: tuple[tuple[float, ...], ...] = (
    (1, 2, 5),
    tuple(range(1, 10)),
    tuple(tenth / 10 for tenth in range(10, 100)),
    tuple(hundredth / 100 for hundredth in range(100, 1000)),
)
"""Round numbers from 1 to 10: of each ladder fewer than of the next."""
USUAL = {"queue_bdp": (DEFAULT_QUEUE_BDP, 1.0)}
"""Usual values of a factor, by the last part of its name."""
SMALLER = ("size_bytes",)
"""Likewise: what is plainer the smaller it is."""
NEAR = 2.0
"""A rounder number is at most so many times as large or as small."""
DIRECTIONS = ("up.", "down.")


def steps(space: Space, network: Network) -> list[tuple[str, Network]]:
    """Return plainer networks, each with the name of what is plainer: of each thing the plainest first."""
    found = [*_first_choices(space, network), *_same_directions(space, network), *_rounder(space, network)]
    return [(what, plainer) for what, plainer in found if plainer != network]


def _first_choices(space: Space, network: Network) -> Iterator[tuple[str, Network]]:
    for name in space.factors:
        plainest = space.plainest(name)
        if plainest is not None:
            yield name, network.with_value(name, plainest)
    yield "workload", Network(space.workloads[0], network.values)


def _same_directions(space: Space, network: Network) -> Iterator[tuple[str, Network]]:
    point = network.point
    for name, value in network.values:
        other = name.replace(*DIRECTIONS)
        if other != name and other in space.factors:
            yield f"{name} and {other}", network.with_value(other, value)
            yield f"{name} and {other}", network.with_value(name, point[other])


def _rounder(space: Space, network: Network) -> Iterator[tuple[str, Network]]:
    for name, value in network.values:
        factor = space.factors[name]
        if isinstance(factor, RangeFactor) and isinstance(value, int | float):
            for rounder in _numbers(name, float(value), factor):
                yield name, network.with_value(name, int(rounder) if factor.integer else rounder)


def _numbers(name: str, value: float, factor: RangeFactor) -> list[float]:
    """Rounder numbers than this value, in order of preference."""
    last = name.rpartition(".")[2]
    usual = [number for number in USUAL.get(last, ()) if _is_within(number, factor)]
    if value in usual:
        return usual[: usual.index(value)]
    numbers: list[float] = list(usual)
    for ladder in _LADDERS:
        rounder = [number for number in _of_ladder(ladder, value, factor) if number not in numbers]
        if value in rounder:
            break
        # The nearest one of a ladder on each side.
        numbers += sorted(rounder, key=lambda number: abs(math.log(number / value)))[:2]
    if last in SMALLER:
        numbers = [number for number in numbers if number <= value] + [n for n in numbers if n > value]
    return list(numbers)


def _of_ladder(ladder: tuple[float, ...], value: float, factor: RangeFactor) -> list[float]:
    if value <= 0:
        return []
    numbers = _round_numbers(ladder, math.floor(math.log10(value)))
    near = [number for number in numbers if value / NEAR <= number <= value * NEAR]
    whole = [number for number in near if not factor.integer or number == int(number)]
    return [number for number in whole if _is_within(number, factor)]


@cache
def _round_numbers(ladder: tuple[float, ...], power: int) -> list[float]:
    """Return the numbers of a ladder from this power of 10 on, with those of the powers beside it."""
    exponents = (power - 1, power, power + 1)
    return [float(f"{step * 10.0**exponent:.6g}") for exponent in exponents for step in ladder]


def _is_within(number: float, factor: RangeFactor) -> bool:
    return factor.min <= number <= factor.max
