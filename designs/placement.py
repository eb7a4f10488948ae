"""A method of planning: its settings, and the points that it places.

Each method is a class of its own, in `methods.py`, `textbook.py` and `screening.py`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from fecbench.designs.factor import AnyFactor, Places
from fecbench.designs.table import Table, Value

Factors = Mapping[str, AnyFactor]
Point = dict[str, Value]

MOST_POINTS = 10_000

Points = Annotated[int, Field(ge=1, le=MOST_POINTS)]


@dataclass(frozen=True)
class Placement:
    """Points, with the places of their values in the unit cube."""

    points: list[Point]
    places: Places
    """Shape (points, factors)."""
    dmin: float | None = None
    """WSP's minimum distance; None for the other methods."""
    candidate_set: int = 0
    """The number of sets of candidates that had no dmin for exactly the wanted number of points, before
    one had."""


class PlanSettings(Table, ABC):
    """The table [plan] of one method."""

    def check(self, factors: Factors) -> None:
        """Refuse what only shows when the factors are known."""

    @abstractmethod
    def count(self, factors: Factors) -> int:
        """Return the number of points of `place`, without placing them."""

    @abstractmethod
    def place(self, factors: Factors, root: int) -> Placement:
        """Return the points for the design's seed `root`."""


def at(places: Places, factors: Factors) -> Placement:
    """Return the points at `places`, shape (points, factors), where each place is that of a value."""
    points = [
        {name: factor.value(place) for (name, factor), place in zip(factors.items(), row, strict=True)}
        for row in places.tolist()
    ]
    return Placement(points, places)


def snapped(places: Places, factors: Factors) -> Places:
    """Return the places of the values at `places`: a factor of whole numbers or choices has only some."""
    return np.column_stack([factor.snapped(places[:, axis]) for axis, factor in enumerate(factors.values())])
