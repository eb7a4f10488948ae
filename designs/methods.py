"""The methods of planning: one class each, with the keys of [plan] that the method takes.

Each places its points in the unit cube, one axis per factor in the order of the file, or finds the places of
the points that the file gives. A wrong point or level is refused by `check`, when the file is read.
"""

import math
from collections.abc import Sequence
from itertools import product
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from fecbench.designs.error import DesignError
from fecbench.designs.factor import AnyFactor, SteppedFactor
from fecbench.designs.placement import (
    MOST_POINTS,
    Factors,
    Placement,
    PlanSettings,
    Point,
    Points,
    at,
    snapped,
)
from fecbench.designs.screening import MorrisSettings
from fecbench.designs.seeds import seed
from fecbench.designs.sequences import Generator, generated
from fecbench.designs.table import PlainValue, about, dotted, refused
from fecbench.designs.textbook import (
    BoxBehnkenSettings,
    CentralCompositeSettings,
    FactorialSettings,
    PlackettBurmanSettings,
)
from fecbench.designs.wsp import wsp_of_size
from fecbench.hints import nearest

MOST_CANDIDATES = 200_000
# The sets of candidates that are tried for one with exactly the wanted number of points.
CANDIDATE_SETS = 8
CANDIDATES_PER_POINT = 20
# A criterion needs the distances of all pairs of each hypercube.
MOST_POINTS_OF_CRITERION = 2_000
ITERATIONS = 100

LevelCount = Annotated[int, Field(ge=2, le=MOST_POINTS)]
Row = Annotated[dict[str, PlainValue], BeforeValidator(dotted)]


def _one_or_each(value: Any) -> str:
    return "(each)" if isinstance(value, dict | list) else "(one)"


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
    """The number to generate (by default 20 per point), or the candidates themselves: values by factor
    name."""
    generator: Generator | None = None

    @model_validator(mode="after")
    def _check_candidates(self) -> Self:
        is_list = isinstance(self.candidates, list)
        if is_list and self.generator is not None:
            raise refused("must not be set when the candidates are given", "generator")
        if not self.points <= self._count() <= MOST_CANDIDATES:
            limits = f"from points = {self.points} to {MOST_CANDIDATES}"
            raise refused(f"the number of candidates must be {limits}", "candidates", self._count())
        return self

    def check(self, factors: Factors) -> None:
        if isinstance(self.candidates, list):
            _placement_of_rows(self.candidates, factors, "plan.candidates")

    def count(self, factors: Factors) -> int:  # noqa: ARG002 - it is given
        return self.points

    def place(self, factors: Factors, root: int) -> Placement:
        for candidate_set in range(1 if isinstance(self.candidates, list) else CANDIDATE_SETS):
            candidates = self._candidates(factors, root, candidate_set)
            if len(candidates.points) < self.points:
                limit = f"must be at most {len(candidates.points)}, the number of different candidates"
                raise DesignError(f"plan.points = {self.points}: {limit}")
            selection = wsp_of_size(candidates.places, self.points)
            if selection is not None:
                rows, dmin = selection
                return Placement(
                    [candidates.points[row] for row in rows], candidates.places[rows], dmin, candidate_set
                )
        raise DesignError(
            f"plan.points = {self.points}: no dmin was found that selects this number from {self._count()}"
            " candidates; change the number of points, or take more candidates"
        )

    def _count(self) -> int:
        if isinstance(self.candidates, list):
            return len(self.candidates)
        return self.candidates or CANDIDATES_PER_POINT * self.points

    def _candidates(self, factors: Factors, root: int, candidate_set: int) -> Placement:
        """The different candidates, in their order: no dmin > 0 selects two that are the same."""
        if isinstance(self.candidates, list):
            candidates = _placement_of_rows(self.candidates, factors, "plan.candidates")
        else:
            generator = self.generator or "sobol"
            set_seed = seed(root, "candidates", generator, candidate_set)
            candidates = _generated(generator, self._count(), factors, set_seed)
        firsts = np.sort(np.unique(candidates.places, axis=0, return_index=True)[1])
        return Placement([candidates.points[first] for first in firsts], candidates.places[firsts])


