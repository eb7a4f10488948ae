"""The time left is told when it means something."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fecbench.runners.commands.console.progress import MEASURED_S, Rate


@given(st.floats(0, 1e4), st.floats(0.01, 100), st.integers(2, 50))
def test_what_it_took_to_begin_is_no_part_of_the_time_left(
    began_s: float, each_s: float, planned: int
) -> None:
    """Trials that take alike: what is told is what the rest takes."""
    rate = Rate()
    for result in range(1, planned + 1):
        left_s = rate.left_s(began_s + result * each_s, result, planned)
        assert left_s is None or left_s == pytest.approx((planned - result) * each_s, rel=1e-6)
        if result > 1 and (result - 1) * each_s > MEASURED_S * 1.01:
            assert left_s is not None


def test_trials_of_one_batch_tell_nothing_yet() -> None:
    rate = Rate()
    assert [rate.left_s(7.0 + result / 1e6, result, 100) for result in range(1, 51)] == [None] * 50
    assert rate.left_s(7.1 + MEASURED_S, 99, 100) is not None
    assert rate.left_s(8.0, 100, 100) == 0
