"""The plans of textbooks, against what the textbooks say of them; criteria of Latin hypercubes; screening."""

from collections.abc import Mapping
from itertools import combinations, pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError
from scipy.spatial.distance import pdist

from fecbench.designs import DesignError, Plan
from fecbench.designs.factor import Factor
from fecbench.designs.methods import AnyPlanSettings
from fecbench.designs.planner import make_plan
from fecbench.designs.screening import steps


def ranges(count: int) -> dict[str, Any]:
    return {f"factor_{index}": {"min": -1, "max": 1} for index in range(count)}


def planned(settings: Mapping[str, Any], factors: Mapping[str, Any], seed: int = 1) -> Plan:
    checked = TypeAdapter(dict[str, Factor]).validate_python(dict(factors))
    method = TypeAdapter(AnyPlanSettings).validate_python(dict(settings))
    method.check(checked)
    plan = make_plan(method, checked, seed)
    assert len(plan.points) == method.count(checked)
    return plan


def codes(method: str, count: int, **settings: Any) -> np.ndarray:
    """Return the levels of a plan over ranges from -1 to 1, shape (points, factors)."""
    plan = planned({"method": method, **settings}, ranges(count))
    return np.array([list(point.values()) for point in plan.points])


def test_a_factorial_is_every_combination_of_the_ends() -> None:
    assert {tuple(row) for row in codes("factorial", 3)} == set(product([-1, 1], repeat=3))


def test_generators_make_a_factor_the_product_of_others() -> None:
    # Montgomery, the 2^(4-1) fraction with I = ABCD; and its other half.
    plan = codes("factorial", 4, generators="a b c abc")
    other = codes("factorial", 4, generators="a b c -abc")
    assert len(plan) == len(other) == 8
    assert (plan.prod(axis=1) == 1).all() and (other.prod(axis=1) == -1).all()


def shortest_word(plan: np.ndarray) -> int:
    """Return the least number of factors of which the product is the same at all points: the resolution."""
    count = plan.shape[1]
    return next(
        size
        for size in range(1, count + 2)
        for some in combinations(range(count), size)
        if abs(plan[:, list(some)].prod(axis=1).sum()) == len(plan)
    )


@pytest.mark.parametrize(
    ("factors", "resolution", "points"),
    [(3, 3, 4), (7, 3, 8), (15, 3, 16), (4, 4, 8), (8, 4, 16), (5, 5, 16), (6, 5, 32), (8, 5, 64)],
)
def test_a_resolution_has_the_points_of_the_published_tables(factors, resolution, points) -> None:
    # Montgomery, the table of 2^(k-p) fractions.
    plan = codes("factorial", factors, resolution=resolution)
    assert len(plan) == points
    assert shortest_word(plan) >= resolution


