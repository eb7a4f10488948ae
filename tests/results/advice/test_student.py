"""Student's quantiles beside those of `scipy.stats`."""

import pytest
import scipy.stats

from fecbench.results.advice.student import two_sided_quantile


@pytest.mark.parametrize("share", [0.5, 0.9, 0.95, 0.999])
def test_quantiles_are_those_of_scipy(share: float) -> None:
    for freedom in (*range(1, 130), 1000):
        expected = scipy.stats.t.ppf((1 + share) / 2, freedom)
        assert two_sided_quantile(share, freedom) == pytest.approx(expected, rel=1e-10), freedom
