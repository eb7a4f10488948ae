"""Printed intervals hold the truth as often as they promise; a difference that matters is seldom denied."""

import pytest

from bench import coverage
from bench.coverage import of_points, over_points, wrongly_equivalent
from fecbench.results.analysis import bootstrap, intervals
from fecbench.results.analysis.intervals import FEWEST


@pytest.mark.slow
def test_all_intervals_and_verdicts_keep_their_bounds() -> None:
    assert coverage.run() == []


def test_intervals_of_few_repetitions_hold_the_truth() -> None:
    assert of_points(coverage.steadier, FEWEST, 600, "median") > 0.93
    assert of_points(coverage.independent, 20, 600, "mean") > 0.92
    assert over_points(40, 300) > 0.93


def test_six_pairs_attain_97_percent_and_many_95() -> None:
    assert coverage.attainable(6) == 1 - 2 / 64
    assert coverage.attainable(50) == pytest.approx(0.95)


def test_the_verdict_is_seldom_wrong_at_the_margin() -> None:
    assert wrongly_equivalent(8, "median", 600) < 0.05


def test_averages_over_networks_that_stop_when_decided_are_not_too_far_from_1() -> None:
    printed, of_all_repetitions = coverage.averages_until_decided("mean", 40, 25, seed=1)
    assert abs(printed.bias) < 0.008 < of_all_repetitions.bias


def test_intervals_that_are_too_short_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    intervals_of = bootstrap.quantile_ratio_intervals

    def half(*arguments: object) -> object:
        table = intervals_of(*arguments)  # type: ignore[arg-type]
        middle = table.mean(axis=1, keepdims=True)
        return middle + (table - middle) / 2

    monkeypatch.setattr(intervals, "quantile_ratio_intervals", half)
    assert of_points(coverage.steadier, FEWEST, 600, "median") < 0.93
    assert wrongly_equivalent(8, "median", 600) > 0.05
