"""Single networks in which a new build is slower, and failures by arm."""

import numpy as np
import pandas as pd
import pytest

from fecbench.results.gate.failing import SUSPECTED, Failed
from fecbench.results.gate.networks import slower_networks
from fecbench.results.gate.slowest import tail_ratio_of
from tests.support.campaigns import campaign_info, variants, workload

LABELS = ("download-1000", "download-100000")
CAMPAIGN = campaign_info(
    margin=0.01,
    points=[{"owd_ms": point} for point in range(20)],
    variants=variants("old", "new"),
    workloads=[
        {**workload(label, size_bytes=int(label.split("-")[1])), "metric": "client.dct_s"} for label in LABELS
    ],
)


def pairs_of(random: np.random.Generator, repetitions: int = 8) -> pd.DataFrame:
    index = pd.MultiIndex.from_product(
        [LABELS, range(20), range(repetitions)], names=["workload", "point", "repetition"]
    )
    table = index.to_frame(index=False)
    old, log = np.exp(random.normal(size=len(table))), random.normal(0, 0.02, len(table))
    return table.assign(old=old, new=old * np.exp(log), log=log)


def test_a_network_is_found_by_one_of_its_workloads_or_by_all_together() -> None:
    pairs = pairs_of(np.random.default_rng(1))
    assert slower_networks(pairs, CAMPAIGN, 1).points == ()
    for workloads, effect in ((LABELS[:1], 0.2), (LABELS, 0.06)):
        slower = (pairs["point"] == 7) & pairs["workload"].isin(workloads)
        assert slower_networks(pairs.assign(log=pairs["log"] + effect * slower), CAMPAIGN, 1).points == (7,)
        assert slower_networks(pairs.assign(log=pairs["log"] - effect * slower), CAMPAIGN, 1).points == ()


def test_equal_builds_have_a_slower_network_in_5_of_100_at_most() -> None:
    """The builds are at the margin itself, the hardest case; the bound is 5 % and three standard
    deviations."""
    random = np.random.default_rng(2)
    wrong = 0
    for _ in range(100):
        pairs = pairs_of(random)
        wrong += bool(slower_networks(pairs.assign(log=pairs["log"] + np.log(1.01)), CAMPAIGN, 1).points)
    assert wrong <= 5 + 3 * np.sqrt(5 * 0.95)


def test_single_pairs_say_nothing_of_single_networks() -> None:
    pairs = pairs_of(np.random.default_rng(3), repetitions=1)
    assert slower_networks(pairs.assign(log=1.0).iloc[:20], CAMPAIGN, 1).points == ()


def test_the_tail_is_the_mean_over_places_of_the_ratios_of_95th_percentiles() -> None:
    pairs = pairs_of(np.random.default_rng(4), repetitions=40)
    ends = pairs.groupby(["workload", "point"])[["old", "new"]].agg(lambda of: np.sort(of)[37])  # of 40
    expected = np.exp(np.log(ends["new"] / ends["old"]).mean())
    tail = tail_ratio_of(pairs, 0.05)
    assert tail.value == pytest.approx(expected)
    assert tail == tail_ratio_of(pairs, 0.05)
    shuffled = pairs.sample(frac=1, random_state=5)
    assert tail_ratio_of(shuffled, 0.05).value == pytest.approx(expected)


def test_a_build_that_takes_twice_as_long_each_time_does_so_surely_at_its_slow_end() -> None:
    pairs = pairs_of(np.random.default_rng(5))
    tail = tail_ratio_of(pairs.assign(new=2 * pairs["old"]), 0.05)
    assert (tail.low, tail.high) == (pytest.approx(2), pytest.approx(2))


def test_the_interval_of_the_tail_holds_1_for_equal_arms() -> None:
    """The interval contains 1 in 95 of 100 cases, less two standard deviations."""
    random = np.random.default_rng(6)
    hits = 0
    for _ in range(60):
        pairs = pairs_of(random, repetitions=12)
        own = np.exp(random.normal(0, 0.3, (2, len(pairs))))
        tail = tail_ratio_of(pairs.assign(old=own[0], new=own[1]), 0.05)
        hits += tail.low <= 1 <= tail.high
    assert hits >= 60 * 0.95 - 2 * np.sqrt(60 * 0.95 * 0.05)


def test_in_virtual_time_one_failure_of_the_new_build_is_enough_and_emulated_chance_is_asked() -> None:
    for failed, virtual, emulated in (
        (Failed(run=1000), 1.0, 1.0),
        (Failed(both=50, run=1000), 1.0, 1.0),
        (Failed(old_alone=9, run=1000), 1.0, 1.0),
        (Failed(new_alone=1, run=1000), 0.0, 0.5),
        (Failed(new_alone=9, run=17280), 0.0, 0.5**9),
    ):
        assert failed.p_value(deterministic=True) == virtual
        assert failed.p_value(deterministic=False) == pytest.approx(emulated, rel=0.02)
    assert Failed(new_alone=3, run=1000).p_value(deterministic=False) < SUSPECTED


def test_pairs_that_are_lost_may_hide_that_the_new_build_is_slower() -> None:
    failed = Failed(both=4, new_alone=2, old_alone=30, run=100)
    assert failed.lost(deterministic=True) == 0.04
    assert failed.lost(deterministic=False) == 0.06
