"""Plans: from the factors of a design to its points.

One class per method, with the keys of [plan] that the method takes. Each places its points in the unit cube,
one axis per factor in the order of the file.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator
from scipy.stats import qmc

from designs.criteria import criteria
from designs.error import DesignError
from designs.factor import ChoiceFactor, Places, RangeFactor
from designs.seeds import seed
from designs.table import PlainValue, Table, Value, about, dotted, nearest, refused, shown
from designs.wsp import wsp_of_size

Factors = Mapping[str, RangeFactor | ChoiceFactor]

MOST_POINTS = 10_000
MOST_CANDIDATES = 100_000
# How many sets of candidates are tried for one that gives exactly the wanted number of points.
CANDIDATE_SETS = 8
CANDIDATES_PER_POINT = 20

Generator = Literal["sobol", "halton", "lhs", "random"]
Points = Annotated[int, Field(ge=1, le=MOST_POINTS)]
LevelCount = Annotated[int, Field(ge=2, le=MOST_POINTS)]
Point = dict[str, Value]
Row = Annotated[dict[str, PlainValue], BeforeValidator(dotted)]


def _one_or_each(value: Any) -> str:
    return "(each)" if isinstance(value, dict | list) else "(one)"


@dataclass(frozen=True)
class Plan:
    """The points of a design, in order."""

    points: list[Point]
    """The value of each factor by its name."""
    criteria: dict[str, float]
    """Of the points' places in the unit cube, see `designs.criteria`."""
    dmin: float | None = None
    """WSP's minimum distance in the unit cube; None for the other methods."""
    candidate_set: int = 0
    """How many sets of candidates had no dmin that gives exactly the wanted number, before one had."""


@dataclass(frozen=True)
class Placement:
    """Points with their places in the unit cube, shape (n, factors)."""

    points: list[Point]
    places: Places
    dmin: float | None = None
    candidate_set: int = 0


class PlanSettings(Table, ABC):
    """The table [plan] of one method."""

    def check(self, factors: Factors) -> None:
        """Refuses what only shows when the factors are known."""

    @abstractmethod
    def place(self, factors: Factors, root: int) -> Placement:
        """The points for the design's seed `root`."""


class WspSettings(PlanSettings):
    """Exactly `points` of the candidates, selected by WSP with the dmin that gives this number."""

    method: Literal["wsp"]
    points: Points
    candidates: (
        Annotated[
            Annotated[int, Field(ge=1), Tag("(one)")] | Annotated[list[Row], Tag("(each)")],
            Discriminator(_one_or_each),
        ]
        | None
    ) = None
    """How many to generate (by default 20 per point), or the candidates themselves: values by factor name."""
    generator: Generator | None = None

    @model_validator(mode="after")
    def _check_candidates(self) -> Self:
        given = isinstance(self.candidates, list)
        if given and self.generator is not None:
            raise refused("must not be set when the candidates are given", "generator")
        if not self.points <= self._count() <= MOST_CANDIDATES:
            limits = f"from points = {self.points} to {MOST_CANDIDATES}"
            raise refused(f"{self._count()} candidates: the number must be {limits}", "candidates")
        return self

    def check(self, factors: Factors) -> None:
        if isinstance(self.candidates, list):
            places_of(self.candidates, factors, "plan.candidates")

    def place(self, factors: Factors, root: int) -> Placement:
        for candidate_set in range(1 if isinstance(self.candidates, list) else CANDIDATE_SETS):
            candidates, places = self._candidates(factors, root, candidate_set)
            if len(candidates) < self.points:
                limit = f"must be at most {len(candidates)}, the number of different candidates"
                raise DesignError(f"plan.points = {self.points}: {limit}")
            found = wsp_of_size(places, self.points)
            if found is not None:
                rows, dmin = found
                return Placement([candidates[row] for row in rows], places[rows], dmin, candidate_set)
        raise DesignError(
            f"plan.points = {self.points}: no dmin was found that selects this number from {self._count()}"
            " candidates; change the number of points, or take more candidates"
        )

    def _count(self) -> int:
        if isinstance(self.candidates, list):
            return len(self.candidates)
        return self.candidates or CANDIDATES_PER_POINT * self.points

    def _candidates(self, factors: Factors, root: int, candidate_set: int) -> tuple[list[Point], Places]:
        """The different candidates, in their order: no dmin > 0 selects two that are the same."""
        if isinstance(self.candidates, list):
            points, places = self.candidates, places_of(self.candidates, factors, "plan.candidates")
        else:
            generator = self.generator or "sobol"
            set_seed = seed(root, "candidates", generator, candidate_set)
            points, places = _generated_points(generator, self._count(), factors, set_seed)
        firsts = np.sort(np.unique(places, axis=0, return_index=True)[1])
        return [points[first] for first in firsts], places[firsts]


