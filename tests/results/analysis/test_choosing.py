"""What is chosen of many variants pays where it was not chosen; what cannot be told apart costs little."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from results.analysis.choosing import MARGIN, choices, log_ratios
from results.analysis.intervals import FEWEST
from tests.results.analysis.outcomes import KEYS, OFF, XOR, frame_with

OFF_ARM, CODES = "no FEC", [f"code {i}" for i in range(7)]
COSTS = pd.Series({OFF_ARM: 0.0, **{code: 0.1 + i / 10 for i, code in enumerate(CODES)}})


def logs_of(gains: dict[str, float], points: int, spread: float = 0.3, seed: int = 1) -> pd.DataFrame:
    """Two repetitions of each point: log ratios with these means, and a spread of repetitions."""
    index = pd.MultiIndex.from_product([range(points), range(2)], names=["point", "repetition"])
    random = np.random.default_rng(seed)
    means = [gains.get(code, 0.0) for code in CODES]
    logs = pd.DataFrame(random.normal(means, spread, (len(index), len(CODES))), index, CODES)
    logs.insert(0, OFF_ARM, 0.0)
    return logs


def cells_of(points: int, count: int) -> pd.DataFrame:
    return pd.DataFrame({"cell": np.arange(points) % count})


def test_the_best_of_many_equal_variants_gains_nothing() -> None:
    logs = logs_of({}, 3000)
    table = choices(logs, COSTS, cells_of(3000, 100))
    assert (table["variant"] == OFF_ARM).all()
    best = logs.groupby(np.repeat(np.arange(3000) % 100, 2)).mean().min(axis=1)
    assert best.mean() < -0.05  # which whoever measures it where it was chosen would take for a gain
    assert np.log(table["ratio"]).mean() == pytest.approx(0, abs=0.01)


def test_what_gains_is_found_and_its_interval_holds_the_gain() -> None:
    table = choices(logs_of({"code 3": math.log(0.5)}, 2500), COSTS, cells_of(2500, 100))
    assert (table["variant"] == "code 3").all()
    holds = (table["low"] <= 0.5) & (table["high"] >= 0.5)
    assert holds.mean() > 0.88  # 0.95, but for the chance of 100 cells
    assert (table["points"] == 25).all()


def test_of_variants_that_cannot_be_told_apart_the_cheapest_is_taken() -> None:
    gains = dict.fromkeys(["code 2", "code 5"], math.log(0.5))
    table = choices(logs_of(gains, 1000), COSTS, cells_of(1000, 40))
    assert set(table["variant"]) <= {"code 2", "code 5"}
    assert (table["variant"] == "code 2").mean() > 0.9
    assert (table["as_good"] >= 1).all() and (table["as_good"] == 2).mean() > 0.8


def test_a_sure_gain_below_the_margin_is_not_worth_it() -> None:
    below, above = ({"code 1": math.log1p(-share * MARGIN)} for share in (0.5, 3))
    for gains, taken in ((below, OFF_ARM), (above, "code 1")):
        table = choices(logs_of(gains, 1000, spread=1e-4), COSTS, cells_of(1000, 10))
        assert set(table["variant"]) == {taken}


def test_where_nothing_was_ever_lost_there_is_no_gain_and_no_warning() -> None:
    table = choices(logs_of({}, 100, spread=0.0), COSTS, cells_of(100, 2))
    assert table["variant"].tolist() == [OFF_ARM] * 2
    assert table[["ratio", "low", "high"]].eq(1).all(axis=None)


def test_a_cell_of_too_few_points_says_nothing() -> None:
    logs = logs_of({}, 2 * FEWEST)
    cells = pd.DataFrame({"cell": [0] * (FEWEST - 1) + [1] * (FEWEST + 1)})
    assert choices(logs, COSTS, cells)["cell"].tolist() == [1]
    of_one_repetition = logs[logs.index.get_level_values("repetition") == 0]
    assert choices(of_one_repetition, COSTS, cells).empty


def test_a_timeout_of_one_variant_leaves_its_repetition_out() -> None:
    key = next(key for key in KEYS if key.variant == XOR)
    seconds = {OFF: 2.0, XOR: 3.0}
    outcomes = {each: ("timeout" if each == key else "ok", seconds[each.variant]) for each in KEYS}
    logs = log_ratios(frame_with(outcomes), OFF, [OFF, XOR], "client.dct_s")
    assert (key.workload, key.point, key.repetition) not in logs.index
    assert len(logs) == len(KEYS) / 2 - 1
    assert logs[OFF].eq(0).all()
    assert logs[XOR].to_numpy() == pytest.approx(math.log(1.5))
