"""Does a prediction interval hold the ratio of a network that is left out? By size, controller and losses."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest

from fecbench.results.advice import Network, advise
from fecbench.results.advice.prediction import Ratios, by_size, intervals
from fecbench.results.advice.record import CONTROLLERS, KINDS, RECORD, by_kind
from fecbench.results.advice.recorded_rows import Rows
from tests.results.advice.planted import planted

FEWEST, MOST = 0.85, 0.95
"""Shares of networks left out. 95 % and more would be wider than need be."""
BASE = [1000, 10_000, 50_000, 200_000, 1_000_000, 5_000_000]
"""The sizes of the design never-harms."""
ARMS = [
    (control, kind, controller)
    for control in ("cubic", "bbr3")
    for kind in KINDS
    for controller in CONTROLLERS.values()
]


TIE = 1e-4
"""Ratios so near to an end of the interval lie at it. Where FEC changes nothing, most are exactly 1: then the
end is 1, too, and more than 95 of 100 are within it or at it."""


@pytest.fixture(scope="module")
def shipped() -> pd.DataFrame:
    return pd.read_parquet(RECORD)


def ratios(record: pd.DataFrame, arm: tuple[str, str, str], *, by_queue: bool = False) -> dict[int, Ratios]:
    control, kind, controller = arm
    rows = by_kind(Rows.of(record), control)[kind]
    return by_size(rows.at(rows["controller"] == controller), by_queue=by_queue)


def held(of_size: Ratios, ends: np.ndarray) -> float:
    """The share of ratios that lie in the interval of their network."""
    return float(np.mean((of_size.logs >= ends[:, 0]) & (of_size.logs <= ends[:, 1])))


def sizes_around(sizes: Iterator[int] | list[int], size: int) -> list[int]:
    """The sizes on either side."""
    return [max(other for other in sizes if other < size), min(other for other in sizes if other > size)]


@pytest.mark.parametrize("by_queue", [False, True])
@pytest.mark.parametrize("arm", ARMS, ids="-".join)
def test_of_100_networks_left_out_the_prediction_holds_85_to_95(
    shipped: pd.DataFrame, arm: tuple[str, str, str], by_queue: bool
) -> None:
    of_sizes = ratios(shipped, arm, by_queue=by_queue)
    assert set(of_sizes) >= {1000, 10_000, 50_000, 200_000, 1_000_000}
    for size, of_size in of_sizes.items():
        assert len(of_size.logs) > 250
        ends = intervals(of_size.places, of_sizes, [size], of_size.networks)
        assert held(of_size, ends) >= FEWEST, size
        assert held(of_size, ends + np.array([TIE, -TIE])) <= MOST, size


def test_that_law_leaves_out_what_advice_of_a_record_without_the_network_leaves_out(
    shipped: pd.DataFrame,
) -> None:
    arm, size = ("cubic", "bursts", "safe"), 50_000
    rows = shipped[shipped["size_bytes"] == size]
    of_size = ratios(rows, arm)[size]
    ends = intervals(of_size.places, {size: of_size}, [size], of_size.networks)[::10]
    of_kind = by_kind(Rows.of(rows), arm[0])[arm[1]].frame()
    numbered = of_kind.drop_duplicates("network").set_index("network")
    for number, (low, high) in zip(of_size.networks[::10], np.exp(ends), strict=True):
        one = numbered.loc[number]
        network = Network(one["rtt_ms"], one["bandwidth_mbps"], one["loss"], size, one["burst"], arm[0])
        others = rows[rows["bandwidth_mbps"] != one["bandwidth_mbps"]]
        prediction = advise(network, others).candidates[0].prediction
        assert prediction == pytest.approx((low, high), abs=0.02)


@pytest.mark.parametrize("arm", ARMS, ids="-".join)
def test_at_a_size_that_is_left_out_the_prediction_holds_85_of_100_networks_left_out(
    shipped: pd.DataFrame, arm: tuple[str, str, str]
) -> None:
    of_sizes = ratios(shipped, arm)
    for size in [*of_sizes][1:-1]:
        of_size = of_sizes[size]
        ends = intervals(of_size.places, of_sizes, sizes_around([*of_sizes], size), of_size.networks)
        assert held(of_size, ends) >= FEWEST, size


def test_what_was_measured_between_the_sizes_of_the_design_is_predicted_without_it(
    shipped: pd.DataFrame,
) -> None:
    count_held = 0
    for arm in ARMS:
        of_sizes = ratios(shipped, arm)
        coarse = {size: of_size for size, of_size in of_sizes.items() if size in BASE}
        for size in of_sizes.keys() - coarse.keys():
            of_size = of_sizes[size]
            ends = intervals(of_size.places, coarse, sizes_around([*coarse], size), of_size.networks)
            assert held(of_size, ends) >= FEWEST, (arm, size)
            count_held += 1
    assert count_held >= 2 * 6


def test_the_interval_of_the_mean_is_none_of_a_network(shipped: pd.DataFrame) -> None:
    one = shipped[shipped["size_bytes"] == 50_000].iloc[0]
    network = Network(one["rtt_ms"], one["bandwidth_mbps"], one["loss"], 50_000, one["burst"])
    for candidate in advise(network, shipped).candidates:
        assert candidate.prediction[0] < candidate.interval[0]
        assert candidate.prediction[1] > candidate.interval[1]


def test_networks_that_differ_by_nothing_but_noise_are_predicted_by_its_quantiles() -> None:
    record = planted()
    random = np.random.default_rng(3)
    record["ratio"] = np.exp(random.normal(-0.1, 0.02, len(record)))
    candidate = advise(Network(80, 20, 0.02, 50_000), record).candidates[0]
    assert np.log(candidate.prediction) == pytest.approx(-0.1 + 0.02 * np.array([-1.645, 1.645]), abs=0.015)


def test_a_size_at_which_networks_are_harmed_makes_predictions_between_others_wider() -> None:
    record = planted()
    sizes = [10_000, 20_000, 50_000, 100_000, 1_000_000]
    parts = [record[record["size_bytes"] == 10_000].assign(size_bytes=size) for size in sizes]
    flat = pd.concat(parts, ignore_index=True)
    band = flat.assign(ratio=flat["ratio"].mask(flat["size_bytes"] == 50_000, 1.1 * flat["ratio"]))
    for size, is_wider in ((30_000, True), (70_000, True), (300_000, False)):
        flat_high, band_high = (
            advise(Network(80, 20, 0.02, size), which).candidates[0].prediction[1] for which in (flat, band)
        )
        # What 50 kB has counts in full beside it, and what it would take to predict it, by the gap.
        assert (band_high > 1.1 * flat_high) if is_wider else band_high == pytest.approx(flat_high), size
