"""Laws of a comparison: each point is counted once, exchanged variants have exchanged counts, and no margin
is below the accuracy of the engine."""

import dataclasses
import json
import math

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from fecbench.designs.design import Design
from fecbench.results.analysis import averages, comparison
from fecbench.results.analysis.intervals import mean_ratio_interval, of_campaign
from fecbench.results.analysis.margins import below, margins_of, margins_text
from fecbench.results.analysis.pairing import comparisons
from fecbench.results.metrics import DEFAULT
from fecbench.results.store.records import DEFAULT_MARGIN, CampaignInfo, Workload
from tests.support.campaigns import campaign_info, variants

OFF, ON = "FEC off", "FEC on"
SHORT, LONG = "download-10000", "download-50000"

Floats = NDArray[np.float64]


def campaign_of(
    points: int, repetitions: int, engine: str = "emulated", margin: float = 0.02
) -> CampaignInfo:
    return campaign_info(
        repetitions=repetitions,
        provenance={"engine": engine},
        points=[{"owd_ms": 10.0 + point} for point in range(points)],
        variants=variants(OFF, ON),
        workloads=[
            Workload(label=label, name="download", parameters={"size_bytes": int(label[9:])}, metric=DEFAULT)
            for label in (SHORT, LONG)
        ],
        margin=margin,
    )


def frame_of(baseline: Floats, variant: Floats) -> pd.DataFrame:
    """Trials of two arms, each points × repetitions, the same on both workloads; ∞ is a timeout."""
    points, repetitions = baseline.shape
    arms = [(workload, arm) for workload in (SHORT, LONG) for arm in (OFF, ON)]
    values = np.concatenate([(variant if arm == ON else baseline).ravel() for _, arm in arms])
    return pd.DataFrame(
        {
            "workload": np.repeat([workload for workload, _ in arms], points * repetitions),
            "variant": np.repeat([arm for _, arm in arms], points * repetitions),
            "point": np.tile(np.repeat(np.arange(points), repetitions), 4),
            "repetition": np.tile(np.arange(repetitions), 4 * points),
            "state": np.where(np.isinf(values), "timeout", "ok"),
            DEFAULT: np.where(np.isinf(values), math.nan, values),
        }
    )


def rows_of(
    baseline: Floats, variant: Floats, engine: str = "emulated", margin: float = 0.02
) -> pd.DataFrame:
    campaign = campaign_of(*baseline.shape, engine, margin)  # type: ignore[call-arg]
    return comparison.of_frame(frame_of(baseline, variant), campaign).set_index("workload")


def steady(ratios: list[float], repetitions: int = 8) -> tuple[Floats, Floats]:
    """Arms without spread whose ratios at the points are these."""
    baseline = np.ones((len(ratios), repetitions))
    return baseline, baseline * np.array(ratios)[:, np.newaxis]


def test_each_verdict_is_counted_where_it_was_planted() -> None:
    row = rows_of(*steady([0.5, 0.97, 0.985, 1.0, 1.019, 1.03, 1.5])).loc[LONG]
    assert row[list(comparison.COUNTS)].tolist() == [2, 2, 3, 0]
    assert (row["points"], row["planned_points"], row["margin"]) == (7, 7, 0.02)
    assert row["median_ratio"] == 1.0


def test_what_is_saved_counts_the_networks_whose_baseline_is_0() -> None:
    """Equal arms would surely save without these: where the baseline is 0, a variant can only be worse."""
    random = np.random.default_rng(7)
    stalls = [random.exponential(1, (200, 6)) * (random.random((200, 6)) < 0.2) for _ in range(2)]
    campaign = dataclasses.replace(campaign_of(200, 6), statistic="mean")
    row = comparison.of_frame(frame_of(*stalls), campaign).set_index("workload").loc[LONG]
    saved = stalls[0].mean(axis=1) - stalls[1].mean(axis=1)
    assert row["points"] == (stalls[0] > 0).any(axis=1).sum() < 160
    assert (row["average"], row["saved"]) == ("median", pytest.approx(np.median(saved)))
    assert row["saved_low"] <= 0 <= row["saved_high"]


