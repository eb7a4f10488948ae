"""Factors: the axis of a factor and its values belong together."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import ValidationError

from fecbench.designs.factor import ChoiceFactor, RangeFactor

places = st.floats(0, 1)
positive = st.floats(1e-6, 1e6)


@st.composite
def ranges(draw: st.DrawFn) -> RangeFactor:
    scale = draw(st.sampled_from(["linear", "log"]))
    bounds = positive if scale == "log" else st.floats(-1e6, 1e6)
    low, high = sorted([draw(bounds), draw(bounds)])
    assume(high - low > 1e-6 * max(abs(low), abs(high)))
    return RangeFactor(min=low, max=high, scale=scale)


@st.composite
def integer_ranges(draw: st.DrawFn) -> RangeFactor:
    low = draw(st.integers(1, 1000))
    high = low + draw(st.integers(1, 1000))
    return RangeFactor(min=low, max=high, scale=draw(st.sampled_from(["linear", "log"])), integer=True)


@given(ranges(), places)
def test_every_place_has_a_value_in_range_and_leads_back_to_the_place(factor, place) -> None:
    value = factor.value(place)
    assert factor.min <= value <= factor.max
    assert factor.place(value) == pytest.approx(place, abs=1e-6)


@given(ranges())
def test_the_ends_of_the_axis_are_exactly_min_and_max(factor) -> None:
    assert (factor.value(0.0), factor.value(1.0)) == (factor.min, factor.max)
    assert (factor.place(factor.min), factor.place(factor.max)) == (0, 1)


@given(ranges(), places, places)
def test_values_rise_along_the_axis(factor, one, other) -> None:
    assume(one < other)
    assert factor.value(one) <= factor.value(other)


def test_the_middle_of_a_log_axis_is_the_geometric_mean() -> None:
    assert RangeFactor(min=1, max=100, scale="log").value(0.5) == pytest.approx(10)


@given(integer_ranges(), st.data())
def test_each_whole_number_has_a_place_that_leads_back_to_it(factor, data) -> None:
    number = data.draw(st.integers(int(factor.min), int(factor.max)))
    assert factor.value(factor.place(number)) == number


@given(integer_ranges(), places)
def test_snapping_an_integer_factor_does_not_change_its_values(factor, place) -> None:
    (snapped,) = factor.snapped(np.array([place]))
    assert type(factor.value(place)) is int
    assert factor.value(snapped) == factor.value(place)


def test_whole_numbers_of_a_linear_factor_are_equally_likely() -> None:
    factor = RangeFactor(min=1, max=4, integer=True)
    values = [factor.value(place) for place in (np.arange(4000) + 0.5) / 4000]
    assert [values.count(number) for number in (1, 2, 3, 4)] == [1000] * 4


@given(st.lists(st.text(max_size=3), min_size=2, max_size=9, unique=True), places)
def test_choices_own_equal_steps_and_lead_back_to_their_place(choices, place) -> None:
    factor = ChoiceFactor(choices=choices)
    assert [factor.value(level) for level in factor.levels()] == choices
    assert abs(factor.place(factor.value(place)) - place) <= 0.5 / len(choices) + 1e-12


@given(ranges(), st.integers(2, 50))
def test_levels_are_equally_spaced_from_min_to_max(factor, count) -> None:
    levels = factor.levels(count)
    assert len(levels) == count
    assert (levels[0], levels[-1]) == (0, 1)
    assert np.diff(levels) == pytest.approx(1 / (count - 1))


NO_RANGES = [
    {"min": 1, "max": 1},
    {"min": 2, "max": 1},
    {"min": 0, "max": 1, "scale": "log"},
    {"min": -1, "max": 1, "scale": "log"},
    {"min": 0.5, "max": 3, "integer": True},
    {"min": 1, "max": 3.5, "integer": True},
    {"min": math.nan, "max": 1},
    {"min": 0, "max": math.inf},
    {"min": 0, "max": 10**400},
    {"min": True, "max": 3},
    {"min": "0", "max": 3},
    {"min": 1},
    {"min": 1, "max": 2, "scale": "cubic"},
]


def test_a_range_that_is_none_is_refused() -> None:
    for table in NO_RANGES:
        with pytest.raises(ValidationError):
            RangeFactor.model_validate(table)


def test_choices_that_are_none_are_refused() -> None:
    for choices in ([], ["one"], ["a", "a"], [1, True], [1, 1.0], [math.nan, 1], [[1], [2]]):
        with pytest.raises(ValidationError):
            ChoiceFactor.model_validate({"choices": choices})
