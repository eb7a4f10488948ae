"""The ratio over all networks, of trials whose truth is known."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from fecbench.results.gate.build_answer import answer, failures
from fecbench.results.gate.failing import failed_of
from fecbench.results.gate.overall import pairs_of, ratio_of, ratio_of_means, read
from fecbench.results.store.database import Database
from fecbench.results.store.records import State, TrialKey
from tests.support.campaigns import new_campaign, trial, variants, workload

LABELS = ("download-1", "upload-1")


def planted(
    random: np.random.Generator, *, repetitions: int, points: int = 20, effect: float = 0.0
) -> pd.DataFrame:
    """Pairs of networks that differ in their spread, some of which rarely take long."""
    rows = [
        (label, point, repetition)
        for label in LABELS
        for point in range(points)
        for repetition in range(repetitions)
    ]
    table = pd.DataFrame(rows, columns=["workload", "point", "repetition"])
    spread = 0.02 + 0.02 * table["point"]
    rare = np.where(random.random(len(table)) < 0.1, random.choice([-0.7, 0.7], len(table)), 0)
    return table.assign(log=effect + spread * random.normal(size=len(table)) + rare)


def inverse(pairs: pd.DataFrame) -> pd.DataFrame:
    return pairs.assign(log=-pairs["log"])


def test_exchanged_arms_have_the_inverse_ratio() -> None:
    for repetitions in (1, 3):
        pairs = planted(np.random.default_rng(1), repetitions=repetitions, effect=0.1)
        one, other = ratio_of(pairs, 0.05), ratio_of(inverse(pairs), 0.05)
        assert (1 / other.value, 1 / other.high, 1 / other.low) == pytest.approx(
            (one.value, one.low, one.high)
        ), repetitions


def test_each_network_has_the_same_weight_however_many_pairs_it_has() -> None:
    rows = [("a", 0, repetition, 0.0) for repetition in range(8)] + [("a", 1, 0, 0.2), ("a", 1, 1, 0.2)]
    pairs = pd.DataFrame(rows, columns=["workload", "point", "repetition", "log"])
    assert ratio_of(pairs, 0.05).value == pytest.approx(math.exp(0.1))


def test_equal_builds_are_called_different_in_no_more_than_the_level() -> None:
    """The bound for 400 campaigns is 5 % and three standard deviations of that."""
    for repetitions in (1, 3, 12):
        random = np.random.default_rng(2)
        wrong = 0
        for _ in range(400):
            result = ratio_of(planted(random, repetitions=repetitions), 0.05)
            wrong += not result.low <= 1 <= result.high
        assert wrong <= 400 * 0.05 + 3 * math.sqrt(400 * 0.05 * 0.95), repetitions


@pytest.mark.parametrize("repetitions", [1, 6])
def test_the_error_of_a_ratio_is_its_own_however_many_others_share_the_level(repetitions: int) -> None:
    pairs = planted(np.random.default_rng(9), repetitions=repetitions)
    alone, shared = ratio_of(pairs, 0.05), ratio_of(pairs, 0.05 / 30, 0.05 / 4)
    assert shared.error == alone.error == pytest.approx(math.log(alone.high / alone.low) / 2 / 1.959964)
    assert shared.high / shared.low > alone.high / alone.low


def test_workloads_that_meet_the_same_losses_are_no_independent_samples() -> None:
    """The interval of workloads that move together is that of one of them: two show no more than one."""
    one = planted(np.random.default_rng(7), repetitions=6).query("workload == 'upload-1'")
    both = pd.concat([one, one.assign(workload="download-1")], ignore_index=True)
    single, double = ratio_of(one, 0.05), ratio_of(both, 0.05)
    assert (double.value, double.low, double.high) == pytest.approx((single.value, single.low, single.high))


def test_of_one_workload_the_variance_is_that_of_stratified_sampling() -> None:
    """Cochran, 1977, §5.3, of two networks of six pairs: all degrees of freedom are Satterthwaite's."""
    pairs = planted(np.random.default_rng(8), repetitions=6, points=2).query("workload == 'upload-1'")
    result = ratio_of(pairs, 0.05)
    parts = pairs.groupby("point")["log"].var().to_numpy() / 6 / 4
    freedom = parts.sum() ** 2 / (parts**2 / 5).sum()
    half = scipy.stats.t.ppf(0.975, freedom) * math.sqrt(parts.sum())
    assert math.log(result.high / result.value) == pytest.approx(half)


def test_an_effect_is_in_the_interval_and_1_is_not() -> None:
    result = ratio_of(planted(np.random.default_rng(3), repetitions=12, effect=math.log(1.1)), 0.05)
    assert 1 < result.low < 1.1 < result.high


def test_what_a_ratio_alone_surely_is_lies_within_its_interval_and_is_of_its_own_level() -> None:
    pairs = planted(np.random.default_rng(4), repetitions=3)
    result, by_default = ratio_of(pairs, 0.02, 0.05), ratio_of(pairs, 0.1)
    assert result.low < result.at_least < result.value < result.at_most < result.high
    assert (result.at_least, result.at_most) == pytest.approx((by_default.low, by_default.high))
    assert (by_default.at_least, by_default.at_most) == (by_default.low, by_default.high)


