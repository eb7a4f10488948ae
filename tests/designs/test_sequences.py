"""Our sequences beside SciPy's, to the last bit: plans are named by their points."""

import numpy as np
import pytest
from scipy.stats import qmc

from fecbench.designs.sequences import generated


@pytest.mark.parametrize("dimensions", [1, 2, 7, 40])
@pytest.mark.parametrize("count", [1, 2, 33, 1024])
def test_sobols_points_are_scipys(count: int, dimensions: int) -> None:
    engine = qmc.Sobol(dimensions, rng=np.random.default_rng(5))
    expected = engine.random_base2((count - 1).bit_length())[:count]
    assert np.array_equal(generated("sobol", count, dimensions, 5), expected)


@pytest.mark.parametrize("dimensions", [1, 7])
@pytest.mark.parametrize("count", [1, 33])
def test_latin_hypercubes_are_scipys(count: int, dimensions: int) -> None:
    expected = qmc.LatinHypercube(dimensions, rng=np.random.default_rng(5)).random(count)
    assert np.array_equal(generated("lhs", count, dimensions, 5), expected)