@pytest.mark.parametrize("factors", [*range(2, 24), 28, 31])
def test_plackett_burman_is_orthogonal_in_the_next_multiple_of_four(factors: int) -> None:
    plan = codes("plackett-burman", factors)
    assert len(plan) == 4 * (factors // 4 + 1)
    assert (plan.T @ plan == len(plan) * np.eye(factors)).all()
    assert (plan.sum(axis=0) == 0).all()


def test_plackett_burman_of_twelve_points_is_the_published_one() -> None:
    # Plackett and Burman 1946: eleven shifts of one row, and a row of equal signs.
    published = [1 if sign == "+" else -1 for sign in "++-+++---+-"]
    shifts = {tuple(np.roll(row, shift)) for row in (published, published[::-1]) for shift in range(11)}
    rows = codes("plackett-burman", 11)
    mixed = [tuple(row) for row in rows if abs(row.sum()) != 11]
    assert len(mixed) == 11
    assert set(mixed) <= shifts or {tuple(-np.array(row)) for row in mixed} <= shifts


@pytest.mark.parametrize(("factors", "points"), [(3, 13), (4, 25), (5, 41)])
def test_box_behnken_has_the_middles_of_edges_and_one_centre(factors: int, points: int) -> None:
    plan = codes("box-behnken", factors)
    assert len(plan) == points
    assert sorted(np.abs(plan).sum(axis=1)) == [0] + [2] * (points - 1)


@pytest.mark.parametrize("factors", [2, 3, 4, 5])
def test_central_composite_is_rotatable_within_the_ranges(factors: int) -> None:
    plan = codes("central-composite", factors)
    assert len(plan) == 2**factors + 2 * factors + 1
    corners, axes = plan[: 2**factors], plan[2**factors :]
    assert np.abs(axes).max() == 1 == np.abs(plan).max()
    # Box and Hunter 1957: the points on the axes are (2^k)^(1/4) times as far out as a corner's coordinates.
    assert 1 / np.abs(corners) == pytest.approx(np.full(corners.shape, 2 ** (factors / 4)))


def test_faced_central_composite_has_three_levels() -> None:
    plan = codes("central-composite", 3, face="faced")
    assert set(plan.ravel()) == {-1, 0, 1}
    assert len(plan) == 15


def test_choices_are_levels_in_their_order() -> None:
    factors = {"loss.p": {"min": 0.01, "max": 0.1, "scale": "log"}, "option.http": {"choices": ["hq", "h3"]}}
    plan = planned({"method": "factorial"}, factors)
    assert [tuple(point.values()) for point in plan.points] == list(product([0.01, 0.1], ["hq", "h3"]))


def test_whole_numbers_are_reached_at_both_ends() -> None:
    plan = planned({"method": "factorial"}, {"queue_packets": {"min": 10, "max": 50, "integer": True}})
    assert [point["queue_packets"] for point in plan.points] == [10, 50]


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(["maximin", "centermaximin", "correlation"]), st.integers(2, 6), st.integers(3, 40))
def test_a_criterion_leaves_a_latin_hypercube(criterion: str, factors: int, points: int) -> None:
    plan = (codes("lhs", factors, points=points, criterion=criterion, iterations=3) + 1) / 2
    slices = np.sort(np.floor(plan * points + 1e-9), axis=0)
    assert (slices == np.arange(points)[:, None]).all()


def test_each_criterion_betters_what_it_is_named_after() -> None:
    def least_distance(plan: np.ndarray) -> float:
        return float(pdist(plan).min())

    def most_correlation(plan: np.ndarray) -> float:
        return float(np.abs(np.corrcoef(plan.T) - np.eye(plan.shape[1])).max())

    plain = codes("lhs", 4, points=30)
    assert least_distance(codes("lhs", 4, points=30, criterion="maximin")) > least_distance(plain)
    assert most_correlation(codes("lhs", 4, points=30, criterion="correlation")) < most_correlation(plain)


def test_another_seed_makes_another_hypercube_and_other_trajectories() -> None:
    for plan in (
        {"method": "lhs", "points": 9, "criterion": "maximin"},
        {"method": "morris", "trajectories": 3},
    ):
        assert planned(plan, ranges(5), 0) == planned(plan, ranges(5), 0)
        assert planned(plan, ranges(5), 0).points != planned(plan, ranges(5), 1).points


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 6), st.integers(2, 4), st.sampled_from([4, 6, 8]), st.integers(0, 2**64 - 1))
def test_a_trajectory_changes_each_factor_once_by_the_step_of_morris(
    factors, trajectories, levels, seed
) -> None:
    plan = planned(
        {"method": "morris", "trajectories": trajectories, "levels": max(levels, 4 * trajectories)},
        ranges(factors),
        seed,
    )
    levels = max(levels, 4 * trajectories)
    checked = TypeAdapter(dict[str, Factor]).validate_python(ranges(factors))
    steps_of_plan = steps(plan.points, checked)
    assert len(steps_of_plan) == trajectories * factors
    for first in range(0, len(steps_of_plan), factors):
        assert {step.factor for step in steps_of_plan[first : first + factors]} == set(checked)
    # Morris 1991, section 2: p / (2 (p - 1)).
    assert [abs(step.change) for step in steps_of_plan] == pytest.approx(
        [levels / (2 * (levels - 1))] * len(steps_of_plan)
    )
    for one, other in pairwise(plan.points):
        assert one != other


