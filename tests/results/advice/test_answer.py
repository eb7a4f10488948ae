"""Advice from a record that is planted: what helps where is known."""

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fecbench.errors import BadInput
from fecbench.results.advice import Advice, Network, advise
from fecbench.results.advice.likeness import NEAR
from tests.results.advice.planted import NETWORK, SIZES, planted

RECORD = planted()
ADVISED: list[tuple[dict[str, Any], dict[str, str], float]] = [
    ({"loss": 0.08}, {"scheme": "rlc", "controller": "safe"}, 0.9),
    ({"loss": 0.08, "burst": 4}, {"scheme": "rlc", "controller": "safe"}, 0.9),
    ({"loss": 0.001}, {"scheme": "rlc", "controller": "tail"}, 0.95),
    ({"loss": 0.001, "size_bytes": 1_000_000}, {"scheme": "none"}, 1.0),
    ({"loss": 0}, {"scheme": "none"}, 1.0),
    ({"congestion_control": "bbr3"}, {"scheme": "none"}, 1.0),
]


def advice_on(record: pd.DataFrame = RECORD, **other: Any) -> Advice:
    return advise(Network(**NETWORK | other), record)


def test_the_controller_that_surely_helps_most_near_by_is_advised() -> None:
    for network, use, ratio in ADVISED:
        advice = advice_on(**network)
        assert advice.use == use, network
        assert advice.ratio == pytest.approx(ratio, abs=0.02), network
        for low, high in (advice.interval, advice.prediction):
            assert low <= advice.ratio <= high, network
        assert (advice.networks, advice.outside) == (NEAR, False), network


def test_of_two_that_do_alike_the_one_that_may_be_left_on_is_advised() -> None:
    record = planted()
    tail = record["controller"] == "tail"
    record.loc[tail, "ratio"] = 0.999 * record.loc[~tail, "ratio"].to_numpy()
    assert advice_on(record, loss=0.08).use["controller"] == "safe"


def test_what_harms_and_what_is_undecided_is_counted() -> None:
    safe, tail = advice_on(size_bytes=1_000_000, loss=0.001).candidates
    assert (tail.harmed, tail.undecided, tail.decided) == (NEAR, 0, NEAR)
    assert (safe.harmed, safe.undecided, safe.decided) == (0, NEAR, 0)


def test_between_two_sizes_a_network_that_is_harmed_at_either_is_harmed() -> None:
    safe, tail = advice_on(size_bytes=200_000, loss=0.001).candidates
    assert (tail.harmed, tail.undecided, tail.helped, tail.decided) == (NEAR, 0, 0, NEAR)
    assert (safe.harmed, safe.undecided, safe.helped, safe.decided) == (0, NEAR, 0, 0)


def test_a_gain_below_what_a_mean_is_vouched_for_is_not_advised() -> None:
    for ratio, answer in ((0.995, "none"), (0.985, "use")):
        advice = advice_on(RECORD.assign(ratio=ratio))
        assert (advice.answer, advice.candidates[0].interval[1] < 1) == (answer, True)


def mixed(*ratios: float) -> pd.DataFrame:
    """The record with one of these ratios in each network, by chance."""
    return RECORD.assign(ratio=np.random.default_rng(1).choice(ratios, len(RECORD)))


def test_nothing_can_be_said_where_networks_alike_gain_and_lose() -> None:
    for ratios in ((0.7, 1.4), (0.8, 0.8, 0.8, 1.3), (0.8, 1.0, 1.0, 1.4, 1.0)):
        advice = advice_on(mixed(*ratios))
        assert (advice.answer, advice.use, advice.ratio, advice.prediction) == ("nothing", None, None, None)
        for candidate in advice.candidates:
            assert candidate.prediction[0] < 1 / (1 + advice.margin), ratios
            assert candidate.effect == "open"


def test_one_controller_that_may_gain_is_enough_for_nothing_to_be_said() -> None:
    record = mixed(0.7, 1.4)
    record["ratio"] = record["ratio"].mask(record["controller"] == "safe", 1.0)
    advice = advice_on(record)
    assert [candidate.effect for candidate in advice.candidates] == ["no gain", "open"]
    assert advice.answer == "nothing"


