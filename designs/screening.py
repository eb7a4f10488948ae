"""Screening after Morris: which of many factors matter, from paths that change one factor at a time.

M. D. Morris: "Factorial sampling plans for preliminary computational experiments", Technometrics 33 (1991).
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, field_validator

from fecbench.designs.error import DesignError
from fecbench.designs.placement import MOST_POINTS, Factors, Placement, PlanSettings, Point, at, snapped
from fecbench.designs.seeds import seed
from fecbench.designs.table import refused

# The trajectories that are drawn for each one that shares no point with those before it.
DRAWS = 200


@dataclass(frozen=True)
class Step:
    """Two neighbours of a trajectory, which differ in one factor."""

    factor: str
    start: int
    """Index of the point before the step."""
    end: int
    change: float
    """Change of the factor's place on its axis, which is 1 long; never 0."""


class MorrisSettings(PlanSettings):
    """Trajectories through a lattice: each changes every factor once, in an order of its own."""

    method: Literal["morris"]
    trajectories: Annotated[int, Field(ge=2, le=MOST_POINTS)]
    levels: Annotated[int, Field(ge=2, le=1000)] = 4
    """Levels of the lattice on each axis. A step is half of them, and a bit more."""

    @field_validator("levels")
    @classmethod
    def _check_levels(cls, levels: int) -> int:
        if levels % 2:
            raise refused("must be even: a step goes over half of the levels")
        return levels

    def check(self, factors: Factors) -> None:
        if (points := self.count(factors)) > MOST_POINTS:
            raise refused(f"makes {points} points; the most is {MOST_POINTS}", "plan.trajectories")

    def count(self, factors: Factors) -> int:
        return self.trajectories * (len(factors) + 1)

    def place(self, factors: Factors, root: int) -> Placement:
        """Return the points, trajectory by trajectory.

        Raises DesignError where there are too few trajectories that share no point: a point of two would be
        measured twice.
        """
        # Loaded when a plan is made: it takes most of a second.
        import pydoe

        used: set[tuple[float, ...]] = set()
        rows = []
        for draw in range(DRAWS * self.trajectories):
            places = pydoe.morris_sampling(len(factors), 1, self.levels, seed(root, "trajectory", draw))
            # Rounding must not part levels that are the same.
            trajectory = snapped(np.clip(np.round(places, 12), 0, 1), factors)
            corners = {tuple(place) for place in trajectory.tolist()}
            if len(corners) < len(trajectory) or corners & used:
                continue
            used |= corners
            rows.append(trajectory)
            if len(rows) == self.trajectories:
                return at(np.concatenate(rows), factors)
        raise DesignError(
            f"plan.trajectories = {self.trajectories}: only {len(rows)} were found that share no point;"
            " take fewer of them, or more levels"
        )


def steps(points: list[Point], factors: Factors) -> list[Step]:
    """Return the steps of a plan by `MorrisSettings`, whose points are `points`."""
    names = list(factors)
    moves = []
    for start in range(len(points) - 1):
        if start % (len(names) + 1) == len(names):
            continue  # the next point begins another trajectory
        before, after = points[start], points[start + 1]
        (name,) = (name for name in names if before[name] != after[name])
        change = factors[name].place(after[name]) - factors[name].place(before[name])
        moves.append(Step(name, start, start + 1, change))
    return moves