def test_choices_take_part_in_screening() -> None:
    factors = {**ranges(3), "http": {"choices": ["hq", "h3"]}, "queue": {"min": 1, "max": 9, "integer": True}}
    plan = planned({"method": "morris", "trajectories": 5}, factors)
    checked = TypeAdapter(dict[str, Factor]).validate_python(factors)
    assert {step.factor for step in steps(plan.points, checked)} == set(factors)


REFUSED = [
    (
        {"method": "factorial", "generators": "a b"},
        3,
        "must be 3 words, one for each factor, such as 'a b ab'",
    ),
    ({"method": "factorial", "generators": "a"}, 2, "must be 2 words, one for each factor, such as 'a b'"),
    ({"method": "factorial", "generators": "a b 7"}, 3, "must be 3 words, one for each factor"),
    ({"method": "factorial", "generators": "a b zz"}, 3, "Generators are not valid"),
    ({"method": "factorial", "generators": "a b a"}, 3, "Main factors are confounded"),
    ({"method": "factorial", "generators": "a b ab", "resolution": 3}, 3, "give one of both"),
    ({"method": "factorial", "resolution": 2}, 3, "greater than or equal to 3"),
    ({"method": "factorial"}, 14, "makes 16384 points of 14 factors; the most is 10000: say resolution = 4"),
    ({"method": "plackett-burman"}, 25, "there is none for 25 factors; take factorial"),
    ({"method": "plackett-burman"}, 1, "needs 2 factors or more, and there are 1"),
    ({"method": "box-behnken"}, 2, "needs 3 factors or more, and there are 2"),
    ({"method": "central-composite"}, 1, "needs 2 factors or more, and there are 1"),
    (
        {"method": "central-composite", "face": "faced", "alpha": "rotatable"},
        3,
        "is for face = 'inscribed' alone",
    ),
    ({"method": "lhs", "points": 9, "criterion": "center"}, 3, "'maximin', 'centermaximin' or 'correlation'"),
    ({"method": "lhs", "points": 9, "iterations": 9}, 3, "is for a criterion"),
    ({"method": "lhs", "points": 1, "criterion": "correlation"}, 3, "must be from 3 to 2000"),
    ({"method": "lhs", "points": 1, "criterion": "maximin"}, 3, "must be from 2 to 2000"),
    ({"method": "lhs", "points": 9, "criterion": "correlation"}, 1, "needs two factors"),
    ({"method": "morris", "trajectories": 1}, 3, "greater than or equal to 2"),
    ({"method": "morris", "trajectories": 4, "levels": 5}, 3, "must be even"),
    ({"method": "morris", "trajectories": 5000}, 3, "makes 20000 points; the most is 10000"),
]


@pytest.mark.parametrize(("plan", "factors", "message"), REFUSED)
def test_what_no_textbook_has_is_refused(plan: dict[str, Any], factors: int, message: str) -> None:
    with pytest.raises((ValidationError, PydanticCustomError, DesignError)) as refusal:
        planned(plan, ranges(factors))
    assert message in str(refusal.value)


def test_choices_must_be_as_many_as_levels() -> None:
    factors = {**ranges(2), "http": {"choices": ["hq", "h3", "raw"]}}
    for method, levels in (("factorial", 2), ("plackett-burman", 2)):
        with pytest.raises(Exception, match=f"has {levels} levels of each factor, and this one has 3 values"):
            planned({"method": method}, factors)
    assert len(planned({"method": "box-behnken"}, factors).points) == 13
    with pytest.raises(Exception, match="has no range, which central-composite needs"):
        planned({"method": "central-composite"}, factors)


def test_too_many_trajectories_for_a_lattice_are_refused() -> None:
    with pytest.raises(DesignError, match=r"trajectories = 30: only .* share no point; take fewer"):
        planned({"method": "morris", "trajectories": 30}, ranges(2))
