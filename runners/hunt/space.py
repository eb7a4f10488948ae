"""The space of a hunt: the factors of a design over their ranges, and its workloads.

A network is a value of each factor and a workload. Its place is a point in the unit cube: an axis for each
factor in the order of the design, and the last one for the workload.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from fecbench.designs import Design, Value
from fecbench.designs.factor import AnyFactor, RangeFactor, SteppedFactor
from fecbench.designs.sequences import generated
from fecbench.runners.refusal import Refusal

Places = NDArray[np.float64]

DIGITS = 4
"""Numbers that are no whole ones are rounded to so many digits: a network can be typed again."""
STEP = (0.003, 0.3)
"""The least and the greatest standard deviation of a step to a neighbour, as a share of an axis."""
MOVED = 0.6
"""The chance that a neighbour has another number on an axis."""
SWAPPED = 0.12
"""The chance that it has another choice."""


@dataclass(frozen=True)
class Network:
    """A value of each factor of a design, and the workload that meets it."""

    workload: str
    """Label of the workload."""
    values: tuple[tuple[str, Value], ...]

    @property
    def point(self) -> dict[str, Value]:
        return dict(self.values)

    def with_value(self, name: str, value: Value) -> Network:
        """The same with another value of a factor."""
        return Network(
            self.workload, tuple((each, value if each == name else own) for each, own in self.values)
        )

    def document(self) -> dict[str, Value]:
        return {"workload": self.workload, **self.point}

    def __str__(self) -> str:
        return ", ".join([self.workload, *(f"{name} = {value}" for name, value in self.values)])


class Space:
    """All networks of a design's ranges and choices."""

    def __init__(self, design: Design, more: Mapping[str, AnyFactor] = MappingProxyType({})) -> None:
        """`more`: choices besides the design's factors. Raises Refusal for a design in which nothing lies
        between the points."""
        if not any(isinstance(factor, RangeFactor) for factor in design.factors.values()):
            raise Refusal(
                f"{design.path}: factors: none has a range, so nothing lies between its points: give one"
                " min and max, such as bandwidth_mbps = { min = 1, max = 100, scale = 'log' }"
            )
        self.factors: dict[str, AnyFactor] = {**design.factors, **more}
        self.workloads = [workload.label for workload in design.workloads]

    @property
    def axes(self) -> int:
        return len(self.factors) + 1

    @cached_property
    def is_ranged(self) -> NDArray[np.bool_]:
        """Whether numbers lie on each axis, and not choices."""
        of_factors = [isinstance(factor, RangeFactor) for factor in self.factors.values()]
        return np.array([*of_factors, False])

    @property
    def scales(self) -> dict[str, str]:
        """Scale of each factor with a range: "log" or "linear"."""
        return {
            name: factor.scale for name, factor in self.factors.items() if isinstance(factor, RangeFactor)
        }

    def at(self, place: Places) -> Network:
        """The network at a place."""
        values = tuple(
            (name, _rounded(factor.value(float(on_axis)), factor))
            for (name, factor), on_axis in zip(self.factors.items(), place[:-1], strict=True)
        )
        count = len(self.workloads)
        return Network(self.workloads[min(int(place[-1] * count), count - 1)], values)

    def place(self, network: Network) -> Places:
        point = network.point
        of_factors = [factor.place(point[name]) for name, factor in self.factors.items()]
        of_workload = (self.workloads.index(network.workload) + 0.5) / len(self.workloads)
        return np.array([*of_factors, of_workload])

    def places(self, networks: Iterable[Network]) -> Places:
        """Return the places of several networks, a row each."""
        return np.array([self.place(network) for network in networks]).reshape(-1, self.axes)

    def spread(self, count: int, skip: int, seed: int) -> list[Network]:
        """Networks `skip` to `skip + count` of the sequence of this seed, which fills the space evenly. A
        network that is much of a small space is there several times."""
        places = generated("sobol", skip + count, self.axes, seed)[skip:]
        return list(map(self.at, places))

    def distances(self, places: Places, place: Places) -> Places:
        """Return the distance of each place from one: over the ranges the root of the mean square, plus 1 for
        each choice that differs."""
        ranged = self.is_ranged
        squares = ((places[:, ranged] - place[ranged]) ** 2).mean(axis=1)
        others = (np.abs(places[:, ~ranged] - place[~ranged]) > 1e-9).sum(axis=1)
        distances: Places = np.sqrt(squares) + others
        return distances

    def near(self, network: Network, random: np.random.Generator) -> Network:
        """A neighbour: some numbers moved, by a little or by much, and now and then another choice."""
        place, ranged = self.place(network), self.is_ranged
        low, high = np.log(STEP)
        deviation = np.exp(random.uniform(low, high))
        moved = ranged & (random.random(self.axes) < MOVED)
        place = place + moved * random.normal(0, deviation, self.axes)
        place = np.abs(place)  # reflected at both ends
        place = np.where(place > 1, np.maximum(2 - place, 0.0), place)
        swapped = ~ranged & (random.random(self.axes) < SWAPPED)
        return self.at(np.where(swapped, random.random(self.axes), place))

    def neighbours(
        self,
        parents: Sequence[Network],
        count: int,
        known: Container[Network],
        random: np.random.Generator,
    ) -> list[Network]:
        """Return so many neighbours of the parents that are not known, fewer where there are none."""
        fresh: dict[Network, None] = {}
        for attempt in range(10 * count):
            if len(fresh) == count:
                break
            neighbour = self.near(parents[attempt % len(parents)], random)
            if neighbour not in known:
                fresh.setdefault(neighbour)
        return list(fresh)

    def plain_twins(self, parents: Sequence[Network], known: Container[Network]) -> list[Network]:
        """The parents with one choice that is the first of its list, of those that are not known.

        Where losses are not what does harm, one without them shows it in few trials.
        """
        twins = [
            parent.with_value(name, plainest)
            for parent in parents
            for name in self.factors
            if (plainest := self.plainest(name)) is not None
        ]
        return [twin for twin in dict.fromkeys(twins) if twin not in known]

    def apart(self, networks: Sequence[Network], least: float, together: int = 1) -> Iterator[int]:
        """Return the indices of networks, in order of preference, that have fewer than `together` chosen
        ones nearer than `least`."""
        places = self.places(networks)
        chosen: list[int] = []
        for index, place in enumerate(places):
            if chosen and (self.distances(places[chosen], place) < least).sum() >= together:
                continue
            chosen.append(index)
            yield index

    def plainest(self, name: str) -> Value | None:
        """The first choice of a factor; None for a range."""
        factor = self.factors[name]
        if isinstance(factor, SteppedFactor):
            return factor.steps[0]
        return None


def _rounded(value: Value, factor: AnyFactor) -> Value:
    if not isinstance(factor, RangeFactor) or not isinstance(value, float):
        return value
    return min(max(float(f"{value:.{DIGITS}g}"), float(factor.min)), float(factor.max))
