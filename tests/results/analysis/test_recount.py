"""Tables of planted campaigns, counted anew from SQL by the words of `results/README.md` alone.

Campaigns have timeouts, invalid and missing trials, zeros, ties, and hosts that share a group. The interval
of each network is taken as it is.
"""

import math
import random
import sqlite3
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import pytest
from scipy import stats

from fecbench import results
from fecbench.results.store.database import Database
from fecbench.results.store.records import State, TrialKey, TrialRecord
from tests.support.campaigns import new_campaign, trial, variants, workload

OFF, FEC = "off", "fec"
STALLS, SHARE, TIME = "messages.rebuffering_s", "messages.on_time_ratio_50ms", "client.dct_s"
Values = Sequence[float]
LEAST = {TIME: 0.5, STALLS: -0.7, SHARE: 0}
POINTS = 8


class Ratio(NamedTuple):
    value: float
    is_censored: bool


def plant(path: Path, metric: str, statistic: str) -> None:
    chance, repetitions = random.Random(f"{metric} {statistic}"), 30 if statistic == "p95" else 8
    failing = {OFF: 0.01, FEC: chance.choice([0, 0.02, 0.3])}
    with Database.open(str(path), create=True) as database:
        campaign = database.create_campaign(
            new_campaign(
                points=[{"owd_ms": 5 + n} for n in range(POINTS)],
                variants=variants(OFF, FEC),
                workloads=[{**workload("w"), "metric": metric}],
                repetitions=repetitions,
                statistic=statistic,
            )
        )
        records: tuple[list[TrialRecord], list[TrialRecord]] = ([], [])
        for point, repetition, label in product(range(POINTS), range(repetitions), (OFF, FEC)):
            may_fail = [1, failing[label] * (point % 2), 0.05]
            state = cast(State, chance.choices(["ok", "timeout", "invalid"], may_fail)[0])
            rate = 1 if label == OFF else 0.5 + point / 4
            value = max(round(chance.expovariate(rate), 1) + LEAST[metric], 0.0)
            endpoint, _, name = metric.partition(".")
            measured = {endpoint: {name: min(value, 1.0) if metric == SHARE else value}}
            record = trial(TrialKey(label, "w", point, repetition), state, "?", metrics=measured)
            if chance.random() > 0.05:
                records[chance.random() < 0.05].append(record)
        for host, of_host in zip(("one", "two"), records, strict=True):
            database.record_all(campaign.id, of_host, database.start(campaign.id, host, {}).id)


def pairs(path: Path, metric: str, worst: float) -> list[list[tuple[float, float]]]:
    """The values of baseline and variant in pairs, by point."""
    query = """
        SELECT point, repetition, variant, state, host, value FROM trials JOIN starts ON starts.id = start_id
        LEFT JOIN metrics ON trial_id = trials.id AND endpoint || '.' || metrics.name = ?
        WHERE NOT superseded"""
    groups: dict[tuple[int, int], dict[str, Any]] = {}
    for point, repetition, label, state, host, value in sqlite3.connect(path).execute(query, [metric]):
        counted = {"ok": value, "timeout": worst, "failed": worst}.get(state)
        groups.setdefault((point, repetition), {})[label] = (counted, host)
    by_point: list[list[tuple[float, float]]] = [[] for _ in range(POINTS)]
    for (point, _), arms in sorted(groups.items()):
        if len(arms) == 2 and arms[OFF][1] == arms[FEC][1] and None not in (arms[OFF][0], arms[FEC][0]):
            by_point[point].append((arms[OFF][0], arms[FEC][0]))
    return by_point


def statistic_of(values: Values, statistic: str, more: bool) -> float:
    if statistic != "p95":
        return float({"median": np.median, "mean": np.mean}[statistic](values))
    return sorted(values, reverse=more)[math.ceil(0.95 * len(values)) - 1] if len(values) >= 20 else math.nan


