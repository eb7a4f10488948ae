"""Where does FEC help? Which factors drive a paired ratio over a design, as rules that a person can read.

The median log ratio is described by a shallow regression tree over the factors of the points and the
parameters of the workloads. A tree finds something in any noise, so it is believed only when it predicts
points that it has not seen better than it would if no factor mattered. The unit is always the point, since
the workloads of a point meet the same losses: points are held out, flipped and counted whole.

A rule is a leaf of the tree, and its number is what a reader would count: the median of exactly the points
that meet its conditions. But a tree has its thresholds where they part these points best, so that the ratios
in its leaves are farther from each other than those of other points would be. So intervals are wider than
those of points that nobody chose, and a rule is left out which trees contradict that have not seen its points
(`_is_contradicted`).

With fewer than FEWEST_POINTS points, or without such evidence, there is no rule but a sentence that says why,
with the rank correlations of the factors.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestRegressor
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.model_selection import GroupKFold
from sklearn.tree import DecisionTreeRegressor

from fecbench.results import metrics
from fecbench.results.analysis.correlations import in_words, rank_correlations
from fecbench.results.analysis.intervals import LEVEL, median_ratio_interval, of_campaign, verdicts
from fecbench.results.analysis.pairing import Pairing, median_ratio
from fecbench.results.analysis.units import number, quantity
from fecbench.results.store.records import CampaignInfo

FEWEST_POINTS = 30
_DEPTH = 3  # more conditions are hard to read
_LEAVES = (2, 3, 4, 5, 6)
_TESTED_LEAVES = 4
_LEAST_SHARE = 0.08  # of the ratios in a leaf: a rule about fewer is an anecdote
_LEAST_RATIOS = 8
_LEAST_CENSORED = math.log(2)  # a ratio that is 0 or ∞ is at least this far from 1, beside others that are 1
_FOLDS = 5
_FLIPS = 99
_TREES = 100
_GRID = 40
# What takes as long as it has ratios has no more than these: many more make it no surer.
_MOST_TESTED_POINTS = 1000
_MOST_IN_A_TREE = 5000  # of a forest; each of its trees draws others
_MOST_SHUFFLED = 2000  # at a time
_FEW_VALUES = 10
_SEED = 0
_HONEST_SEED = 1  # other folds than those by which a tree is believed
# So that intervals of rules hold what is true with confidence 1 - LEVEL in trees that are believed: these are
# the trees for which the points happened to speak, and no fold of the same points undoes that.
_HONEST_LEVEL = 0.003

Floats = NDArray[np.float64]

_Step = tuple[int, float, bool]  # the index of a factor, a threshold, and whether the factor is at most it


_WORDS = {
    "gain": "helps in the median",
    "harm": "harms in the median",
    "equivalent": "no difference that matters in the median",
    "undecided": "undecided",
}


class NothingToExplain(ValueError):
    """Says in one sentence why a ratio cannot be explained at all."""


@dataclass(frozen=True)
class Rule:
    """What the ratio is at the points that meet some conditions."""

    conditions: tuple[str, ...]
    """All hold ("loss.p ≥ 2.1 %"); none: everywhere."""
    ratio: float
    """The median over the points that meet the conditions; 0 or ∞ where an arm timed out at a half of them
    and more, NaN where it may be anything, or where there is none."""
    low: float
    """With `high`, the interval of this median, of confidence 1 - LEVEL; NaN for too few points."""
    high: float
    verdict: str
    """Of `intervals.VERDICTS`: what the interval says against the margin of the comparison."""
    points: int
    """That meet the conditions."""
    ratios: int
    """One a workload and point."""
    planned_ratios: int
    """As many the design has: what is missing timed out, failed or was not run, and may be unlike the
    rest."""

    def __str__(self) -> str:
        where = " and ".join(self.conditions) or "everywhere"
        interval = "no interval" if math.isnan(self.low) else f"{number(self.low)}, {number(self.high)}"
        missing = f", {self.of_planned}" if self.ratios < self.planned_ratios else ""
        ratio = "unknown" if math.isnan(self.ratio) else number(self.ratio)
        return f"{where}: ratio {ratio} [{interval}], {self.points} points{missing}: {self.says}"

    @property
    def says(self) -> str:
        """Its verdict in words. It is that of the median: single points may go the other way."""
        return _WORDS[self.verdict]

    @property
    def of_planned(self) -> str:
        return f"{self.ratios} of {self.planned_ratios} ratios"


@dataclass(frozen=True)
class Explanation:
    """What drives the ratio of a metric."""

    campaign: str
    """Its name, and how its trials were run."""
    metric: str
    """As in frames: "client.dct_s"."""
    table: pd.DataFrame
    """One row a (workload, point): the columns of `intervals.ratio_intervals`, and each factor that
    varies."""
    factors: tuple[str, ...]
    """The names of the factors that vary."""
    scales: Mapping[str, str]
    """`CampaignInfo.scales`."""
    everywhere: Rule
    """The ratio over all points."""
    p_value: float
    """Of a tree that predicts as well when no factor matters; NaN when it was not tested."""
    rules: tuple[Rule, ...]
    """The leaves of the tree that no others contradict, the greatest gain first; empty when there is no
    evidence."""
    left_out: tuple[Rule, ...]
    """The other leaves: with `rules`, they part all points."""
    sentence: str
    """What was found out, or why there is no rule."""
    correlations: pd.DataFrame
    """`correlations.rank_correlations` of the factors and of combinations; empty with too few points."""
    importances: pd.DataFrame
    """One row a factor, greatest first: `factor`, `importance` (by how much of itself the error of a forest
    on points that it has not seen grows when the factor is shuffled), empty with too few points."""
    effects: Mapping[str, pd.DataFrame]
    """Partial dependence by factor: columns `value` and `ratio`, the forest's mean prediction."""
    surfaces: Mapping[str, pd.DataFrame]
    """By workload, partial dependence on the two strongest factors of the points: the index holds the values
    of the strongest, the columns those of the next, both with the factor's name. None with too few points
    or factors."""


