"""The best of many variants pays where it was not chosen; a choice among equal ones costs little."""

import math

import numpy as np
import pandas as pd
import pytest

from fecbench.errors import BadInput
from fecbench.results.analysis.choosing import choices, log_ratios
from fecbench.results.analysis.intervals import FEWEST
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
    for margin, taken in ((0.01, "code 1"), (0.02, "code 1"), (0.04, OFF_ARM)):
        logs = logs_of({"code 1": math.log(0.97)}, 1000, spread=1e-4)
        table = choices(logs, COSTS, cells_of(1000, 10), margin)
        assert set(table["variant"]) == {taken}
        assert set(table["margin"]) == {margin}


def test_where_nothing_was_ever_lost_there_is_no_gain_and_no_warning() -> None:
    table = choices(logs_of({}, 100, spread=0.0), COSTS, cells_of(100, 2))
    assert table["variant"].tolist() == [OFF_ARM] * 2
    assert table[["ratio", "low", "high"]].eq(1).all(axis=None)


def test_a_gain_without_any_spread_is_a_discovery() -> None:
    table = choices(logs_of({"code 1": math.log(0.5)}, 100, spread=0.0), COSTS, cells_of(100, 2))
    assert table["variant"].tolist() == ["code 1"] * 2
    assert table[["ratio", "low", "high"]].to_numpy() == pytest.approx(0.5)
    harm = choices(logs_of(dict.fromkeys(CODES, math.log(2)), 100, spread=0.0), COSTS, cells_of(100, 2))
    assert harm["variant"].tolist() == [OFF_ARM] * 2


@pytest.mark.parametrize("value", [0.0, -1.0])
def test_values_without_a_logarithm_are_refused_and_not_left_out(value: float) -> None:
    outcomes = {key: ("ok", value if key == KEYS[0] else 2.0) for key in KEYS}
    with pytest.raises(BadInput, match=r"'client\.dct_s': a value is 0 or below"):
        log_ratios(frame_with(outcomes), OFF, [OFF, XOR], "client.dct_s")


def test_a_metric_of_which_more_is_better_is_refused() -> None:
    frame = frame_with(dict.fromkeys(KEYS, ("ok", 2.0))).assign(**{"messages.on_time_ratio_50ms": 1.0})
    with pytest.raises(BadInput, match=r"'messages\.on_time_ratio_50ms': more of it is better"):
        log_ratios(frame, OFF, [OFF, XOR], "messages.on_time_ratio_50ms")


def test_a_cell_of_too_few_points_says_nothing() -> None:
    logs = logs_of({}, 2 * FEWEST)
    cells = pd.DataFrame({"cell": [0] * (FEWEST - 1) + [1] * (FEWEST + 1)})
    assert choices(logs, COSTS, cells)["cell"].tolist() == [1]
    of_one_repetition = logs[logs.index.get_level_values("repetition") == 0]
    assert choices(of_one_repetition, COSTS, cells).empty


def test_a_timeout_is_infinitely_worse_and_which_of_two_is_worse_nobody_can_tell() -> None:
    workload, point = KEYS[0].workload, KEYS[0].point
    timeouts = {(XOR, 0), (OFF, 1), (OFF, 2), (XOR, 2)}
    seconds = {OFF: 2.0, XOR: 3.0}
    outcomes = {
        key: (
            "timeout"
            if (key.workload, key.point) == (workload, point) and (key.variant, key.repetition) in timeouts
            else "ok",
            seconds[key.variant],
        )
        for key in KEYS
    }
    logs = log_ratios(frame_with(outcomes), OFF, [OFF, XOR], "client.dct_s")
    assert len(logs) == len(KEYS) / 2
    at_point = logs.loc[workload, point]
    np.testing.assert_equal(at_point[XOR].to_numpy(), [math.inf, -math.inf, math.nan])
    np.testing.assert_equal(at_point[OFF].to_numpy(), [0, math.nan, math.nan])
    others = logs.drop(at_point.index.map(lambda repetition: (workload, point, repetition)))
    assert others[OFF].eq(0).all()
    assert others[XOR].to_numpy() == pytest.approx(math.log(1.5))


def test_a_repetition_that_one_variant_failed_in_is_there_and_one_that_is_invalid_is_not() -> None:
    key = next(key for key in KEYS if key.variant == XOR)
    for state, is_there in (("failed", True), ("invalid", False)):
        outcomes = {key_of_trial: (state if key_of_trial == key else "ok", 2.0) for key_of_trial in KEYS}
        logs = log_ratios(frame_with(outcomes), OFF, [OFF, XOR], "client.dct_s")
        assert ((key.workload, key.point, key.repetition) in logs.index) == is_there
        assert len(logs) == len(KEYS) / 2 - (not is_there)


