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
    for done in range(1, planned + 1):
        left_s = rate.left_s(began_s + done * each_s, done, planned)
        assert left_s is None or left_s == pytest.approx((planned - done) * each_s, rel=1e-6)
        if done > 1 and (done - 1) * each_s > MEASURED_S * 1.01:
            assert left_s is not None


def test_trials_of_one_batch_tell_nothing_yet() -> None:
    rate = Rate()
    assert [rate.left_s(7.0 + done / 1e6, done, 100) for done in range(1, 51)] == [None] * 50
    assert rate.left_s(7.1 + MEASURED_S, 99, 100) is not None
    assert rate.left_s(8.0, 100, 100) == 0
