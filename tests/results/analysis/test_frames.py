"""Frames hold what was recorded, and a comparison holds only what both variants finished."""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from results.analysis import frames
from results.analysis.pairing import baseline_of, comparisons, left_out, paired
from results.analysis.summary import summary
from results.store.database import STATES, CampaignInfo, Database, TrialKey, TrialRecord, Variant

Make = Callable[..., TrialRecord]
Outcomes = dict[TrialKey, tuple[str, float]]
Filled = Callable[..., tuple[Database, CampaignInfo]]

OFF, XOR = "rquic-off", "rquic-xor"
VARIANTS, WORKLOADS, POINTS, REPETITIONS = (OFF, XOR), ("download-10000", "download-2000"), (0, 1), range(3)
KEYS = [TrialKey(*key) for key in product(VARIANTS, WORKLOADS, POINTS, REPETITIONS)]

# Small numbers, so that ties, ratios of 1 and complete points are common.
one_outcome = st.none() | st.tuples(st.sampled_from(["ok"] * 8 + [*STATES]), st.integers(1, 5).map(float))
outcomes = st.lists(one_outcome, min_size=len(KEYS), max_size=len(KEYS)).map(
    lambda drawn: {key: outcome for key, outcome in zip(KEYS, drawn, strict=True) if outcome}
)


def frame_with(outcomes: Outcomes) -> pd.DataFrame:
    """What `frames.trials` gives for these outcomes, without a database; the first test says that it does."""
    rows = [(k.variant, k.workload, k.point, k.repetition, *outcomes[k]) for k in KEYS if k in outcomes]
    columns = ["variant", "workload", "point", "repetition", "state", "client.dct_s"]
    frame = pd.DataFrame(rows, columns=columns)
    for name, order in (("variant", VARIANTS), ("workload", WORKLOADS), ("state", STATES)):
        frame[name] = pd.Categorical(frame[name], list(order), ordered=True)
    return frame


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(outcomes=outcomes)
def test_a_frame_holds_each_trial_once_in_the_order_of_the_design(filled: Filled, outcomes: Outcomes) -> None:
    database, campaign = filled(outcomes)
    frame = frames.trials(database, campaign)
    if outcomes:
        known = frame_with(outcomes)
        pd.testing.assert_frame_equal(frame[known.columns], known)
    rows = list(zip(frame["variant"], frame["workload"], frame["point"], frame["repetition"], strict=True))
    assert rows == [(k.variant, k.workload, k.point, k.repetition) for k in KEYS if k in outcomes]
    for row, (_, values) in zip(rows, frame.iterrows(), strict=True):
        assert (values["state"], values["client.dct_s"]) == outcomes[TrialKey(*row)]
        assert values["owd_ms"] == campaign.points[row[2]]["owd_ms"]
        assert values["size_bytes"] == int(row[1].removeprefix("download-"))
        assert values["server.packets_sent"] == 7


