"""The plans of textbooks on the design of experiments, made by pydoe.

Each gives a factor two, three or five levels, from the lowest to the highest. A range has them at its ends
and between; a factor with choices must have as many choices as there are levels. Factors are the textbook's
a, b, c, … in the order of the file. All plans are in D. C. Montgomery, "Design and Analysis of Experiments".
"""

import re
from abc import abstractmethod
from collections.abc import Callable
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fecbench.designs.factor import AnyFactor, SteppedFactor
from fecbench.designs.placement import MOST_POINTS, Factors, Placement, PlanSettings, at
from fecbench.designs.table import refused

Codes = NDArray[np.float64]
"""Shape (points, factors): levels from -1, the lowest, to 1."""

_WORD = re.compile("[+-]?[A-Za-z]+")


class TextbookSettings(PlanSettings):
    """Base of these plans: codes from -1 to 1, which become places on the factors' axes."""

    method: str

    @property
    @abstractmethod
    def levels(self) -> int:
        """The number of levels of each factor."""

    @abstractmethod
    def codes(self, count: int) -> Codes:
        """Return the plan for `count` factors. Raise what `refused` makes where there is none."""

    def check(self, factors: Factors) -> None:
        for name, factor in factors.items():
            if isinstance(factor, SteppedFactor) and len(factor.steps) != self.levels:
                what = f"has {self.levels} levels of each factor, and this one has {len(factor.steps)} values"
                raise refused(f"{self.method} {what}", f"factors.{name}")
        points = len(self.codes(len(factors)))
        if points > MOST_POINTS:
            raise refused(f"makes {points} points; the most is {MOST_POINTS}", "plan.method", self.method)

    def count(self, factors: Factors) -> int:
        return len(self.codes(len(factors)))

    def place(self, factors: Factors, root: int) -> Placement:  # noqa: ARG002 - nothing random
        codes = self.codes(len(factors))
        columns = [_places(factor, codes[:, axis]) for axis, factor in enumerate(factors.values())]
        return at(np.column_stack(columns), factors)


class FactorialSettings(TextbookSettings):
    """Two levels of each factor: all combinations, or the fraction that `generators` or `resolution` say."""

    method: Literal["factorial"]
    generators: str | None = None
    """A word for each factor: "a b c abc" has a fourth factor that is the product of the first three."""
    resolution: Annotated[int, Field(ge=3)] | None = None
    """The fewest points in which no main effect is mixed with one of another main effect (3), of a pair
    (4), nor one pair with another (5)."""

    @property
    def levels(self) -> int:
        return 2

    def codes(self, count: int) -> Codes:
        import pydoe

        if self.generators is not None:
            return self._of_generators(count)
        if self.resolution is not None and count > 1:
            return _codes_of(
                lambda: pydoe.fracfact_by_res(count, self.resolution), "plan.resolution", self.resolution
            )
        if 2**count > MOST_POINTS:
            why = f"makes {2**count} points of {count} factors; the most is {MOST_POINTS}: say resolution = 4"
            raise refused(why, "plan.method", self.method)
        return _codes_of(lambda: pydoe.ff2n(count), "plan.method", self.method)

    def _of_generators(self, count: int) -> Codes:
        import pydoe

        key, words = "plan.generators", str(self.generators).split()
        if self.resolution is not None:
            raise refused("says the generators itself: give one of both", "plan.resolution", self.resolution)
        if len(words) != count or not all(map(_WORD.fullmatch, words)):
            rule = f"must be {count} words, one for each factor, such as {_example(count)!r}"
            raise refused(rule, key, self.generators)
        return _codes_of(lambda: pydoe.fracfact(" ".join(words)), key, self.generators)


class PlackettBurmanSettings(TextbookSettings):
    """Two levels in the fewest points, a multiple of four: for main effects alone."""

    method: Literal["plackett-burman"]

    @property
    def levels(self) -> int:
        return 2

    def codes(self, count: int) -> Codes:
        import pydoe

        _check_count(self.method, count, 2)
        try:
            return np.asarray(pydoe.pbdesign(count), dtype=np.float64)
        except ValueError:
            why = f"there is none for {count} factors; take factorial with resolution = 3"
            raise refused(why, "plan.method", self.method) from None


class BoxBehnkenSettings(TextbookSettings):
    """Three levels, without the corners: the centre, and the middle of each edge between two factors."""

    method: Literal["box-behnken"]

    @property
    def levels(self) -> int:
        return 3

    def codes(self, count: int) -> Codes:
        import pydoe

        _check_count(self.method, count, 3)
        return _codes_of(lambda: pydoe.bbdesign(count, center=1), "plan.method", self.method)


class CentralCompositeSettings(TextbookSettings):
    """The corners, the centre, and two points on each axis: enough for a surface of second degree.

    No point leaves the ranges. With `face = "inscribed"`, the points on the axes are at the ends and the
    corners further in; with "faced", both are at the ends.
    """

    method: Literal["central-composite"]
    face: Literal["inscribed", "faced"] = "inscribed"
    alpha: Literal["rotatable", "orthogonal"] | None = None
    """The distance of the corners from the centre. "rotatable" (default): errors depend on the distance
    from the centre alone; "orthogonal": a shift between corners and axes changes no effect."""

    @property
    def levels(self) -> int:
        return 3 if self.face == "faced" else 5

    def check(self, factors: Factors) -> None:
        if self.face == "faced" and self.alpha is not None:
            raise refused("is for face = 'inscribed' alone: leave it out", "plan.alpha", self.alpha)
        for name, factor in factors.items():
            if self.face == "inscribed" and isinstance(factor, SteppedFactor):
                raise refused("has no range, which central-composite needs", f"factors.{name}")
        super().check(factors)

    def codes(self, count: int) -> Codes:
        import pydoe

        _check_count(self.method, count, 2)
        # 2^count corners, and two points more a factor.
        if 2**count > MOST_POINTS:
            raise refused(f"makes over {MOST_POINTS} points of {count} factors", "plan.method", self.method)
        alpha = self.alpha or "rotatable"
        return _codes_of(
            lambda: pydoe.ccdesign(
                count, center=(0, 1), alpha=alpha, face={"inscribed": "cci", "faced": "ccf"}[self.face]
            ),
            "plan.method",
            self.method,
        )


def _check_count(method: str, count: int, fewest: int) -> None:
    if count < fewest:
        raise refused(f"needs {fewest} factors or more, and there are {count}", "plan.method", method)


def _codes_of(make: Callable[[], Any], key: str, value: Any) -> Codes:
    """Return what pydoe makes; its refusal as one of `key`."""
    try:
        return np.asarray(make(), dtype=np.float64)
    except ValueError as error:
        raise refused(" ".join(str(error).split()).rstrip("."), key, value) from None


def _places(factor: AnyFactor, codes: Codes) -> NDArray[np.float64]:
    """Return the places of levels on a factor's axis."""
    if isinstance(factor, SteppedFactor):
        places = np.array(factor.levels(), dtype=np.float64)
        level: NDArray[np.int64] = np.rint((codes + 1) / 2 * (len(places) - 1)).astype(np.int64)
        return np.take(places, level)
    return factor.snapped((codes + 1) / 2)


def _example(count: int) -> str:
    """Return generators for `count` factors: from three on, the last one is the product of the others."""
    letters = [chr(ord("a") + index) for index in range(count)]
    return " ".join(letters if count < 3 else [*letters[:-1], "".join(letters[:-1])])
