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

from fecbench.results.papers.claim import (
    Claim,
    Estimate,
    Judgements,
    Share,
    all_hold,
    beside_stalls,
    one_holds,
)

Question = Callable[[Estimate], bool | None]

BOUND, MOST, BY = 1.0, 2.0, 0.1
OTHER = Estimate(1.5, BOUND, MOST)

tenths = st.integers(0, 40).map(lambda tenths: tenths / 10)
intervals = st.tuples(tenths, tenths).map(sorted).map(lambda ends: Estimate(sum(ends) / 2, *ends))


def values_in(estimate: Estimate) -> list[float]:
    """The ends, and as fine as to meet each bound and values on both sides of it."""
    return [value / 20 for value in range(round(20 * estimate.low), round(20 * estimate.high) + 1)]


@given(intervals)
@pytest.mark.parametrize(
    ("question_of", "of_a_value"),
    [
        (lambda value: value.below(BOUND), lambda value: value < BOUND),
        (lambda value: value.above(BOUND), lambda value: value > BOUND),
        (lambda value: value.within(BOUND, MOST), lambda value: BOUND <= value <= MOST),
    ],
    ids=["below", "above", "within"],
)
def test_an_answer_is_that_of_each_value_of_the_interval(
    question_of: Question, of_a_value: Callable[[float], bool], estimate: Estimate
) -> None:
    answers = {of_a_value(value) for value in values_in(estimate)}
    assert question_of(estimate) in (answers if len(answers) == 1 else {None})


@given(intervals, intervals)
def test_the_interval_of_a_difference_is_narrower_than_what_two_intervals_leave_open(
    one: Estimate, other: Estimate
) -> None:
    difference = one.minus(other)
    assert difference.value == pytest.approx(one.value - other.value)
    assert difference.low >= one.low - other.high - 1e-9
    assert difference.high <= one.high - other.low + 1e-9
    assert other.minus(one).low == pytest.approx(-difference.high)


@given(intervals, intervals)
def test_what_two_intervals_tell_apart_that_of_the_difference_does_too(
    one: Estimate, other: Estimate
) -> None:
    exceeds = {a > b for a in values_in(one) for b in values_in(other)}
    near = {a <= b + BY for a in values_in(one) for b in values_in(other)}
    assert exceeds != {True} or one.exceeds(other) is True
    assert near != {True} or one.near_or_below(other, BY + 1e-9) is True
    assert exceeds != {False} or one.exceeds(other) is not True


def test_estimates_whose_intervals_overlap_a_little_are_told_apart() -> None:
    one, other = Estimate(1.0, 0.9, 1.1), Estimate(1.18, 1.08, 1.28)
    assert one.high > other.low
    assert other.exceeds(one) is True
    assert one.exceeds(other) is False
    # As Student's or Welch's test would: the spreads of both add up in squares.
    assert other.minus(one).low == pytest.approx(0.18 - 0.1 * math.sqrt(2))


def test_the_interval_of_a_difference_of_means_holds_it_as_often_as_is_printed() -> None:
    for n in (6, 8, 30):
        random = np.random.default_rng(n)
        hits, told_apart = 0, 0
        for _ in range(2000):
            first = Estimate.of_mean(pd.Series(random.normal(10, 1, n)))
            second = Estimate.of_mean(pd.Series(random.normal(10, 3, n)))
            difference = second.minus(first)
            hits += difference.low <= 0 <= difference.high
            told_apart += bool(second.exceeds(first)) or bool(first.exceeds(second))
        assert hits >= stats.binom.ppf(0.001, 2000, 0.95), n
        assert told_apart == 2000 - hits, n


def claimed_of(values: list[pd.Series[float]]) -> Judgements:
    """Return the claim that each mean is at most 10."""
    return lambda level: [Estimate.of_mean(value, level).within(-math.inf, 10) for value in values]


def test_a_claim_about_many_things_differs_by_chance_no_more_often_than_one_about_one() -> None:
    random = np.random.default_rng(1)
    campaigns = 600
    many = [
        all_hold(claimed_of([pd.Series(random.normal(10, 1, 8)) for _ in range(12)]))
        for _ in range(campaigns)
    ]
    # Each interval is wholly above 10 in half of the cases in which it misses.
    assert many.count(False) <= stats.binom.ppf(0.999, campaigns, 0.025)


def test_a_claim_about_many_things_still_differs_where_one_is_far_off_and_agrees_where_all_do() -> None:
    random = np.random.default_rng(2)
    near = [pd.Series(random.normal(8, 1, 8)) for _ in range(11)]
    assert all_hold(claimed_of([*near, pd.Series(random.normal(8, 1, 8))])) is True
    assert all_hold(claimed_of([*near, pd.Series(random.normal(15, 1, 8))])) is False


