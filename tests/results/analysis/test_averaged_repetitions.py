"""Statistics over networks that stop where their results decide are of the repetitions that all of them have;
the verdict and the ratio of a single network are of all its repetitions."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from fecbench.results import figures
from fecbench.results.analysis import averages, cards, comparison, deciding, intervals, rules, targets
from fecbench.results.analysis.pairing import comparisons
from fecbench.results.analysis.summary import summary
from fecbench.results.metrics import DEFAULT
from fecbench.results.report.medians import medians_of
from fecbench.results.store.records import CampaignInfo, Workload
from tests.support.campaigns import campaign_info, variants

OFF, ON = "FEC off", "FEC on"
NETWORKS, FIRST, MOST = 40, 20, 40
OVER_NETWORKS = [
    *("average", "ratio", "ratio_low", "ratio_high", "p95_ratio", "p95_low", "p95_high"),
    *("saved", "saved_low", "saved_high", "more_bytes", "more_bytes_low", "more_bytes_high"),
    *("median_ratio", "low", "high", "mean_ratio", "mean_low", "mean_high", "tail_ratio"),
]
SHARES = ("live.on_time_ratio_100ms", "messages.on_time_ratio_100ms")
POINTS: list[dict[str, Any]] = [
    {"owd_ms": 10.0 + point, "bandwidth_mbps": 1.0 + (7 * point) % NETWORKS} for point in range(NETWORKS)
]


def campaign_of(repetitions: int, *, until_decided: bool, statistic: str = "mean") -> CampaignInfo:
    return campaign_info(
        repetitions=repetitions,
        until_decided=until_decided,
        statistic=statistic,
        points=POINTS,
        variants=variants(OFF, ON),
        workloads=[Workload(label="live", name="live", parameters={}, metric=DEFAULT)],
    )


def trials_of(campaign: CampaignInfo) -> pd.DataFrame:
    """Trials of which every other network has the first repetitions alone. FEC helps where the delay is long,
    and does three times as much harm in later repetitions."""
    random = np.random.default_rng(7)
    arm, point, repetition = (
        axis.ravel() for axis in np.meshgrid(range(2), range(NETWORKS), range(MOST), indexing="ij")
    )
    effect = np.where(point < NETWORKS / 2, 1.1, 0.6) * np.where(repetition < FIRST, 1, 3)
    frame = pd.DataFrame(
        {
            "id": np.arange(len(arm)),
            "workload": campaign.workloads[0]["label"],
            "variant": np.array([OFF, ON])[arm],
            "point": point,
            "repetition": repetition,
            "state": "ok",
            DEFAULT: random.lognormal(0, 0.05, len(arm)) * np.where(arm == 1, effect, 1),
            **{name: random.random(len(arm)) / (1 + repetition) for name in SHARES},
            **{name: random.integers(900, 1100, len(arm)) * (1 + repetition) for name in averages.SENT},
        }
    )
    return frame[(frame["repetition"] < FIRST) | (frame["point"] % 2 == 0)].reset_index(drop=True)


def first_of(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[frame["repetition"] < FIRST]


def few(frame: pd.DataFrame) -> pd.DataFrame:
    """Trials of the first networks, for a figure that has a panel for each network."""
    return frame[frame["point"] < 4]


def ratios_of(frame: pd.DataFrame, campaign: CampaignInfo) -> pd.DataFrame:
    return intervals.of_campaign(comparisons(frame, campaign)[ON], campaign)


def explained(frame: pd.DataFrame, campaign: CampaignInfo) -> Iterator[Any]:
    explanation = rules.explain(comparisons(frame, campaign)[ON], campaign)
    yield from (explanation.everywhere, explanation.rules, explanation.left_out, explanation.sentence)
    yield from (explanation.correlations.to_dict(), explanation.importances.to_dict())
    for tables in (explanation.effects, explanation.surfaces):
        yield {name: table.to_dict() for name, table in tables.items()}


def shapes(figure: Figure) -> Iterator[Any]:
    """Yield what the axes of a figure show, without its heading."""
    for axes in figure.axes:
        yield [line.get_xydata().tolist() for line in axes.lines]
        yield [bar.get_height() for bar in axes.patches if hasattr(bar, "get_height")]
        yield [np.ma.getdata(marks.get_array()).tolist() for marks in axes.collections]
        yield [path.vertices.tolist() for marks in axes.collections for path in marks.get_paths()]
        yield [text.get_text() for text in axes.texts]


STATISTICS: dict[str, Callable[[pd.DataFrame, CampaignInfo], Any]] = {
    "comparison": lambda frame, campaign: comparison.of_frame(frame, campaign)[OVER_NETWORKS].to_dict(),
    "summary": lambda frame, campaign: summary(frame, campaign)[
        ["median_dct_s_by_pairs", "median_ratio", "faster", "whole_groups"]
    ].to_dict(),
    "medians": lambda frame, campaign: [
        (medians.groups, medians.table.to_dict())
        for medians in medians_of(frame, campaign, summary(frame, campaign))
    ],
    "shares": lambda frame, campaign: intervals.shares(ratios_of(frame, campaign))[
        ["median", "low", "high"]
    ].to_dict(),
    "counts": lambda frame, campaign: intervals.counts(ratios_of(frame, campaign), 0.02)["ratio"].tolist(),
    "card": lambda frame, campaign: cards.of_pairing(comparisons(frame, campaign)[ON]).split("</td>")[4],
    "rules": lambda frame, campaign: list(explained(frame, campaign)),
    "bars": lambda frame, campaign: list(shapes(figures.bars(figures.table(frame, campaign), campaign))),
    "cells": lambda frame, campaign: list(
        shapes(figures.heat_map(figures.table(frame, campaign), campaign, ON))
    ),
    "pairs": lambda frame, campaign: list(
        shapes(figures.pairs(figures.table(frame, campaign), campaign, ON))
    ),
    "distribution": lambda frame, campaign: list(shapes(figures.ratio_ecdf(frame, campaign))),
    "targets": lambda frame, campaign: targets.verdicts(frame, campaign).to_dict(),
    "usable": lambda frame, campaign: list(shapes(figures.usable_over_targets(few(frame), campaign))),
    "on time": lambda frame, campaign: list(shapes(figures.on_time(frame, campaign))),
    "boxes": lambda frame, campaign: list(shapes(figures.boxes(frame, campaign))),
}


@pytest.mark.parametrize("name", STATISTICS)
def test_a_statistic_over_networks_is_of_the_repetitions_of_the_first_look(name: str) -> None:
    stopping, fixed = campaign_of(MOST, until_decided=True), campaign_of(FIRST, until_decided=False)
    assert stopping.looks == (FIRST, MOST)
    frame = trials_of(stopping)
    statistic = STATISTICS[name]
    expected = statistic(first_of(frame), fixed)
    assert str(statistic(frame, stopping)) == str(expected)
    whole = campaign_of(MOST, until_decided=False)
    assert str(statistic(frame, whole)) != str(expected), "all repetitions say the same: nothing is tested"


@pytest.mark.parametrize("statistic", ["mean", "median"])
def test_verdicts_and_ratios_of_single_networks_are_of_all_their_repetitions(statistic: str) -> None:
    campaign = campaign_of(MOST, until_decided=True, statistic=statistic)
    frame = trials_of(campaign)
    table, of_all = ratios_of(frame, campaign), comparisons(frame, campaign)[ON].ratios
    repeated = intervals.ratio_intervals(comparisons(frame, campaign)[ON], statistic, margins=0.02, looks=2)
    for name in ("ratio", "low", "high", "verdict", "pairs"):
        assert table[name].tolist() == repeated[name].tolist(), name
    assert table["ratio"].tolist() == of_all["ratio"].tolist()
    row = comparison.of_frame(frame, campaign).iloc[0]
    assert (row["helps"], row["harms"]) == tuple(
        (table["verdict"] == word).sum() for word in ("gain", "harm")
    )
    of_first = comparison.of_frame(first_of(frame), campaign).iloc[0]
    assert (row["helps"], of_first["helps"]) == (NETWORKS / 4, NETWORKS / 2)


def test_one_network_has_no_average_and_so_all_its_repetitions() -> None:
    campaign = campaign_info(
        repetitions=MOST, until_decided=True, statistic="mean", points=POINTS[:1], variants=variants(OFF, ON)
    )
    frame = trials_of(campaign).query("point == 0")
    row, there = comparison.of_frame(frame, campaign).iloc[0], ratios_of(frame, campaign).iloc[0]
    assert (row["ratio"], row["ratio_low"]) == pytest.approx((there["ratio"], there["low"]))
    assert there["pairs"] == MOST
    assert deciding.of_averages(campaign) == []


def test_whoever_reads_an_average_is_told_which_repetitions_it_is_of() -> None:
    campaign = campaign_of(MOST, until_decided=True)
    assert deciding.of_averages(campaign) == [
        "Averages over networks are of the first 20 repetitions of each."
    ]
    assert campaign.averaged_heading.endswith(", first 20 repetitions of each network")
    fixed = campaign_of(MOST, until_decided=False)
    assert (deciding.of_averages(fixed), fixed.averaged_heading) == ([], fixed.heading)
