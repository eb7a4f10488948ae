"""Criteria of how well a set of points fills the unit cube.

- mindist, coverage and mesh_ratio: M. Gunzburger, J. Burkardt, "Uniformity measures for point samples in
  hypercubes" (2004);
- mst_mean and mst_deviation: J. Franco et al., "Minimum Spanning Tree: a new approach to assess the quality
  of the design of computer experiments", Chemometrics and Intelligent Laboratory Systems 97 (2009) 164-169;
- the discrepancies: as `scipy.stats.qmc.discrepancy` defines them (CD and WD are squares, L2-star is a root).
"""

import math

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
    discrepancies = _discrepancies(points)
    if len(points) == 1:
        return discrepancies
    edges, nearest = _minimum_spanning_tree(points)
    if not nearest.min() > 0:
        raise DesignError("points: must all be different")
    return {
        "mindist": float(nearest.min()),
        # The relative deviation of the distances to the nearest neighbour: 0 for a regular grid.
        "coverage": float(nearest.std() / nearest.mean()),
        "mesh_ratio": float(nearest.max() / nearest.min()),
        **discrepancies,
        "mst_mean": float(edges.mean()),
        "mst_deviation": float(edges.std()),
    }


def _discrepancies(points: NDArray[np.float64]) -> dict[str, float]:
    """Return the centred, wrap-around and star discrepancies of F. Hickernell, "A generalized discrepancy and
    quadrature error bound" (1998), and T. Warnock (1972): O(n²) time, O(n) memory."""
    count, dimensions = points.shape
    columns = np.ascontiguousarray(points.T)
    off_centre = np.abs(columns - 0.5)
    one_centred = (1 + 0.5 * off_centre - 0.5 * off_centre**2).prod(axis=0)
    one_star = (1 - columns**2).prod(axis=0)
    # Sums over pairs of points are symmetric: here is each point with itself, and below each pair once.
    centred = (1 + off_centre).prod(axis=0).sum()
    wraparound = count * 1.5**dimensions
    star = (1 - columns).prod(axis=0).sum()
    for first in range(count - 1):
        products = np.ones((3, count - 1 - first))
        for column, off in zip(columns, off_centre, strict=True):
            apart = np.abs(column[first + 1 :] - column[first])
            products[0] *= (1 + 0.5 * off[first]) + 0.5 * (off[first + 1 :] - apart)
            products[1] *= 1.5 - apart * (1 - apart)
            products[2] *= 1 - np.maximum(column[first + 1 :], column[first])
        centred, wraparound, star = 2 * products.sum(axis=1) + (centred, wraparound, star)
    pairs = count**2
    return {
        "centred_discrepancy": float((13 / 12) ** dimensions - 2 * one_centred.mean() + centred / pairs),
        "wraparound_discrepancy": float(wraparound / pairs - (4 / 3) ** dimensions),
        "l2_star_discrepancy": math.sqrt(
            3.0**-dimensions - 2.0 ** (1 - dimensions) * one_star.mean() + star / pairs
        ),
    }


def _minimum_spanning_tree(points: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the lengths of its n - 1 edges, and of each point's shortest edge, which leads to the nearest
    other point. By Prim's algorithm: O(n²) time, O(n) memory."""
    outside = np.arange(1, len(points))
    reach = np.linalg.norm(points[outside] - points[0], axis=1)
    inside_end = np.zeros(len(outside), np.intp)
    edges = np.empty(len(points) - 1)
    shortest = np.full(len(points), np.inf)
    for step in range(len(edges)):
        nearest = int(np.argmin(reach))
        edges[step] = reach[nearest]
        joined = outside[nearest]
        for end in (joined, inside_end[nearest]):
            shortest[end] = min(shortest[end], reach[nearest])
        outside, reach = np.delete(outside, nearest), np.delete(reach, nearest)
        inside_end = np.delete(inside_end, nearest)
        distances = np.linalg.norm(points[outside] - points[joined], axis=1)
        inside_end[distances < reach] = joined
        reach = np.minimum(reach, distances)
    return edges, shortest