def test_a_gain_on_average_is_not_advised_where_networks_alike_lose_by_more_than_the_margin() -> None:
    advice = advice_on(mixed(*[0.6] * 8, 1.2))
    assert advice.candidates[0].interval[1] < 1
    assert advice.answer == "nothing"


BEYOND: list[dict[str, float]] = [
    *({"rtt_ms": 5000}, {"rtt_ms": 5}, {"bandwidth_mbps": 0.5}, {"bandwidth_mbps": 200}),
    *({"loss": 0.2}, {"size_bytes": 1000.0}, {"size_bytes": 10**7}, {"burst": 20}),
    *({"queue_bdp": 0.1}, {"queue_bdp": 10}),
]


@pytest.mark.parametrize("beyond", BEYOND, ids=str)
def test_what_was_not_measured_is_said(beyond: dict[str, float]) -> None:
    advice = advice_on(**beyond)
    assert advice.outside and advice.beyond.keys() == beyond.keys()
    assert not advice.between and not advice.far and len(advice.candidates) == 2


FAR: list[dict[str, float]] = [
    *({"rtt_ms": 10_000}, {"rtt_ms": 0.5}, {"bandwidth_mbps": 0.05}, {"bandwidth_mbps": 2000}, {"loss": 0.6}),
    *({"size_bytes": 900.0}, {"size_bytes": 10**8}, {"burst": 50}, {"queue_bdp": 0.01}, {"queue_bdp": 50}),
]


@pytest.mark.parametrize("far", FAR, ids=str)
def test_nothing_can_be_said_an_order_of_magnitude_beyond_what_was_measured(far: dict[str, float]) -> None:
    advice = advice_on(**far)
    assert (advice.answer, advice.use, advice.candidates) == ("nothing", None, [])
    assert advice.outside and advice.far == [*far] == [*advice.beyond]


def test_nothing_can_be_said_of_bursts_that_time_ends() -> None:
    """Packets end those of all recorded networks. A burst of one packet ends with it either way."""
    advice = advice_on(burst=4, by_time=True)
    assert (advice.answer, advice.far, advice.outside) == ("nothing", ["burst"], True)
    assert advice_on(burst=1, by_time=True).answer == advice_on(burst=1).answer != "nothing"


@pytest.mark.parametrize(
    "network", [{"loss": 0.001}, {"loss": 0.08}, {"burst": 1.05}, {"rtt_ms": 640}], ids=str
)
def test_what_was_measured_at_the_ends_is_not_outside(network: dict[str, float]) -> None:
    assert not advice_on(**network).outside


GAPS: list[tuple[dict[str, float], str, tuple[float, float]]] = [
    ({"loss": 0.0005}, "loss", (0, 0.001)),
    ({"loss": 1e-9}, "loss", (0, 0.001)),
    ({"loss": 0.0005, "burst": 4}, "loss", (0, 0.001)),
    ({"burst": 1.5}, "burst", (1 / 0.92, 4)),
]


@pytest.mark.parametrize(("network", "name", "ends"), GAPS, ids=str)
def test_a_gap_between_what_was_measured_is_outside(
    network: dict[str, float], name: str, ends: tuple[float, float]
) -> None:
    advice = advice_on(**network)
    assert advice.outside and not advice.beyond
    assert advice.between == {name: pytest.approx(ends)}
    assert advice.networks == 2 * NEAR


def test_in_a_gap_the_prediction_holds_what_was_measured_on_both_sides() -> None:
    low, high = next(c for c in advice_on(loss=0.0005).candidates if c.controller == "tail").prediction
    assert low < 0.96 and high > 0.99


def test_losses_that_were_not_measured_with_such_bursts_are_outside() -> None:
    # Bursts of 4 began with 0.025 to 2.2 % of the packets, so longer ones lose more.
    record = planted()
    long = record["burst"] == 4
    shorter = record[long].assign(burst=2.0, loss=lambda rows: rows["loss"] / (2 - rows["loss"]))
    both = pd.concat([record, shorter])
    assert not advice_on(both, loss=0.08, burst=4).outside
    assert advice_on(both, loss=0.08, burst=2).beyond.keys() == {"loss"}
    assert advice_on(both, loss=0.0006, burst=4).between.keys() == {"loss"}
    assert not advice_on(both, loss=0.0006, burst=2).outside


