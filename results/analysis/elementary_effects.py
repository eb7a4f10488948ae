"""Elementary effects: how much each factor of a screening changes a ratio.

M. D. Morris: "Factorial sampling plans for preliminary computational experiments", Technometrics 33 (1991);
`mean_size` is the μ* of F. Campolongo, J. Cariboni, A. Saltelli: "An effective screening design for
sensitivity analysis of large models", Environmental Modelling & Software 22 (2007).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fecbench.results.analysis.intervals import LEVEL

COLUMNS = ["workload", "factor", "steps", "planned", "mean", "mean_size", "spread", "chance", "matters"]

_DRAWS = 20_000
_SEED = 0
# An interval of 95 % is so many standard errors wide.
_WIDTH = 2 * 1.96

Floats = NDArray[np.float64]


class Step(Protocol):
    """Two points that differ in one factor: `designs.screening.Step`."""

    @property
    def factor(self) -> str: ...
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def change(self) -> float: ...


def elementary_effects(ratios: pd.DataFrame, steps: Iterable[Step]) -> pd.DataFrame:
    """Return the effect of each factor on the log ratio, from one end of its range to the other.

    `ratios`: `rules.Explanation.averaged`. One row a workload and factor, the largest effect first:

    - `steps`: how many have a ratio at both points, above 0 and below ∞, and how many were `planned`: an
      effect from or to a timeout has no size;
    - `mean`, `mean_size`, `spread`: mean, mean of absolute values and standard deviation of the steps'
      effects, in natural logarithms. A factor whose effect depends on other factors has a spread;
    - `chance`: a `mean_size` that repetitions alone exceed in any row of one screening in twenty, if no
      factor did anything; NaN where ratios have no interval;
    - `matters`: whether `mean_size` exceeds it.
    """
    listed = list(steps)
    rows = []
    for workload, table in ratios.groupby("workload", observed=True):
        usable = table[np.isfinite(table["ratio"]) & (table["ratio"] > 0)].set_index("point")
        logs = np.log(usable["ratio"].astype(float)).to_dict()
        errors = _standard_errors(usable)
        noise = _noise(errors)
        for factor in dict.fromkeys(step.factor for step in listed):
            planned = [step for step in listed if step.factor == factor]
            own = [step for step in planned if {step.start, step.end} <= logs.keys()]
            effects = np.array([(logs[step.end] - logs[step.start]) / step.change for step in own])
            counts = len(own), len(planned)
            rows.append((workload, factor, *counts, *_summary(effects), _chance_sizes(own, noise)))
    level = 1 - LEVEL / max(len(rows), 1)
    table = pd.DataFrame(
        [(*row[:-1], chance := float(np.quantile(row[-1], level)), bool(row[5] > chance)) for row in rows],
        columns=COLUMNS,
    )
    order = table.sort_values("mean_size", ascending=False, kind="stable")
    return order.sort_values("workload", kind="stable", ignore_index=True)


def in_words(row: pd.Series[float]) -> str:
    """Return a row of `elementary_effects` as a sentence."""
    if not row["steps"]:
        where = f"{row['workload']}: the effect of {row['factor']} is not known"
        return f"{where}: none of its {row['planned']:.0f} steps has a ratio at both points"
    mean, size = row["mean"], math.exp(row["mean_size"])
    direction = "in either direction"
    if abs(mean) > 0.9 * row["mean_size"]:
        direction = "upwards" if mean > 0 else "downwards"
    beside = "too few repetitions say what chance does"
    if not math.isnan(row["chance"]):
        more = "more" if row["matters"] else "no more"
        beside = f"{more} than chance, {math.exp(row['chance']):.2f}"
    of_planned = f" of {row['planned']:.0f}" if row["steps"] < row["planned"] else ""
    return (
        f"{row['workload']}: over its range, {row['factor']} changes the ratio by a factor of {size:.2f},"
        f" {direction} ({row['steps']:.0f}{of_planned} steps; {beside})"
    )


def _standard_errors(ratios: pd.DataFrame) -> dict[int, float]:
    """Return the standard error of each point's log ratio; NaN where it has no finite interval above 0."""
    low, high = ratios["low"].to_numpy(float), ratios["high"].to_numpy(float)
    has_interval = np.isfinite(low) & np.isfinite(high) & (low > 0)
    widths = np.full(len(low), math.nan)
    widths[has_interval] = np.log(high[has_interval] / low[has_interval])
    return dict(zip(ratios.index.tolist(), (widths / _WIDTH).tolist(), strict=True))


def _noise(errors: dict[int, float]) -> dict[int, Floats]:
    """Return draws of what repetitions add to each point's log ratio."""
    rng = np.random.default_rng(_SEED)
    return {point: error * rng.standard_normal(_DRAWS) for point, error in errors.items()}


def _chance_sizes(steps: list[Step], noise: dict[int, Floats]) -> Floats:
    """Return draws of a factor's `mean_size` if it did nothing."""
    if not steps:
        return np.full(1, math.nan)
    sizes = [np.abs((noise[step.end] - noise[step.start]) / step.change) for step in steps]
    return np.asarray(np.mean(sizes, axis=0), dtype=np.float64)


def _summary(effects: Floats) -> tuple[float, float, float]:
    if len(effects) == 0:
        return math.nan, math.nan, math.nan
    spread = float(effects.std(ddof=1)) if len(effects) > 1 else math.nan
    return float(effects.mean()), float(np.abs(effects).mean()), spread
