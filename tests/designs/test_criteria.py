"""Criteria against other ways to compute them, and against sets whose quality is known."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial.distance import pdist, squareform
from scipy.stats import qmc

from fecbench.designs import DesignError
from fecbench.designs.criteria import criteria
from fecbench.designs.sequences import generated
from fecbench.designs.wsp import wsp_of_size

random_points = st.builds(
    generated,
    st.sampled_from(["random", "lhs"]),
    st.integers(2, 60),
    st.integers(1, 5),
    st.integers(0, 10**6),
)


@settings(deadline=None)
@given(random_points)
def test_distances_agree_with_the_matrix_of_all_distances(points) -> None:
    matrix = squareform(pdist(points))
    np.fill_diagonal(matrix, np.inf)
    nearest = matrix.min(axis=0)
    found = criteria(points)
    assert found["mindist"] == pytest.approx(pdist(points).min())
    assert found["mesh_ratio"] == pytest.approx(nearest.max() / nearest.min())
    spread = np.sqrt(((nearest - nearest.mean()) ** 2).mean())
    assert found["coverage"] == pytest.approx(spread / nearest.mean(), abs=1e-9)


@settings(deadline=None)
@given(random_points)
def test_the_spanning_tree_agrees_with_scipys(points) -> None:
    edges = minimum_spanning_tree(squareform(pdist(points))).data
    found = criteria(points)
    assert found["mst_mean"] == pytest.approx(edges.mean())
    assert found["mst_deviation"] == pytest.approx(edges.std(), abs=1e-9)


@settings(deadline=None)
@given(random_points, st.randoms())
def test_neither_the_order_of_points_nor_of_factors_matters(points, random) -> None:
    rows, columns = list(range(points.shape[0])), list(range(points.shape[1]))
    random.shuffle(rows)
    random.shuffle(columns)
    assert criteria(points[rows][:, columns]) == pytest.approx(criteria(points), abs=1e-9)


def test_a_regular_grid_is_perfectly_regular() -> None:
    found = criteria(np.array(list(product([0.125, 0.375, 0.625, 0.875], repeat=2))))
    assert (found["mindist"], found["mesh_ratio"], found["coverage"]) == (0.25, 1, 0)
    assert (found["mst_mean"], found["mst_deviation"]) == (0.25, 0)


def test_discrepancies_are_scipys() -> None:
    points = generated("sobol", 32, 3, 5)
    found = criteria(points)
    for name, method in (("centred", "CD"), ("wraparound", "WD"), ("l2_star", "L2-star")):
        assert found[f"{name}_discrepancy"] == qmc.discrepancy(points, method=method)


def test_wsp_is_more_regular_than_chance() -> None:
    candidates = generated("sobol", 1000, 3, 1)
    found = wsp_of_size(candidates, 50)
    assert found is not None
    chosen, chance = criteria(candidates[found[0]]), criteria(generated("random", 50, 3, 1))
    assert chosen["mindist"] > 3 * chance["mindist"]
    assert chosen["mesh_ratio"] < chance["mesh_ratio"]
    assert chosen["coverage"] < chance["coverage"]


def test_one_point_has_no_distances() -> None:
    assert set(criteria(np.array([[0.5, 0.5]]))) == {
        "centred_discrepancy",
        "wraparound_discrepancy",
        "l2_star_discrepancy",
    }


def test_points_that_coincide_are_refused() -> None:
    with pytest.raises(DesignError, match="all be different"):
        criteria(np.array([[0.5, 0.5], [0.1, 0.2], [0.5, 0.5]]))