def ratio_of(arms: Values, worst: float) -> Ratio | None:
    baseline, variant = arms
    if math.isnan(baseline) or baseline == 0 or baseline == variant == worst:
        return None
    if worst in (baseline, variant):
        return Ratio(math.inf if (variant == worst) == (worst > 0) else 0.0, True)
    return Ratio(variant / baseline, False)


def average(ratios: Sequence[Ratio], statistic: str) -> list[float]:
    """The average over networks, and its ends: Student's of the logs, or those of the sign test."""
    if statistic == "mean" and all(0 < ratio.value < math.inf and not ratio.is_censored for ratio in ratios):
        return [math.exp(end) for end in students([math.log(ratio.value) for ratio in ratios])]
    ordered = sorted(-math.inf if ratio.is_censored and not ratio.value else ratio.value for ratio in ratios)
    return [max(end, 0.0) for end in signs(ordered)]


def students(values: Values) -> list[float]:
    half = stats.t.ppf(0.975, len(values) - 1) * stats.sem(values) if len(values) > 5 else math.nan
    return [float(np.mean(values) + part * half) if part else float(np.mean(values)) for part in (0, -1, 1)]


def signs(values: Values) -> list[float]:
    ordered, count = sorted(values), len(values)
    beyond = int(stats.binom.ppf(0.025, count, 0.5))  # so many may be beyond each end
    ends = [ordered[beyond - 1], ordered[count - beyond]] if count > 5 else [math.nan, math.nan]
    return [float(np.median(ordered)), *ends]


@pytest.mark.filterwarnings("ignore:invalid value")  # the mean of -∞ and ∞
@pytest.mark.parametrize("statistic", ["median", "mean", "p95"])
@pytest.mark.parametrize("metric", [TIME, STALLS, SHARE])
def test_tables_say_what_sql_does(tmp_path: Path, metric: str, statistic: str) -> None:
    path, more = tmp_path / "planted.sqlite", metric == SHARE
    worst = -math.inf if more else math.inf
    plant(path, metric, statistic)
    with results.open(path) as database:
        (row,) = database["planted"].summary().to_dict("records")
        table = database["planted"].ratios().set_index("point")
    by_point = [list(zip(*rows, strict=True)) or [(), ()] for rows in pairs(path, metric, worst)]
    arms = {n: [statistic_of(arm, statistic, more) for arm in both] for n, both in enumerate(by_point)}
    ratios = {n: ratio for n, both in arms.items() if (ratio := ratio_of(both, worst)) is not None}
    assert row["points"] == len(table) == len(ratios)
    assert table["ratio"].to_dict() == pytest.approx({n: ratio.value for n, ratio in ratios.items()})
    if not ratios:
        return
    expected = average(list(ratios.values()), statistic)
    assert [row[name] for name in ("ratio", "ratio_low", "ratio_high")] == pytest.approx(
        expected, nan_ok=True
    )
    differences = [
        both[0] - both[1]
        for both in arms.values()
        if not (np.isnan(both).any() or both[0] == both[1] == worst)
    ]
    saved = (students if row["average"] == "mean" else signs)(differences)
    saved = saved if np.isfinite(differences).all() else [math.nan] * 3
    assert [row[name] for name in ("saved", "saved_low", "saved_high")] == pytest.approx(saved, nan_ok=True)
    tails = [ratio_of([statistic_of(arm, "p95", more) for arm in by_point[n]], worst) for n in ratios]
    tail = average(one, statistic) if (one := [ratio for ratio in tails if ratio]) else [math.nan] * 3
    assert [row[name] for name in ("p95_ratio", "p95_low", "p95_high")] == pytest.approx(tail, nan_ok=True)
    low, high = (
        table[end].where(table[end].notna(), other) for end, other in (("low", 0), ("high", math.inf))
    )
    below, above = (high < 1 / 1.02).sum(), (low > 1.02).sum()
    equivalent = ((low >= 1 / 1.02) & (high <= 1.02)).sum()
    counts = [row[name] for name in ("helps", "harms", "equivalent", "undecided")]
    effects = [above, below] if more else [below, above]
    assert counts == [*effects, equivalent, len(table) - below - above - equivalent]