def explain(pairing: Pairing, campaign: CampaignInfo) -> Explanation:
    """Explain the ratios of a comparison by one metric, by the factors of the campaign's design.

    Deterministic. Raises NothingToExplain when no pair has a ratio, ratios are of several metrics, a ratio is
    0 though no arm timed out, or nothing varies.
    """
    if pairing.ratios.empty:
        raise NothingToExplain(f"no pair has a ratio: {_reasons(pairing.unpaired)}")
    names = list(pairing.ratios["metric"].unique())
    if len(names) > 1:
        raise NothingToExplain(f"different metrics are compared ({', '.join(names)}): choose one of them")
    metric = metrics.of(names[0])
    ratios = of_campaign(pairing, campaign)
    if not (ratios["censored"] | np.isfinite(ratios["ratio"]) & (ratios["ratio"] > 0)).all():
        raise NothingToExplain(f"{metric.name} is 0 at some points, so that its ratio has no logarithm")
    factors = _factors(ratios, campaign)
    if factors.empty and len(campaign.points) > 1:
        raise NothingToExplain("neither a factor nor a parameter of the workloads varies")
    table = pd.concat([ratios, factors], axis=1)
    varied = tuple(factors.columns)
    planned = _values(_planned(campaign), campaign)[list(varied)].to_numpy(np.float64)
    everywhere = _rule([], table, LEVEL, len(planned))
    unexplained = Explanation(
        campaign=campaign.heading,
        metric=metric.name,
        table=table,
        factors=varied,
        scales=campaign.scales,
        everywhere=everywhere,
        p_value=math.nan,
        rules=(),
        left_out=(),
        sentence="",
        correlations=pd.DataFrame({"factor": [], "rho": [], "p_value": []}),
        importances=pd.DataFrame({"factor": [], "importance": []}),
        effects={},
        surfaces={},
    )
    if everywhere.points < FEWEST_POINTS:
        sentence = f"Too few points for a rule: {everywhere.points}, and {FEWEST_POINTS} are needed."
        return replace(unexplained, sentence=sentence)
    data = _Data(factors.to_numpy(np.float64), _logs(ratios["ratio"]), ratios["point"].to_numpy())
    forest, importances = _forest(data), _importances(data, varied)
    correlations = rank_correlations(factors, data.logs, data.points)
    ranked = replace(
        unexplained,
        correlations=correlations,
        importances=importances,
        effects=_effects(forest, data, varied),
        surfaces=_surfaces(forest, table, varied, list(importances["factor"])),
    )
    p_value = _p_value(_some_points(data, _MOST_TESTED_POINTS))
    told = in_words(correlations, LEVEL)
    if p_value > LEVEL:
        sentence = f"No rule: no tree predicts points that it has not seen (p = {p_value:.2g}). {told}"
        return replace(ranked, p_value=p_value, sentence=sentence)
    rules, left_out = _rules(table, factors, planned, data)
    rules.sort(key=lambda rule: float(np.nan_to_num(rule.ratio, nan=1)), reverse=metric.more_is_better)
    if not rules:
        sentence = (
            "No rule: each has too few points, or trees fitted without its points contradict it"
            f" (p = {p_value:.2g}). {told}"
        )
    elif left_out:
        sentence = (
            f"The factors drive the ratio (p = {p_value:.2g}). Not printed: {len(left_out)} of"
            f" {len(rules) + len(left_out)} rules, for too few points, or because trees fitted without their"
            " points contradict them."
        )
    else:
        sentence = f"The factors drive the ratio (p = {p_value:.2g})."
    return replace(ranked, p_value=p_value, rules=tuple(rules), left_out=tuple(left_out), sentence=sentence)


