"""Which of several variants to take in which networks, and what it gains there.

The rule: the cheapest variant that is not more than MARGIN worse than the best. So FEC has to show that it
pays, and of two codes that cannot be told apart the one with less overhead is taken.

The best of many is the luckiest, too: where it was chosen, it looks better than it is. So half of the
repetitions choose, and the others, which met losses of their own, tell what the choice gained; then they
change places (cross-fitting).

What is compared is the mean of log ratios, a geometric mean of ratios. Most downloads over a link with few
losses lose nothing, and FEC is an insurance for the others: a median would not see it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import scipy

from results.analysis.intervals import FEWEST, LEVEL
from results.analysis.pairing import paired

MARGIN = 0.01  # what is faster by less is no reason to take it, however sure it is
_CHOICE = ("chosen", "as_good", "ratio", "low", "high", "p_value", "points")
_TRIAL = ["point", "repetition"]


def log_ratios(frame: pd.DataFrame, baseline: str, variants: Sequence[str], metric: str) -> pd.DataFrame:
    """One row a (workload, point, repetition) in which the baseline and all of these variants have a value:
    the logarithm of each one's ratio to the baseline (`pairing.paired`), a column a variant, first the
    baseline's: 0.

    A repetition in which one of them timed out is left out for all: there is no mean of it and numbers.
    """
    columns = {}
    for variant in variants:
        if variant != baseline:
            matched = paired(frame, baseline, variant, metric).matched
            known = matched[~matched["censored"] & matched["ratio"].notna()]
            columns[variant] = np.log(known.set_index(["workload", *_TRIAL])["ratio"])
    logs = pd.DataFrame(columns).dropna()
    logs.insert(0, baseline, 0.0)
    return logs


def choices(logs: pd.DataFrame, costs: pd.Series, cells: pd.DataFrame) -> pd.DataFrame:
    """What to take in each cell of the networks, of the `log_ratios` of one workload. The first variant is
    what the others are compared with.

    `costs` orders the variants (their overhead, say); `cells` has a row a point, and columns that name its
    cell. Result: a row a cell in which FEWEST points or more have repetitions of both halves, in order, with

    - `chosen`: by the rule, of all repetitions; `as_good`: how many variants the rule could have taken;
    - `ratio`, `low`, `high`: what the choice of one half of the repetitions gained in the other, and its
      interval of confidence 1 - LEVEL over points;
    - `p_value`, that it gained nothing or less;
    - `variant`: `chosen`, where that it gains is a discovery: among these cells, no more than the share LEVEL
      is expected to gain nothing (Benjamini and Hochberg 1995); else the first;
    - `points`: in the cell.
    """
    names = list(cells.columns)
    is_even = logs.index.get_level_values("repetition") % 2 == 0
    halves = [logs[chosen].groupby("point").mean() for chosen in (is_even, ~is_even)]
    points = halves[0].index.intersection(halves[1].index)
    keys = [cells.loc[points, name] for name in names]
    rows = [
        {**dict(zip(names, key, strict=True)), **_choice([half.loc[of_cell.index] for half in halves], costs)}
        for key, of_cell in points.to_frame().groupby(keys)
        if len(of_cell) >= FEWEST
    ]
    table = pd.DataFrame(rows, columns=[*names, *_CHOICE])
    is_discovery = scipy.stats.false_discovery_control(table["p_value"].astype("float64")) <= LEVEL
    return table.assign(variant=table["chosen"].where(is_discovery, logs.columns[0]))


def _choice(halves: Sequence[pd.DataFrame], costs: pd.Series) -> dict[str, object]:
    """Of one cell: `halves` have a row a point, both of the same points."""
    taken = [min(_as_good(half), key=costs.__getitem__) for half in halves]
    gains = (halves[0][taken[1]] + halves[1][taken[0]]) / 2
    candidates = _as_good((halves[0] + halves[1]) / 2)
    error, freedom = float(gains.std() / math.sqrt(len(gains))), len(gains) - 1
    reach = scipy.stats.t.ppf(1 - LEVEL / 2, freedom) * error
    return {
        "chosen": min(candidates, key=costs.__getitem__),
        "as_good": len(candidates),
        "ratio": math.exp(gains.mean()),
        "low": math.exp(gains.mean() - reach),
        "high": math.exp(gains.mean() + reach),
        "p_value": float(scipy.stats.t.cdf(gains.mean() / error, freedom)) if error else 1.0,
        "points": len(gains),
    }


def _as_good(values: pd.DataFrame) -> list[str]:
    """The best variant, and those that are not more than MARGIN worse: all but those that take so much more,
    in the mean over points, as chance would make of MARGIN in no more than the share LEVEL of cases."""
    behind = values.sub(values[values.mean().idxmin()], axis=0) - math.log1p(MARGIN)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = behind.mean() / (behind.std() / math.sqrt(len(behind)))
    p_values = scipy.stats.t.sf(t, len(behind) - 1)
    return [str(name) for name, p_value in zip(behind, p_values, strict=True) if not p_value < LEVEL]
