"""Which of several variants to take in which networks, and what it gains there.

The rule: the cheapest variant that is not more than MARGIN worse than the best. So FEC has to show that it
pays, and of two codes that cannot be told apart the one with less overhead is taken.

The best of many is the luckiest, too: where it was chosen, it looks better than it is. So half of the
repetitions choose, and the others, which met losses of their own, tell what the choice gained; then they
change places (cross-fitting).

What is compared is the mean of log ratios, a geometric mean of ratios. Most downloads over a link with few
losses lose nothing, and FEC is an insurance for the others: a median would not see it.

A mean with a timeout in it is unknown, and without the repetition it would favour whoever timed out. So
nothing is chosen where one of the variants timed out: such a cell is open, and says who did.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import scipy

from results import metrics
from results.analysis.intervals import FEWEST, LEVEL
from results.analysis.pairing import PAIR, ratio_of, values_of

MARGIN = 0.01  # what is faster by less is no reason to take it, however sure it is
_CHOICE = ("chosen", "as_good", "ratio", "low", "high", "p_value", "points", "unknown", "timed_out")


def log_ratios(frame: pd.DataFrame, baseline: str, variants: Sequence[str], metric: str) -> pd.DataFrame:
    """One row a (workload, point, repetition) in which the baseline and each of these variants is ok, with a
    value above 0, or timed out: the logarithm of each one's ratio to the baseline, a column a variant, first
    the baseline's: 0.

    Of a timeout, the ratio is that of `results.analysis.pairing`: 0 or ∞, and its logarithm -∞ or ∞, where
    one of the two timed out; NaN where both did, and so in the baseline's column where it did.
    """
    compared, values = metrics.of(metric), {}
    for label in dict.fromkeys([baseline, *variants]):
        of_label = values_of(frame, label, compared)
        values[label] = of_label[of_label["missing"] == ""].set_index(PAIR)["value"]
    known = pd.DataFrame(values).dropna().sort_index()
    known = known[(known != 0).all(axis=1)]
    logs = {}
    for label in values:
        arms = pd.DataFrame({"baseline": known[baseline], "variant": known[label]})
        with np.errstate(divide="ignore"):
            logs[label] = np.log(ratio_of(arms, compared))
    return pd.DataFrame(logs)


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
    - `points`: in the cell; `unknown`: at how many of them a variant timed out, and `timed_out`: the labels
      of those that did. Where there is such a point the cell is open: `chosen` is None, nothing is as good,
      there is no ratio, and `variant` is the first. Without those that timed out, the others can be compared.
    """
    names = list(cells.columns)
    timed_out = _timed_out(logs).groupby("point").any()
    is_even = logs.index.get_level_values("repetition") % 2 == 0
    halves = [logs[chosen].groupby("point").mean() for chosen in (is_even, ~is_even)]
    points = halves[0].index.intersection(halves[1].index)
    keys = [cells.loc[points, name] for name in names]
    rows = []
    for key, of_cell in points.to_frame().groupby(keys):
        if len(of_cell) >= FEWEST:
            of_timeouts = timed_out.loc[of_cell.index]
            of_halves = [half.loc[of_cell.index] for half in halves]
            found = _open(of_timeouts) if of_timeouts.any(axis=None) else _choice(of_halves, costs)
            rows.append({**dict(zip(names, key, strict=True)), **found})
    table = pd.DataFrame(rows, columns=[*names, *_CHOICE])
    is_discovery = scipy.stats.false_discovery_control(table["p_value"].astype("float64")) <= LEVEL
    return table.assign(variant=table["chosen"].where(is_discovery, logs.columns[0]))


def _timed_out(logs: pd.DataFrame) -> pd.DataFrame:
    """Of `log_ratios`, in the same form: whether the variant timed out."""
    baseline_did = logs.iloc[:, 0].isna()
    return logs.isin([-math.inf, math.inf]).where(~baseline_did, logs.isna())


def _open(timed_out: pd.DataFrame) -> dict[str, object]:
    """Of one cell, in which variants timed out: `timed_out` says which did, with a row a point."""
    return {
        "chosen": None,
        "as_good": 0,
        **dict.fromkeys(("ratio", "low", "high"), math.nan),
        "p_value": 1.0,
        "points": len(timed_out),
        "unknown": int(timed_out.any(axis=1).sum()),
        "timed_out": tuple(timed_out.columns[timed_out.any()]),
    }


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
        "unknown": 0,
        "timed_out": (),
    }


def _as_good(values: pd.DataFrame) -> list[str]:
    """The best variant, and those that are not more than MARGIN worse: all but those that take so much more,
    in the mean over points, as chance would make of MARGIN in no more than the share LEVEL of cases."""
    behind = values.sub(values[values.mean().idxmin()], axis=0) - math.log1p(MARGIN)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = behind.mean() / (behind.std() / math.sqrt(len(behind)))
    p_values = scipy.stats.t.sf(t, len(behind) - 1)
    return [str(name) for name, p_value in zip(behind, p_values, strict=True) if not p_value < LEVEL]