def _rules(
    table: pd.DataFrame, factors: pd.DataFrame, planned: Floats, data: _Data
) -> tuple[list[Rule], list[Rule]]:
    """The leaves of a tree of these points as rules: those to print, and those that others contradict."""
    tree = _tree(data, _leaves(data))
    of_row, of_planned = tree.apply(data.factors), tree.apply(planned)
    honest = _honest_leaves(tree, data)
    kept: list[tuple[Rule, float]] = []  # with the median of the rows that other trees put there
    left_out: list[Rule] = []
    for leaf, path in _paths(tree.tree_, 0, ()):
        rows, planned_ratios = table[of_row == leaf], int((of_planned == leaf).sum())
        rule = _rule(_conditions(path, factors), rows, _HONEST_LEVEL, planned_ratios)
        if _is_contradicted(rule, rows, table[honest == leaf]):
            left_out.append(rule)
        else:
            kept.append((rule, median_ratio(table[honest == leaf])))
    rules: list[Rule] = []
    for rule, median in kept:
        in_order = all(
            not (rule.ratio < other.ratio and median > of_other)
            and not (rule.ratio > other.ratio and median < of_other)
            for other, of_other in kept
        )
        (rules if in_order else left_out).append(rule)
    return rules, left_out


def _is_contradicted(rule: Rule, rows: pd.DataFrame, honest: pd.DataFrame) -> bool:
    """Whether the rule says what trees deny that have not seen its points: `rows` meet its conditions, and
    those trees put the rows `honest` there.

    So it is where they put too few there, or rows whose median is outside the rule's interval. Two rules are
    left out, too, which those trees have in the other order (`_rules`).
    """
    if math.isnan(rule.low) or len(honest) < _LEAST_RATIOS:
        return True
    _, low, high = median_ratio_interval(rows, rows["point"], LEVEL)
    return not low <= median_ratio(honest) <= high


def _logs(ratios: pd.Series) -> Floats:
    """The log ratios. One that is 0 or ∞, since an arm timed out, counts as the farthest from 1 that is a
    number: how far it is beyond, nobody knows, and medians do not ask."""
    with np.errstate(divide="ignore"):
        logs = np.log(ratios.to_numpy(np.float64))
    farthest = np.abs(logs[np.isfinite(logs)]).max(initial=_LEAST_CENSORED)
    censored: Floats = np.clip(logs, -farthest, farthest)
    return censored


def _reasons(unpaired: pd.DataFrame) -> str:
    by_reason = unpaired.groupby("reason")["repetitions"].sum()
    return ", ".join(f"{reason} ({count})" for reason, count in by_reason.items()) or "no trial was run"


def _planned(campaign: CampaignInfo) -> pd.DataFrame:
    """Every (workload, point) of the design, one row each."""
    labels = [workload["label"] for workload in campaign.workloads]
    return pd.DataFrame(product(labels, range(len(campaign.points))), columns=["workload", "point"])


def _factors(ratios: pd.DataFrame, campaign: CampaignInfo) -> pd.DataFrame:
    """The `_values` that vary among these ratios."""
    factors = _values(ratios, campaign)
    return factors.loc[:, factors.nunique() > 1]