class SequenceSettings(PlanSettings):
    """`points` points of a Latin hypercube, or of a scrambled Sobol' or Halton sequence."""

    method: Literal["lhs", "sobol", "halton"]
    points: Points

    def place(self, factors: Factors, root: int) -> Placement:
        method_seed = seed(root, "points", self.method)
        return Placement(*_generated_points(self.method, self.points, factors, method_seed))


class LevelSettings(PlanSettings):
    """What grid and univariate share: how many levels a factor with a range has; choices are all taken."""

    levels: (
        Annotated[
            Annotated[LevelCount, Tag("(one)")]
            | Annotated[dict[str, LevelCount], BeforeValidator(dotted), Tag("(each)")],
            Discriminator(_one_or_each),
        ]
        | None
    ) = None
    """One number for all factors with a range, or a number for each of them by name."""

    def levels_of(self, factors: Factors) -> list[list[float]]:
        """The places of the levels on each factor's axis."""
        if isinstance(self.levels, dict):
            for name in self.levels:
                if name not in factors:
                    raise refused(f"no such factor; {nearest(name, factors)}", f"plan.levels.{name}")
                if isinstance(factors[name], ChoiceFactor):
                    raise refused("has choices, which are all taken", f"plan.levels.{name}")
        return [self._levels_of(name, factor) for name, factor in factors.items()]

    def _levels_of(self, name: str, factor: RangeFactor | ChoiceFactor) -> list[float]:
        if isinstance(factor, ChoiceFactor):
            return factor.levels()
        count = self.levels.get(name) if isinstance(self.levels, dict) else self.levels
        if count is None:
            raise refused(f"is missing for the factor {name}, which has a range", "plan.levels")
        with about("plan.levels"):
            return factor.levels(count)


class GridSettings(LevelSettings):
    """Every combination of the factors' levels; the last factor changes fastest."""

    method: Literal["grid"]

    def check(self, factors: Factors) -> None:
        size = math.prod(len(levels) for levels in self.levels_of(factors))
        if size > MOST_POINTS:
            raise refused(f"a grid of {size} points: must be at most {MOST_POINTS}", "plan.levels")

    def place(self, factors: Factors, root: int) -> Placement:  # noqa: ARG002 - a grid has nothing random
        return _placed(np.array(list(product(*self.levels_of(factors)))), factors)


class UnivariateSettings(LevelSettings):
    """The centre, then each factor in turn over its levels while the others stay at their centre."""

    method: Literal["univariate"]

    def check(self, factors: Factors) -> None:
        self.levels_of(factors)

    def place(self, factors: Factors, root: int) -> Placement:  # noqa: ARG002 - nothing random either
        centre = [float(factor.snapped(np.array([0.5]))[0]) for factor in factors.values()]
        rows = [centre]
        for axis, levels in enumerate(self.levels_of(factors)):
            rows += [
                [*centre[:axis], level, *centre[axis + 1 :]] for level in levels if level != centre[axis]
            ]
        return _placed(np.array(rows), factors)


class ListSettings(PlanSettings):
    """Points that are written out in the file, as values by factor name."""

    method: Literal["list"]
    points: Annotated[list[Row], Field(min_length=1, max_length=MOST_POINTS)]

    def check(self, factors: Factors) -> None:
        places_of(self.points, factors, "plan.points")

    def place(self, factors: Factors, root: int) -> Placement:  # noqa: ARG002 - nothing random either
        return Placement(self.points, places_of(self.points, factors, "plan.points"))


