"""Equal arms are found different in the nominal share of comparisons at most, and a stated shift is found."""

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from fecbench.results.analysis import equality
from fecbench.results.analysis.equality import POWER, NothingToCompare, compare, pairs_needed
from fecbench.results.analysis.intervals import LEVEL, signed_rank
from fecbench.results.metrics import DEFAULT
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, TrialKey
from tests.results.analysis.outcomes import KEYS, OFF, WORKLOADS, frame_with

Logs = NDArray[np.float64]
Filled = Callable[..., tuple[Database, CampaignInfo]]

SIZES = ("download-10000", "download-2000")

CAMPAIGNS = 1000


def log_ratios(random: np.random.Generator, pairs: int) -> Logs:
    """Return ratios like those of A/A campaigns: most are within 1 %, and some pairs differ by a timeout."""
    noise = random.normal(0, 0.005, pairs)
    timeouts = random.normal(0, 0.4, pairs) * (random.random(pairs) < 0.08)
    return noise + timeouts


def share_found(pairs: int, shift: float, seed: int) -> float:
    """The share of simulated campaigns in which the test sees a difference."""
    random = np.random.default_rng(seed)
    result = [signed_rank(log_ratios(random, pairs) + shift) < LEVEL for _ in range(CAMPAIGNS)]
    return float(np.mean(result))


def test_equal_arms_are_found_different_in_the_nominal_share_of_campaigns_at_most() -> None:
    for pairs in (10, 30, 120):
        # What a test of exactly this level exceeds in one of 1000 cases.
        most = stats.binom.ppf(0.999, CAMPAIGNS, LEVEL) / CAMPAIGNS
        assert share_found(pairs, 0.0, seed=pairs) <= most, pairs


def test_thirty_pairs_show_a_difference_of_half_a_percent() -> None:
    assert share_found(30, math.log1p(0.005), seed=1) > 0.95


def test_the_pairs_needed_give_the_power_that_is_promised() -> None:
    spread = log_ratios(np.random.default_rng(2), 4000) * 4
    for difference in (0.01, 0.02):
        needed = pairs_needed(spread, difference)
        assert needed > 11, "more than the fewest: the formula is what is tested"
        random = np.random.default_rng(3)
        result = [
            signed_rank(log_ratios(random, needed) * 4 + math.log1p(difference)) < LEVEL
            for _ in range(CAMPAIGNS)
        ]
        assert POWER - 0.04 < np.mean(result) < 0.95


def test_a_smaller_difference_needs_more_pairs_and_so_does_a_wider_spread() -> None:
    spread = log_ratios(np.random.default_rng(4), 500) * 10
    needed = [pairs_needed(spread, difference) for difference in (0.01, 0.02, 0.05, 0.1)]
    assert needed == sorted(needed, reverse=True)
    assert needed[0] > needed[-1] >= 11
    assert pairs_needed(spread * 2, 0.02) > pairs_needed(spread, 0.02)


def test_no_difference_can_be_shown_with_fewer_than_six_pairs() -> None:
    """2 · 2⁻⁵ is above 0.05: however far apart five pairs are, the test cannot tell."""
    assert signed_rank(np.full(5, 1.0)) > LEVEL > signed_rank(np.arange(1.0, 7.0))


def test_exchanged_arms_give_the_inverse_ratio_and_the_same_test() -> None:
    random = np.random.default_rng(5)
    first = random.uniform(0.5, 2, 41)
    second = first * np.exp(log_ratios(random, 41))
    one, other = compare(first, second), compare(second, first)
    assert one.median * other.median == pytest.approx(1)
    assert one.p_value == pytest.approx(other.p_value)
    assert one.interval[0] <= one.median <= one.interval[1]


def test_a_ratio_is_of_the_second_arm_to_the_first() -> None:
    result = compare([1.0, 2.0, 4.0], [1.02, 2.2, 4.0])
    assert result.median == pytest.approx(1.02)
    assert result.beyond == {0.01: pytest.approx(2 / 3), 0.05: pytest.approx(1 / 3)}
    assert result.pairs == 3


def test_the_interval_contains_the_median_ratio_in_the_nominal_share_of_campaigns() -> None:
    random = np.random.default_rng(6)
    hits = 0
    for _ in range(200):
        low, high = compare(np.ones(40), np.exp(log_ratios(random, 40) + 0.03)).interval
        hits += low <= math.exp(0.03) <= high
    assert hits >= stats.binom.ppf(0.001, 200, 0.93)  # the bootstrap of a median is a little too narrow


def test_equal_times_do_not_differ() -> None:
    same = compare([1.0, 2.0, 3.0] * 2, [1.0, 2.0, 3.0] * 2)
    assert (same.p_value, same.differ, same.median, same.interval) == (1.0, False, 1.0, (1.0, 1.0))


def test_what_cannot_be_compared_is_refused() -> None:
    few, zero = "ok; a comparison needs at least 2", "some values are not above 0"
    for first, second, message in (([1.0], [1.0], few), ([], [], few), ([1.0, 0.0], [1.0, 1.0], zero)):
        with pytest.raises(NothingToCompare, match=message):
            compare(first, second)