def test_metrics_are_the_same_however_they_are_paged_and_whatever_runs_lie_between(
    database: Database, make: Make, new_campaign: Callable[..., CampaignInfo], monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign, other = new_campaign(database, "one"), new_campaign(database, "other")
    for n, key in enumerate(KEYS):
        database.record(other.id, make(key=key, metrics={"client": {"dct_s": -1.0, "odd": 1.0}}))
        database.record(campaign.id, make(key=key, state="invalid", metrics={"client": {"dct_s": -2.0}}))
        database.record(campaign.id, make(key=key, metrics={"client": {"dct_s": 1.0 + n}}))
    whole = frames.trials(database, campaign)
    assert whole["client.dct_s"].tolist() == [1.0 + n for n in range(len(KEYS))]
    assert "client.odd" not in whole
    monkeypatch.setattr(frames, "_PAGE_TRIALS", 5)
    pd.testing.assert_frame_equal(frames.trials(database, campaign), whole)


def test_the_same_file_is_read_when_the_folder_has_changed(
    filled: Filled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, campaign = filled(dict.fromkeys(KEYS, ("ok", 1.0)))
    monkeypatch.chdir(tmp_path)
    with Database.open("campaigns.sqlite") as relative:
        monkeypatch.chdir("/")
        pd.testing.assert_frame_equal(frames.trials(relative, campaign), frames.trials(database, campaign))


def test_each_trial_has_its_own_metrics_whatever_their_names_and_to_the_last_bit(
    database: Database, campaign: CampaignInfo, make: Make
) -> None:
    names = ["a,b", 'a"b', "a\nb", "a\\b", "a.b", "ä", *(f"m{i:03}" for i in range(100))]
    numbers = [5e-324, 0.0, 0.1 + 0.2, 1 / 3, sys.float_info.max, -sys.float_info.epsilon, 2.0**53 - 1]
    for n, key in enumerate(KEYS):
        values = {name: numbers[(n + i) % len(numbers)] for i, name in enumerate(names) if (n + i) % 5}
        database.record(campaign.id, make(key=key, metrics={"client": values, "server": {"a.b": n}}))
    frame = frames.trials(database, campaign)
    for n in range(len(KEYS)):
        for i, name in enumerate(names):
            expected = numbers[(n + i) % len(numbers)] if (n + i) % 5 else math.nan
            assert frame[f"client.{name}"][n].hex() == expected.hex()
        assert frame["server.a.b"][n] == n


def test_only_the_named_metrics_are_read(filled: Filled) -> None:
    database, campaign = filled({KEYS[0]: ("ok", 1.0)})
    named = frames.trials(database, campaign, ["server.packets_sent"])
    assert named["server.packets_sent"].tolist() == [7]
    assert "client.dct_s" not in named


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


def test_a_summary_has_a_row_for_each_workload_and_variant_of_the_design(filled: Filled) -> None:
    _, campaign = filled({})

    @settings(max_examples=100, deadline=None)
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
            median = statistics.median(ok) if ok else float("nan")
            assert row.median_dct_s == pytest.approx(median, nan_ok=True)
            compared = ratios[(ratios["workload"] == row.workload) & (row.variant == XOR)]["ratio"].tolist()
            assert row.points == len(compared)
            assert row.planned_points == (len(POINTS) if row.variant == XOR else 0)
            if compared:
                assert row.median_ratio == pytest.approx(statistics.median(compared))
            decided = pairing.decided[(pairing.decided["workload"] == row.workload) & (row.variant == XOR)]
            assert row.decided_points == len(decided) >= row.points
            if len(decided):
                assert row.faster * len(decided) == pytest.approx(decided["faster"].sum())

    law()


def test_a_variant_that_timed_out_where_the_baseline_did_not_is_not_faster_by_those_that_are_left(
    filled: Filled,
) -> None:
    keys = [TrialKey(variant, "download-10000", point, 0) for variant in VARIANTS for point in range(20)]
    lost = {key: key.variant == XOR and key.point >= 7 for key in keys}
    database, campaign = filled(
        {key: ("timeout" if lost[key] else "ok", 0.5 if key.variant == XOR else 1.0) for key in keys},
        points=[{"owd_ms": n} for n in range(20)],
        repetitions=1,
    )
    frame = frames.trials(database, campaign)
    row = summary(frame, campaign).query("variant == @XOR and workload == 'download-10000'").iloc[0]
    assert (row["points"], row["planned_points"], row["decided_points"]) == (7, 20, 20)
    assert (row["median_ratio"], row["faster"]) == (0.5, 7 / 20)
    there, back = (paired(frame, *arms) for arms in ((OFF, XOR), (XOR, OFF)))
    assert left_out(there, campaign, OFF, XOR) == (
        "Of 40 planned pairs of rquic-xor and rquic-off, 7 have a ratio."
        " rquic-xor alone timed out in 13 pairs, rquic-off alone in 0: these are in no ratio."
    )
    assert left_out(back, campaign, XOR, OFF) == (
        "Of 40 planned pairs of rquic-off and rquic-xor, 7 have a ratio."
        " rquic-off alone timed out in 0 pairs, rquic-xor alone in 13: these are in no ratio."
    )


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
    assert (summary(frame, campaign)["points"] == 0).all()