METHODS: dict[str, type[PlanSettings]] = {
    "wsp": WspSettings,
    "lhs": SequenceSettings,
    "sobol": SequenceSettings,
    "halton": SequenceSettings,
    "grid": GridSettings,
    "univariate": UnivariateSettings,
    "list": ListSettings,
}


def _check_method(plan: Any) -> Any:
    if not isinstance(plan, dict):
        raise refused("must be a table")
    method = plan.get("method")
    if method is None:
        raise refused(f"is missing; it must be one of {', '.join(METHODS)}", "method")
    if not isinstance(method, str) or method not in METHODS:
        raise refused(f"{shown(method)} is no method; {nearest(str(method), METHODS)}", "method")
    return plan


AnyPlanSettings = Annotated[
    Annotated[WspSettings, Tag("(WspSettings)")]
    | Annotated[SequenceSettings, Tag("(SequenceSettings)")]
    | Annotated[GridSettings, Tag("(GridSettings)")]
    | Annotated[UnivariateSettings, Tag("(UnivariateSettings)")]
    | Annotated[ListSettings, Tag("(ListSettings)")],
    Discriminator(lambda plan: f"({METHODS[plan['method']].__name__})"),
    BeforeValidator(_check_method),
]


def make_plan(settings: PlanSettings, factors: Factors, root: int) -> Plan:
    """The plan that `settings` make of `factors` for the design's seed `root`.

    Raises DesignError when no such plan was found or two of its points are the same.
    """
    placement = settings.place(factors, root)
    seen: dict[tuple[Value, ...], int] = {}
    for index, point in enumerate(placement.points):
        first = seen.setdefault(tuple(point.values()), index)
        if first != index:
            raise DesignError(f"plan.points: points {first} and {index} are the same; all must be different")
    return Plan(placement.points, criteria(placement.places), placement.dmin, placement.candidate_set)


def places_of(rows: Sequence[Point], factors: Factors, key: str) -> Places:
    """The places of points that are given by their values; refuses those that are no points of `factors`."""
    places = np.empty((len(rows), len(factors)))
    for index, row in enumerate(rows):
        for name in row:
            if name not in factors:
                raise refused(f"no such factor; {nearest(name, factors)}", f"{key}[{index}].{name}")
        for axis, (name, factor) in enumerate(factors.items()):
            if name not in row:
                raise refused("is missing; a point has a value for every factor", f"{key}[{index}].{name}")
            with about(f"{key}[{index}].{name}"):
                places[index, axis] = factor.place(row[name])
    return places


def _generated_points(
    generator: Generator, count: int, factors: Factors, generator_seed: int
) -> tuple[list[Point], Places]:
    places = generated(generator, count, len(factors), generator_seed)
    columns = [factor.snapped(places[:, axis]) for axis, factor in enumerate(factors.values())]
    placement = _placed(np.column_stack(columns), factors)
    return placement.points, placement.places


def _placed(places: Places, factors: Factors) -> Placement:
    points = [
        {name: factor.value(place) for (name, factor), place in zip(factors.items(), row, strict=True)}
        for row in places.tolist()
    ]
    return Placement(points, places)


def generated(generator: Generator, count: int, dimensions: int, generator_seed: int) -> Places:
    """`count` points of the unit cube, shape (count, dimensions)."""
    rng = np.random.default_rng(generator_seed)
    places: Places
    if generator == "random":
        places = rng.random((count, dimensions))
    elif generator == "lhs":
        places = qmc.LatinHypercube(dimensions, rng=rng).random(count)
    elif generator == "halton":
        places = qmc.Halton(dimensions, rng=rng).random(count)
    else:
        # Drawn as a power of two, over which Sobol' sequences are balanced, and cut.
        places = qmc.Sobol(dimensions, rng=rng).random_base2((count - 1).bit_length())[:count]
    return places
