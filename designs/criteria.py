"""Criteria of how well a set of points fills the unit cube.

- mindist, coverage and mesh_ratio: M. Gunzburger, J. Burkardt, "Uniformity measures for point samples in
  hypercubes" (2004);
- mst_mean and mst_deviation: J. Franco et al., "Minimum Spanning Tree: a new approach to assess the quality
  of the design of computer experiments", Chemometrics and Intelligent Laboratory Systems 97 (2009) 164-169;
- the discrepancies: as `scipy.stats.qmc.discrepancy` defines them (CD and WD are squares, L2-star is a root).
"""

import numpy as np
from numpy.typing import NDArray

from fecbench.designs.error import DesignError


def criteria(points: NDArray[np.float64]) -> dict[str, float]:
    """Return the criteria of `points`, shape (n, d), in the unit cube and all different.

    Criteria about distances need two points or more, and are left out for one. A cube of no dimension has no
    criteria. Raises DesignError for points that coincide.
    """
    if points.shape[1] == 0:
        return {}
    # Loaded for a plan that is judged: SciPy's takes longer than the rest of most commands.
    from scipy.spatial import cKDTree
    from scipy.stats import qmc

    discrepancies = {
        "centred_discrepancy": float(qmc.discrepancy(points, method="CD")),
        "wraparound_discrepancy": float(qmc.discrepancy(points, method="WD")),
        "l2_star_discrepancy": float(qmc.discrepancy(points, method="L2-star")),
    }
    if len(points) == 1:
        return discrepancies
    nearest = cKDTree(points).query(points, k=2)[0][:, 1]
    if not nearest.min() > 0:
        raise DesignError("points: must all be different")
    edges = _minimum_spanning_tree(points)
    return {
        "mindist": float(nearest.min()),
        # The relative deviation of the distances to the nearest neighbour: 0 for a regular grid.
        "coverage": float(nearest.std() / nearest.mean()),
        "mesh_ratio": float(nearest.max() / nearest.min()),
        **discrepancies,
        "mst_mean": float(edges.mean()),
        "mst_deviation": float(edges.std()),
    }


def _minimum_spanning_tree(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """The lengths of its n - 1 edges, by Prim's algorithm: O(n²) time, O(n) memory."""
    outside = np.arange(1, len(points))
    reach = np.linalg.norm(points[outside] - points[0], axis=1)
    edges = np.empty(len(points) - 1)
    for step in range(len(edges)):
        nearest = int(np.argmin(reach))
        edges[step] = reach[nearest]
        joined = points[outside[nearest]]
        outside, reach = np.delete(outside, nearest), np.delete(reach, nearest)
        reach = np.minimum(reach, np.linalg.norm(points[outside] - joined, axis=1))
    return edges