def test_the_ratio_of_means_sees_a_rare_stall_that_the_geometric_mean_hardly_sees() -> None:
    random = np.random.default_rng(9)
    pairs = planted(random, repetitions=12)
    old = np.exp(random.normal(size=len(pairs)))
    stalls = np.where(np.arange(len(pairs)) % 100 == 0, 50.0, 1.0)
    pairs = pairs.assign(old=old, new=old * stalls, log=np.log(stalls))
    assert ratio_of(pairs, 0.05).value == pytest.approx(50**0.01, rel=0.01)
    by_hand = pairs.groupby(["workload", "point"])[["old", "new"]].mean()
    expected = np.exp(np.log(by_hand["new"] / by_hand["old"]).mean())
    assert ratio_of_means(pairs, 0.05).value == pytest.approx(expected)
    assert expected > 1.15


def test_equal_values_have_an_interval_without_width() -> None:
    pairs = planted(np.random.default_rng(5), repetitions=3).assign(log=0.0)
    result = ratio_of(pairs, 0.01)
    assert (result.value, result.low, result.high) == (1, 1, 1)


def test_few_networks_of_one_pair_each_have_no_interval() -> None:
    result = ratio_of(planted(np.random.default_rng(6), repetitions=1, points=5), 0.05)
    assert math.isnan(result.low)
    assert not math.isnan(result.value)


def test_a_pair_is_in_the_ratio_when_both_are_ok(tmp_path: Path) -> None:
    states = [("ok", "ok"), ("ok", "failed"), ("timeout", "ok"), ("failed", "timeout"), ("ok", "invalid")]
    with Database.open(str(tmp_path / "x.sqlite"), create=True) as database:
        info = database.create_campaign(
            new_campaign(
                points=[{"owd_ms": 10}],
                variants=variants("old", "new", baseline="old"),
                workloads=[workload("download-1000", size_bytes=1000)],
                repetitions=len(states),
            )
        )
        for repetition, both in enumerate(states):
            for label, state in zip(("old", "new"), both, strict=True):
                key = TrialKey(label, "download-1000", 0, repetition)
                record = trial(key, state, metrics={"client": {"dct_s": 2.0}})  # type: ignore[arg-type]
                database.record(info.id, record)
        frame = read(database, info)
        pairs, failed = pairs_of(frame, info), failed_of(frame, info)
    assert pairs["repetition"].tolist() == [0]
    assert (failed.both, failed.new_alone, failed.old_alone, failed.run) == (1, 1, 1, 4)
    assert failed.places == 1
    assert [(one.kind, one.repetition) for one in failed.pairs] == [("new_alone", 1), ("both", 3)]


def test_a_live_video_that_never_began_fails_though_its_trial_is_ok(tmp_path: Path) -> None:
    latencies = {"old": [2.0, 2.0, None, None], "new": [2.0, None, 2.0, None]}
    with Database.open(str(tmp_path / "x.sqlite"), create=True) as database:
        info = database.create_campaign(
            new_campaign(
                points=[{"owd_ms": 10}],
                variants=variants("old", "new", baseline="old"),
                workloads=[{**workload("video", "video"), "metric": "video.latency_p95_s"}],
                repetitions=4,
            )
        )
        for label, of_label in latencies.items():
            for repetition, latency_s in enumerate(of_label):
                measured = {"stalls": 0.0} | ({} if latency_s is None else {"latency_p95_s": latency_s})
                key = TrialKey(label, "video", 0, repetition)
                database.record(info.id, trial(key, metrics={"video": measured}))
        frame = read(database, info)
        pairs, failed = pairs_of(frame, info), failed_of(frame, info)
    assert pairs["repetition"].tolist() == [0]
    assert (failed.both, failed.new_alone, failed.old_alone, failed.run) == (1, 1, 1, 4)


def test_a_pair_of_two_hosts_is_in_no_ratio_and_no_failure(tmp_path: Path) -> None:
    """The ratio would be of hosts as much as of builds. In virtual time hosts are alike."""
    for engine, counted in (("emulated", [0, 2]), ("virtual", [0, 1, 2, 3])):
        with Database.open(str(tmp_path / f"{engine}.sqlite"), create=True) as database:
            info = database.create_campaign(
                new_campaign(
                    points=[{"owd_ms": 10}],
                    variants=variants("old", "new", baseline="old"),
                    workloads=[workload("download-1000", size_bytes=1000)],
                    provenance={"engine": engine},
                    repetitions=5,
                )
            )
            starts = {host: database.start(info.id, host, {}).id for host in ("one", "two")}
            hosts = [("one", "one"), ("one", "two"), ("two", "two"), ("two", "one"), ("one", "two")]
            for repetition, both in enumerate(hosts):
                for label, host in zip(("old", "new"), both, strict=True):
                    key = TrialKey(label, "download-1000", 0, repetition)
                    state: State = "failed" if (label, repetition) == ("new", 4) else "ok"
                    record = trial(key, state, metrics={"client": {"dct_s": 2.0}})
                    database.record(info.id, record, starts[host])
            frame = read(database, info)
            pairs, failed = pairs_of(frame, info), failed_of(frame, info)
            result = answer(database, info)
        assert pairs["repetition"].tolist() == counted, engine
        assert (failed.new_alone, failed.run) == ((0, 2) if engine == "emulated" else (1, 5))
        assert ("3 pairs ran on different hosts" in failures(result)) == (engine == "emulated")