def trials_of(logs: pd.DataFrame) -> pd.DataFrame:
    """Trials that have these log ratios, of a baseline of 1 s."""
    times = np.exp(logs).rename_axis(columns="variant").stack().rename("client.dct_s").reset_index()  # type: ignore[attr-defined]
    return times.assign(workload="download", state="ok")


def test_a_variant_does_not_gain_by_timing_out_where_it_is_slow() -> None:
    """The variant is faster in most networks and mostly times out in the others: on average, it harms."""
    logs = logs_of({"code 1": math.log(0.5)}, 100, spread=0.1)
    hard = logs.index.get_level_values("point") % 4 == 0
    logs.loc[hard, "code 1"] += 10
    frame = trials_of(logs)
    honest = choices(
        log_ratios(frame, OFF_ARM, list(logs), "client.dct_s").droplevel("workload"), COSTS, cells_of(100, 1)
    )
    assert honest["variant"].tolist() == [OFF_ARM]
    timed_out = (frame["variant"] == "code 1") & (frame["client.dct_s"] > 60)
    frame.loc[timed_out, "state"] = "timeout"
    (cell,) = choices(compared(frame), COSTS, cells_of(100, 1)).to_dict("records")
    assert (cell["variant"], cell["chosen"]) == (OFF_ARM, OFF_ARM)
    assert (cell["points"], cell["unknown"], cell["timed_out"]) == (100, 25, ("code 1",))


def compared(frame: pd.DataFrame) -> pd.DataFrame:
    return log_ratios(frame, OFF_ARM, [OFF_ARM, *CODES], "client.dct_s").droplevel("workload")


def test_a_variant_that_does_not_get_through_in_two_of_five_trials_is_not_chosen() -> None:
    """The variant is the fastest by far when it ends, but the second is chosen, by all repetitions."""
    for state in ("failed", "timeout"):
        gains = {"code 1": math.log(0.5), "code 2": math.log(0.9)}
        frame = trials_of(logs_of(gains, 60, spread=0.1))
        (of_all,) = choices(compared(frame), COSTS, cells_of(60, 1)).to_dict("records")
        assert of_all["variant"] == "code 1", state
        number = 2 * frame["point"] + frame["repetition"]
        frame.loc[(frame["variant"] == "code 1") & (number % 5 < 2), "state"] = state
        (cell,) = choices(compared(frame), COSTS, cells_of(60, 1)).to_dict("records")
        assert cell["variant"] == "code 2", state
        assert cell["low"] < 0.9 < cell["high"], state
        assert (cell["timed_out"], cell["points"], cell["dropped"]) == (("code 1",), 60, 0), state
        without = frame[frame["variant"] != "code 1"]
        logs = log_ratios(without, OFF_ARM, [OFF_ARM, *CODES[:1], *CODES[2:]], "client.dct_s")
        (alone,) = choices(logs.droplevel("workload"), COSTS, cells_of(60, 1)).to_dict("records")
        assert alone["ratio"] == cell["ratio"], state


def test_repetitions_without_a_value_of_every_variant_are_counted() -> None:
    frame = trials_of(logs_of({}, 20))
    code = frame["variant"] == "code 1"
    frame.loc[code & (frame["point"] == 3), "state"] = "invalid"  # of both halves: the point is not compared
    frame.loc[code & (frame["point"] == 4) & (frame["repetition"] == 0), "state"] = "unsupported"
    table = choices(compared(frame), COSTS, cells_of(20, 2))
    assert table["points"].tolist() == [9, 9]
    assert table["dropped"].tolist() == [2, 2]


def test_a_number_that_is_not_of_the_chosen_variant_alone_is_marked() -> None:
    """Half of the repetitions see one code as the best, the other half another one."""
    logs = logs_of({}, 100, spread=1e-3)
    is_even = logs.index.get_level_values("repetition") == 0
    logs.loc[is_even, "code 1"] += math.log(0.5)
    logs.loc[~is_even, "code 2"] += math.log(0.6)
    (cell,) = choices(logs, COSTS, cells_of(100, 1)).to_dict("records")
    assert not cell["halves_agree"]
    of_both = logs_of({"code 1": math.log(0.5)}, 100, spread=1e-3)
    assert choices(of_both, COSTS, cells_of(100, 1))["halves_agree"].tolist() == [True]


def test_timeouts_of_the_baseline_alone_leave_their_cell_open_and_no_other() -> None:
    logs = logs_of({"code 1": math.log(0.5)}, 100, spread=0.1)
    frame = trials_of(logs)
    of_cell = frame["point"] == 1
    frame.loc[of_cell & (frame["variant"] == OFF_ARM), "state"] = "timeout"
    logs_of_frame = log_ratios(frame, OFF_ARM, list(logs), "client.dct_s").droplevel("workload")
    table = choices(logs_of_frame, COSTS, cells_of(100, 2))
    assert table["variant"].tolist() == ["code 1", OFF_ARM]
    assert table["unknown"].tolist() == [0, 1]
    assert table["timed_out"].tolist() == [(), (OFF_ARM,)]