class SequenceSettings(PlanSettings):
    """`points` points of a scrambled Sobol' or Halton sequence."""

    method: Literal["sobol", "halton"]
    points: Points

    def count(self, factors: Factors) -> int:  # noqa: ARG002 - it is given
        return self.points

    def place(self, factors: Factors, root: int) -> Placement:
        return _generated(self.method, self.points, factors, seed(root, "points", self.method))


class LatinHypercubeSettings(PlanSettings):
    """A Latin hypercube; with `criterion`, the best one of `iterations` that pydoe draws."""

    method: Literal["lhs"]
    points: Points
    criterion: Literal["maximin", "centermaximin", "correlation"] | None = None
    """Largest least distance of two points, the same with points in the middle of their cells, or least
    correlation between factors."""
    iterations: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """The number of hypercubes that are drawn to choose from: 100 by default."""

    def check(self, factors: Factors) -> None:
        if self.criterion is None:
            if self.iterations is not None:
                raise refused("is for a criterion, and there is none: leave it out", "plan.iterations")
            return
        fewest = 3 if self.criterion == "correlation" else 2  # two points are always correlated
        if not fewest <= self.points <= MOST_POINTS_OF_CRITERION:
            rule = f"must be from {fewest} to {MOST_POINTS_OF_CRITERION} with this criterion"
            raise refused(rule, "plan.points", self.points)
        if self.criterion == "correlation" and len(factors) < 2:
            raise refused("needs two factors", "plan.criterion", self.criterion)

    def count(self, factors: Factors) -> int:  # noqa: ARG002 - it is given
        return self.points

    def place(self, factors: Factors, root: int) -> Placement:
        if self.criterion is None:
            return _generated("lhs", self.points, factors, seed(root, "points", "lhs"))
        # Loaded when a plan is made: it takes most of a second.
        import pydoe

        places = pydoe.lhs(
            len(factors),
            self.points,
            self.criterion,
            self.iterations or ITERATIONS,
            seed=seed(root, "points", "lhs", self.criterion),
        )
        return at(snapped(places, factors), factors)


class LevelSettings(PlanSettings):
    """The common part of grid and univariate: the levels of a factor with a range; choices are all taken."""

    levels: (
        Annotated[
            Annotated[LevelCount, Tag("(one)")]
            | Annotated[dict[str, LevelCount], BeforeValidator(dotted), Tag("(each)")],
            Discriminator(_one_or_each),
        ]
        | None
    ) = None
    """One number for all factors with a range, or a number for each of them by name."""

    def check(self, factors: Factors) -> None:
        points = self.count(factors)
        if points > MOST_POINTS:
            raise refused(f"makes {points} points; the most is {MOST_POINTS}", "plan.levels")

    def levels_of(self, factors: Factors) -> list[list[float]]:
        """The places of the levels on each factor's axis."""
        if isinstance(self.levels, dict):
            for name in self.levels:
                if name not in factors:
                    raise refused(f"is no factor; {nearest(name, factors)}", f"plan.levels.{name}")
                if isinstance(factors[name], SteppedFactor):
                    raise refused("has no range: all its values are taken", f"plan.levels.{name}")
        return [self._levels_of(name, factor) for name, factor in factors.items()]

    def _levels_of(self, name: str, factor: AnyFactor) -> list[float]:
        if isinstance(factor, SteppedFactor):
            return factor.levels()
        count = self.levels.get(name) if isinstance(self.levels, dict) else self.levels
        if count is None:
            raise refused(f"is missing; the factor {name} has a range", "plan.levels")
        with about("plan.levels", count):
            return factor.levels(count)


class GridSettings(LevelSettings):
    """Every combination of the factors' levels; the last factor changes fastest."""

    method: Literal["grid"]

    def count(self, factors: Factors) -> int:
        return math.prod(len(levels) for levels in self.levels_of(factors))

    def place(self, factors: Factors, root: int) -> Placement:  # noqa: ARG002 - a grid has nothing random
        return at(np.array(list(product(*self.levels_of(factors)))), factors)


