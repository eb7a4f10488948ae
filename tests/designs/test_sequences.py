"""Our sequences beside SciPy's, to the last bit: plans are named by their points."""

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import qmc

from fecbench.designs import sobol
from fecbench.designs.sequences import generated


@pytest.mark.parametrize("dimensions", [1, 2, 7, 40])
@pytest.mark.parametrize("count", [1, 2, 33, 1024])
def test_sobols_points_are_scipys(count: int, dimensions: int) -> None:
    engine = qmc.Sobol(dimensions, rng=np.random.default_rng(5))
    expected = engine.random_base2((count - 1).bit_length())[:count]
    assert np.array_equal(generated("sobol", count, dimensions, 5), expected)


def test_a_scipy_that_keeps_its_table_elsewhere_has_the_same_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = generated("sobol", 33, 7, 5)
    monkeypatch.setattr(sobol, "_TABLE", tmp_path / "elsewhere.npz")
    assert np.array_equal(generated("sobol", 33, 7, 5), ours)


@pytest.mark.parametrize("dimensions", [1, 7])
@pytest.mark.parametrize("count", [1, 33])
def test_latin_hypercubes_are_scipys(count: int, dimensions: int) -> None:
    expected = qmc.LatinHypercube(dimensions, rng=np.random.default_rng(5)).random(count)
    assert np.array_equal(generated("lhs", count, dimensions, 5), expected)