def _values(ratios: pd.DataFrame, campaign: CampaignInfo) -> pd.DataFrame:
    """Each factor of the points and parameter of the workloads, one column each, one row a (workload, point):
    numbers as they are, and "name is value" as 0 or 1."""
    kinds = {(workload["name"], *workload["parameters"]) for workload in campaign.workloads}
    of_workload = {
        workload["label"]: workload["parameters"] if len(kinds) == 1 else {"workload": workload["label"]}
        for workload in campaign.workloads
    }
    rows = [
        campaign.points[point] | of_workload[workload]
        for point, workload in zip(ratios["point"], ratios["workload"], strict=True)
    ]
    columns: dict[str, Any] = {}
    for name, values in pd.DataFrame(rows, index=ratios.index).items():
        if pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values):
            columns[str(name)] = values
        else:
            columns |= {f"{name} is {value}": values == value for value in sorted(set(values), key=str)}
    return pd.DataFrame(columns, index=ratios.index, dtype=np.float64)


@dataclass(frozen=True)
class _Data:
    """factors: ratios × factors; logs: of the ratios; points: the point of each ratio."""

    factors: Floats
    logs: Floats
    points: NDArray[np.int64]


def _some_points(data: _Data, most: int) -> _Data:
    """The ratios of so many points, chosen by chance alone; all, of fewer."""
    names = np.unique(data.points)
    chosen = np.random.default_rng(_SEED).permutation(names)[:most]
    rows = np.isin(data.points, chosen)
    return _Data(data.factors[rows], data.logs[rows], data.points[rows])


