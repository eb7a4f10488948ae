"""A comparison holds what both variants finished, failed or timed out of; the latter two are worse than any
value."""

import math
import statistics
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fecbench.results import metrics
from fecbench.results.analysis import frames
from fecbench.results.analysis.pairing import (
    baseline_of,
    comparisons,
    left_out,
    median_ratio,
    median_ratios,
    paired,
)
from fecbench.results.store.database import Database
from fecbench.results.store.records import (
    FEWEST_OF_P95,
    CampaignInfo,
    TrialKey,
    TrialRecord,
    Variant,
    Workload,
)
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
    timeouts,
)

Filled = Callable[..., tuple[Database, CampaignInfo]]
Make = Callable[..., TrialRecord]


SHORT = Workload(label="download-2000", name="download", parameters={"size_bytes": 2000})


Pairs = dict[tuple[str, int], list[tuple[float, float]]]


def pairs_of(outcomes: Outcomes) -> Pairs:
    """The values of both arms in each repetition in which each is ok, failed or timed out, by (workload,
    point)."""
    pairs: Pairs = {}
    for *place, repetition in product(WORKLOADS, POINTS, REPETITIONS):
        pair = [outcomes.get(TrialKey(variant, *place, repetition), ("not run", 0.0)) for variant in VARIANTS]  # type: ignore[call-arg]
        if {state for state, _ in pair} <= {"ok", "failed", "timeout"}:
            off, xor = (value if state == "ok" else math.inf for state, value in pair)
            pairs.setdefault((place[0], place[1]), []).append((off, xor))
    return pairs


def ratio_of(off: float, xor: float) -> float | None:
    """Return the ratio; None if nobody can tell."""
    return None if math.isinf(off) and math.isinf(xor) else xor / off


def ratios_of(
    outcomes: Outcomes, baseline: str = OFF, variant: str = XOR, statistic: str = "median"
) -> dict[tuple[str, int], float]:
    ratios = paired(frame_with(outcomes), baseline, variant, statistic=statistic).ratios
    return dict(zip(zip(ratios["workload"], ratios["point"], strict=True), ratios["ratio"], strict=True))


@settings(max_examples=12, deadline=None)
@given(outcomes=outcomes | timeouts, statistic=st.sampled_from(["median", "mean"]))
def test_a_ratio_is_that_of_the_statistics_when_a_timeout_is_infinite(
    outcomes: Outcomes, statistic: str
) -> None:
    pairing = paired(frame_with(outcomes), OFF, XOR, statistic=statistic)
    rows = {(row.workload, row.point): row for row in pairing.ratios.itertuples()}
    decided = {(row.workload, row.point): row.faster for row in pairing.decided.itertuples()}
    in_ratios = 0
    for place, pairs in pairs_of(outcomes).items():
        off, xor = (getattr(statistics, statistic)(values) for values in zip(*pairs, strict=True))
        expected = ratio_of(off, xor)
        assert (place in rows) == (place in decided) == (expected is not None)
        if expected is None:
            continue
        in_ratios += len(pairs)
        row = rows[place]
        assert (row.pairs, row.ratio) == (len(pairs), pytest.approx(expected))
        assert row.censored == (math.isinf(off) or math.isinf(xor))
        assert row.timeouts == sum(math.inf in pair for pair in pairs)
        assert decided[place] == (xor < off) == (row.ratio < 1)
    assert rows.keys() <= pairs_of(outcomes).keys()
    run = {(key.workload, key.point, key.repetition) for key in outcomes}
    assert len(pairing.matched) == in_ratios == len(run) - pairing.unpaired["repetitions"].sum()


