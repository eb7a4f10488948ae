"""Criteria against other ways to compute them, and against sets whose quality is known."""

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

random_points = st.builds(
    generated,
    st.sampled_from(["random", "lhs"]),
    st.integers(2, 60),
    st.integers(1, 5),
    st.integers(0, 10**6),
)


def test_discrepancies_are_scipys() -> None:
    points = generated("sobol", 32, 3, 5)
    result = criteria(points)
    for name, method in (("centred", "CD"), ("wraparound", "WD"), ("l2_star", "L2-star")):
        assert result[f"{name}_discrepancy"] == pytest.approx(
            qmc.discrepancy(points, method=method), rel=1e-9
        )


def test_one_point_has_no_distances() -> None:
    assert set(criteria(np.array([[0.5, 0.5]]))) == {
        "centred_discrepancy",
        "wraparound_discrepancy",
        "l2_star_discrepancy",
    }


def test_points_that_coincide_are_refused() -> None:
    with pytest.raises(DesignError, match="all be different"):
        criteria(np.array([[0.5, 0.5], [0.1, 0.2], [0.5, 0.5]]))


@settings(deadline=None)
@given(random_points)
def test_distances_and_the_spanning_tree_agree_with_scipys(points) -> None:
    matrix = squareform(pdist(points))
    edges = minimum_spanning_tree(matrix).data
    np.fill_diagonal(matrix, np.inf)
    nearest = matrix.min(axis=0)
    result = criteria(points)
    assert result["mindist"] == pytest.approx(pdist(points).min())
    assert result["mesh_ratio"] == pytest.approx(nearest.max() / nearest.min())
    spread = np.sqrt(((nearest - nearest.mean()) ** 2).mean())
    assert result["coverage"] == pytest.approx(spread / nearest.mean(), abs=1e-9)
    assert result["mst_mean"] == pytest.approx(edges.mean())
    assert result["mst_deviation"] == pytest.approx(edges.std(), abs=1e-9)
