"""Intervals hold the truth as often as they promise, and say nothing where nothing is known."""

import math
from collections.abc import Callable
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from bench.coverage import OFF, ON, ever_decided, pairing, wrongly_equal_so_far
from fecbench.looks import looks
from fecbench.results.analysis import intervals
from fecbench.results.analysis.intervals import FEWEST, LEVEL, median_interval, median_ratio_interval
from fecbench.results.analysis.pairing import Pairing, paired
from fecbench.results.metrics import DEFAULT

Floats = NDArray[np.float64]


def times(random: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Noise like that of downloads: a few per cent, and now and then a timeout."""
    timeouts = random.exponential(0.5, shape) * (random.random(shape) < 0.1)
    noise: Floats = np.exp(random.normal(0, 0.02, shape) + timeouts)
    return noise


Arms = Callable[[np.random.Generator, tuple[int, int]], tuple[Floats, Floats]]


def of_downloads(random: np.random.Generator, shape: tuple[int, int]) -> tuple[Floats, Floats]:
    network = random.lognormal(0, 0.4, shape)  # the losses of a repetition, met by both arms
    return network * times(random, shape), network * times(random, shape)


def lognormal(random: np.random.Generator, shape: tuple[int, int]) -> tuple[Floats, Floats]:
    return random.lognormal(0, 0.3, shape), random.lognormal(0, 0.3, shape)


def bimodal(random: np.random.Generator, shape: tuple[int, int]) -> tuple[Floats, Floats]:
    """A timeout or none, by chance, which doubles the time."""
    first, second = (
        (1.0 + (random.random(shape) < 0.5)) * np.exp(random.normal(0, 0.05, shape)) for _ in range(2)
    )
    return first, second


EQUAL = [of_downloads, lognormal, bimodal]
MANY = (6, 7, 8, 9, 10, 12, 15, 20, 30)
# How many repetitions points have, and how many points there are; of many with the slow tests.
REPETITIONS = [
    *((few, 1000) for few in (6, 7, 8, 9)),
    *(pytest.param(n, 20_000, marks=pytest.mark.slow) for n in MANY),
]


def decided_share(arms: tuple[Floats, Floats], statistic: str) -> float:
    result = intervals.ratio_intervals(pairing(*arms, statistic), statistic)
    return float((result["verdict"] != "undecided").mean())


def at_most(share: float, points: int) -> float:
    """Return the number that a point's true share exceeds in one of 1000 cases, as a share of points."""
    return float(stats.binom.ppf(0.999, points, share)) / points


# Means of few values that are far from normal are not quite as sure: 1.4 LEVEL is 7 %.
LEVELS = [("median", LEVEL), ("mean", 1.4 * LEVEL)]


@pytest.mark.parametrize(("repetitions", "points"), REPETITIONS)
@pytest.mark.parametrize(("statistic", "level"), LEVELS)
def test_of_equal_arms_the_nominal_share_of_points_is_decided_at_most(
    repetitions: int, points: int, statistic: str, level: float
) -> None:
    for equal in EQUAL:
        share = decided_share(equal(np.random.default_rng(repetitions), (points, repetitions)), statistic)
        print(f"{statistic} of {repetitions}, {equal.__name__}: {share:.1%} decided")
        assert share <= at_most(level, points), equal


@pytest.mark.parametrize("equal", EQUAL)
@pytest.mark.parametrize("statistic", ["median", "mean"])
def test_of_equal_arms_that_are_looked_at_several_times_the_nominal_share_of_points_is_decided_at_most(
    statistic: str, equal: Arms
) -> None:
    assert len(looks(160)) == 4
    assert ever_decided(equal, 160, statistic, 1000, shared_by=4) <= at_most(LEVEL, 1000)


def test_looks_that_do_not_share_the_chance_to_err_decide_more_than_that() -> None:
    assert ever_decided(lognormal, 160, "mean", 1000, shared_by=1) > at_most(LEVEL, 1000)


def test_of_a_mean_that_rare_delays_make_longer_an_early_look_finds_nothing_that_differs() -> None:
    """The early look is wrong, so `results.analysis.deciding` does not believe it."""
    assert wrongly_equal_so_far("mean") > 0.5


def spread_apart(random: np.random.Generator, shape: tuple[int, int]) -> tuple[Floats, Floats]:
    """The variant's times have a fifth of the median taken off, and a quarter of the spread."""
    return random.lognormal(0, 0.4, shape), 0.8 * random.lognormal(0, 0.1, shape)


def delayed_apart(random: np.random.Generator, shape: tuple[int, int]) -> tuple[Floats, Floats]:
    """The baseline alone is delayed, in two trials of five."""
    delays = random.exponential(1, shape) * (random.random(shape) < 0.4)
    return np.exp(random.normal(0, 0.02, shape)) * (1 + delays), np.exp(random.normal(0, 0.02, shape))


def coverage(unequal: Arms, repetitions: int, points: int, statistic: str = "median") -> float:
    """Return how often the interval contains the ratio of the statistics of very many trials."""
    random = np.random.default_rng(repetitions)
    of_many = np.mean if statistic == "mean" else np.median
    baseline, variant = (float(of_many(arm)) for arm in unequal(random, (1, 1_000_000)))
    result = intervals.ratio_intervals(pairing(*unequal(random, (points, repetitions)), statistic), statistic)
    return float(((result["low"] <= variant / baseline) & (variant / baseline <= result["high"])).mean())


def at_least(share: float, points: int) -> float:
    return float(stats.binom.ppf(0.001, points, share)) / points


@pytest.mark.parametrize("unequal", [spread_apart, delayed_apart])
@pytest.mark.parametrize(("repetitions", "points"), REPETITIONS)
def test_the_interval_of_medians_holds_the_true_ratio_of_arms_with_other_spreads(
    repetitions: int, points: int, unequal: Arms
) -> None:
    share = coverage(unequal, repetitions, points)
    print(f"median of {repetitions}, {unequal.__name__}: {share:.1%} hold the true ratio")
    assert share >= at_least(1 - LEVEL, points)


@pytest.mark.slow
@pytest.mark.parametrize("repetitions", MANY)
def test_the_interval_of_means_holds_the_true_ratio_less_often_where_one_arm_has_long_delays(
    repetitions: int,
) -> None:
    """The README warns of this: means of few values do not know the delays that are missing among them."""
    apart, delayed = (
        coverage(unequal, repetitions, 10_000, "mean") for unequal in (spread_apart, delayed_apart)
    )
    print(f"mean of {repetitions}: spread_apart {apart:.1%}, delayed_apart {delayed:.1%} hold the true ratio")
    assert apart >= at_least(0.93, 10_000)
    assert 0.75 < delayed < apart


def test_the_interval_of_means_is_students_of_the_log_ratio_where_pairs_are_alike() -> None:
    """The log of a mean is the mean of logs where ratios differ by little."""
    random = np.random.default_rng(1)
    logs = random.normal(0.1, 1e-4, (1, 12))
    result = intervals.ratio_intervals(pairing(np.ones((1, 12)), np.exp(logs), "mean"), "mean").iloc[0]
    expected = stats.ttest_1samp(logs[0], 0).confidence_interval(1 - LEVEL)
    assert np.log([result["low"], result["high"]]) == pytest.approx([expected.low, expected.high], abs=1e-7)


def test_a_median_of_times_that_few_timeouts_are_among_has_an_interval() -> None:
    random = np.random.default_rng(2)
    arms = [times(random, (1, 15)) for _ in range(2)]
    arms[1][0, 3] = math.inf
    result = intervals.ratio_intervals(with_timeouts(*arms)).iloc[0]
    assert 0 < result["low"] <= result["ratio"] <= result["high"] < math.inf
    half = arms[1].copy()
    half[0, :8] = math.inf
    result = intervals.ratio_intervals(with_timeouts(arms[0], half)).iloc[0]
    assert (result["ratio"], result["high"]) == (math.inf, math.inf)
    assert result["verdict"] == "undecided" or result["low"] > 1


def with_timeouts(baseline: Floats, variant: Floats) -> Pairing:
    """Return a pairing in which infinite values are timeouts."""
    points, repetitions = baseline.shape
    values = np.concatenate([baseline.ravel(), variant.ravel()])
    rows = {
        "workload": "download",
        "point": np.tile(np.repeat(np.arange(points), repetitions), 2),
        "repetition": np.tile(np.arange(repetitions), 2 * points),
        "variant": np.repeat([OFF, ON], points * repetitions),
        "state": np.where(np.isinf(values), "timeout", "ok"),
        DEFAULT: np.where(np.isinf(values), math.nan, values),
    }
    return paired(pd.DataFrame(rows), OFF, ON, DEFAULT, "median")


# Many decisions at once


def test_of_discoveries_no_more_than_the_nominal_share_is_false() -> None:
    random = np.random.default_rng(3)
    false, powers = [], []
    for _ in range(60):
        equal = np.arange(60) >= 12
        first, second = of_downloads(random, (60, 9))
        result = intervals.ratio_intervals(pairing(first, second * np.where(equal, 1, 0.7)[:, None]))
        discovered = result["discovery"] != "undecided"
        false.append((discovered & equal).sum() / max(1, discovered.sum()))
        powers.append((result["discovery"] == "gain")[~equal].mean())
    spread = np.std(false, ddof=1) / math.sqrt(len(false))
    assert np.mean(false) <= LEVEL + 3 * spread
    assert np.mean(powers) > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("statistic", ["median", "mean"])
def test_of_equal_arms_campaigns_with_any_discovery_are_rare(statistic: str) -> None:
    random = np.random.default_rng(4)
    discovered = [
        (
            intervals.ratio_intervals(pairing(*lognormal(random, (30, 8)), statistic), statistic)["discovery"]
            != "undecided"
        ).any()
        for _ in range(150)
    ]
    assert np.mean(discovered) <= at_most(LEVEL, 150)


def delayed_seldom(random: np.random.Generator, shape: tuple[int, int]) -> tuple[Floats, Floats]:
    """Most pairs are alike, as in virtual time; each arm has a long delay in one trial of fifty."""
    network = random.lognormal(0, 0.2, shape)
    first, second = (network * (1 + 5 * (random.random(shape) < 0.02)) for _ in range(2))
    return first, second


def stalls(random: np.random.Generator, shape: tuple[int, int]) -> tuple[Floats, Floats]:
    """Seconds that are 0 in two trials of five."""
    first, second = (random.exponential(1, shape) * (random.random(shape) < 0.6) for _ in range(2))
    return first, second


@pytest.mark.parametrize("arms", [delayed_seldom, stalls])
def test_of_equal_arms_with_rare_delays_or_zeros_hardly_any_campaign_has_a_discovery(arms: Arms) -> None:
    random = np.random.default_rng(9)
    tables = [
        intervals.ratio_intervals(pairing(*arms(random, (40, 20)), "mean"), "mean", margins=0.02)
        for _ in range(60)
    ]
    discovered = [table["discovery"].isin(intervals.EFFECTS).any() for table in tables]
    assert np.mean(discovered) <= at_most(LEVEL, 60)
    p_values = pd.concat(tables)["p_value"]
    assert (p_values < LEVEL).mean() <= at_most(LEVEL, len(p_values))


def test_a_pair_of_which_one_alone_is_0_says_which_arm_is_better() -> None:
    stalled, not_stalled = np.ones((1, 6)), np.array([[1.0, 0, 0, 0, 0, 0]])
    there, back = (
        intervals.ratio_intervals(pairing(one, other, "mean"), "mean")["p_value"].iloc[0]
        for one, other in ((stalled, not_stalled), (not_stalled, stalled))
    )
    assert there == back == 2 / 2**5


def test_what_is_discovered_was_decided_the_same_way() -> None:
    random = np.random.default_rng(5)
    arms = [times(random, (60, 9)) * random.uniform(0.9, 1.1, (60, 1)) for _ in range(2)]
    result = intervals.ratio_intervals(pairing(*arms))
    discovered = result["discovery"] != "undecided"
    assert 0 < discovered.sum() < (result["verdict"] != "undecided").sum()
    assert (result["discovery"] == result["verdict"])[discovered].all()
    assert (result["p_value"] <= LEVEL)[discovered].all()


def test_a_point_has_the_p_value_of_its_pairs_however_they_are_scaled() -> None:
    random = np.random.default_rng(6)
    arms = [times(random, (5, 9)) for _ in range(2)]
    result = intervals.ratio_intervals(pairing(*arms))
    expected = []
    for logs, ratio in zip(np.log(arms[1] / arms[0]), result["ratio"], strict=True):
        beyond = "greater" if ratio > 1 else "less"  # pairs on the other side do not speak for this ratio
        expected.append(min(1, 2 * stats.wilcoxon(logs, alternative=beyond).pvalue))
    assert result["p_value"].tolist() == pytest.approx(expected)


def test_exchanged_arms_give_inverse_intervals_and_opposite_verdicts() -> None:
    random = np.random.default_rng(2)
    arms = [times(random, (50, 9)) * random.uniform(0.7, 1.4, (50, 1)) for _ in range(2)]
    there, back = (intervals.ratio_intervals(pairing(*order)) for order in (arms, arms[::-1]))
    # The quantiles of an even number of resamples are interpolated, so the inverse is not exact.
    assert (there["low"] * back["high"]).tolist() == pytest.approx([1] * 50, rel=0.02)
    opposite = back["verdict"].map({"gain": "harm", "harm": "gain", "undecided": "undecided"})
    assert (there["verdict"].astype(str) == opposite.astype(str)).mean() > 0.95


def test_the_inverse_of_a_metric_with_the_opposite_direction_has_the_same_verdicts() -> None:
    for seed in range(5):
        random = np.random.default_rng(seed)
        arms = [times(random, (50, 9)) * random.uniform(0.7, 1.4, (50, 1)) for _ in range(2)]
        less = intervals.ratio_intervals(pairing(*arms))
        inverse = [1 / arm for arm in arms]
        more = intervals.ratio_intervals(pairing(*inverse, metric="competition.foreground_mbps"))
        assert {"gain", "harm", "undecided"} == set(less["verdict"])
        assert less["verdict"].tolist() == more["verdict"].tolist()


def test_pairs_that_all_agree_have_an_interval_of_one_ratio() -> None:
    baseline = np.random.default_rng(3).lognormal(0, 1, (4, FEWEST))
    result = intervals.ratio_intervals(pairing(baseline, 2 * baseline))
    assert result[["low", "high"]].to_numpy() == pytest.approx(2, abs=1.0)
    same = np.full((1, FEWEST), 3.0)
    result = intervals.ratio_intervals(pairing(same, 2 * same))
    assert result[["low", "high"]].to_numpy().tolist() == [[2.0, 2.0]]


def test_fewer_than_six_repetitions_leave_a_point_undecided_however_far_the_arms_are_apart() -> None:
    for repetitions in range(1, FEWEST):
        baseline = np.ones((3, repetitions))
        result = intervals.ratio_intervals(pairing(baseline, 10 * baseline))
        assert result["ratio"].tolist() == [10] * 3
        assert result[["low", "high"]].isna().all(axis=None)
        assert (result["verdict"] == "undecided").all()


def test_points_of_different_numbers_of_pairs_have_the_intervals_that_they_have_alone() -> None:
    random = np.random.default_rng(4)
    arms = [times(random, (1, n)) for n in (9, 3, 7, 9) for _ in range(2)]
    alone = [intervals.ratio_intervals(pairing(*arms[i : i + 2])) for i in range(0, 8, 2)]
    parts = [pairing(*arms[i : i + 2]) for i in range(0, 8, 2)]
    together = Pairing(
        baseline_label=parts[0].baseline_label,
        variant_label=parts[0].variant_label,
        ratios=pd.concat([part.ratios.assign(point=i) for i, part in enumerate(parts)], ignore_index=True),
        unpaired=parts[0].unpaired,
        matched=pd.concat([part.matched.assign(point=i) for i, part in enumerate(parts)], ignore_index=True),
        decided=parts[0].decided,
        timeouts=parts[0].timeouts,
    )
    result = intervals.ratio_intervals(together)
    expected = pd.concat(
        [pairing_of_point.assign(point=i) for i, pairing_of_point in enumerate(alone)], ignore_index=True
    )
    pd.testing.assert_frame_equal(result, expected)


def test_shares_of_a_workload_sum_to_one_and_say_how_many_points_chance_would_decide() -> None:
    random = np.random.default_rng(5)
    arms = [times(random, (40, 9)) * random.uniform(0.7, 1.4, (40, 1)) for _ in range(2)]
    result = intervals.ratio_intervals(pairing(*arms))
    (row,) = intervals.shares(result).to_dict("records")
    assert row["points"] == 40
    assert row["gain"] + row["harm"] + row["undecided"] == pytest.approx(1)
    assert row["gain"] == (result["high"] < 1).mean()
    assert row["low"] <= row["median"] <= row["high"]
    assert row["by_chance"] == pytest.approx(40 * LEVEL)
    assert row["discovered_gain"] == (result["discovery"] == "gain").mean()
    (none,) = intervals.shares(result.assign(low=math.nan)).to_dict("records")
    assert none["by_chance"] == 0


def test_nothing_compared_has_no_shares() -> None:
    nothing = pairing(np.ones((0, 9)), np.ones((0, 9)))
    assert intervals.shares(intervals.ratio_intervals(nothing)).empty


def test_counts_say_on_which_side_of_a_margin_each_point_surely_is() -> None:
    rows = [
        ("a", 0.9, 0.85, 0.95),
        ("a", 1.2, 1.15, 1.25),
        ("a", 1.0, 0.96, 1.04),
        ("a", 1.0, 0.8, 1.2),
        ("a", 1.1, math.nan, math.nan),
        ("b", 0.0, 0.0, 0.0),
        ("b", math.inf, 2.0, math.inf),
        ("b", 4.0, 3.0, 5.0),
        ("b", 0.25, 0.2, 0.3),
    ]
    result = pd.DataFrame(rows, columns=["workload", "ratio", "low", "high"])

    def of_share(count: int, of: int) -> Any:
        """Return the interval of another library's implementation, to its precision."""
        ends = stats.binomtest(count, of).proportion_ci(method="exact")
        return SimpleNamespace(low=pytest.approx(ends.low), high=pytest.approx(ends.high))

    one, other = intervals.counts(result, 0.05).to_dict("records")
    assert one == {
        **{"workload": "a", "points": 5, "ratio": pytest.approx((0.9 * 1.2 * 1.1) ** (1 / 5))},
        **{"below": 1, "above": 1, "not_above": 2, "open": 2},
        **{"share_low": of_share(1, 5).low, "share_high": of_share(3, 5).high},
    }
    assert other == {
        **{"workload": "b", "points": 4, "ratio": pytest.approx(math.nan, nan_ok=True)},
        **{"below": 2, "above": 2, "not_above": 2, "open": 0},
        **{"share_low": of_share(2, 4).low, "share_high": of_share(2, 4).high},
    }
    assert intervals.counts(result.iloc[6:8], 0.05)["ratio"].tolist() == [math.inf]  # one did not get through
    (none,) = intervals.counts(result[result["workload"] == "a"].iloc[2:3], 0.05).to_dict("records")
    assert (none["above"], none["share_low"], none["share_high"]) == (0, 0, pytest.approx(0.975))
    assert intervals.counts(result, 0.3)["below"].tolist() == [0, 2]


# Over points


@pytest.mark.parametrize("level", [LEVEL, 0.01])
def test_the_interval_of_a_median_ends_at_the_innermost_order_statistics_that_hold_it(level: float) -> None:
    """Value i of n is above the median if fewer than i of n fair coins show heads."""
    for units in range(1, 60):
        low, high = intervals.median_interval(np.arange(1.0, units + 1), range(units), level)
        if math.isnan(low):
            assert 2 * stats.binom.cdf(0, units, 0.5) > level
            continue
        assert low + high == units + 1
        assert 2 * stats.binom.cdf(low - 1, units, 0.5) <= level
        assert 2 * stats.binom.cdf(low, units, 0.5) > level


@given(values=st.lists(st.floats(-100, 100), min_size=6, max_size=30), units=st.integers(6, 12))
def test_the_interval_of_a_median_holds_it_and_turns_round_with_the_values(
    values: list[float], units: int
) -> None:
    data, of = np.array(values), np.arange(len(values)) % units
    low, high = intervals.median_interval(data, of)
    if len(set(of)) >= FEWEST:
        assert low <= np.median(data) <= high
        assert intervals.median_interval(-data, of) == (-high, -low)


def test_the_interval_of_a_median_over_points_holds_it_though_workloads_share_their_losses() -> None:
    random = np.random.default_rng(6)
    hits = []
    for _ in range(200):
        points = np.repeat(np.arange(40), 4)
        ratios = np.exp(0.1 + random.normal(0, 0.3, 40)[points] + random.normal(0, 0.02, 160))
        low, high = intervals.median_interval(ratios, points)
        hits.append(low <= math.exp(0.1) <= high)
    assert np.mean(hits) >= stats.binom.ppf(0.001, 200, 1 - LEVEL) / 200


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
    hits = []
    for _ in range(500):
        result = intervals.ecdf(random.normal(size=60))
        true = stats.norm.cdf(result["value"])
        before = np.concatenate([[0], result["high"][:-1]])  # just left of each step
        hits.append(
            bool((result["low"] <= true).all() and (true <= np.maximum(before, result["high"])).all())
        )
    assert np.mean(hits) >= stats.binom.ppf(0.001, 500, 1 - LEVEL) / 500


@given(values=st.lists(st.integers(0, 5).map(float), min_size=1, max_size=40))
def test_an_ecdf_is_the_share_of_values_at_most_each_value(values: list[float]) -> None:
    result = intervals.ecdf(values)
    for row in result.itertuples():
        assert row.share == pytest.approx(sum(value <= row.value for value in values) / len(values))
        assert 0 <= row.low <= row.share <= row.high <= 1
    assert result["share"].iloc[-1] == pytest.approx(1)


def test_the_band_is_the_one_of_massart_and_goes_on_left_of_all_values() -> None:
    """The width for 100 values and 95 % is √(ln 40 / 200) = 0.1358."""
    result = intervals.ecdf(np.arange(100.0))
    assert result["share"][50] - result["low"][50] == pytest.approx(0.1358, abs=1e-4)
    assert result.iloc[0][["value", "share", "low"]].tolist() == [-math.inf, 0, 0]
    assert result["high"][0] == pytest.approx(0.1358, abs=1e-4)


def test_no_values_have_an_empty_ecdf() -> None:
    assert intervals.ecdf([]).empty


@pytest.mark.filterwarnings("error")
def test_an_interval_of_a_median_reaches_to_infinity_where_a_resample_of_it_does() -> None:
    for end in (-math.inf, math.inf):
        units = list(range(9))
        few, many = [1.0] * 8 + [end], [1.0] * 5 + [end] * 4
        assert median_interval(few, units) == (1, 1), end
        assert median_interval(many, units) == ((end, 1) if end < 0 else (1, end)), end


@pytest.mark.filterwarnings("error")
def test_an_interval_of_a_median_that_may_be_anything_is_everything() -> None:
    assert median_interval([-math.inf] * 4 + [math.inf] * 4, list(range(8))) == (-math.inf, math.inf)


def test_a_median_of_ratios_of_timeouts_has_its_ends_at_0_and_infinity() -> None:
    for ratios, expected in (
        ([0.0] * 8, (0, 0, 0)),
        ([math.inf] * 8, (math.inf,) * 3),
        ([0.0] + [2.0] * 8, (2, 2, 2)),
    ):
        rows = pd.DataFrame({"ratio": ratios, "censored": [ratio in (0, math.inf) for ratio in ratios]})
        assert median_ratio_interval(rows, list(range(len(rows)))) == expected


# Ties, as virtual time has them: where nothing is lost, repetitions do not differ


def test_the_test_of_ranks_is_exact_where_values_tie() -> None:
    """The exact test of a few values tries every choice of signs."""
    random = np.random.default_rng(4)
    for _ in range(40):
        logs = random.choice([-0.2, -0.1, 0.0, 0.1, 0.2, 0.3, math.inf], size=int(random.integers(1, 9)))
        differing = logs[logs != 0]
        ranks = stats.rankdata(np.abs(differing))
        signs = np.array(list(product([0, 1], repeat=len(ranks))))
        sums, rank_sum = signs @ ranks, ranks[differing > 0].sum()
        tail = min((sums <= rank_sum).mean(), (sums >= rank_sum).mean())
        assert intervals.signed_rank(logs) == pytest.approx(min(1, 2 * tail))


def test_the_test_of_ranks_is_scipys_where_nothing_ties() -> None:
    for pairs in (6, 14, 50, 51, 400):
        logs = np.random.default_rng(pairs).normal(0.1, 1, pairs)
        assert intervals.signed_rank(logs) == pytest.approx(stats.wilcoxon(logs).pvalue)


def test_arms_without_spread_are_equivalent_where_they_are_equal_and_decided_elsewhere() -> None:
    same, longer = np.full((1, 6), 1.5), np.full((1, 6), 1.6)
    equal = intervals.ratio_intervals(pairing(same, same)).iloc[0]
    assert (equal["low"], equal["high"], equal["verdict"], equal["p_value"]) == (1, 1, "equivalent", 1)
    harm = intervals.ratio_intervals(pairing(same, longer)).iloc[0]
    assert harm["low"] == harm["high"] == harm["ratio"]
    assert (harm["verdict"], harm["p_value"]) == ("harm", 2 / 2**6)
