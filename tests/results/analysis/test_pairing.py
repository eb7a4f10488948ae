"""A comparison holds only what both variants finished, and a timeout is worse than whatever did not."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from itertools import product

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from results import metrics
from results.analysis import frames
from results.analysis.pairing import baseline_of, comparisons, left_out, paired
from results.store.database import Database
from results.store.records import CampaignInfo, TrialKey, TrialRecord, Variant
from tests.results.analysis.outcomes import (
    KEYS,
    OFF,
    POINTS,
    REPETITIONS,
    VARIANTS,
    WORKLOADS,
    XOR,
    Outcomes,
    frame_with,
    outcomes,
)

Filled = Callable[..., tuple[Database, CampaignInfo]]
Make = Callable[..., TrialRecord]


@settings(max_examples=100, deadline=None)
@given(outcomes=outcomes, statistic=st.sampled_from(["median", "mean"]))
def test_a_ratio_compares_the_repetitions_that_are_ok_in_both_variants_and_no_other(
    outcomes: Outcomes, statistic: str
) -> None:
    pairing = paired(frame_with(outcomes), OFF, XOR, statistic=statistic)
    expected = {}
    left_out = 0
    for workload, point in product(WORKLOADS, POINTS):
        arms: dict[str, list[float]] = {OFF: [], XOR: []}
        for repetition in REPETITIONS:
            pair = {v: outcomes.get(TrialKey(v, workload, point, repetition)) for v in VARIANTS}
            if all(found is not None and found[0] == "ok" for found in pair.values()):
                for variant, found in pair.items():
                    assert found is not None
                    arms[variant].append(found[1])
            elif any(pair.values()):
                left_out += 1
        if arms[OFF]:
            value = getattr(statistics, statistic)
            expected[workload, point] = (len(arms[OFF]), value(arms[XOR]) / value(arms[OFF]))
    ratios = pairing.ratios
    found = dict(
        zip(
            zip(ratios["workload"], ratios["point"], strict=True),
            zip(ratios["pairs"], ratios["ratio"], strict=True),
            strict=True,
        )
    )
    assert found.keys() == expected.keys()
    for key, (pairs, ratio) in expected.items():
        assert found[key] == (pairs, pytest.approx(ratio))
    assert pairing.unpaired["repetitions"].sum() == left_out
    assert len(pairing.matched) + left_out <= len(KEYS) / 2


@settings(max_examples=100, deadline=None)
@given(outcomes=outcomes, statistic=st.sampled_from(["median", "mean"]))
def test_a_point_is_decided_by_what_took_longer_and_a_timeout_is_longer_than_any_time(
    outcomes: Outcomes, statistic: str
) -> None:
    pairing = paired(frame_with(outcomes), OFF, XOR, statistic=statistic)
    decided = {(row.workload, row.point): row for row in pairing.decided.itertuples()}
    timeouts = {(row.workload, row.point): row.timeouts for row in pairing.ratios.itertuples()}
    for place in product(WORKLOADS, POINTS):
        taken: list[tuple[float, float]] = []
        alone = [0, 0]
        for repetition in REPETITIONS:
            pair = [outcomes.get(TrialKey(v, *place, repetition), ("not run", 0.0)) for v in VARIANTS]
            states = tuple(state for state, _ in pair)
            if states in {("ok", "ok"), ("ok", "timeout"), ("timeout", "ok")}:
                first, second = (1e9 if state == "timeout" else dct_s for state, dct_s in pair)
                taken.append((first, second))
                alone[0] += states[0] == "timeout"
                alone[1] += states[1] == "timeout"
        assert (place in decided) == bool(taken)
        if taken:
            row = decided[place]
            off, xor = (getattr(statistics, statistic)(times) for times in zip(*taken, strict=True))
            assert [row.baseline_timeouts, row.variant_timeouts] == alone
            assert timeouts.get(place, sum(alone)) == sum(alone)
            # As many timeouts in both arms say nothing by the mean: which of them is longer is not known.
            assert row.faster == (xor < off and not (min(off, xor) > 1e8))


@settings(max_examples=100, deadline=None)
@given(outcomes=outcomes)
def test_swapping_the_arms_inverts_every_ratio(outcomes: Outcomes) -> None:
    frame = frame_with(outcomes)
    there, back = (paired(frame, *arms).ratios for arms in ((OFF, XOR), (XOR, OFF)))
    assert (there["ratio"] * back["ratio"]).tolist() == pytest.approx([1] * len(there))


def test_what_is_left_out_is_counted_with_its_reason(filled: Filled, make: Make) -> None:
    def key(variant: str, repetition: int) -> TrialKey:
        return TrialKey(variant, "download-10000", 0, repetition)

    database, campaign = filled(
        {
            key(OFF, 0): ("ok", 1.0),
            key(XOR, 0): ("ok", 2.0),
            key(OFF, 1): ("ok", 1.0),
            key(XOR, 1): ("timeout", 60.0),
            key(OFF, 2): ("invalid", 1.0),
            key(OFF, 3): ("ok", 1.0),
        }
    )
    database.record(campaign.id, make(key=key(XOR, 3), metrics={"client": {"handshake_s": 0.1}}))
    pairing = paired(frames.trials(database, campaign), OFF, XOR)
    assert pairing.ratios["pairs"].tolist() == [1]
    assert dict(zip(pairing.unpaired["reason"], pairing.unpaired["repetitions"], strict=True)) == {
        "rquic-xor: timeout": 1,
        "rquic-off: invalid; rquic-xor: not run": 1,
        "rquic-xor: no client.dct_s": 1,
    }


def test_nothing_is_left_out_of_a_whole_campaign(filled: Filled) -> None:
    database, campaign = filled(dict.fromkeys(KEYS, ("ok", 1.0)), repetitions=len(REPETITIONS))
    frame = frames.trials(database, campaign)
    assert left_out(paired(frame, OFF, XOR), campaign, OFF, XOR) == ""
    some = paired(frame.drop(index=0), OFF, XOR)
    assert left_out(some, campaign, OFF, XOR) == (
        "Of 12 planned pairs of rquic-xor and rquic-off, 11 have a ratio."
    )


def test_a_point_at_which_the_baseline_is_0_has_no_ratio_and_says_so() -> None:
    times = {OFF: {0: (0, 0, 3), 1: (0, 2, 4)}, XOR: {0: (1, 1, 1), 1: (1, 1, 1)}}
    frame = frame_with(
        {
            TrialKey(variant, "download-10000", point, n): ("ok", float(value))
            for variant, of_points in times.items()
            for point, values in of_points.items()
            for n, value in enumerate(values)
        }
    )
    pairing = paired(frame, OFF, XOR)
    assert pairing.ratios[["point", "pairs", "ratio"]].to_numpy().tolist() == [[1, 3, 0.5]]
    assert pairing.matched["ratio"].dropna().tolist() == [0.5, 0.25]
    assert pairing.unpaired[["reason", "repetitions"]].to_numpy().tolist() == [
        ["rquic-off: median of client.dct_s is 0", 3]
    ]


def test_without_a_baseline_nothing_is_compared(
    filled: Filled, variants_without_baseline: list[Variant]
) -> None:
    _, campaign = filled({}, variants=variants_without_baseline)
    frame = frame_with(dict.fromkeys(KEYS, ("ok", 1.0)))
    assert baseline_of(campaign) is None
    assert comparisons(frame, campaign) == {}


# Metrics

MORE = "competition.foreground_mbps"


def inverted(outcomes: Outcomes) -> Outcomes:
    return {key: (state, 1 / value) for key, (state, value) in outcomes.items()}


@settings(max_examples=200, deadline=None)
@given(outcomes=outcomes)
def test_the_inverse_of_a_metric_with_the_opposite_direction_decides_the_same(outcomes: Outcomes) -> None:
    assert metrics.of(MORE).more_is_better
    less = paired(frame_with(outcomes), OFF, XOR)
    more = paired(frame_with(inverted(outcomes), MORE), OFF, XOR, MORE)
    assert (less.matched["ratio"] * more.matched["ratio"]).tolist() == pytest.approx([1] * len(less.matched))
    place = ["workload", "point"]
    pd.testing.assert_frame_equal(less.ratios[[*place, "pairs"]], more.ratios[[*place, "pairs"]])
    pairs = less.decided.merge(less.ratios, how="left", on=place)["pairs"].fillna(0)
    told = pairs + less.decided["baseline_timeouts"] + less.decided["variant_timeouts"]
    # The median of an even number is a mean of two, and the inverse of a mean is not that of the inverses.
    odd = told % 2 == 1
    pd.testing.assert_frame_equal(less.decided[odd], more.decided[odd])


@pytest.mark.parametrize("metric", [metrics.DEFAULT, MORE, "server.repair_sent"])
@pytest.mark.parametrize("statistic", ["median", "mean"])
@pytest.mark.parametrize("value", [1e-9, 1.0, 1e9])
def test_who_timed_out_alone_is_worse_whatever_the_metric_and_the_value(
    metric: str, statistic: str, value: float
) -> None:
    keys = [TrialKey(variant, "download-10000", 0, 0) for variant in (OFF, XOR)]
    for lost in (OFF, XOR):
        frame = frame_with({key: ("timeout" if key.variant == lost else "ok", value) for key in keys}, metric)
        decided = paired(frame, OFF, XOR, metric, statistic).decided
        assert decided["faster"].tolist() == [lost == OFF]


@settings(max_examples=100, deadline=None)
@given(outcomes=outcomes)
def test_workloads_that_compare_different_metrics_are_compared_as_if_each_were_alone(
    outcomes: Outcomes,
) -> None:
    frame = frame_with(outcomes)
    frame[MORE] = 1 / frame[metrics.DEFAULT] + frame["repetition"]
    of_workloads = dict(zip(WORKLOADS, [MORE, metrics.DEFAULT], strict=True))
    together = paired(frame, OFF, XOR, of_workloads)
    for workload, metric in of_workloads.items():
        alone = paired(frame[frame["workload"] == workload], OFF, XOR, metric)
        for name in ("ratios", "unpaired", "matched", "decided"):
            table, expected = getattr(together, name), getattr(alone, name)
            of_workload = table[table["workload"] == workload].reset_index(drop=True)
            pd.testing.assert_frame_equal(of_workload, expected, check_dtype=False)
    assert together.ratios["workload"].tolist() == sorted(together.ratios["workload"])
    assert set(zip(together.ratios["workload"], together.ratios["metric"], strict=True)) <= set(
        of_workloads.items()
    )


def test_variants_are_compared_by_the_metric_of_each_workload(filled: Filled) -> None:
    database, campaign = filled(dict.fromkeys(KEYS, ("ok", 1.0)))
    chosen = metrics.choose(campaign, "server.packets_sent")
    (pairing,) = comparisons(frames.trials(database, campaign), chosen).values()
    assert set(pairing.ratios["metric"]) == {"server.packets_sent"}
    assert set(pairing.ratios["baseline"]) == {7.0}