@settings(max_examples=12, deadline=None)
@given(outcomes=outcomes | timeouts)
def test_the_ratio_of_a_pair_is_0_or_infinite_where_one_arm_alone_timed_out_and_none_where_both_did(
    outcomes: Outcomes,
) -> None:
    pairing = paired(frame_with(outcomes), OFF, XOR)
    by_hand = pairs_of(outcomes)
    of_points = pairing.matched.groupby(["workload", "point"], observed=True)
    for place, rows in of_points:
        expected = [ratio_of(*pair) for pair in by_hand[place]]
        assert rows["ratio"].tolist() == [
            pytest.approx(math.nan if ratio is None else ratio, nan_ok=True) for ratio in expected
        ]
        assert rows["censored"].tolist() == [ratio in (0, math.inf) for ratio in expected]
    by_kind = pairing.timeouts.drop(columns=["workload", "point"]).sum()
    all_pairs = [pair for pairs in by_hand.values() for pair in pairs]
    assert by_kind["both_timeouts"] == all_pairs.count((math.inf, math.inf))
    assert by_kind["baseline_timeouts"] == sum(ratio_of(*pair) == 0 for pair in all_pairs)
    assert by_kind["variant_timeouts"] == sum(ratio_of(*pair) == math.inf for pair in all_pairs)


@settings(max_examples=12, deadline=None)
@given(outcomes=outcomes | timeouts, statistic=st.sampled_from(["median", "mean"]))
def test_swapping_the_arms_inverts_every_ratio(outcomes: Outcomes, statistic: str) -> None:
    there, back = (ratios_of(outcomes, *arms, statistic) for arms in ((OFF, XOR), (XOR, OFF)))
    assert there.keys() == back.keys()
    for place, ratio in there.items():
        inverse = math.inf if back[place] == 0 else 1 / back[place]
        assert ratio == pytest.approx(inverse)


@settings(max_examples=12, deadline=None)
@given(outcomes=timeouts, order=st.permutations(REPETITIONS))
@pytest.mark.parametrize("statistic", ["median", "mean"])
def test_the_order_of_repetitions_and_of_rows_does_not_matter(
    outcomes: Outcomes, order: list[int], statistic: str
) -> None:
    moved = {replace(key, repetition=order[key.repetition]): outcome for key, outcome in outcomes.items()}
    expected = ratios_of(outcomes, statistic=statistic)
    assert ratios_of(moved, statistic=statistic) == pytest.approx(expected)
    rows = paired(frame_with(outcomes).iloc[::-1], OFF, XOR, statistic=statistic).ratios
    assert rows["ratio"].tolist() == pytest.approx(list(expected.values()))


T = math.inf


def test_a_ratio_of_p95_is_that_of_the_values_at_the_bad_end() -> None:
    slow = 400.0
    outcomes: Outcomes = {}
    for n in range(40):  # 38 of 40 values are as good as the p95, or better
        outcomes[TrialKey(OFF, WORKLOADS[0], 0, n)] = ("ok", n + 1.0)
        outcomes[TrialKey(XOR, WORKLOADS[0], 0, n)] = ("ok", slow if n > 36 else n + 1.0)
    assert ratios_of(outcomes, statistic="p95") == {(WORKLOADS[0], 0): slow / 38}
    del outcomes[TrialKey(OFF, WORKLOADS[0], 0, 0)]
    few = {key: value for key, value in outcomes.items() if key.repetition < FEWEST_OF_P95}
    assert ratios_of(few, statistic="p95") == {}


def test_a_point_at_which_both_arms_are_timeouts_is_counted_with_the_reason() -> None:
    for statistic in ("median", "mean"):
        lost = {key: ("timeout" if key.repetition else "ok", 1.0) for key in KEYS if key.point == 0}
        pairing = paired(frame_with(lost), OFF, XOR, statistic=statistic)
        assert pairing.ratios.empty, statistic
        reason = f"{OFF} and {XOR}: {statistic} of client.dct_s is a failure or a timeout"
        assert pairing.unpaired[["reason", "repetitions"]].to_numpy().tolist() == [[reason, 3]] * len(
            WORKLOADS
        ), statistic


SIDES: list[tuple[list[float], float | None]] = [
    ([0.5, 2.0], 1.25),
    ([T, 2.0, 0.5], 2.0),
    ([T, 2.0], T),
    ([T, T, 2.0], T),
    ([0.0, 2.0], 0.0),  # not 1: nobody measured a half of it
    ([0.0, 2.0, 4.0], 2.0),
    ([0.0, T], None),
    ([0.0, T, 1.5], 1.5),
    ([], None),
]


