"""Notebooks and scripts find what they use where they look for it; nothing is loaded before it is used."""

import subprocess
import sys

import pytest

from fecbench import results
from fecbench.results import analysis, figures


def test_a_package_offers_every_name_that_it_lists() -> None:
    for package in (figures, analysis):
        for name in package.__all__:
            assert callable(getattr(package, name)), name
        assert set(dir(package)) == set(package.__all__)


def test_a_name_that_a_package_lacks_is_an_attribute_error() -> None:
    for package in (results, figures, analysis):
        with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'nonsense'"):
            package.nonsense  # noqa: B018


def test_notebooks_find_modules_under_the_names_that_they_know() -> None:
    from fecbench.results import frames, statistics

    assert frames.paired is analysis.paired
    assert statistics.shares is analysis.shares


WHAT_IS_LIGHT_LOADS_NO_LIBRARY_THAT_IS_SLOW_TO_LOAD: list[str] = [
    "fecbench",
    "fecbench.results",
    "fecbench.results.figures",
    "fecbench.results.metrics",
]


def test_what_is_light_loads_no_library_that_is_slow_to_load() -> None:
    for module in WHAT_IS_LIGHT_LOADS_NO_LIBRARY_THAT_IS_SLOW_TO_LOAD:
        code = f"import sys, {module}; print({{'pandas', 'numpy', 'scipy', 'matplotlib'}} & set(sys.modules))"
        assert subprocess.check_output([sys.executable, "-c", code], text=True) == "set()\n", module