def test_the_first_network_of_several_has_no_interval_over_networks() -> None:
    baseline, variant = np.random.default_rng(8).lognormal(0, 0.1, (2, 1, 12))
    several = dataclasses.replace(campaign_of(3, 12), statistic="mean")
    frame = frame_of(baseline, variant).assign(**dict.fromkeys(averages.SENT, 1000.0))
    names = ["ratio", "p95", "saved", "more_bytes"]
    one = dataclasses.replace(several, points=several.points[:1])
    for campaign, has_interval in ((several, False), (one, True)):
        row = comparison.of_frame(frame, campaign).set_index("workload").loc[LONG]
        with_interval = [name for name in names if not math.isnan(row[f"{name}_low"])]
        assert with_interval == (["ratio", "saved", "more_bytes"] if has_interval else [])
        assert row["saved"] == pytest.approx((baseline - variant).mean())


def test_a_wider_margin_leaves_fewer_effects() -> None:
    for margin, counts in ((0.0, [1, 1, 1, 0]), (0.01, [1, 1, 1, 0]), (0.04, [0, 0, 3, 0])):
        row = rows_of(*steady([0.97, 1.0, 1.03]), margin=margin).loc[LONG]
        assert row[list(comparison.COUNTS)].tolist() == counts, margin


def test_exchanged_variants_have_exchanged_counts() -> None:
    random = np.random.default_rng(3)
    shape = (200, 9)
    baseline = random.lognormal(0, 0.01, shape)
    variant = random.lognormal(0, 0.01, shape) * random.choice([0.9, 0.98, 1.0, 1.02, 1.1], (200, 1))
    there, back = (rows_of(*arms).loc[LONG] for arms in ((baseline, variant), (variant, baseline)))
    for one, other in (
        ("helps", "harms"),
        ("harms", "helps"),
        *((same, same) for same in comparison.COUNTS[2:]),
    ):
        # The middle of an even number of resamples is no value of theirs, so an end may move by a hair.
        assert there[one] == pytest.approx(back[other], abs=3)
    assert there["median_ratio"] * back["median_ratio"] == pytest.approx(1)
    assert min(there[list(comparison.COUNTS)]) > 10


def test_each_point_with_a_ratio_is_in_one_count() -> None:
    random = np.random.default_rng(4)
    for repetitions in (1, 5, 6, 12):
        arms = [random.lognormal(0, 0.2, (30, repetitions)) for _ in range(2)]
        arms[1][random.random(arms[1].shape) < 0.3] = math.inf
        table = rows_of(*arms)
        assert (table[list(comparison.COUNTS)].sum(axis=1) == table["points"]).all()
        if repetitions < 6:
            assert (table["undecided"] == table["points"]).all()


def test_a_variant_slower_by_the_margin_is_seldom_called_equivalent() -> None:
    random = np.random.default_rng(5)
    baseline, variant = (random.lognormal(0, 0.01, (2000, 12)) for _ in range(2))
    for at_edge in (1.02, 1 / 1.02):
        assert rows_of(baseline, at_edge * variant).loc[LONG, "equivalent"] <= 0.05 * 2000
    assert rows_of(baseline, variant).loc[LONG, "equivalent"] > 0.8 * 2000


def test_what_differs_by_less_than_the_margin_is_seldom_called_an_effect() -> None:
    random = np.random.default_rng(6)
    baseline, variant = (random.lognormal(0, 0.05, (2000, 12)) for _ in range(2))
    row = rows_of(baseline, 1.02 * variant).loc[LONG]
    assert row["harms"] <= 0.05 * 2000
    assert row["harms_discovered"] <= row["harms"]
    assert row["by_chance"] == pytest.approx(0.05 * 2000)


def test_in_virtual_time_no_margin_is_below_what_it_is_true_to() -> None:
    tight = campaign_of(1, 1, "virtual", margin=0.001)
    assert margins_of(tight) == {SHORT: 0.01, LONG: 0.04}
    assert margins_of(campaign_of(1, 1, "virtual", margin=0.1)) == {SHORT: 0.1, LONG: 0.1}
    assert margins_of(campaign_of(1, 1, "emulated", margin=0.001)) == {SHORT: 0.001, LONG: 0.001}
    assert margins_text(campaign_of(1, 1)) == "2 %"
    assert margins_text(tight) == f"1 % for {SHORT}, 4 % for {LONG}"
    assert "0.1 % is asked for" in below(tight) and below(campaign_of(1, 1)) == ""
    table = rows_of(*steady([0.98, 1.02]), "virtual", 0.0)
    assert table.loc[SHORT, list(comparison.COUNTS)].tolist() == [1, 1, 0, 0]
    assert table.loc[LONG, list(comparison.COUNTS)].tolist() == [0, 0, 2, 0]


