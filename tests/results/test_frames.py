"""Frames hold what was recorded, and a comparison holds only what both variants finished."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from itertools import product
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from results import frames
from results.database import STATES, CampaignInfo, Database, TrialKey, TrialRecord

Make = Callable[..., TrialRecord]
Outcomes = dict[TrialKey, tuple[str, float]]
Filled = Callable[..., tuple[Database, CampaignInfo]]

OFF, XOR = "rquic-off", "rquic-xor"
VARIANTS, WORKLOADS, POINTS, REPETITIONS = (OFF, XOR), ("download-10000", "download-2000"), (0, 1), range(3)
KEYS = [TrialKey(*key) for key in product(VARIANTS, WORKLOADS, POINTS, REPETITIONS)]

shared_database = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
outcomes = st.dictionaries(
    st.sampled_from(KEYS), st.tuples(st.sampled_from(["ok", "ok", *STATES]), st.floats(0.01, 100))
)


def frame_of(filled: Filled, outcomes: Outcomes, **changes: Any) -> tuple[pd.DataFrame, CampaignInfo]:
    database, campaign = filled(outcomes, **changes)
    return frames.trials(database, campaign), campaign


@shared_database
@given(outcomes=outcomes)
def test_a_frame_holds_each_trial_once_in_the_order_of_the_design(filled: Filled, outcomes: Outcomes) -> None:
    frame, campaign = frame_of(filled, outcomes)
    rows = list(zip(frame["variant"], frame["workload"], frame["point"], frame["repetition"], strict=True))
    assert rows == [(k.variant, k.workload, k.point, k.repetition) for k in KEYS if k in outcomes]
    for row, (_, values) in zip(rows, frame.iterrows(), strict=True):
        assert (values["state"], values["client.dct_s"]) == outcomes[TrialKey(*row)]
        assert values["owd_ms"] == campaign.points[row[2]]["owd_ms"]
        assert values["size_bytes"] == int(row[1].removeprefix("download-"))
        assert values["server.packets_sent"] == 7


def test_metrics_are_the_same_however_they_are_paged_and_whatever_runs_lie_between(
    filled: Filled, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, campaign = filled({})
    _, other = filled({})
    for n, key in enumerate(KEYS):
        database.record(other.id, make(key=key, metrics={"client": {"dct_s": -1.0, "odd": 1.0}}))
        database.record(campaign.id, make(key=key, state="invalid", metrics={"client": {"dct_s": -2.0}}))
        database.record(campaign.id, make(key=key, metrics={"client": {"dct_s": 1.0 + n}}))
    whole = frames.trials(database, campaign)
    assert whole["client.dct_s"].tolist() == [1.0 + n for n in range(len(KEYS))]
    assert "client.odd" not in whole
    monkeypatch.setattr(frames, "_METRIC_PAGE", 5)
    pd.testing.assert_frame_equal(frames.trials(database, campaign), whole)


def test_only_the_named_metrics_are_read(filled: Filled) -> None:
    database, campaign = filled({KEYS[0]: ("ok", 1.0)})
    named = frames.trials(database, campaign, ["server.packets_sent"])
    assert named["server.packets_sent"].tolist() == [7]
    assert "client.dct_s" not in named


@shared_database
@given(outcomes=outcomes, statistic=st.sampled_from(["median", "mean"]))
def test_a_ratio_compares_the_repetitions_that_are_ok_in_both_variants_and_no_other(
    filled: Filled, outcomes: Outcomes, statistic: str
) -> None:
    frame, _ = frame_of(filled, outcomes)
    pairing = frames.paired(frame, OFF, XOR, statistic=statistic)
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


@shared_database
@given(outcomes=outcomes)
def test_swapping_the_arms_inverts_every_ratio(filled: Filled, outcomes: Outcomes) -> None:
    frame, _ = frame_of(filled, outcomes)
    there, back = (frames.paired(frame, *arms).ratios for arms in ((OFF, XOR), (XOR, OFF)))
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
    pairing = frames.paired(frames.trials(database, campaign), OFF, XOR)
    assert pairing.ratios["pairs"].tolist() == [1]
    assert dict(zip(pairing.unpaired["reason"], pairing.unpaired["repetitions"], strict=True)) == {
        "rquic-xor: timeout": 1,
        "rquic-off: invalid; rquic-xor: not run": 1,
        "rquic-xor: no client.dct_s": 1,
    }


@shared_database
@given(outcomes=outcomes)
def test_a_summary_has_a_row_for_each_workload_and_variant_of_the_design(
    filled: Filled, outcomes: Outcomes
) -> None:
    frame, campaign = frame_of(filled, outcomes)
    summary = frames.summary(frame, campaign)
    ratios = frames.paired(frame, OFF, XOR).ratios
    rows = list(summary.itertuples(index=False))
    assert [(row.workload, row.variant) for row in rows] == list(product(WORKLOADS, VARIANTS))
    for row in rows:
        run = {k: v for k, v in outcomes.items() if (k.workload, k.variant) == (row.workload, row.variant)}
        ok = [dct_s for state, dct_s in run.values() if state == "ok"]
        assert (row.trials, row.ok) == (len(run), len(ok))
        assert row.median_dct_s == pytest.approx(statistics.median(ok) if ok else float("nan"), nan_ok=True)
        of_row = (
            ratios.loc[ratios["workload"] == row.workload, "ratio"].tolist() if row.variant == XOR else []
        )
        assert row.points == len(of_row)
        if of_row:
            assert row.median_ratio == pytest.approx(statistics.median(of_row))
            assert row.faster * len(of_row) == pytest.approx(sum(ratio < 1 for ratio in of_row))


def test_without_a_baseline_nothing_is_compared(filled: Filled, variants_without_baseline: Any) -> None:
    frame, campaign = frame_of(filled, dict.fromkeys(KEYS, ("ok", 1.0)), variants=variants_without_baseline)
    assert frames.baseline_of(campaign) is None
    assert frames.comparisons(frame, campaign) == {}
    assert (frames.summary(frame, campaign)["points"] == 0).all()
