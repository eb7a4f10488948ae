"""Margins in virtual time are never below what a cross-check vouches for, by the same tolerances."""

import math
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from fecbench.results.analysis import tolerances
from fecbench.results.analysis.margins import margins_of, of_points
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo
from tests.results.analysis.twin_campaigns import ON_TIME, Laboratory


@pytest.fixture
def campaign(tmp_path: Path) -> CampaignInfo:
    with Database.open(str(tmp_path / "x.sqlite"), create=True) as database:
        Laboratory(database).compare()
        margin = database.campaign("x")
        assert margin is not None
        return replace(margin, margin=0.0)


def margin(campaign: CampaignInfo, size_bytes: int = 1000, metric: str = "client.dct_s") -> float:
    (workload,) = campaign.workloads
    changed = {**workload, "parameters": {"size_bytes": size_bytes}, "metric": metric}
    (only_margin,) = margins_of(replace(campaign, workloads=[changed])).values()  # type: ignore[list-item]
    return only_margin


def test_the_least_margin_in_virtual_time_is_the_tolerance_of_a_ratio(campaign: CampaignInfo) -> None:
    assert margin(campaign, 10_000) == tolerances.SHORT_RATIO.above == 0.01
    assert margin(campaign, 10_001) == tolerances.OTHER.above == 0.04
    assert margin(campaign, metric=ON_TIME) == tolerances.SHARE.above == 0.005


def test_a_difference_of_shares_is_more_of_a_small_one(campaign: CampaignInfo) -> None:
    """Half a percentage point is 0.5 % where all are on time, and 5 % where a tenth is."""
    (workload,) = campaign.workloads
    of_messages = replace(campaign, workloads=[{**workload, "metric": ON_TIME}])
    rows = pd.DataFrame({"workload": workload["label"], "metric": ON_TIME, "baseline": [1.0, 0.1, 0.0]})
    assert list(of_points(rows, of_messages)) == [0.005, pytest.approx(0.05), math.inf]
    assert list(of_points(rows, replace(of_messages, margin=0.02))) == [0.02, pytest.approx(0.05), math.inf]
    emulated = replace(of_messages, provenance={"engine": "local"}, margin=0.02)
    assert list(of_points(rows, emulated)) == [0.02, 0.02, 0.02]


@pytest.mark.parametrize(("statistic", "short", "other"), [("mean", 0.03, 0.06), ("p95", 0.06, 0.09)])
def test_means_are_vouched_for_less_and_tails_still_less(
    campaign: CampaignInfo, statistic: str, short: float, other: float
) -> None:
    of_statistic = replace(campaign, statistic=statistic)
    assert margin(of_statistic, 10_000) == pytest.approx(short)
    assert margin(of_statistic, 10_001) == pytest.approx(other)
    assert margin(of_statistic, metric=ON_TIME) == 0.005


def test_a_greater_margin_of_the_design_stands(campaign: CampaignInfo) -> None:
    assert margin(replace(campaign, margin=0.05), 10_001) == 0.05


def test_emulated_campaigns_have_the_margin_of_their_design(campaign: CampaignInfo) -> None:
    emulated = replace(campaign, provenance={"engine": "local"}, margin=0.001)
    assert margin(emulated, 10_001) == 0.001


def test_where_points_differ_in_size_each_has_the_margin_of_its_own(campaign: CampaignInfo) -> None:
    """A size that the workload sets itself goes before that of a point."""
    (workload,) = campaign.workloads
    without = {**workload, "parameters": {}, "metric": "client.dct_s"}
    points = [{"workload.size_bytes": 10_000}, {"workload.size_bytes": 10_001}]
    of_rows = {"workload": workload["label"], "metric": "client.dct_s", "baseline": 1.0}
    rows = pd.DataFrame({**of_rows, "point": [1, 0]})
    of_sizes = replace(campaign, points=points, workloads=[without], statistic="mean")  # type: ignore[list-item]
    assert list(of_points(rows, of_sizes)) == [pytest.approx(0.06), pytest.approx(0.03)]
    itself = {**without, "parameters": {"size_bytes": 1_000}}
    of_short = replace(of_sizes, workloads=[itself])  # type: ignore[list-item]
    assert list(of_points(rows, of_short)) == [pytest.approx(0.03)] * 2
    assert list(of_points(rows, replace(of_sizes, provenance={}, margin=0.02))) == [0.02, 0.02]