def _folds(data: _Data, seed: int = _SEED) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Rows to learn from and rows to predict; a point is in one of them only."""
    folds: Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]] = GroupKFold(
        _FOLDS, shuffle=True, random_state=seed
    ).split(data.factors, groups=data.points)
    return folds


def _tree(data: _Data, leaves: int) -> DecisionTreeRegressor:
    """Of medians, not means: one loss more or less can cost a timeout, so log ratios have heavy tails."""
    least = max(_LEAST_RATIOS, math.ceil(_LEAST_SHARE * len(data.logs)))
    tree = DecisionTreeRegressor(
        criterion="absolute_error",
        max_depth=_DEPTH,
        max_leaf_nodes=leaves,
        min_samples_leaf=least,
        random_state=_SEED,
    )
    return tree.fit(data.factors, data.logs)


def _errors(data: _Data, leaves: int) -> Floats:
    """The absolute error of each log ratio, predicted by a tree that has not seen its point."""
    errors = np.empty(len(data.logs))
    for known, unknown in _folds(data):
        seen = _Data(data.factors[known], data.logs[known], data.points[known])
        errors[unknown] = np.abs(data.logs[unknown] - _tree(seen, leaves).predict(data.factors[unknown]))
    return errors


def _p_value(data: _Data) -> float:
    """How often a tree predicts as well when no factor matters.

    Then log ratios are symmetric about one median everywhere, however their spread depends on the factors,
    and the signs of the residuals of whole points can be flipped (Winkler et al., "Permutation inference for
    the general linear model", NeuroImage 92, 2014).
    """
    random = np.random.default_rng(_SEED)
    centred = replace(data, logs=data.logs - np.median(data.logs))
    names, of_row = np.unique(data.points, return_inverse=True)
    observed = _explained(centred)
    as_good, enough = 0, LEVEL * (1 + _FLIPS)
    signs = random.choice([-1.0, 1.0], (_FLIPS, len(names)))
    flipped = (replace(centred, logs=flips[of_row] * centred.logs) for flips in signs)
    threads = ThreadPoolExecutor(os.cpu_count())  # trees grow without the interpreter's lock
    try:
        for flips, share in enumerate(threads.map(_explained, flipped), start=1):
            as_good += share >= observed
            # No evidence, however many follow (Besag and Clifford, Biometrika 78, 1991).
            if as_good >= enough:
                return as_good / flips
        return (1 + as_good) / (1 + _FLIPS)
    finally:
        threads.shutdown(cancel_futures=True)


def _explained(data: _Data) -> float:
    """The share of the absolute deviation from the median that a tree predicts, of points it has not seen."""
    deviation = np.abs(data.logs - np.median(data.logs)).sum()
    return float(1 - _errors(data, _TESTED_LEAVES).sum() / deviation) if deviation else 0.0


def _leaves(data: _Data) -> int:
    """The fewest leaves whose error is within one standard error of the best (Breiman et al., "Classification
    and Regression Trees", 1984, §3.4.3)."""
    of_points = [pd.Series(_errors(data, leaves)).groupby(data.points).mean() for leaves in _LEAVES]
    best = min(of_points, key=lambda errors: float(errors.mean()))
    bound = best.mean() + best.std() / math.sqrt(len(best))
    return next(leaves for leaves, errors in zip(_LEAVES, of_points, strict=True) if errors.mean() <= bound)


def _honest_leaves(tree: DecisionTreeRegressor, data: _Data) -> NDArray[np.int64]:
    """The leaf of the tree to which each row belongs, as trees say that have not seen its point.

    Each of these is grown, to as many leaves, from the other folds of points, and one of its leaves stands
    for that of the tree with which it has most points in common. So no ratio has a say in where it is counted
    (cross-fitting, as in Chernozhukov et al., Econometrics Journal 21, 2018), and all of them are counted.
    """
    honest = np.empty(len(data.logs), dtype=np.int64)
    for known, unknown in _folds(data, _HONEST_SEED):
        seen = _Data(data.factors[known], data.logs[known], data.points[known])
        grown = _tree(seen, tree.get_n_leaves())
        counterpart = _counterparts(grown.apply(seen.factors), tree.apply(seen.factors))
        honest[unknown] = [counterpart[leaf] for leaf in grown.apply(data.factors[unknown])]
    return honest


def _counterparts(leaves: NDArray[np.int64], others: NDArray[np.int64]) -> dict[int, int]:
    """For each of these leaves, that of the others with which it has most rows in common, of all rows that
    are in one of both; `leaves` and `others` say which leaf each row is in."""
    common = pd.crosstab(leaves, others)
    in_one = np.add.outer(common.sum(axis=1).to_numpy(), common.sum(axis=0).to_numpy()) - common
    counterparts: dict[int, int] = (common / in_one).idxmax(axis=1).to_dict()
    return counterparts


def _rule(conditions: Sequence[str], rows: pd.DataFrame, level: float, planned: int) -> Rule:
    """Of the rows that meet the conditions. Of the margins of their workloads, the greatest counts."""
    median, low, high = median_ratio_interval(rows, rows["point"], level)
    more_is_better = metrics.of(rows["metric"].iloc[0]).more_is_better
    verdict = verdicts(pd.Series([low]), pd.Series([high]), more_is_better, float(rows["margin"].max()))
    points = rows["point"].nunique()
    return Rule(tuple(conditions), median, low, high, str(verdict.iloc[0]), points, len(rows), planned)


def _paths(tree: Any, node: int, path: tuple[_Step, ...]) -> Iterator[tuple[int, tuple[_Step, ...]]]:
    """Each leaf below a node of scikit-learn's tree, with the steps that lead to it."""
    left, right = int(tree.children_left[node]), int(tree.children_right[node])
    if left == right:  # both are -1 at a leaf
        yield node, path
        return
    factor, threshold = int(tree.feature[node]), float(tree.threshold[node])
    yield from _paths(tree, left, (*path, (factor, threshold, True)))
    yield from _paths(tree, right, (*path, (factor, threshold, False)))


def _conditions(path: Sequence[_Step], factors: pd.DataFrame) -> list[str]:
    """The steps in words, the last one where one side of a factor is limited twice."""
    steps = {}
    for factor, threshold, at_most in path:
        name = str(factors.columns[factor])
        steps[factor, at_most] = _condition(name, factors[name], threshold, at_most)
        left = _left(path, factor, factors[name])
        if factors[name].nunique() < _FEW_VALUES and len(left) == 1 and " is " not in name:
            steps[factor, True] = steps[factor, False] = f"{name} = {quantity(name, left[0])}"
    return list(dict.fromkeys(steps.values()))


def _left(path: Sequence[_Step], factor: int, values: pd.Series) -> list[float]:
    """The different values of a factor that meet all steps about it."""
    for of, threshold, at_most in path:
        if of == factor:
            values = values[values <= threshold] if at_most else values[values > threshold]
    return [float(value) for value in values.unique()]


def _condition(name: str, values: pd.Series, threshold: float, at_most: bool) -> str:
    if " is " in name:
        return name.replace(" is ", " is not ") if at_most else name
    below, above = float(values[values <= threshold].max()), float(values[values > threshold].min())
    if values.nunique() < _FEW_VALUES:  # nothing was measured in between
        return f"{name} ≤ {quantity(name, below)}" if at_most else f"{name} ≥ {quantity(name, above)}"
    between = _shortest_between(below, above)
    # Whole numbers are told as such, and what is told has to part them, too.
    bound = quantity(name, math.ceil(between) if (values % 1 == 0).all() else between)
    return f"{name} < {bound}" if at_most else f"{name} ≥ {bound}"


def _shortest_between(below: float, above: float) -> float:
    """The decimal with the fewest digits that is above the first and at most the second."""
    middle = (below + above) / 2
    decimals = (float(f"{middle:.{digits}g}") for digits in range(1, 18))
    return next((decimal for decimal in decimals if below < decimal <= above), above)


class _Forest(RandomForestRegressor):  # type: ignore[misc]  # the library has no types
    """The library's, to the bit. Its own `predict` asks for a thread for each tree, which takes longer than
    the tree does."""

    def predict(self, X: NDArray[Any]) -> Floats:
        points = np.asarray(X, dtype=np.float32)
        total: Floats = np.zeros(len(points))
        for tree in self.estimators_:
            total += tree.tree_.predict(points)[:, 0]
        return total / len(self.estimators_)


def _forest(data: _Data) -> RandomForestRegressor:
    """Many trees predict more smoothly than one: they rank the factors and draw their effects."""
    of_tree = _MOST_IN_A_TREE if len(data.logs) > _MOST_IN_A_TREE else None
    forest = _Forest(_TREES, min_samples_leaf=5, max_samples=of_tree, n_jobs=-1, random_state=_SEED)
    return forest.fit(data.factors, data.logs)


def _importances(data: _Data, names: Sequence[str]) -> pd.DataFrame:
    """Permutation importances (Breiman, "Random Forests", 2001) on points that the forest has not seen."""
    grown, error = np.zeros(len(names)), 0.0
    for known, unknown in _folds(data):
        forest = _forest(_Data(data.factors[known], data.logs[known], data.points[known]))
        factors, logs = data.factors[unknown], data.logs[unknown]
        error += float(np.abs(logs - forest.predict(factors)).sum())
        shuffled = permutation_importance(
            forest,
            factors,
            logs,
            scoring="neg_mean_absolute_error",
            max_samples=min(_MOST_SHUFFLED, len(logs)),
            random_state=_SEED,
        )
        grown += shuffled["importances_mean"] * len(logs)
    importance = grown / error if error else grown
    frame = pd.DataFrame({"factor": list(names), "importance": importance})
    return frame.sort_values("importance", ascending=False, kind="stable", ignore_index=True)


def _effects(forest: RandomForestRegressor, data: _Data, names: Sequence[str]) -> dict[str, pd.DataFrame]:
    """Partial dependence (Friedman, "Greedy function approximation", 2001) of the ratio on each factor."""
    effects = {}
    for index, name in enumerate(names):
        curve = partial_dependence(forest, data.factors, [index], grid_resolution=_GRID, percentiles=(0, 1))
        effects[name] = pd.DataFrame({"value": curve["grid_values"][0], "ratio": np.exp(curve["average"][0])})
    return effects


def _surfaces(
    forest: RandomForestRegressor, table: pd.DataFrame, names: Sequence[str], strongest: Sequence[str]
) -> dict[str, pd.DataFrame]:
    """Partial dependence of the ratio on two factors, of the rows of each workload; none when there is one
    factor only. A factor of the points is the same at all workloads of a point."""
    of_points = [name for name in strongest if table.groupby("point")[name].nunique().max() == 1]
    if len(of_points) < 2:
        return {}
    columns = [names.index(name) for name in of_points[:2]]
    surfaces = {}
    for workload, rows in table.groupby("workload", observed=True, sort=False):
        surface = partial_dependence(
            forest,
            rows[list(names)].to_numpy(np.float64),
            columns,
            grid_resolution=_GRID,
            percentiles=(0, 1),
        )
        across, up = (
            pd.Index(grid, name=name)
            for grid, name in zip(surface["grid_values"], of_points[:2], strict=True)
        )
        surfaces[str(workload)] = pd.DataFrame(np.exp(surface["average"][0]), index=across, columns=up)
    return surfaces
