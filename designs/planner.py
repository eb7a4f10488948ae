"""Plans: the points of a design, and how well they fill its space."""

from dataclasses import dataclass

from fecbench.designs.error import DesignError
from fecbench.designs.factor import LinkedFactor
from fecbench.designs.placement import Factors, PlanSettings, Point
from fecbench.designs.table import Value


@dataclass(frozen=True)
class Plan:
    """The points of a design, in order."""

    points: list[Point]
    """The value of each factor by its name; a linked factor brings its parameters with it."""
    criteria: dict[str, float]
    """The criteria of the points' places in the unit cube, see `designs.criteria`."""
    dmin: float | None = None
    """WSP's minimum distance in the unit cube; None for the other methods."""
    candidate_set: int = 0
    """The number of sets of candidates that had no dmin for exactly the wanted number of points, before
    one had."""


def make_plan(settings: PlanSettings, factors: Factors, root: int) -> Plan:
    """The plan that `settings` make of `factors` for the design's seed `root`.

    Raises DesignError when no such plan was found or two of its points are the same.
    """
    # Loaded when a plan is made: SciPy takes half a second, and all who only read a design would pay for it.
    from fecbench.designs.criteria import criteria

    placement = settings.place(factors, root)
    first_index: dict[tuple[Value, ...], int] = {}
    for index, point in enumerate(placement.points):
        first = first_index.setdefault(tuple(point.values()), index)
        if first != index:
            raise DesignError(f"plan.points: points {first} and {index} are the same; all must be different")
    points = [_with_linked(point, factors) for point in placement.points]
    return Plan(points, criteria(placement.places), placement.dmin, placement.candidate_set)


def _with_linked(point: Point, factors: Factors) -> Point:
    """The point with the parameters of its linked factors, each behind the name of its combination."""
    values: Point = {}
    for name, value in point.items():
        factor = factors[name]
        values[name] = value
        if isinstance(factor, LinkedFactor):
            values |= factor.linked[str(value)]
    return values