def test_a_queue_that_is_known_is_asked_for_and_one_that_is_not_may_be_any() -> None:
    record = planted()
    short = (record["queue_bdp"] == 0.25) & (record["controller"] == "safe") & (record["loss"] == 0.02)
    record["ratio"] = record["ratio"].mask(short, 1.1 * record["ratio"] / 0.9)
    any_queue, short_queue, long_queue = (
        advice_on(record, queue_bdp=queue, loss=0.02).candidates[0] for queue in (None, 0.25, 4)
    )
    assert any_queue.prediction[0] < 0.91 and any_queue.prediction[1] > 1.09
    assert long_queue.ratio < any_queue.ratio < short_queue.ratio


def test_downloads_between_two_recorded_sizes_are_interpolated() -> None:
    record = planted()
    slope = 1 + 0.02 * np.log10(record["size_bytes"] / 10_000)
    record["ratio"] = 0.9 * slope * record["ratio"] / record["ratio"].round(2)
    sizes = [10_000, 14_000, 20_000, 22_000, 23_000, 40_000, 50_000]
    ratios = {size: advice_on(record, size_bytes=size).candidates[0].ratio for size in sizes}
    assert list(ratios) == sorted(ratios, key=ratios.__getitem__)
    for size, ratio in ratios.items():
        assert ratio == pytest.approx(0.9 * (1 + 0.02 * np.log10(size / 10_000)), abs=0.001)


def test_between_two_recorded_sizes_the_prediction_holds_those_of_both() -> None:
    for shorter, longer in pairwise(SIZES):
        ends = [advice_on(size_bytes=size).candidates for size in (shorter, longer)]
        between = advice_on(size_bytes=(shorter * longer) ** 0.5).candidates
        for candidate, *end_candidates in zip(between, *ends, strict=True):
            assert candidate.sizes_bytes == [shorter, longer]
            assert candidate.prediction[0] < min(end.prediction[0] for end in end_candidates)
            assert candidate.prediction[1] > max(end.prediction[1] for end in end_candidates)


def test_the_recorded_networks_behind_an_advice_give_its_ratio_again() -> None:
    advice = advice_on()
    of_each = advice.nearest.groupby("controller")["ratio"]
    assert list(advice.nearest) == list(RECORD) and (of_each.size() == NEAR).all()
    for candidate in advice.candidates:
        mean = np.exp(np.log(of_each.get_group(candidate.controller)).mean())
        assert candidate.ratio == pytest.approx(mean)
        assert candidate.sizes_bytes == [advice.size_bytes] == [50_000]
    assert len(advice_on(size_bytes=60_000).nearest) == 2 * 2 * NEAR


def test_networks_are_counted_by_what_virtual_time_is_vouched_for_in_means() -> None:
    for size, margin in {10_000: 0.03, 50_000: 0.06, 1_000_000: 0.06}.items():  # docs/virtual-time.md
        advice = advice_on(size_bytes=size)
        assert advice.margin == margin
        assert all(candidate.margins == [margin] for candidate in advice.candidates)
    assert advice_on(size_bytes=20_000).candidates[0].margins == [0.03, 0.06]


IMPOSSIBLE: list[tuple[dict[str, float], str]] = [
    ({"loss": 2}, "loss = 2: must be 0 or more and below 1"),
    ({"rtt_ms": 0}, "rtt_ms = 0: must be above 0"),
    ({"burst": 0.5}, "burst = 0.5: must be 1 or more"),
    ({"bandwidth_mbps": float("nan")}, "bandwidth_mbps = nan"),
    ({"queue_bdp": -1}, "queue_bdp = -1: must be above 0"),
    ({"loss": 0, "burst": 8}, "burst = 8: must be 1 where loss = 0"),
]


def test_an_impossible_network_is_refused_in_a_line() -> None:
    for wrong, line in IMPOSSIBLE:
        with pytest.raises(BadInput, match=line.replace("(", r"\(")):
            Network(**NETWORK | wrong)