def test_the_tail_is_the_bad_end_of_networks_and_of_repetitions() -> None:
    baseline, variant = steady([0.8] * 19 + [3.0], repetitions=20)
    assert rows_of(baseline, variant).loc[LONG, "tail_ratio"] == pytest.approx(0.8)  # 95 % of 20 are 19
    baseline, variant = steady([0.8] * 18 + [3.0, 4.0], repetitions=20)
    assert rows_of(baseline, variant).loc[LONG, "tail_ratio"] == pytest.approx(3.0)
    variant[:, -2:] = 10 * baseline[:, -2:]  # two repetitions of twenty
    row = rows_of(baseline, variant).loc[LONG]
    assert (row["median_ratio"], row["p95_ratio"]) == (pytest.approx(0.8), pytest.approx(10))
    few = rows_of(*steady([0.8] * 19)).loc[LONG]
    assert math.isnan(few["tail_ratio"])
    assert math.isnan(few["p95_ratio"])


def test_its_document_is_json_without_nan() -> None:
    table = rows_of(*steady([0.5, 1.0, math.inf], 6)).reset_index()
    rows = json.loads(json.dumps(comparison.document(table), allow_nan=False))
    assert [row["workload"] for row in rows] == [SHORT, LONG]
    (row, _) = rows
    assert (row["helps"], row["harms"], row["equivalent"], row["undecided"]) == (1, 1, 1, 0)
    assert (row["variant"], row["baseline"], row["margin"]) == (ON, OFF, 0.02)
    assert (row["median_ratio"], row["interval"], row["tail_ratio"]) == (1.0, None, None)


def test_a_design_and_its_campaign_have_the_same_margin_when_none_is_given() -> None:
    assert Design.model_fields["margin"].default == DEFAULT_MARGIN
    assert {field.name: field.default for field in dataclasses.fields(CampaignInfo)}[
        "margin"
    ] == DEFAULT_MARGIN


def test_the_interval_of_one_network_is_that_of_its_ratio_over_repetitions() -> None:
    campaign = campaign_of(points=1, repetitions=20)
    random = np.random.default_rng(7)
    baseline, variant = (mean + random.random((1, 20)) for mean in (2.0, 1.5))
    frame = frame_of(baseline, variant)
    row = comparison.of_frame(frame, campaign).iloc[0]
    there = of_campaign(comparisons(frame, campaign)[ON], campaign).iloc[0]
    assert there["low"] < row["median_ratio"] < there["high"]
    assert (row["low"], row["high"]) == (there["low"], there["high"])


def test_all_intervals_of_one_network_are_wider_where_several_looks_may_have_ended_it() -> None:
    once = dataclasses.replace(campaign_of(points=1, repetitions=320), statistic="mean")
    baseline, variant = 1 + np.random.default_rng(3).random((2, 1, 320))
    frame = frame_of(baseline, variant)
    frame[list(averages.SENT)] = np.random.default_rng(4).integers(900, 1100, (len(frame), 2))
    often = dataclasses.replace(once, until_decided=True)
    assert len(often.looks) == 5
    rows = [comparison.of_frame(frame, campaign).iloc[0] for campaign in (once, often)]
    for name in ("ratio", "p95", "saved", "more_bytes"):
        ((low, high), (lower, higher)) = ((row[f"{name}_low"], row[f"{name}_high"]) for row in rows)
        assert lower < low < high < higher, name


def test_the_interval_of_the_mean_ratio_holds_that_of_all_networks() -> None:
    # Networks whose log ratios are normal, 40 a campaign: of 400 campaigns, 95 % hold the mean 0.9.
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(400):
        logs = math.log(0.9) + 0.1 * rng.standard_normal(40)
        mean, low, high = mean_ratio_interval(pd.DataFrame({"ratio": np.exp(logs), "censored": False}))
        assert mean == pytest.approx(math.exp(logs.mean()))
        hits += low <= 0.9 <= high
    assert 369 <= hits <= 391


def test_a_network_without_a_finite_ratio_leaves_no_mean() -> None:
    rows = pd.DataFrame({"ratio": [0.5, 0.6, 0.7, 0.8, 0.9, math.inf], "censored": [False] * 5 + [True]})
    assert all(math.isnan(value) for value in mean_ratio_interval(rows))
    few = mean_ratio_interval(rows[:5])
    assert few[0] == pytest.approx((0.5 * 0.6 * 0.7 * 0.8 * 0.9) ** 0.2)
    assert math.isnan(few[1])
