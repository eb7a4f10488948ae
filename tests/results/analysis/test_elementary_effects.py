"""Elementary effects: exact where nothing is random, and silent where nothing matters."""

import math
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from pydantic import TypeAdapter

from fecbench.designs.factor import Factor
from fecbench.designs.methods import AnyPlanSettings
from fecbench.designs.planner import make_plan
from fecbench.designs.screening import Step, steps
from fecbench.results.analysis.elementary_effects import elementary_effects, in_words

FACTORS = {name: {"min": 0, "max": 1} for name in "abcd"}
ERROR = 0.05


def screening(trajectories: int, seed: int = 1) -> tuple[pd.DataFrame, list[Step]]:
    checked = TypeAdapter(dict[str, Factor]).validate_python(FACTORS)
    plan = TypeAdapter(AnyPlanSettings).validate_python({"method": "morris", "trajectories": trajectories})
    points = make_plan(plan, checked, seed).points
    return pd.DataFrame(points), steps(points, checked)


def ratios(
    points: pd.DataFrame, log_ratio: Callable[[pd.DataFrame], pd.Series], noise: np.ndarray | float
) -> pd.DataFrame:
    logs = log_ratio(points) + noise
    half = 1.96 * ERROR
    return pd.DataFrame(
        {
            "workload": "download",
            "point": points.index,
            "ratio": np.exp(logs),
            "low": np.exp(logs - half),
            "high": np.exp(logs + half),
        }
    )


def test_a_sum_of_factors_has_its_coefficients_as_effects() -> None:
    points, effects = screening(6)
    table = elementary_effects(ratios(points, lambda x: 0.5 * x["a"] - 2 * x["b"], 0), effects).set_index(
        "factor"
    )
    assert table["mean"].to_dict() == pytest.approx({"a": 0.5, "b": -2, "c": 0, "d": 0}, abs=1e-9)
    assert table["mean_size"].to_dict() == pytest.approx({"a": 0.5, "b": 2, "c": 0, "d": 0}, abs=1e-9)
    assert table["spread"].max() < 1e-9
    assert list(table.index[:2]) == ["b", "a"]
    assert table["matters"].to_dict() == {"a": True, "b": True, "c": False, "d": False}


def test_a_factor_whose_effect_depends_on_another_has_a_spread() -> None:
    points, effects = screening(8)
    table = elementary_effects(ratios(points, lambda x: 2 * x["a"] * (x["b"] - 0.5), 0), effects).set_index(
        "factor"
    )
    assert table.loc["a", "spread"] > 0.5
    assert abs(table.loc["a", "mean"]) < table.loc["a", "mean_size"]
    assert "in either direction" in in_words(table.reset_index().iloc[0])


def test_where_nothing_matters_one_screening_in_twenty_names_a_factor() -> None:
    rng = np.random.default_rng(5)
    points, effects = screening(8)
    named = 0
    for _ in range(100):
        noise = ERROR * rng.standard_normal(len(points))
        named += elementary_effects(ratios(points, lambda x: 0 * x["a"], noise), effects)["matters"].any()
    assert named <= 11  # of 100 with a share of 0.05: more in 1 of 200


def test_steps_without_a_ratio_are_left_out_and_counted() -> None:
    points, effects_found = screening(4)
    table = ratios(points, lambda x: x["a"], 0)
    table.loc[0, "ratio"] = math.inf
    effects = elementary_effects(table, effects_found)
    assert effects["steps"].sum() == len(effects_found) - 1
    assert effects.set_index("factor").loc["a", "mean"] == pytest.approx(1)
    texts = {row["steps"]: in_words(row) for _, row in effects.iterrows()}
    assert "(3 of 4 steps; " in texts[3] and "(4 steps; " in texts[4]
    nothing = elementary_effects(table.assign(ratio=math.inf), effects_found).iloc[0]
    assert "none of its 4 steps has a ratio" in in_words(nothing)


def test_too_few_repetitions_for_an_interval_say_nothing_of_chance() -> None:
    points, effects_found = screening(4)
    table = ratios(points, lambda x: x["a"], 0).assign(low=math.nan, high=math.nan)
    effects = elementary_effects(table, effects_found)
    assert not effects["matters"].any()
    assert "too few repetitions" in in_words(effects.iloc[0])
