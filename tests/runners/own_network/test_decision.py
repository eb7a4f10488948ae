"""Decisions by the run and by the record, and which of them counts."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from fecbench.results.advice import Advice, CongestionControl, Network, advise
from fecbench.runners.own_network import Run, decided, effects
from fecbench.runners.own_network.own_design import CONTROLLERS, LABELS, NONE, label

MARGIN = 0.06
PLACE = Network(rtt_ms=80, bandwidth_mbps=20, loss=0.02, size_bytes=50_000)


def trials(**factors: float) -> pd.DataFrame:
    """Trials of all arms in 16 networks, 20 each: times of the arm are those of its network by a factor."""
    generator = np.random.default_rng(5)
    rows = []
    for point in range(16):
        for repetition in range(20):
            base = 0.3 * (1 + point / 16) * (3 if generator.random() < 0.1 else 1)
            for control in LABELS:
                for arm in (NONE, *CONTROLLERS):
                    name = label(control, arm)
                    factor = factors.get(name.replace(" ", "_").replace(",", ""), 1.0)
                    factor *= factors.get(control, 1.0)
                    rows.append(
                        (name, point, repetition, "ok", factor * base, 5e4 * (1 + (arm != NONE) / 10))
                    )
    columns = ["variant", "point", "repetition", "state", "client.dct_s", "server.bytes_sent"]
    return pd.DataFrame(rows, columns=columns)


def run(**factors: float) -> Run:
    shown = effects(trials(**factors))
    assert shown is not None
    return shown


@pytest.fixture(scope="module")
def records() -> dict[CongestionControl, Advice]:
    return {control: advise(replace(PLACE, congestion_control=control)) for control in LABELS}


def saying(records: dict[CongestionControl, Advice], answer: str) -> dict[CongestionControl, Advice]:
    use = {"use": {"scheme": "rlc", "controller": "safe"}, "none": {"scheme": "none"}, "nothing": None}[
        answer
    ]
    return {control: replace(advice, answer=answer, use=use) for control, advice in records.items()}  # type: ignore[arg-type]


CASES: list[tuple[dict[str, float], str, dict[str, Any]]] = [
    (
        {"Cubic_safe": 0.85, "Cubic_tail": 0.9},
        "use",
        {"do": "turn FEC on", "controller": "safe", "basis": "run", "agrees": True},
    ),
    ({"Cubic_safe": 0.95, "Cubic_tail": 0.7}, "use", {"do": "turn FEC on", "controller": "tail"}),
    ({}, "none", {"do": "leave FEC off", "basis": "run", "agrees": True}),
    ({}, "use", {"do": "leave FEC off", "basis": "run", "agrees": False}),
    ({"Cubic_tail": 0.9995}, "none", {"do": "leave FEC off", "controller": None, "basis": "run"}),
    ({"Cubic_safe": 1.3, "Cubic_tail": 1.3}, "use", {"do": "leave FEC off", "agrees": False}),
    (
        {"bbr3": 0.5},
        "none",
        {"do": "change the congestion control first", "congestion_control": "bbr3", "controller": None},
    ),
    (
        {"bbr3": 0.5, "BBRv3_safe": 0.8},
        "none",
        {"do": "change the congestion control first", "controller": "safe", "fec": "shortens"},
    ),
    ({"bbr3": 0.97}, "none", {"do": "leave FEC off", "congestion_control": "cubic"}),
]


@pytest.mark.parametrize(("factors", "record", "expected"), CASES, ids=str)
def test_the_run_decides_where_it_can(
    records: dict[CongestionControl, Advice], factors: dict[str, float], record: str, expected: dict[str, Any]
) -> None:
    decision = decided(run(**factors), saying(records, record), "cubic", MARGIN).document()
    assert {name: decision[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("answer", "do"), [("use", "turn FEC on"), ("none", "leave FEC off"), ("nothing", "nothing can be said")]
)
def test_without_a_run_the_record_decides(
    records: dict[CongestionControl, Advice], answer: str, do: str
) -> None:
    decision = decided(None, saying(records, answer), "cubic", MARGIN)
    assert decision.do == do and decision.agrees is None
    assert decision.basis == ("" if answer == "nothing" else "record")
    assert (decision.use is None) == (answer == "nothing")


def noisy(generator: np.random.Generator) -> pd.DataFrame:
    table = trials()
    return table.assign(**{"client.dct_s": table["client.dct_s"] * generator.lognormal(0, 1.5, len(table))})


def test_a_run_that_does_not_decide_leaves_it_to_the_record(records: dict[CongestionControl, Advice]) -> None:
    shown = effects(noisy(np.random.default_rng(1)))
    decision = decided(shown, saying(records, "none"), "cubic", MARGIN)
    assert (decision.do, decision.basis) == ("leave FEC off", "record")
    assert decided(shown, saying(records, "nothing"), "cubic", MARGIN).do == "nothing can be said"


def test_equal_arms_differ_by_chance_in_few_runs() -> None:
    generator = np.random.default_rng(7)
    held = 0
    for _ in range(10):
        shown = effects(noisy(generator))
        assert shown is not None
        ratio = shown.fec["cubic", "safe"].ratio
        held += ratio.low <= 1 <= ratio.high
    assert held >= 8  # of 10 at 95 %, but for 1 of 87 seeds


def test_what_is_saved_is_the_difference_in_milliseconds() -> None:
    table = trials(Cubic_safe=0.8)
    effect = run(Cubic_safe=0.8).fec["cubic", "safe"]
    without = table[table["variant"] == label("cubic", NONE)]["client.dct_s"]
    assert effect.saved_ms.value == pytest.approx(200 * without.mean())
    assert effect.median_saved_ms.value == pytest.approx(200 * without.median())
    assert effect.tail_saved_ms is not None
    assert effect.tail_saved_ms.value == pytest.approx(200 * without.quantile(0.95))
    assert effect.more_bytes == pytest.approx(0.1) and effect.shorter_in == effect.networks == 16
    for number in (effect.saved_ms, effect.median_saved_ms, effect.tail_saved_ms):
        assert 0 < number.low < number.value < number.high


def test_where_networks_alone_differ_the_interval_is_students_of_their_number() -> None:
    """Resampling makes it narrower by √(15/16): 3 %."""
    table = trials()
    is_safe = table["variant"] == label("cubic", "safe")
    places = (table["point"] + 0.5) / 16
    table["client.dct_s"] = np.where(is_safe, 1 + 0.1 * stats.norm.ppf(places), 1.0)
    results = effects(table)
    assert results is not None
    ratio = results.fec["cubic", "safe"].ratio
    of_networks = table[is_safe].groupby("point")["client.dct_s"].first()
    half = stats.t.ppf(0.975, 15) * of_networks.std() / 4
    assert 0.93 < (ratio.high - ratio.low) / (2 * half) < 1.03


def test_bytes_are_of_pairs_that_both_counted_them() -> None:
    table = trials()
    table["server.bytes_sent"] *= 1 + table["point"]
    uncounted = (table["variant"] == label("cubic", "safe")) & (table["point"] > 8)
    table.loc[uncounted, ["state", "server.bytes_sent"]] = ["timeout", np.nan]
    results = effects(table)
    assert results is not None and results.fec["cubic", "safe"].more_bytes == pytest.approx(0.1)


def test_few_pairs_say_nothing_of_the_95th_percentile() -> None:
    table = trials()
    shown = effects(table[table["repetition"] < 5])
    assert shown is not None and shown.fec["cubic", "safe"].tail_saved_ms is None


def test_a_download_that_did_not_end_counts_as_long_as_it_was_waited_for() -> None:
    table = trials(Cubic_safe=0.5)
    first = table.index[table["variant"] == label("cubic", "safe")][:10]
    table.loc[first, ["state", "client.dct_s"]] = ["timeout", np.nan]
    shown = effects(table)
    assert shown is not None and shown.unfinished == 10
    assert shown.fec["cubic", "safe"].ratio.value > 1


def test_a_run_in_which_nothing_ended_says_nothing() -> None:
    table = trials().assign(state="timeout")
    assert effects(table) is None