def test_that_one_thing_holds_is_the_contrary_of_that_none_does() -> None:
    widths = {0.05: 1.0, 0.05 / 2: 2.0}

    def judged(values: list[float]) -> Judgements:
        """Whether values are above 0, by intervals that are wider where more is asked."""
        return lambda level: [Estimate(v, v - widths[level], v + widths[level]).above(0) for v in values]

    for values, value, one in (
        ([1.5, 1.5], True, None),
        ([2.5, -1.5], None, True),
        ([-1.5, 3.0], None, True),
        ([-2.5, 0.5], False, None),
        ([-1.5, -1.5], None, False),
    ):
        assert all_hold(judged(values)) is value
        assert one_holds(judged(values)) is one


def test_nothing_holds_of_nothing() -> None:
    assert all_hold(lambda _: []) is None
    assert one_holds(lambda _: []) is None


STALLS: list[tuple[float, float, bool | None]] = [
    (0.0, 0.0, True),
    (0.04, 0.04, True),
    (0.0, 0.02, None),
    (0.03, 0.0, None),
    (math.nan, 0.0, True),
]


def test_a_tolerance_decides_nothing_where_the_machine_kept_one_arm_waiting_longer() -> None:
    for of_baseline, of_variant, holds in STALLS:
        frame = pd.DataFrame(
            {
                "variant": ["off"] * 6 + ["xor"] * 6,
                "state": "ok",
                "client.dct_s": 2.0,
                "stalled_s": [2 * of_baseline] * 6 + [2 * of_variant] * 6,
            }
        )
        claim = beside_stalls(Claim("no difference", "none", "1.00", True), frame, "off", "xor")
        assert claim.holds is holds, (of_baseline, of_variant)
        if not math.isnan(of_baseline):
            percents = f"stalled for {of_variant:.1%} of the time, the baseline for {of_baseline:.1%}"
            assert claim.measured == f"1.00; {percents.replace('%', ' %')}", (of_baseline, of_variant)


def test_what_has_no_interval_decides_nothing() -> None:
    for value in (Estimate(), Estimate(1.5)):
        answers = [
            value.below(9),
            value.above(0),
            value.within(0, 9),
            value.exceeds(OTHER),
            OTHER.exceeds(value),
        ]
        assert [*answers, value.near_or_below(OTHER, 9), OTHER.near_or_below(value, 9)] == [None] * 7
        assert (value.shorter(BY), value.longer(BY), value.exceeds(OTHER, BY)) == (None, None, None)


SHARES: list[tuple[Share, bool | None, bool | None]] = [
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
]


def test_a_share_of_few_units_or_with_many_unknown_ones_decides_little() -> None:
    for share, about_75_percent, rare in SHARES:
        assert share.estimate.within(0.6, 0.9) is about_75_percent
        assert share.estimate.within(0, 0.1) is rare


@given(st.integers(6, 200), st.integers(0, 30), st.data())
def test_a_share_allows_for_whatever_is_true_of_the_unknown_units(
    units: int, unknown: int, data: st.DataObject
) -> None:
    count = data.draw(st.integers(0, units))
    estimate = Share(count, units, unknown).estimate
    for of_unknown in (0, unknown // 2, unknown):
        is_known = Share(count + of_unknown, units + unknown).estimate
        assert estimate.low <= is_known.low
        assert is_known.high <= estimate.high


def test_a_share_counts_what_is_true_of_known_units() -> None:
    true, estimate = pd.Series([True, True, False, False]), pd.Series([True, False, True, True])
    assert Share.of(true, estimate) == Share(1, 3, 1)


def test_a_share_that_has_no_interval_says_so() -> None:
    for share, text in (
        (Share(0, 0), "not measured"),
        (Share(0, 0, 7), "not measured, 7 unknown"),
        (Share(1, 5), "20 % of 5 (no interval)"),
    ):
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
    assert Estimate.of_mean(pd.Series([*values, math.nan])) == estimate


def test_the_interval_of_a_difference_of_either_sign_may_end_below_all_values() -> None:
    values = pd.Series([-1.0] * 5 + [9.0])
    estimate = Estimate.of_mean(values, least=-math.inf)
    assert estimate.low < -1
    for end in (estimate.low, estimate.high):
        assert stats.ttest_1samp(values, end).pvalue == pytest.approx(0.05)


def test_a_mean_of_five_values_has_no_interval() -> None:
    assert math.isnan(Estimate.of_mean(pd.Series([1.0, 2, 3, 4, 5])).low)


VERDICTS: list[tuple[bool | None, bool | None, str, bool]] = [
    (True, True, "agrees", False),
    (True, False, "agrees", False),
    (True, None, "agrees", False),
    (False, True, "agrees in direction", False),
    (False, None, "differs", True),
    (False, False, "differs", False),
    (None, True, "agrees in direction", True),
    (None, None, "cannot tell", True),
    (None, False, "cannot tell", True),
]


def test_a_verdict_says_what_holds_in_size_and_in_direction_and_whether_more_trials_may_change_it() -> None:
    for holds, in_direction, verdict, is_open in VERDICTS:
        claim = Claim("", "", "", holds, in_direction)
        assert (claim.verdict, claim.is_open) == (verdict, is_open), (holds, in_direction)