@pytest.mark.filterwarnings("error")
def test_a_median_of_ratios_is_on_the_side_of_the_timeouts_and_of_both_sides_is_none() -> None:
    for ratios, expected in SIDES:
        rows = pd.DataFrame({"ratio": ratios, "censored": [ratio in (0.0, T) for ratio in ratios]}).assign(
            cell=1
        )
        result = math.nan if expected is None else expected
        assert median_ratio(rows) == pytest.approx(result, nan_ok=True)
        assert median_ratios(rows, ["cell"]).tolist() == pytest.approx([result] * bool(ratios), nan_ok=True)


def test_a_ratio_of_0_that_was_measured_is_a_number_in_a_median() -> None:
    rows = pd.DataFrame({"ratio": [0.0, 2.0], "censored": [False, False]})
    assert median_ratio(rows) == 1.0


def test_arms_with_as_many_trials_of_other_repetitions_are_paired_by_the_repetitions_of_both() -> None:
    """The arms are stored in different orders, too."""
    times = {(OFF, 0): 1.0, (OFF, 1): 2.0, (XOR, 2): 8.0, (XOR, 1): 6.0}
    outcomes: Outcomes = {
        TrialKey(label, WORKLOADS[0], 0, repetition): ("ok", dct_s)
        for (label, repetition), dct_s in times.items()
    }
    pairing = paired(frame_with(outcomes), OFF, XOR)
    assert pairing.matched[["repetition", "ratio"]].to_numpy().tolist() == [[1, 3]]
    assert pairing.unpaired["repetitions"].tolist() == [1, 1]


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
    assert pairing.ratios[["pairs", "ratio", "timeouts"]].to_numpy().tolist() == [[2, math.inf, 1]]
    assert dict(zip(pairing.unpaired["reason"], pairing.unpaired["repetitions"], strict=True)) == {
        "rquic-off: invalid; rquic-xor: not run": 1,
        "rquic-xor: no client.dct_s": 1,
    }


P99 = "messages.latency_p99_ms"


def test_a_percentile_that_is_absent_for_messages_lost_is_the_worst_as_a_timeout_is() -> None:
    for lost in (OFF, XOR):
        keys = [TrialKey(variant, "download-10000", 0, n) for variant in (OFF, XOR) for n in range(3)]
        frame = frame_with({key: ("ok", math.nan if key.variant == lost else 40.0) for key in keys}, P99)
        pairing = paired(frame, OFF, XOR, P99)
        assert pairing.ratios["ratio"].tolist() == [math.inf if lost == XOR else 0.0], lost
        assert pairing.decided["faster"].tolist() == [lost == OFF], lost


def test_a_workload_in_which_no_trial_has_a_percentile_has_none() -> None:
    frame = frame_with(dict.fromkeys(KEYS, ("ok", math.nan)), P99)
    pairing = paired(frame, OFF, XOR, P99)
    assert pairing.ratios.empty
    assert set(pairing.unpaired["reason"]) == {f"{OFF}: no {P99}; {XOR}: no {P99}"}


