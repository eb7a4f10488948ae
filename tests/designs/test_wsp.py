"""WSP against a slow selection by the definition, and the laws that any of its selections keeps."""

import doctest
import math
import tracemalloc
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import fecbench.designs.wsp as wsp_module
from fecbench.designs.methods import CANDIDATE_SETS
from fecbench.designs.sequences import generated
from fecbench.designs.wsp import wsp, wsp_of_size

STEPS = 16  # coordinates are sixteenths: distances tie often, and both sides compare them without rounding

lattices = st.integers(1, 4).flatmap(
    lambda d: st.lists(st.tuples(*[st.integers(0, STEPS)] * d), min_size=1, max_size=40)
)
dmins = st.integers(0, 2 * STEPS)


def in_unit_cube(lattice: Sequence[tuple[int, ...]]) -> NDArray[np.float64]:
    return np.array(lattice, dtype=float) / STEPS


def selected_by_definition(lattice: Sequence[tuple[int, ...]], dmin: int) -> list[int]:
    """Santiago et al. 2012, section 2, in exact arithmetic and without any shortcut."""

    def squared(one: Sequence[Fraction | int], other: Sequence[Fraction | int]) -> Fraction:
        return sum((Fraction(a - b) ** 2 for a, b in zip(one, other, strict=True)), Fraction(0))

    centre = [Fraction(STEPS, 2)] * len(lattice[0])
    survivors = list(range(len(lattice)))
    current = min(survivors, key=lambda index: (squared(lattice[index], centre), index))
    order = []
    while True:
        order.append(current)
        survivors.remove(current)
        survivors = [s for s in survivors if squared(lattice[s], lattice[current]) >= dmin**2]
        if not survivors:
            return order
        here = lattice[current]
        current = min(survivors, key=lambda index: (squared(lattice[index], here), index))


@settings(deadline=None)
@given(lattices, dmins)
def test_selects_what_the_definition_selects(lattice: list[tuple[int, ...]], dmin: int) -> None:
    assert wsp(in_unit_cube(lattice), dmin / STEPS).tolist() == selected_by_definition(lattice, dmin)


@settings(deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 150), st.floats(0, 1.5))
def test_selected_points_keep_dmin_and_leave_no_candidate_uncovered(seed, dimensions, count, dmin) -> None:
    candidates = generated("random", count, dimensions, seed)
    selected = wsp(candidates, dmin)
    distances = np.sqrt(((candidates[:, None] - candidates[None]) ** 2).sum(axis=2))
    among = distances[np.ix_(selected, selected)][~np.eye(len(selected), dtype=bool)]
    assert len(set(selected.tolist())) == len(selected)
    assert not len(among) or among.min() >= dmin - 1e-12
    left_out = np.setdiff1d(np.arange(count), selected)
    assert (distances[np.ix_(left_out, selected)].min(axis=1) < dmin + 1e-12).all()


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 5), st.floats(0.02, 0.5))
def test_a_tree_of_what_is_near_selects_the_same(seed, dimensions, dmin) -> None:
    candidates = generated("sobol", 300, dimensions, seed).round(2)  # so that distances tie
    with pytest.MonkeyPatch.context() as patch:
        without = selection_of(candidates, dmin)
        patch.setattr(wsp_module, "FEWEST_IN_TREE", 20)
        patch.setattr(wsp_module, "MOST_NEAR", 2.0)  # it pays always
        assert selection_of(candidates, dmin) == without


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 10**6), st.integers(1, 5), st.lists(st.floats(0.02, 0.5), min_size=1, max_size=2))
@example(0, 2, [0.0])
def test_what_is_remembered_of_selections_before_selects_the_same(seed, dimensions, middles) -> None:
    candidates = generated("sobol", 100, dimensions, seed).round(2)  # so that distances tie
    surroundings = wsp_module._Surroundings(np.ascontiguousarray(candidates.T))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wsp_module, "MOST_REMEMBERED", 500)
        for middle, times in product(middles, (1, 1.1, 0.8)):
            dmin = times * middle
            assert selection_of(candidates, dmin, surroundings) == selection_of(candidates, dmin)


