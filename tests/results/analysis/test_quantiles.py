"""Distributions beside those of `scipy.stats`, which take too long to load for most commands."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import example, given
from hypothesis import strategies as st

from fecbench.results.analysis import quantiles

shares = st.floats(1e-9, 1 - 1e-9)
values = st.floats(-30, 30)
freedoms = st.integers(1, 1000)


@given(shares, values, freedoms)
def test_quantiles_and_tails_are_those_of_scipy(share: float, value: float, freedom: int) -> None:
    normal, student = scipy.stats.norm, scipy.stats.t(freedom)
    assert quantiles.normal_quantile(share) == pytest.approx(normal.ppf(share), rel=1e-9, abs=1e-12)
    assert quantiles.normal_below(value) == pytest.approx(normal.cdf(value), rel=1e-9)
    assert quantiles.normal_beyond(value) == pytest.approx(normal.sf(value), rel=1e-9)
    assert quantiles.t_quantile(share, freedom) == pytest.approx(student.ppf(share), rel=1e-7, abs=1e-9)
    assert quantiles.t_below(value, freedom) == pytest.approx(student.cdf(value), rel=1e-7)
    assert quantiles.t_beyond(value, freedom) == pytest.approx(student.sf(value), rel=1e-7)


@given(st.integers(0, 3000), st.data())
def test_heads_are_those_of_scipy(tosses: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, tosses + 1))
    assert quantiles.heads_at_least(count, tosses) == pytest.approx(
        scipy.stats.binom.sf(count - 1, tosses, 0.5), rel=1e-8
    )
    expected = scipy.stats.binom.pmf(np.arange(tosses + 1), tosses, 0.5)
    assert quantiles.heads(tosses) == pytest.approx(expected, rel=1e-8, abs=1e-300)


@given(st.integers(1, 500), st.data())
def test_intervals_of_shares_are_those_of_scipy(of: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, of))
    expected = scipy.stats.binomtest(count, of).proportion_ci(0.95)
    assert quantiles.share_interval(count, of, 0.05) == pytest.approx((expected.low, expected.high), rel=1e-7)


counts = st.tuples(st.integers(0, 60), st.integers(0, 3000)).filter(any)


@given(counts, counts)
@example((3, 3), (3, 3))
@example((0, 5), (5, 0))
@example((7, 100_000), (25, 99_000))
def test_fishers_test_is_that_of_scipy(one: tuple[int, int], other: tuple[int, int]) -> None:
    two_sided = scipy.stats.fisher_exact([one, other]).pvalue
    assert quantiles.fisher(one, other) == pytest.approx(two_sided, rel=1e-6, abs=1e-300)
    greater = scipy.stats.fisher_exact([one, other], alternative="greater").pvalue
    assert quantiles.fisher_greater(one, other) == pytest.approx(greater, rel=1e-6, abs=1e-300)


@given(st.integers(1, 9), st.data())
def test_ranks_are_those_of_scipy(width: int, data: st.DataObject) -> None:
    some = st.sampled_from([0.0, 0.5, 1.0, 2.0, math.inf])
    rows = np.array(
        data.draw(st.lists(st.lists(some, min_size=width, max_size=width), min_size=1, max_size=5))
    )
    assert (quantiles.ranks_of_rows(rows) == scipy.stats.rankdata(rows, axis=1)).all()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_false_discoveries_are_those_of_scipy(p_values: list[float]) -> None:
    expected = scipy.stats.false_discovery_control(p_values)
    assert quantiles.false_discoveries(p_values) == pytest.approx(expected, rel=1e-12)