def test_nothing_is_left_out_of_a_whole_campaign(filled: Filled) -> None:
    database, campaign = filled(dict.fromkeys(KEYS, ("ok", 1.0)), repetitions=len(REPETITIONS))
    frame = frames.trials(database, campaign)
    assert left_out(paired(frame, OFF, XOR), campaign, OFF, XOR) == ""
    some = paired(frame.drop(index=0), OFF, XOR)
    assert left_out(some, campaign, OFF, XOR) == (
        "Of 12 planned pairs of “rquic-xor” and “rquic-off”, 11 have a ratio."
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


def test_values_below_0_have_no_ratio_in_any_network(filled: Filled) -> None:
    """-2 / -1 is 2, and so is 2 / 1."""
    scores = {OFF: (-1.0, 1.0, 1.0), XOR: (-2.0, 2.0, 3.0)}
    outcomes = {
        TrialKey(variant, "download-2000", point, 0): ("ok", score)
        for variant, of_points in scores.items()
        for point, score in enumerate(of_points)
    }
    points = [{"owd_ms": n} for n in range(3)]
    database, campaign = filled(outcomes, repetitions=1, points=points, workloads=[SHORT])
    pairing = paired(frames.trials(database, campaign), OFF, XOR)
    assert pairing.ratios.empty
    assert pairing.unpaired["reason"].tolist() == ["client.dct_s: a value is below 0"]
    assert left_out(pairing, campaign, OFF, XOR).endswith(
        "In 3 of 3 networks there is no ratio, since the median of “rquic-off” is 0, or a value is below 0:"
        " that of “rquic-xor” is the same in 0, better in 1, and worse in 2."
    )


def test_networks_without_a_ratio_are_counted_by_how_the_variant_does_there(filled: Filled) -> None:
    medians = {OFF: (0.0, 0.0, 0.0, 2.0), XOR: (0.0, 1.0, 0.5, 1.0)}
    keys = [
        TrialKey(variant, "download-2000", point, n)
        for variant in medians
        for point in range(4)
        for n in range(3)
    ]
    points = [{"owd_ms": n} for n in range(4)]
    outcomes = {key: ("ok", medians[key.variant][key.point]) for key in keys}
    database, campaign = filled(outcomes, repetitions=3, points=points, workloads=[SHORT])
    pairing = paired(frames.trials(database, campaign), OFF, XOR)
    assert left_out(pairing, campaign, OFF, XOR) == (
        "Of 12 planned pairs of “rquic-xor” and “rquic-off”, 3 have a ratio. In 3 of 4 networks there is no"
        " ratio, since the median of “rquic-off” is 0: that of “rquic-xor” is the same in 1, better in 0, and"
        " worse in 2."
    )
    two = replace(campaign, workloads=[*campaign.workloads, {**campaign.workloads[0], "label": "other"}])
    assert "In 3 of 8 cases (workloads in networks) there is no ratio" in left_out(pairing, two, OFF, XOR)


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


@settings(max_examples=12, deadline=None)
@given(outcomes=outcomes | timeouts)
def test_the_inverse_of_a_metric_with_the_opposite_direction_decides_the_same(outcomes: Outcomes) -> None:
    assert metrics.of(MORE).more_is_better
    less = paired(frame_with(outcomes), OFF, XOR)
    more = paired(frame_with(inverted(outcomes), MORE), OFF, XOR, MORE)
    inverse = [math.inf if ratio == 0 else 1 / ratio for ratio in more.matched["ratio"]]
    assert less.matched["ratio"].tolist() == pytest.approx(inverse, nan_ok=True)
    place = ["workload", "point"]
    same = [*place, "pairs", "timeouts", "censored"]
    pd.testing.assert_frame_equal(less.ratios[same], more.ratios[same])
    # The median of an even number is a mean of two, and the inverse of a mean is not that of the inverses.
    odd = less.decided.merge(less.ratios, on=place)["pairs"] % 2 == 1
    inverse = ["baseline", "variant"]
    pd.testing.assert_frame_equal(
        less.decided[odd].drop(columns=inverse), more.decided[odd].drop(columns=inverse)
    )
    pd.testing.assert_frame_equal(less.timeouts, more.timeouts)


@settings(max_examples=12, deadline=None)
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
        for name in ("ratios", "unpaired", "matched", "decided", "timeouts"):
            table, expected = getattr(together, name), getattr(alone, name)
            of_workload = table[table["workload"] == workload].reset_index(drop=True)
            pd.testing.assert_frame_equal(of_workload, expected, check_dtype=False)
    assert together.ratios["workload"].tolist() == sorted(together.ratios["workload"])
    assert set(zip(together.ratios["workload"], together.ratios["metric"], strict=True)) <= set(
        of_workloads.items()
    )


def test_tables_of_several_metrics_are_in_the_order_of_the_design() -> None:
    frame = frame_with(dict.fromkeys(KEYS, ("ok", 1.0))).assign(**{MORE: 1.0})
    first, second = WORKLOADS
    ratios = paired(frame, OFF, XOR, {second: metrics.DEFAULT, first: MORE}).ratios
    assert ratios["workload"].tolist() == [first] * len(POINTS) + [second] * len(POINTS)


def test_variants_are_compared_by_the_metric_of_each_workload(filled: Filled) -> None:
    database, campaign = filled(dict.fromkeys(KEYS, ("ok", 1.0)))
    choice = metrics.choose(campaign, "server.packets_sent")
    (pairing,) = comparisons(frames.trials(database, campaign), choice).values()
    assert set(pairing.ratios["metric"]) == {"server.packets_sent"}
    assert set(pairing.ratios["baseline"]) == {7.0}
