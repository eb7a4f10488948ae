"""Intervals hold the truth as often as they promise, and say nothing where nothing is known."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from results.analysis import intervals
from results.analysis.intervals import FEWEST, LEVEL, median_interval, median_ratio_interval
from results.analysis.pairing import Pairing, paired
from results.metrics import DEFAULT

Floats = NDArray[np.float64]

OFF, XOR = "off", "xor"


def pairing(baseline: Floats, variant: Floats, statistic: str = "median", metric: str = DEFAULT) -> Pairing:
    """Of the values of two arms, each points × repetitions, on one workload."""
    points, repetitions = baseline.shape
    rows = {
        "workload": "download",
        "point": np.tile(np.repeat(np.arange(points), repetitions), 2),
        "repetition": np.tile(np.arange(repetitions), 2 * points),
        "variant": np.repeat([OFF, XOR], points * repetitions),
        "state": "ok",
        metric: np.concatenate([baseline.ravel(), variant.ravel()]),
    }
    return paired(pd.DataFrame(rows), OFF, XOR, metric, statistic)


def times(random: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Noise like that of downloads: a few per cent, and now and then a timeout."""
    timeouts = random.exponential(0.5, shape) * (random.random(shape) < 0.1)
    noise: Floats = np.exp(random.normal(0, 0.02, shape) + timeouts)
    return noise


@pytest.mark.parametrize("repetitions", [6, 9, 15])
# The percentile bootstrap of six pairs is a little too narrow; means of heavy tails are not normal.
@pytest.mark.parametrize(("statistic", "factor"), [("median", 1.5), ("mean", 2.5)])
def test_of_equal_arms_about_the_nominal_share_of_points_is_decided(
    repetitions: int, statistic: str, factor: float
) -> None:
    random = np.random.default_rng(repetitions)
    network = random.lognormal(0, 0.4, (1000, repetitions))  # the losses of a repetition, met by both arms
    arms = [network * times(random, network.shape) for _ in range(2)]
    decided = intervals.ratio_intervals(pairing(*arms, statistic), statistic)["verdict"] != "undecided"
    assert decided.mean() <= factor * LEVEL


@pytest.mark.parametrize(("ratio", "verdict"), [(0.8, "gain"), (1.25, "harm")])
def test_an_effect_beyond_the_noise_is_decided_at_most_points(ratio: float, verdict: str) -> None:
    random = np.random.default_rng(1)
    arms = [times(random, (300, 9)) for _ in range(2)]
    found = intervals.ratio_intervals(pairing(arms[0], ratio * arms[1]))["verdict"].value_counts(
        normalize=True
    )
    assert found[verdict] > 0.8
    assert found[{"gain": "harm", "harm": "gain"}[verdict]] == 0


def test_exchanged_arms_give_inverse_intervals_and_opposite_verdicts() -> None:
    random = np.random.default_rng(2)
    arms = [times(random, (50, 9)) * random.uniform(0.7, 1.4, (50, 1)) for _ in range(2)]
    there, back = (intervals.ratio_intervals(pairing(*order)) for order in (arms, arms[::-1]))
    # The quantiles of an even number of resamples are interpolated, so the inverse is not exact.
    assert (there["low"] * back["high"]).tolist() == pytest.approx([1] * 50, rel=0.02)
    opposite = back["verdict"].map({"gain": "harm", "harm": "gain", "undecided": "undecided"})
    assert (there["verdict"].astype(str) == opposite.astype(str)).mean() > 0.95


@pytest.mark.parametrize("seed", range(5))
def test_the_inverse_of_a_metric_with_the_opposite_direction_has_the_same_verdicts(seed: int) -> None:
    random = np.random.default_rng(seed)
    arms = [times(random, (50, 9)) * random.uniform(0.7, 1.4, (50, 1)) for _ in range(2)]
    less = intervals.ratio_intervals(pairing(*arms))
    inverse = [1 / arm for arm in arms]
    more = intervals.ratio_intervals(pairing(*inverse, metric="competition.foreground_mbps"))
    assert {"gain", "harm", "undecided"} == set(less["verdict"])
    assert less["verdict"].tolist() == more["verdict"].tolist()


