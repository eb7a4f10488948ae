"""Sequences of points in the unit cube: what plans are made of, or what WSP chooses from."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fecbench.designs.sobol import sobol

Generator = Literal["sobol", "halton", "lhs", "random"]


def generated(generator: Generator, count: int, dimensions: int, seed: int) -> NDArray[np.float64]:
    """`count` points, shape (count, dimensions): scrambled Sobol' or Halton, Latin hypercube, or uniform.

    They are those of `scipy.stats.qmc`, whose engines draw from a child of the generator that they get.
    """
    rng = np.random.default_rng(seed)
    if generator == "random":
        return rng.random((count, dimensions))
    if generator == "lhs":
        return _latin_hypercube(count, dimensions, rng.spawn(1)[0])
    if generator == "halton":
        from scipy.stats import qmc  # takes longer to load than most commands take to run

        places: NDArray[np.float64] = qmc.Halton(dimensions, rng=rng).random(count)
        return places
    # Drawn as a power of two, over which Sobol' sequences are balanced, and cut.
    return sobol((count - 1).bit_length(), dimensions, rng)[:count]


def _latin_hypercube(count: int, dimensions: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return a point in each of `count` layers of each axis (McKay, Beckman and Conover 1979)."""
    inside = rng.random((count, dimensions))
    layers = np.tile(np.arange(1, count + 1), (dimensions, 1))
    for layers_of_axis in layers:
        rng.shuffle(layers_of_axis)
    points: NDArray[np.float64] = (layers.T - inside) / count
    return points