def two_arms(filled: Filled, **changes: object) -> tuple[Database, CampaignInfo]:
    """XOR takes twice as long as FEC off on all workloads, and sends as many packets."""
    keys = [TrialKey(*key) for key in product(("rquic-off", "rquic-xor"), SIZES, (0, 1), range(3))]
    return filled({key: ("ok", 2.0 if key.variant == "rquic-xor" else 1.0) for key in keys}, **changes)


def test_arms_are_compared_by_the_metric_of_their_workloads_or_by_the_chosen_one(filled: Filled) -> None:
    database, campaign = two_arms(filled)
    by_default, choice = (
        equality.of_itself(database, campaign, name) for name in ("", "server.packets_sent")
    )
    assert (by_default.pairs, by_default.median, by_default.metrics) == (12, 2.0, ("client.dct_s",))
    assert (choice.pairs, choice.median, choice.metrics) == (12, 1.0, ("server.packets_sent",))
    assert equality.sentences(by_default)[0].endswith("of the DCT.")
    assert equality.sentences(choice)[0].endswith("of the number of packets sent (server).")


def test_workloads_of_different_metrics_are_compared_each_by_its_own(filled: Filled) -> None:
    first, second = two_arms(filled)[1].workloads
    database, campaign = two_arms(filled)
    changed = replace(campaign, workloads=[first, {**second, "metric": "server.packets_sent"}])
    result = equality.of_itself(database, changed)
    assert (result.pairs, result.beyond[0.05]) == (12, 0.5)
    assert result.metrics == ("client.dct_s", "server.packets_sent")


def test_two_campaigns_are_compared_by_the_chosen_metric(filled: Filled) -> None:
    database, one = two_arms(filled)
    _, other = two_arms(filled)
    result = equality.between(database, one, other, "server.packets_sent")
    assert (result.pairs, result.differ, result.metrics) == (24, False, ("server.packets_sent",))


def test_pairs_without_a_value_are_left_out_and_counted() -> None:
    """A latency at p95 has no value where fewer than 95 % of the messages arrived."""
    nan = math.nan
    result = compare([1.0, nan, 2.0, 1.0, nan, 4.0], [2.0, 1.0, 4.0, nan, nan, 8.0])
    assert (result.pairs, result.without, result.one_sided, result.median) == (3, 3, 2, 2.0)
    expected = (
        "Left out: 3 pairs more, in which a trial failed, timed out or has no value; in 2 of them the other"
        " trial has one."
    )
    assert expected in equality.sentences(result)
    assert not any("Left out" in sentence for sentence in equality.sentences(compare([1.0] * 3, [1.0] * 3)))
    with pytest.raises(NothingToCompare, match="1 pair is ok, 2 more without a value; a comparison needs"):
        compare([1.0, nan, 2.0], [1.0, 1.0, nan])


def test_a_pair_of_which_one_trial_did_not_get_through_is_counted_and_one_that_is_invalid_is_not() -> None:
    first = frame_with({key: ("ok", 2.0) for key in KEYS if key.variant == OFF})
    states = iter(["failed", "timeout", "invalid"])
    second = frame_with({key: (next(states, "ok"), 2.0) for key in KEYS if key.variant == OFF})
    of_workloads = dict.fromkeys(WORKLOADS, DEFAULT)
    result = compare(*equality.values_of_pairs(first, second, of_workloads, same_variant=True))
    assert (result.pairs, result.without, result.one_sided) == (9, 2, 2)


def test_an_arm_that_alone_lacks_values_differs_though_all_ratios_are_1() -> None:
    """Trials that fail in one of two campaigns alone are no equality, and as many in either are."""
    ones, nan = [1.0] * 20, math.nan
    result = compare([*ones, *[1.0] * 9, nan], [*ones, *[nan] * 9, 1.0])
    assert (result.pairs, result.one_sided, result.second_lacks, result.p_value) == (20, 10, 9, 1)
    assert result.one_sided_p_value == pytest.approx(stats.binomtest(9, 10).pvalue) and result.differ
    text = "\n".join(equality.sentences(result))
    assert "The first alone lacks a value in 1 pair, the second alone in 9: sign test, p = 0.0215." in text
    assert "by both tests, a difference at level 0.05" in text
    assert not compare([*ones, *[1.0] * 5, *[nan] * 5], [*ones, *[nan] * 5, *[1.0] * 5]).differ


def test_of_equal_arms_that_fail_as_often_the_nominal_share_differs_at_most() -> None:
    random = np.random.default_rng(9)
    differing = 0
    for _ in range(200):
        values = np.exp(random.normal(0, 0.1, (2, 40)))
        values[random.random(values.shape) < 0.2] = math.nan
        differing += compare(*values.tolist()).differ
    assert differing <= stats.binom.ppf(0.999, 200, LEVEL)


def test_the_level_and_the_power_are_the_usual_ones() -> None:
    assert (LEVEL, POWER) == (0.05, 0.8)
