"""A claim is decided by the whole interval of what was measured, and by nothing less."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from results.papers.claims import Claim, Estimate, Share

Question = Callable[[Estimate], bool | None]

BOUND, MOST, BY = 1.0, 2.0, 0.1
OTHER = Estimate(1.5, BOUND, MOST)

tenths = st.integers(0, 40).map(lambda tenths: tenths / 10)
intervals = st.tuples(tenths, tenths).map(sorted).map(lambda ends: Estimate(sum(ends) / 2, *ends))


def values_in(estimate: Estimate) -> list[float]:
    """The ends, and as fine as to meet each bound and values on both sides of it."""
    return [each / 20 for each in range(round(20 * estimate.low), round(20 * estimate.high) + 1)]


@given(intervals)
@pytest.mark.parametrize(
    ("asked", "of_a_value"),
    [
        (lambda each: each.below(BOUND), lambda value: value < BOUND),
        (lambda each: each.above(BOUND), lambda value: value > BOUND),
        (lambda each: each.within(BOUND, MOST), lambda value: BOUND <= value <= MOST),
    ],
    ids=["below", "above", "within"],
)
def test_an_answer_is_that_of_each_value_of_the_interval(
    asked: Question, of_a_value: Callable[[float], bool], estimate: Estimate
) -> None:
    answers = {of_a_value(value) for value in values_in(estimate)}
    assert asked(estimate) in (answers if len(answers) == 1 else {None})


@given(intervals, intervals)
def test_two_estimates_are_told_apart_where_each_value_of_one_is(one: Estimate, other: Estimate) -> None:
    exceeds = {a > b for a in values_in(one) for b in values_in(other)}
    near = {a <= b + BY for a in values_in(one) for b in values_in(other)}
    assert one.exceeds(other) in (exceeds if len(exceeds) == 1 else {None})
    assert one.near_or_below(other, BY) in (near if len(near) == 1 else {None})


def test_what_has_no_interval_decides_nothing() -> None:
    for each in (Estimate(), Estimate(1.5)):
        answers = [each.below(9), each.above(0), each.within(0, 9), each.exceeds(OTHER), OTHER.exceeds(each)]
        assert [*answers, each.near_or_below(OTHER, 9), OTHER.near_or_below(each, 9)] == [None] * 7


@pytest.mark.parametrize(
    ("share", "about_75_percent", "rare"),
    [
        (Share(2, 6), None, None),
        (Share(1, 6), None, None),
        (Share(0, 6), False, None),
        (Share(5, 5), None, None),
        (Share(0, 20), False, None),
        (Share(15, 20), None, False),
        (Share(0, 200), False, True),
        (Share(150, 200), True, False),
        (Share(0, 200, 100), False, None),
        (Share(150, 200, 100), None, False),
    ],
)
def test_a_share_of_few_units_or_with_many_unknown_ones_decides_little(
    share: Share, about_75_percent: bool | None, rare: bool | None
) -> None:
    assert share.estimate.within(0.6, 0.9) is about_75_percent
    assert share.estimate.within(0, 0.1) is rare


@given(st.integers(6, 200), st.integers(0, 30), st.data())
def test_a_share_allows_for_whatever_is_true_of_the_unknown_units(
    units: int, unknown: int, data: st.DataObject
) -> None:
    count = data.draw(st.integers(0, units))
    estimate = Share(count, units, unknown).estimate
    for of_unknown in (0, unknown // 2, unknown):
        known = Share(count + of_unknown, units + unknown).estimate
        assert estimate.low <= known.low
        assert known.high <= estimate.high


def test_a_share_counts_what_is_true_of_known_units() -> None:
    true, known = pd.Series([True, True, False, False]), pd.Series([True, False, True, True])
    assert Share.of(true, known) == Share(1, 3, 1)


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (Share(0, 0), "not measured"),
        (Share(0, 0, 7), "not measured, 7 unknown"),
        (Share(1, 5), "20 % of 5 (no interval)"),
    ],
)
def test_a_share_that_has_no_interval_says_so(share: Share, text: str) -> None:
    assert str(share) == text


def test_a_share_is_shown_with_the_interval_by_which_it_is_judged() -> None:
    low, high = (round(100 * end) for end in (Share(30, 50).estimate.low, Share(40, 50).estimate.high))
    assert str(Share(30, 40, 10)) == f"75 % of 40, 10 unknown ({low} % to {high} %)"


@given(st.lists(st.floats(1, 100), min_size=6, max_size=30, unique=True))
def test_the_interval_of_a_mean_ends_where_students_test_rejects(values: list[float]) -> None:
    estimate = Estimate.of_mean(pd.Series(values))
    assert estimate.value == pytest.approx(np.mean(values))
    assert stats.ttest_1samp(values, estimate.high).pvalue == pytest.approx(0.05)
    if estimate.low > 0:
        assert stats.ttest_1samp(values, estimate.low).pvalue == pytest.approx(0.05)


def test_a_mean_of_five_values_has_no_interval() -> None:
    assert math.isnan(Estimate.of_mean(pd.Series([1.0, 2, 3, 4, 5])).low)


def test_a_verdict_says_what_holds() -> None:
    assert [Claim("", "", "", holds).verdict for holds in (True, False, None)] == [
        "agrees",
        "differs",
        "cannot tell",
    ]