def test_pairs_that_all_agree_have_an_interval_of_one_ratio() -> None:
    baseline = np.random.default_rng(3).lognormal(0, 1, (4, FEWEST))
    found = intervals.ratio_intervals(pairing(baseline, 2 * baseline))
    assert found[["low", "high"]].to_numpy() == pytest.approx(2, abs=1.0)
    same = np.full((1, FEWEST), 3.0)
    found = intervals.ratio_intervals(pairing(same, 2 * same))
    assert found[["low", "high"]].to_numpy().tolist() == [[2.0, 2.0]]


@pytest.mark.parametrize("repetitions", range(1, FEWEST))
def test_fewer_than_six_repetitions_leave_a_point_undecided_however_far_the_arms_are_apart(
    repetitions: int,
) -> None:
    baseline = np.ones((3, repetitions))
    found = intervals.ratio_intervals(pairing(baseline, 10 * baseline))
    assert found["ratio"].tolist() == [10] * 3
    assert found[["low", "high"]].isna().all(axis=None)
    assert (found["verdict"] == "undecided").all()


def test_points_of_different_numbers_of_pairs_have_the_intervals_that_they_have_alone() -> None:
    random = np.random.default_rng(4)
    arms = [times(random, (1, n)) for n in (9, 3, 7, 9) for _ in range(2)]
    alone = [intervals.ratio_intervals(pairing(*arms[i : i + 2])) for i in range(0, 8, 2)]
    parts = [pairing(*arms[i : i + 2]) for i in range(0, 8, 2)]
    together = Pairing(
        ratios=pd.concat([part.ratios.assign(point=i) for i, part in enumerate(parts)], ignore_index=True),
        unpaired=parts[0].unpaired,
        matched=pd.concat([part.matched.assign(point=i) for i, part in enumerate(parts)], ignore_index=True),
        decided=parts[0].decided,
        timeouts=parts[0].timeouts,
    )
    found = intervals.ratio_intervals(together)
    expected = pd.concat([each.assign(point=i) for i, each in enumerate(alone)], ignore_index=True)
    pd.testing.assert_frame_equal(found, expected)


def test_shares_of_a_workload_sum_to_one_and_count_its_points() -> None:
    random = np.random.default_rng(5)
    arms = [times(random, (40, 9)) * random.uniform(0.7, 1.4, (40, 1)) for _ in range(2)]
    found = intervals.ratio_intervals(pairing(*arms))
    (row,) = intervals.shares(found).to_dict("records")
    assert row["points"] == 40
    assert row["gain"] + row["harm"] + row["undecided"] == pytest.approx(1)
    assert row["gain"] == (found["high"] < 1).mean()
    assert row["low"] <= row["median"] <= row["high"]


def test_nothing_compared_has_no_shares() -> None:
    nothing = pairing(np.ones((0, 9)), np.ones((0, 9)))
    assert intervals.shares(intervals.ratio_intervals(nothing)).empty


# Over points


@given(
    values=st.lists(st.floats(-100, 100), min_size=1, max_size=12),
    seed=st.integers(0, 2**32 - 1),
)
@settings(deadline=None)
def test_a_weighted_median_is_the_median_of_the_repeated_values(values: list[float], seed: int) -> None:
    ascending = np.sort(np.array(values))
    weights = np.random.default_rng(seed).integers(0, 4, (20, len(values)))
    weights[:, 0] += 1
    found = intervals._weighted_medians(ascending, weights)
    expected = [np.median(np.repeat(ascending, row)) for row in weights]
    assert found.tolist() == pytest.approx(expected)


