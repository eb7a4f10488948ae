"""The summary says of each workload and variant what its trials show."""

import math
import statistics
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings

from fecbench.results import metrics
from fecbench.results.analysis import frames
from fecbench.results.analysis.pairing import paired
from fecbench.results.analysis.summary import summary
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo
from tests.results.analysis.outcomes import (
    KEYS,
    OFF,
    POINTS,
    VARIANTS,
    WORKLOADS,
    XOR,
    Outcomes,
    frame_with,
    outcomes,
)

MORE = "competition.foreground_mbps"
SHARE = "messages.on_time_ratio_100ms"
Filled = Callable[..., tuple[Database, CampaignInfo]]


def test_a_summary_has_a_row_for_each_workload_and_variant_of_the_design(filled: Filled) -> None:
    _, campaign = filled({})

    @settings(max_examples=20, deadline=None)
    @given(outcomes=outcomes)
    def law(outcomes: Outcomes) -> None:
        frame = frame_with(outcomes)
        rows = list(summary(frame, campaign).itertuples(index=False))
        assert [(row.workload, row.variant) for row in rows] == list(product(WORKLOADS, VARIANTS))
        pairing = paired(frame, OFF, XOR)
        ratios = pairing.ratios
        for row in rows:
            run = [outcomes[k] for k in outcomes if (k.workload, k.variant) == (row.workload, row.variant)]
            ok = [dct_s for state, dct_s in run if state == "ok"]
            assert (row.trials, row.ok) == (len(run), len(ok))
            whole = values_in_whole_groups(outcomes, row.workload, row.variant)
            assert row.whole_groups == len(whole)
            medians = {
                variant: statistics.median(
                    values_in_whole_groups(outcomes, row.workload, variant) or [math.nan]
                )
                for variant in VARIANTS
            }
            median = medians[row.variant]
            if not math.isnan(row.median_ratio) and math.isfinite(medians[OFF]):
                median = medians[OFF] * row.median_ratio
            assert row.median_dct_s_by_pairs == pytest.approx(median, nan_ok=True)
            compared = ratios[(ratios["workload"] == row.workload) & (row.variant == XOR)]["ratio"].tolist()
            assert row.points == len(compared)
            assert row.planned_points == (len(POINTS) if row.variant == XOR else 0)
            if compared and 0 not in compared:
                assert row.median_ratio == pytest.approx(statistics.median(compared))
            decided = pairing.decided[(pairing.decided["workload"] == row.workload) & (row.variant == XOR)]
            assert row.compared_points == len(decided) >= row.points
            if len(decided):
                assert row.faster * len(decided) == pytest.approx(decided["faster"].sum())

    law()


def values_in_whole_groups(outcomes: Outcomes, workload: str, variant: str) -> list[float]:
    """The values of a variant, ∞ where it failed or timed out, in the repetitions in which every variant is
    ok, failed or timed out that ever is."""
    ok = {
        key: value if state == "ok" else math.inf
        for key, (state, value) in outcomes.items()
        if state in ("ok", "failed", "timeout") and key.workload == workload
    }
    variants = {key.variant for key in ok}
    return [
        value
        for key, value in ok.items()
        if key.variant == variant and all(replace(key, variant=other) in ok for other in variants)
    ]


def compared_by(campaign: CampaignInfo, *names: str) -> CampaignInfo:
    """The campaign with these metrics compared, one a workload."""
    workloads = [
        {**workload, "metric": name} for workload, name in zip(campaign.workloads, names, strict=True)
    ]
    return replace(campaign, workloads=workloads)


COMPARED: list[tuple[str, str]] = [
    ("server.packets_sent", "server.packets_sent"),
    (metrics.DEFAULT, MORE),
    (MORE, metrics.DEFAULT),
]


def test_a_summary_names_the_metric_where_it_is_not_the_default_of_all_workloads(filled: Filled) -> None:
    for names in COMPARED:
        database, campaign = filled({key: ("ok", 1.0 + key.repetition) for key in KEYS})
        medians = {metrics.DEFAULT: 2.0, "server.packets_sent": 7.0, MORE: math.nan}
        table = summary(frames.trials(database, campaign), compared_by(campaign, *names))
        assert table["metric"].tolist() == [name for name in names for _ in VARIANTS], names
        expected = [medians[name] for name in table["metric"]]
        assert table["median_by_pairs"].tolist() == pytest.approx(expected, nan_ok=True), names
        assert not any("dct_s" in column for column in table), names


def test_a_summary_of_the_default_metric_names_its_median_by_whether_it_is_of_one_network(
    filled: Filled,
) -> None:
    for points, median in ((1, "median_dct_s"), (2, "median_dct_s_by_pairs")):
        _, campaign = filled({}, points=[{"owd_ms": n} for n in range(points)])
        columns = (
            f"workload variant trials ok {median} points planned_points median_ratio compared_points faster"
            " whole_groups compared_with"
        )
        assert list(summary(frame_with({}), campaign)) == columns.split(), points


def test_more_of_a_metric_that_should_be_more_is_better(filled: Filled) -> None:
    _, campaign = filled({})
    frame = frame_with({key: ("ok", 1.0 + (key.variant == XOR)) for key in KEYS}, MORE)
    table = summary(frame, metrics.choose(campaign, MORE)).query("variant == @XOR")
    assert table["median_ratio"].tolist() == [2.0, 2.0]
    assert table["faster"].tolist() == [1.0, 1.0]


def test_no_share_is_above_1(filled: Filled) -> None:
    """The baseline's median is 1, and the variant's mean is 1.34 times the baseline's at each point."""
    _, campaign = filled({}, statistic="mean")
    of_repetitions = {OFF: (0.01, 1.0, 1.0), XOR: (0.9, 0.9, 0.9)}
    frame = frame_with({key: ("ok", of_repetitions[key.variant][key.repetition]) for key in KEYS}, SHARE)
    table = summary(frame, metrics.choose(campaign, SHARE))
    assert table["median_by_pairs"].tolist() == [1.0, 0.9, 1.0, 0.9]