def selection_of(
    candidates: NDArray[np.float64], dmin: float, surroundings: wsp_module._Surroundings | None = None
) -> tuple[list[int], float, float]:
    """Return the selected candidates, and the interval of dmin that selects them."""
    columns = np.ascontiguousarray(candidates.T)
    selection = wsp_module._select(columns, dmin, len(candidates), surroundings)
    return selection.indices.tolist(), selection.low, selection.high


BAD = [
    ([[0.5]], -0.1, "dmin = -0.1"),
    ([[0.5]], math.nan, "dmin = nan"),
    ([[math.nan]], 0.1, "from 0 to 1"),
    ([[1.5]], 0.1, "from 0 to 1"),
    ([0.5, 0.6], 0.1, "shape (2,)"),
    ([], 0.1, "shape (0,)"),
    (np.empty((3, 0)), 0.1, "shape (3, 0)"),
]


def test_bad_arguments_are_refused_by_name() -> None:
    for candidates, dmin, complaint in BAD:
        with pytest.raises(ValueError) as refusal:
            wsp(candidates, dmin)
        assert complaint in str(refusal.value)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 60))
def test_a_size_is_met_exactly_and_its_dmin_selects_the_same(seed, dimensions, size) -> None:
    # Among some candidates, no dmin selects so many: the planner goes on with others, and so does this.
    for candidate_set in range(CANDIDATE_SETS):
        candidates = generated("sobol", 20 * size, dimensions, seed + 10**6 * candidate_set)
        if subset := wsp_of_size(candidates, size):
            break
    assert subset is not None
    selected, dmin = subset
    assert len(selected) == size
    assert wsp(candidates, dmin).tolist() == selected.tolist()


def sizes_of(candidates: NDArray[np.float64]) -> set[int]:
    """Return every size that some dmin gives: it changes where dmin passes a distance between two
    candidates."""
    distances = {math.dist(a, b) for a in candidates for b in candidates}
    return {len(wsp(candidates, d)) for exact in distances for d in (exact, np.nextafter(exact, 9))}


@settings(deadline=None)
@given(lattices, st.data())
def test_every_size_that_some_dmin_gives_is_found_in_a_small_set(lattice, data) -> None:
    candidates = np.unique(in_unit_cube(lattice), axis=0)
    size = data.draw(st.sampled_from(sorted(sizes_of(candidates))))
    subset = wsp_of_size(candidates, size)
    assert subset is not None
    assert len(subset[0]) == size


def test_a_size_that_no_dmin_gives_is_not_invented() -> None:
    # From the middle, all corners are equally far: either all five survive or one.
    cross = [[0.5, 0.5], [0.25, 0.5], [0.75, 0.5], [0.5, 0.25], [0.5, 0.75]]
    assert {len(wsp(cross, dmin)) for dmin in np.linspace(0, 1, 400)} == {1, 5}
    assert [wsp_of_size(cross, size) for size in (2, 3, 4)] == [None, None, None]


def test_a_size_beyond_the_candidates_is_refused() -> None:
    for size in (0, 4):
        with pytest.raises(ValueError, match=f"size = {size}: must be from 1 to"):
            wsp_of_size([[0.1], [0.2], [0.3]], size)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "count", "dimensions", "most_bytes"), [(1000, 20_000, 10, 100e6), (10_000, 200_000, 5, 500e6)]
)
def test_many_points_take_little_memory(size: int, count: int, dimensions: int, most_bytes: float) -> None:
    candidates = generated("sobol", count, dimensions, 1)
    tracemalloc.start()
    subset = wsp_of_size(candidates, size)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert subset is not None
    assert peak_bytes < most_bytes


def test_the_file_could_be_one_of_pydoe() -> None:
    imports = [line for line in Path(wsp_module.__file__).read_text().splitlines() if " import " in line]
    assert not [line for line in imports if "fecbench" in line]
    assert doctest.testmod(wsp_module).failed == 0
    assert doctest.testmod(wsp_module).attempted == 2
