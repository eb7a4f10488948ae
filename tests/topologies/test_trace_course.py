"""Traces in windows, and their outages: by laws over any trace."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fecbench.topologies.trace import Trace
from fecbench.topologies.trace_course import WINDOW_US, outages, windows

some_rates = st.lists(
    st.tuples(st.integers(1, 900_000), st.just(0) | st.integers(1, 10**8)), min_size=1, max_size=30
).filter(lambda rows: any(rate for _, rate in rows))
some_bursts = st.lists(
    st.tuples(st.integers(1, 900_000), st.just(0) | st.integers(1, 5000)), min_size=1, max_size=30
).filter(lambda rows: any(size for _, size in rows))


def of_rates(rows: list[tuple[int, int]]) -> Trace:
    return Trace.of([keep for keep, _ in rows], rate_bps=[rate for _, rate in rows])


def of_bursts(rows: list[tuple[int, int]]) -> Trace:
    return Trace.of([keep for keep, _ in rows], burst_bytes=[size for _, size in rows])


@given(some_rates.map(of_rates) | some_bursts.map(of_bursts))
def test_windows_carry_together_what_the_trace_carries(trace: Trace) -> None:
    course = windows(trace)
    assert course is not None
    widths_s = np.diff(course.edges_s)
    assert widths_s.sum() == pytest.approx(trace.period_ns / 1e9)
    assert course.window_s == WINDOW_US / 1e6
    assert widths_s[:-1] == pytest.approx(np.full(len(widths_s) - 1, course.window_s))
    assert widths_s[-1] <= 1.5 * course.window_s
    assert widths_s[-1] >= 0.5 * course.window_s or len(widths_s) == 1
    assert (course.rates_mbps * widths_s).sum() / widths_s.sum() == pytest.approx(trace.mean_bps / 1e6)


@given(some_rates)
def test_outages_are_the_steps_without_a_rate(rows: list[tuple[int, int]]) -> None:
    result = outages(of_rates(rows))
    assert sum(outage.lasts_s for outage in result) == pytest.approx(
        sum(keep for keep, rate in rows if rate == 0) / 1e6
    )
    ends = [outage.begin_s + outage.lasts_s for outage in result]
    assert all(end < outage.begin_s for end, outage in zip(ends, result[1:], strict=False))


@given(some_bursts)
def test_outages_of_bursts_are_gaps_of_a_window_or_longer(rows: list[tuple[int, int]]) -> None:
    at_us = np.cumsum([keep for keep, _ in rows])
    bursts = [0, *(at for at, (_, size) in zip(at_us.tolist(), rows, strict=True) if size), int(at_us[-1])]
    gaps = [after - before for before, after in pairwise(bursts)]
    right = [gap / 1e6 for gap in gaps if gap >= WINDOW_US]
    assert [outage.lasts_s for outage in outages(of_bursts(rows))] == pytest.approx(right)


def test_a_step_with_a_rate_and_a_burst_is_no_outage() -> None:
    trace = Trace.of([10**6, 10**6, 10**6], rate_bps=[0, 5, 0], burst_bytes=[0, 0, 9])
    assert [(outage.begin_s, outage.lasts_s) for outage in outages(trace)] == [(0.0, 1.0), (2.0, 1.0)]


def test_a_trace_of_delays_alone_has_neither() -> None:
    trace = Trace.of([5], owd_us=[7])
    assert windows(trace) is None and outages(trace) == []


def test_a_trace_of_weeks_has_wider_windows() -> None:
    course = windows(Trace.of([5 * 10**11, 5 * 10**11], rate_bps=[2, 4]))
    assert course is not None
    assert len(course.rates_mbps) == 10**6 and course.window_s == 1
    assert course.rates_mbps.mean() == pytest.approx(3e-6)
