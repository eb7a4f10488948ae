"""The choice among several variants: which one to take in which networks, and its gain there.

The rule: the cheapest variant that is not more than the margin worse than the best. So FEC has to show that
it pays. If two codes cannot be told apart, the one with less overhead is taken.

The best of many is the luckiest, too: where it was chosen, it looks better than it is. So half of the
repetitions choose, and the others, which met losses of their own, show the gain of the choice; then they
change places (cross-fitting). Where the halves choose differently, the number is not that of one variant
alone, and the result says so.

The compared quantity is the mean of log ratios, a geometric mean of ratios. Most downloads over a link with
few losses lose nothing, and FEC is an insurance for the others: a median would not see it.

A mean with a failure or a timeout in it is infinitely bad. Without that repetition, the mean would favour a
variant that did not get through. So a variant that failed or timed out is not chosen in that cell, and is
named; the others are compared all the same. Where the variant that they are compared with failed or timed
out, the cell is open.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from fecbench.errors import BadInput
from fecbench.results import metrics
from fecbench.results.analysis.intervals import FEWEST, LEVEL
from fecbench.results.analysis.one_host import of_several_hosts
from fecbench.results.analysis.pairing import PAIR, ratio_of, values_of
from fecbench.results.analysis.quantiles import false_discoveries, t_beyond, t_quantile
from fecbench.results.store.records import DEFAULT_MARGIN

_CHOICE = (
    *("chosen", "as_good", "ratio", "low", "high", "p_value", "halves_agree", "points"),
    *("dropped", "unknown", "timed_out"),
)


def log_ratios(frame: pd.DataFrame, baseline: str, variants: Sequence[str], metric: str) -> pd.DataFrame:
    """One row a (workload, point, repetition) in which the baseline and each of these variants is ok, with a
    value, failed or timed out, all on one host: the logarithm of each one's ratio to the baseline, a
    column a variant, first the baseline's: 0.

    The ratio of a failure or a timeout is that of `results.analysis.pairing`: 0 or ∞, and its logarithm -∞
    or ∞, where one of the two got through; NaN where neither did, and so in the baseline's column where it
    did not.

    Raises BadInput for a metric of which more is better, and for a value of 0 or below, which has no
    logarithm: without its repetition, an arm would be judged by the others.
    """
    compared, values = metrics.of(metric), {}
    if compared.more_is_better:
        raise BadInput(f"metric {metric!r}: more of it is better: choose one of which less is")
    for label in dict.fromkeys([baseline, *variants]):
        of_label = values_of(frame, label, compared)
        values[label] = of_label[of_label["value"].notna()].set_index(PAIR)["value"]
    complete = pd.DataFrame(values).dropna().sort_index()
    complete = complete[~complete.index.isin(of_several_hosts(frame, list(values)))]
    if (complete <= 0).any(axis=None):
        raise BadInput(f"metric {metric!r}: a value is 0 or below, so its ratio has no logarithm")
    logs = {}
    for label in values:
        arms = pd.DataFrame({"baseline": complete[baseline], "variant": complete[label]})
        with np.errstate(divide="ignore"):  # 0, of a timeout of the baseline
            logs[label] = np.log(ratio_of(arms, compared))
    return pd.DataFrame(logs)


def choices(
    logs: pd.DataFrame, costs: pd.Series, cells: pd.DataFrame, margin: float = DEFAULT_MARGIN
) -> pd.DataFrame:
    """Return the variant to take in each cell of the networks, by the `log_ratios` of one workload. The
    first variant is the one that the others are compared with.

    `costs` orders the variants (their overhead, say); `cells` has a row a point, and columns that name its
    cell. `margin`, as a share: a variant that is faster by less is not taken for that; it is the margin of
    the workload (`margins.margins_of`). Result: a row a cell in which FEWEST points or more have repetitions
    of both halves, in order, with

    - `chosen`: by the rule, of all repetitions; `as_good`: the number of variants that the rule could have
      taken;
    - `ratio`, `low`, `high`: the gain, in one half of the repetitions, of the choice of the other half, and
      its interval of confidence 1 - LEVEL over points; `halves_agree`: whether both halves chose `chosen`, or
      else the ratio is not of it alone;
    - `p_value`, that it gained nothing or less;
    - `variant`: `chosen`, where its gain is a discovery: among these cells, no more than the share LEVEL is
      expected to gain nothing (Benjamini and Hochberg 1995); else the first;
    - `points`: compared in the cell; `dropped`: the number of repetitions of the cell, of as many a point as
      `logs` has, that are left out, since not every variant has a value in them, or they were not run;
    - `unknown`: at how many of these points a variant failed or timed out, and `timed_out`: the labels of
      those that did, which are not chosen. Where the first is one of them the cell is open: `chosen` is None,
      nothing is as good, there is no ratio, and `variant` is the first;
    - `margin`.
    """
    names = list(cells.columns)
    timed_out = _timed_out(logs).groupby("point").any()
    is_even = logs.index.get_level_values("repetition") % 2 == 0
    halves = [logs[in_half].groupby("point").mean() for in_half in (is_even, ~is_even)]
    points = halves[0].index.intersection(halves[1].index)
    repetitions = logs.index.get_level_values("repetition").nunique()
    used = logs.groupby("point").size()
    planned = {key: len(cell) * repetitions for key, cell in cells.groupby(names, observed=True)}
    keys = [cells.loc[points, name] for name in names]
    rows = []
    for key, of_cell in points.to_frame().groupby(keys):
        if len(of_cell) >= FEWEST:
            row = _of_cell(
                [half.loc[of_cell.index] for half in halves], costs, timed_out.loc[of_cell.index], margin
            )
            row["dropped"] = planned[key] - int(used[of_cell.index].sum())
            rows.append({**dict(zip(names, key, strict=True)), **row})
    table = pd.DataFrame(rows, columns=[*names, *_CHOICE])
    is_discovery = false_discoveries(table["p_value"].to_numpy(np.float64)) <= LEVEL
    variant = table["chosen"].where(is_discovery, logs.columns[0])
    return table.assign(variant=variant, margin=margin)


def _timed_out(logs: pd.DataFrame) -> pd.DataFrame:
    """Return, in the form of `log_ratios`, whether the variant failed or timed out."""
    baseline_did = logs.iloc[:, 0].isna()
    return logs.isin([-math.inf, math.inf]).where(~baseline_did, logs.isna())


def _of_cell(
    halves: Sequence[pd.DataFrame], costs: pd.Series, timed_out: pd.DataFrame, margin: float
) -> dict[str, object]:
    """Return the row of one cell. `halves` have a row a point, both of the same points, and so has
    `timed_out`: whether a variant failed or timed out there."""
    did = timed_out.any()
    others = [half.loc[:, ~did] for half in halves]
    return {
        **(_OPEN if did.iloc[0] else _choice(others, costs, margin)),
        "points": len(timed_out),
        "unknown": int(timed_out.any(axis=1).sum()),
        "timed_out": tuple(timed_out.columns[did]),
    }


_OPEN = {
    **{"chosen": None, "as_good": 0, "p_value": 1.0, "halves_agree": True},
    **dict.fromkeys(("ratio", "low", "high"), math.nan),
}


def _choice(halves: Sequence[pd.DataFrame], costs: pd.Series, margin: float) -> dict[str, object]:
    """Return the choice in one cell: `halves` have a row a point, both of the same points."""
    choice_of_halves = [min(_as_good(half, margin), key=costs.__getitem__) for half in halves]
    gains = (halves[0][choice_of_halves[1]] + halves[1][choice_of_halves[0]]) / 2
    candidates = _as_good((halves[0] + halves[1]) / 2, margin)
    choice = min(candidates, key=costs.__getitem__)
    mean, error, freedom = float(gains.mean()), float(gains.std() / math.sqrt(len(gains))), len(gains) - 1
    reach = t_quantile(1 - LEVEL / 2, freedom) * error
    far = mean / error if error else math.copysign(math.inf, mean or 1.0)
    return {
        "chosen": choice,
        "as_good": len(candidates),
        "ratio": math.exp(mean),
        "low": math.exp(mean - reach),
        "high": math.exp(mean + reach),
        "p_value": t_beyond(-far, freedom),
        "halves_agree": choice_of_halves == [choice, choice],
    }


def _as_good(values: pd.DataFrame, margin: float) -> list[str]:
    """The best variant, and those that are not more than the margin worse: all but those that take so much
    more, in the mean over points, as chance would make of the margin in no more than the share LEVEL of
    cases."""
    behind = values.sub(values[values.mean().idxmin()], axis=0) - math.log1p(margin)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = behind.mean() / (behind.std() / math.sqrt(len(behind)))
    p_values = [t_beyond(value, len(behind) - 1) for value in t]
    return [str(name) for name, p_value in zip(behind, p_values, strict=True) if not p_value < LEVEL]
