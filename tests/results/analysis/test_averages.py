"""Laws of the one ratio over networks, of time saved, and of bytes sent."""

import math

import numpy as np
import pandas as pd
import pytest

from fecbench.results.analysis import averages
from fecbench.results.analysis.averages import average_of, more_bytes, ratio_over, saved
from fecbench.results.analysis.intervals import mean_ratio_interval, median_ratio_interval

RANDOM = np.random.default_rng(3)


def ratios_of(logs: np.ndarray, workloads: int = 1) -> pd.DataFrame:
    """Ratios of points, each on so many workloads."""
    return pd.DataFrame(
        {
            "point": np.tile(np.arange(len(logs) // workloads), workloads),
            "ratio": np.exp(logs),
            "censored": False,
        }
    )


def test_it_is_the_mean_of_a_design_that_compares_means_and_else_the_median() -> None:
    rows = ratios_of(RANDOM.normal(0, 0.3, 40))
    assert (average_of(rows, "mean"), average_of(rows, "median"), average_of(rows, "p95")) == (
        "mean",
        "median",
        "median",
    )
    for average, reference in (
        ("mean", mean_ratio_interval(rows)),
        ("median", median_ratio_interval(rows, rows["point"])),
    ):
        over = ratio_over(rows, rows["point"], average)  # type: ignore[arg-type]
        assert (over.value, over.low, over.high) == pytest.approx(reference), average


@pytest.mark.parametrize("average", ["mean", "median"])
def test_averages_of_groups_are_those_of_each_group_alone(average: averages.Average) -> None:
    rows = ratios_of(RANDOM.normal(0, 0.3, 60)).assign(cell=RANDOM.integers(0, 7, 60))
    if average == "median":
        rows.loc[rows["cell"] == 3, ["ratio", "censored"]] = [0.0, True]
        rows.loc[rows["cell"] == 4, ["ratio", "censored"]] = [math.inf, True]
    together = averages.averages_of(rows, ["cell"], average)
    assert len(together) == 7
    for cell, of_cell in rows.groupby("cell"):
        assert together[cell] == pytest.approx(
            ratio_over(of_cell, of_cell["point"], average).value, rel=1e-14
        )


def test_a_trial_without_an_end_leaves_the_median() -> None:
    rows = ratios_of(RANDOM.normal(0, 0.3, 40))
    rows.loc[0, ["ratio", "censored"]] = [math.inf, True]
    assert average_of(rows, "mean") == "median"
    assert math.isfinite(ratio_over(rows, rows["point"], "median").value)


def test_workloads_of_a_network_are_no_independent_samples() -> None:
    logs = RANDOM.normal(0, 0.3, 20)
    once, twice = ratios_of(logs), ratios_of(np.tile(logs, 2), workloads=2)
    first, second = (ratio_over(rows, rows["point"], "mean") for rows in (once, twice))
    assert (first.low, first.high) == pytest.approx((second.low, second.high))


@pytest.mark.parametrize("average", ["mean", "median"])
def test_exchanged_arms_have_the_inverse_ratio_and_save_what_the_other_costs(
    average: averages.Average,
) -> None:
    baseline, variant = np.exp(RANDOM.normal(0, 0.3, (2, 41)))
    one = pd.DataFrame({"point": range(41), "baseline": baseline, "variant": variant})
    other = one.rename(columns={"baseline": "variant", "variant": "baseline"})
    ratios = [rows.assign(ratio=rows["variant"] / rows["baseline"], censored=False) for rows in (one, other)]
    first, second = (ratio_over(rows, rows["point"], average) for rows in ratios)
    assert (first.value, first.low, first.high) == pytest.approx(
        (1 / second.value, 1 / second.high, 1 / second.low)
    )
    gained, lost = (saved(rows, rows, "mean", average, one_network=False) for rows in (one, other))
    assert (gained.value, gained.low, gained.high) == pytest.approx((-lost.value, -lost.high, -lost.low))


def test_too_few_networks_have_no_interval() -> None:
    rows = ratios_of(np.zeros(5))
    assert math.isnan(ratio_over(rows, rows["point"], "mean").low)
    assert math.isnan(ratio_over(rows, rows["point"], "median").low)


def test_bytes_are_those_of_both_endpoints_in_trials_that_both_arms_ended() -> None:
    rows = [
        {"workload": "w", "variant": arm, "point": point, "repetition": n, "state": "ok"}
        | {"client.bytes_sent": 100.0, "server.bytes_sent": 900.0 + (arm == "fec") * 200}
        for arm in ("off", "fec")
        for point in range(8)
        for n in range(3)
    ]
    frame = pd.DataFrame(rows)
    share = more_bytes(frame, "w", "fec", "off", one_network=False)
    assert (share.value, share.low, share.high) == pytest.approx((0.2, 0.2, 0.2))
    frame.loc[(frame["variant"] == "off") & (frame["repetition"] == 0), ["state", "server.bytes_sent"]] = [
        "timeout",
        9e9,
    ]
    assert more_bytes(frame, "w", "fec", "off", one_network=False).value == pytest.approx(0.2)
    uncounted = frame.drop(columns="client.bytes_sent")
    assert math.isnan(more_bytes(uncounted, "w", "fec", "off", one_network=False).value)
