"""The capacity of a link: least time, most bytes and largest rate agree with each other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fecbench.topologies.link import LinkSettings
from fecbench.topologies.rate import ConstantRate, together

BPS = st.floats(1e5, 1e10)
SECONDS = st.floats(0, 1e6)


@given(BPS, st.floats(1, 1e12), SECONDS)
def test_the_least_time_for_bytes_is_that_in_which_it_carries_them(
    bps: float, size: float, begun: float
) -> None:
    rate = ConstantRate(bps)
    assert rate.most_bytes(0, rate.least_time_s(size)) == pytest.approx(size)
    assert rate.most_bytes(begun, begun + 1) == pytest.approx(rate.largest_bps / 8)


@given(st.lists(BPS, min_size=1, max_size=4), st.floats(1, 1e12))
def test_links_together_carry_what_each_does(rates: list[float], size: float) -> None:
    links = [ConstantRate(bps) for bps in rates]
    took_s = together(links).least_time_s(size)
    assert sum(link.most_bytes(0, took_s) for link in links) == pytest.approx(size)


def test_a_direction_has_the_rate_of_its_settings() -> None:
    link = LinkSettings.symmetric(12.5, 10)
    assert str(link.down.rate) == "12.5 Mbit/s"
    assert link.down.rate.most_bytes(2, 4) == 3_125_000