def test_the_interval_of_a_median_over_points_holds_it_though_workloads_share_their_losses() -> None:
    random = np.random.default_rng(6)
    held = []
    for _ in range(200):
        points = np.repeat(np.arange(40), 4)
        ratios = np.exp(0.1 + random.normal(0, 0.3, 40)[points] + random.normal(0, 0.02, 160))
        low, high = intervals.median_interval(ratios, points)
        held.append(low <= math.exp(0.1) <= high)
    assert np.mean(held) >= stats.binom.ppf(0.001, 200, 1 - LEVEL) / 200


def test_copies_of_a_point_make_its_interval_no_narrower() -> None:
    ratios = np.random.default_rng(7).lognormal(0, 0.3, 21)
    once = intervals.median_interval(ratios, range(21))
    copied = intervals.median_interval(np.repeat(ratios, 5), np.repeat(range(21), 5))
    assert copied == pytest.approx(once)


def test_fewer_than_six_points_give_no_interval_however_many_values_they_have() -> None:
    low, high = intervals.median_interval(np.arange(100.0), np.arange(100) % (FEWEST - 1))
    assert math.isnan(low) and math.isnan(high)


# ECDF


def test_the_band_holds_the_whole_distribution_in_the_nominal_share_of_campaigns() -> None:
    random = np.random.default_rng(8)
    held = []
    for _ in range(500):
        found = intervals.ecdf(random.normal(size=60))
        true = stats.norm.cdf(found["value"])
        before = np.concatenate([[0], found["high"][:-1]])  # just left of each step
        held.append(bool((found["low"] <= true).all() and (true <= np.maximum(before, found["high"])).all()))
    assert np.mean(held) >= stats.binom.ppf(0.001, 500, 1 - LEVEL) / 500


@given(values=st.lists(st.integers(0, 5).map(float), min_size=1, max_size=40))
def test_an_ecdf_is_the_share_of_values_at_most_each_value(values: list[float]) -> None:
    found = intervals.ecdf(values)
    for row in found.itertuples():
        assert row.share == pytest.approx(sum(value <= row.value for value in values) / len(values))
        assert 0 <= row.low <= row.share <= row.high <= 1
    assert found["share"].iloc[-1] == pytest.approx(1)


def test_the_band_is_the_one_of_massart() -> None:
    """For 100 values and 95 %, √(ln 40 / 200) is 0.1358."""
    found = intervals.ecdf(np.arange(100.0))
    assert found["share"][50] - found["low"][50] == pytest.approx(0.1358, abs=1e-4)


def test_left_of_all_values_the_share_is_none_and_the_band_goes_on() -> None:
    first = intervals.ecdf(np.arange(100.0)).iloc[0]
    assert (first["value"], first["share"], first["low"]) == (-math.inf, 0, 0)
    assert first["high"] == pytest.approx(0.1358, abs=1e-4)


def test_no_values_have_an_empty_ecdf() -> None:
    assert intervals.ecdf([]).empty


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("end", [-math.inf, math.inf])
def test_an_interval_of_a_median_reaches_to_infinity_where_a_resample_of_it_does(end: float) -> None:
    units = list(range(9))
    few, many = [1.0] * 8 + [end], [1.0] * 5 + [end] * 4
    assert median_interval(few, units) == (1, 1)
    assert median_interval(many, units) == ((end, 1) if end < 0 else (1, end))


@pytest.mark.filterwarnings("error")
def test_an_interval_of_a_median_that_may_be_anything_is_everything() -> None:
    assert median_interval([-math.inf] * 4 + [math.inf] * 4, list(range(8))) == (-math.inf, math.inf)


@pytest.mark.parametrize(
    ("ratios", "expected"),
    [([0.0] * 8, (0, 0, 0)), ([math.inf] * 8, (math.inf,) * 3), ([0.0] + [2.0] * 7, (2, 2, 2))],
)
def test_a_median_of_ratios_of_timeouts_has_its_ends_at_0_and_infinity(
    ratios: list[float], expected: tuple[float, float, float]
) -> None:
    rows = pd.DataFrame({"ratio": ratios, "censored": [ratio in (0, math.inf) for ratio in ratios]})
    assert median_ratio_interval(rows, list(range(8))) == expected