class UnivariateSettings(LevelSettings):
    """The centre, then each factor in turn over its levels while the others stay at their centre."""

    method: Literal["univariate"]

    def count(self, factors: Factors) -> int:
        return len(self._rows(factors))

    def place(self, factors: Factors, root: int) -> Placement:  # noqa: ARG002 - nothing random either
        return at(np.array(self._rows(factors)), factors)

    def _rows(self, factors: Factors) -> list[list[float]]:
        centre = [float(factor.snapped(np.array([0.5]))[0]) for factor in factors.values()]
        rows = [centre]
        for axis, levels in enumerate(self.levels_of(factors)):
            rows += [
                [*centre[:axis], level, *centre[axis + 1 :]]
                for level in levels
                # By rounding, the middle one of 99 levels is not quite 0.5.
                if not math.isclose(level, centre[axis])
            ]
        return rows


class ListSettings(PlanSettings):
    """Points that are written out in the file, as values by factor name."""

    method: Literal["list"]
    points: Annotated[list[Row], Field(min_length=1, max_length=MOST_POINTS)]

    def check(self, factors: Factors) -> None:
        _placement_of_rows(self.points, factors, "plan.points")

    def count(self, factors: Factors) -> int:  # noqa: ARG002 - they are given
        return len(self.points)

    def place(self, factors: Factors, root: int) -> Placement:  # noqa: ARG002 - nothing random either
        return _placement_of_rows(self.points, factors, "plan.points")


METHODS: dict[str, type[PlanSettings]] = {
    "wsp": WspSettings,
    "lhs": LatinHypercubeSettings,
    "sobol": SequenceSettings,
    "halton": SequenceSettings,
    "grid": GridSettings,
    "univariate": UnivariateSettings,
    "list": ListSettings,
    "factorial": FactorialSettings,
    "plackett-burman": PlackettBurmanSettings,
    "box-behnken": BoxBehnkenSettings,
    "central-composite": CentralCompositeSettings,
    "morris": MorrisSettings,
}


def _check_method(plan: Any) -> Any:
    if not isinstance(plan, dict):
        raise refused("must be a table")
    method = plan.get("method")
    if method is None:
        raise refused(f"is missing; it must be one of {', '.join(METHODS)}", "method")
    if not isinstance(method, str) or method not in METHODS:
        raise refused(f"is no method; {nearest(str(method), METHODS)}", "method", method)
    return plan


AnyPlanSettings = Annotated[
    Annotated[WspSettings, Tag("(WspSettings)")]
    | Annotated[SequenceSettings, Tag("(SequenceSettings)")]
    | Annotated[LatinHypercubeSettings, Tag("(LatinHypercubeSettings)")]
    | Annotated[GridSettings, Tag("(GridSettings)")]
    | Annotated[UnivariateSettings, Tag("(UnivariateSettings)")]
    | Annotated[ListSettings, Tag("(ListSettings)")]
    | Annotated[FactorialSettings, Tag("(FactorialSettings)")]
    | Annotated[PlackettBurmanSettings, Tag("(PlackettBurmanSettings)")]
    | Annotated[BoxBehnkenSettings, Tag("(BoxBehnkenSettings)")]
    | Annotated[CentralCompositeSettings, Tag("(CentralCompositeSettings)")]
    | Annotated[MorrisSettings, Tag("(MorrisSettings)")],
    Discriminator(lambda plan: f"({METHODS[plan['method']].__name__})"),
    BeforeValidator(_check_method),
]


def _placement_of_rows(rows: Sequence[Point], factors: Factors, key: str) -> Placement:
    """The points that stand in the file under `key`; refuses what is no point of `factors`."""
    points = [_point(row, factors, f"{key}[{index}]") for index, row in enumerate(rows)]
    places = np.empty((len(points), len(factors)))
    for index, point in enumerate(points):
        for axis, (name, factor) in enumerate(factors.items()):
            with about(f"{key}[{index}].{name}", point[name]):
                places[index, axis] = factor.place(point[name])
    return Placement(points, places)


def _point(row: Point, factors: Factors, key: str) -> Point:
    for name in row:
        if name not in factors:
            raise refused(f"is no factor; {nearest(name, factors)}", f"{key}.{name}")
    for name in factors:
        if name not in row:
            raise refused("is missing; a point has a value for every factor", f"{key}.{name}")
    return {name: row[name] for name in factors}


def _generated(generator: Generator, count: int, factors: Factors, generator_seed: int) -> Placement:
    return at(snapped(generated(generator, count, len(factors), generator_seed), factors), factors)
