"""Sequences of points in the unit cube: what plans are made of, or what WSP chooses from."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Generator = Literal["sobol", "halton", "lhs", "random"]


def generated(generator: Generator, count: int, dimensions: int, seed: int) -> NDArray[np.float64]:
    """`count` points, shape (count, dimensions): scrambled Sobol' or Halton, Latin hypercube, or uniform."""
    # Loaded when a plan is made: it takes half a second, and all who only read a design would pay for it.
    from scipy.stats import qmc

    rng = np.random.default_rng(seed)
    places: NDArray[np.float64]
    if generator == "random":
        places = rng.random((count, dimensions))
    elif generator == "lhs":
        places = qmc.LatinHypercube(dimensions, rng=rng).random(count)
    elif generator == "halton":
        places = qmc.Halton(dimensions, rng=rng).random(count)
    else:
        # Drawn as a power of two, over which Sobol' sequences are balanced, and cut.
        places = qmc.Sobol(dimensions, rng=rng).random_base2((count - 1).bit_length())[:count]
    return places
