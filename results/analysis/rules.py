"""Rules that a person can read: the factors that drive a paired ratio over a design. Where does FEC help?

The median log ratio is described by a shallow regression tree over the factors of the points and the
parameters of the workloads. A tree finds something in any noise, so it is believed only when it predicts
points that it has not seen better than it would if no factor mattered. The unit is always the point, since
the workloads of a point meet the same losses: points are held out, flipped and counted whole.

A rule is a leaf of the tree, and its number is what a reader would count: the ratio over exactly the points
that meet its conditions, a mean or a median as the design has it (`averages`). But a tree has its thresholds
where they part these points best, so that the ratios in its leaves are farther from each other than those of
other points would be. So intervals are wider than those of points that were not chosen, and a rule is left
out which trees contradict that have not seen its points (`_is_contradicted`).

With fewer than FEWEST_POINTS points, or without such evidence, there is no rule but a sentence that says why,
with the rank correlations of the factors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fecbench.results import metrics
from fecbench.results.analysis import frames
from fecbench.results.analysis.averages import Average, average_of, ratio_over
from fecbench.results.analysis.correlations import in_words, rank_correlations
from fecbench.results.analysis.deferred import Deferred
from fecbench.results.analysis.intervals import LEVEL, averaged, of_campaign, verdicts
from fecbench.results.analysis.pairing import Pairing
from fecbench.results.metrics.units import number, quantity
from fecbench.results.store.records import CampaignInfo

if TYPE_CHECKING:
    from fecbench.results.analysis import trees

FEWEST_POINTS = 30
_FEW_VALUES = 10
# With this, intervals of rules hold the truth with confidence 1 - LEVEL in trees that are believed: these are
# the trees for which the points happened to speak, and no fold of the same points undoes that.
_HONEST_LEVEL = 0.003

_Step = tuple[int, float, bool]  # the index of a factor, a threshold, and whether the factor is at most it


_WORDS = {
    "gain": "helps in the {average}",
    "harm": "harms in the {average}",
    "equivalent": "no difference in the {average}",
    "undecided": "undecided",
}


class NothingToExplain(ValueError):
    """Says in one sentence why a ratio cannot be explained at all."""


@dataclass(frozen=True)
class Rule:
    """The ratio over the points that meet some conditions."""

    conditions: tuple[str, ...]
    """All hold ("loss.p ≥ 2.1 %"); none: everywhere."""
    ratio: float
    """The average over the points that meet the conditions; a median is 0 or ∞ where an arm timed out at a
    half of them and more, NaN where it may be anything, or where there is none."""
    low: float
    """The lower end of its interval, of confidence 1 - LEVEL (`high`: the upper); NaN for too
    few points."""
    high: float
    verdict: str
    """The verdict of the interval against the margin of the comparison, one of `intervals.VERDICTS`."""
    points: int
    """The number of points that meet the conditions."""
    ratios: int
    """One a workload and point."""
    planned_ratios: int
    """The number in the design: missing ratios timed out, failed or were not run, and may be unlike the
    rest."""
    average: Average = "median"
    """The kind of average that the ratio is."""

    def __str__(self) -> str:
        where = " and ".join(self.conditions) or "everywhere"
        interval = "no interval" if math.isnan(self.low) else f"{number(self.low)}, {number(self.high)}"
        missing = f", {self.of_planned}" if self.ratios < self.planned_ratios else ""
        ratio = "unknown" if math.isnan(self.ratio) else number(self.ratio)
        networks = f"{self.points} network{'s' if self.points != 1 else ''}"
        return f"{where}: ratio {ratio} [{interval}], {networks}{missing}: {self.says}"

    @property
    def says(self) -> str:
        """The verdict in words. It is that of the average: single points may go the other way."""
        return _WORDS[self.verdict].format(average=self.average)

    @property
    def of_planned(self) -> str:
        return f"{self.ratios} of {self.planned_ratios} ratios"


@dataclass(frozen=True)
class Explanation:
    """The factors that drive the ratio of a metric."""

    campaign: str
    """The campaign's name, and how its trials were run."""
    metric: str
    """The metric's name in frames: "client.dct_s"."""
    table: pd.DataFrame
    """One row a (workload, point): the columns of `intervals.of_campaign`, and each factor that varies."""
    averaged: pd.DataFrame
    """The same rows as averages over networks take them (`intervals.averaged`)."""
    factors: tuple[str, ...]
    """The names of the factors that vary."""
    scales: Mapping[str, str]
    """`CampaignInfo.scales`."""
    everywhere: Rule
    """The ratio over all points."""
    average: Average
    """The average of ratios over points that rules have."""
    p_value: float
    """The p-value of a tree that predicts as well when no factor matters; NaN when it was not tested."""
    rules: tuple[Rule, ...]
    """The leaves of the tree that no others contradict, the greatest gain first; empty when there is no
    evidence."""
    left_out: tuple[Rule, ...]
    """The other leaves: with `rules`, they part all points."""
    sentence: str
    """The finding, or why there is no rule."""
    correlations: pd.DataFrame
    """`correlations.rank_correlations` of the factors and of combinations; empty with too few points."""
    importances: pd.DataFrame
    """One row a factor, greatest first: `factor`, `importance` (by how much of itself the error of a forest
    on points that it has not seen grows when the factor is shuffled), empty with too few points."""
    effects: Mapping[str, pd.DataFrame]
    """Partial dependence by factor: columns `value` and `ratio`, the forest's mean prediction."""
    surfaces: Mapping[str, pd.DataFrame]
    """Partial dependence on the two strongest factors of the points, by workload: the index holds the
    values of the strongest, the columns those of the next, both with the factor's name. None with too
    few points or factors."""
    of_one_network: tuple[Rule, ...] = ()
    """The ratio of each workload with its interval over repetitions, in a design of one network: `everywhere`
    has no interval there."""


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
    of_all = of_campaign(pairing, campaign)
    ratios = averaged(of_all)
    if ratios.empty:
        raise NothingToExplain("no network has a ratio over its first repetitions")
    of_both = pd.concat([of_all, ratios])
    if not (of_both["censored"] | np.isfinite(of_both["ratio"]) & (of_both["ratio"] > 0)).all():
        raise NothingToExplain(f"{metric.name} is 0 at some points, so that its ratio has no logarithm")
    factors_of_all = _factors(of_all, campaign)
    factors = factors_of_all.loc[ratios.index]
    if factors.empty and len(campaign.points) > 1:
        raise NothingToExplain("neither a factor nor a parameter of the workloads varies")
    table = pd.concat([ratios, factors], axis=1)
    varied = tuple(factors.columns)
    planned = _values(_planned(campaign), campaign)[list(varied)].to_numpy(np.float64)
    average = average_of(ratios, campaign.statistic)
    everywhere = _rule([], table, LEVEL, len(planned), average)
    unexplained = Explanation(
        campaign=campaign.heading,
        metric=metric.name,
        table=pd.concat([of_all, factors_of_all], axis=1),
        of_one_network=_of_each_workload(of_all, average) if len(campaign.points) == 1 else (),
        averaged=table,
        factors=varied,
        scales=campaign.scales,
        everywhere=everywhere,
        average=average,
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
        sentence = f"Too few networks for a rule: {everywhere.points}, and {FEWEST_POINTS} are needed."
        return replace(unexplained, sentence=sentence)
    from fecbench.results.analysis import trees  # takes long to load

    data = trees.Data(
        factors.to_numpy(np.float64), trees.log_ratios(ratios["ratio"]), ratios["point"].to_numpy()
    )
    forest = cache(partial(trees.grown_forest, data))
    importances = trees.importances_of(data, varied)
    correlations = rank_correlations(factors, data.logs, data.points)
    ranked = replace(
        unexplained,
        correlations=correlations,
        importances=importances,
        effects=Deferred(lambda: trees.effects_of(forest(), data, varied)),
        surfaces=Deferred(lambda: trees.surfaces_of(forest(), table, varied, list(importances["factor"]))),
    )
    p_value = trees.p_value(data)
    evidence = in_words(correlations, LEVEL)
    if p_value > LEVEL:
        sentence = f"No rule: no tree predicts networks that it has not seen (p = {p_value:.2g}). {evidence}"
        return replace(ranked, p_value=p_value, sentence=sentence)
    rules, left_out = _rules(table, factors, planned, data, average)
    rules.sort(key=lambda rule: float(np.nan_to_num(rule.ratio, nan=1)), reverse=metric.more_is_better)
    if not rules:
        sentence = (
            "No rule: each has too few networks, or trees fitted without its networks contradict it"
            f" (p = {p_value:.2g}). {evidence}"
        )
    elif left_out:
        sentence = (
            f"The factors drive the ratio (p = {p_value:.2g}). Not printed: {len(left_out)} of"
            f" {len(rules) + len(left_out)} rules, for too few networks, or because trees fitted without"
            " their networks contradict them."
        )
    else:
        sentence = f"The factors drive the ratio (p = {p_value:.2g})."
    return replace(ranked, p_value=p_value, rules=tuple(rules), left_out=tuple(left_out), sentence=sentence)


def _of_each_workload(ratios: pd.DataFrame, average: Average) -> tuple[Rule, ...]:
    return tuple(
        Rule(
            conditions=(f"workload is {row['workload']}",),
            ratio=row["ratio"],
            low=row["low"],
            high=row["high"],
            verdict=row["verdict"],
            points=1,
            ratios=1,
            planned_ratios=1,
            average=average,
        )
        for row in ratios.to_dict("records")
    )


def _rules(
    table: pd.DataFrame,
    factors: pd.DataFrame,
    planned: NDArray[np.float64],
    data: trees.Data,
    average: Average,
) -> tuple[list[Rule], list[Rule]]:
    """The leaves of a tree of these points as rules: those to print, and those that others contradict."""
    from fecbench.results.analysis import trees  # takes long to load
    from fecbench.results.analysis.forest import as_trees_have

    tree = trees.grown_tree(data, trees.fewest_leaves(data))
    of_row, of_planned = (tree.apply(as_trees_have(rows)) for rows in (data.factors, planned))
    honest = trees.honest_leaves(tree, data)
    candidates: list[tuple[Rule, float]] = []  # with the ratio of the rows that other trees put there
    left_out: list[Rule] = []
    for leaf, path in _paths(tree, 0, ()):
        rows, planned_ratios = table[of_row == leaf], int((of_planned == leaf).sum())
        rule = _rule(_conditions(path, factors), rows, _HONEST_LEVEL, planned_ratios, average)
        if _is_contradicted(rule, rows, table[honest == leaf]):
            left_out.append(rule)
        else:
            candidates.append((rule, _ratio(table[honest == leaf], average)))
    rules: list[Rule] = []
    for rule, ratio in candidates:
        in_order = all(
            not (rule.ratio < other.ratio and ratio > of_other)
            and not (rule.ratio > other.ratio and ratio < of_other)
            for other, of_other in candidates
        )
        (rules if in_order else left_out).append(rule)
    return rules, left_out


def _is_contradicted(rule: Rule, rows: pd.DataFrame, honest: pd.DataFrame) -> bool:
    """Whether the rule says what trees deny that have not seen its points: `rows` meet its conditions, and
    those trees put the rows `honest` there.

    So it is where they put too few there, or rows whose average is outside the rule's interval. Two rules are
    left out, too, which those trees have in the other order (`_rules`).
    """
    from fecbench.results.analysis import trees  # takes long to load

    if math.isnan(rule.low) or len(honest) < trees.LEAST_RATIOS:
        return True
    over = ratio_over(rows, rows["point"], rule.average, LEVEL)
    return not over.low <= _ratio(honest, rule.average) <= over.high


def _ratio(rows: pd.DataFrame, average: Average) -> float:
    """Return the ratio over the points of these rows, without an interval."""
    return ratio_over(rows, rows["point"], average).value


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
    of_point = dict(enumerate(campaign.points))
    factors = _documents(ratios["point"], of_point) | _documents(ratios["workload"], of_workload)
    columns: dict[str, Any] = {}
    for name, values in factors.items():
        if pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values):
            columns[name] = values
        else:
            columns |= {f"{name} is {value}": values == value for value in sorted(set(values), key=str)}
    return pd.DataFrame(columns, index=ratios.index, dtype=np.float64)


def _documents(keys: pd.Series, documents: Mapping[Any, Mapping[str, Any]]) -> dict[str, pd.Series]:
    """The document of each of these keys, as columns by name. Few keys differ."""
    places, distinct = pd.factorize(keys)
    table = frames.values([documents[key] for key in distinct])
    return {str(name): table[name].take(places).set_axis(keys.index) for name in table.columns}


def _rule(
    conditions: Sequence[str], rows: pd.DataFrame, level: float, planned: int, average: Average = "median"
) -> Rule:
    """Return the rule of the rows that meet the conditions. The greatest margin of their workloads counts."""
    over = ratio_over(rows, rows["point"], average, level)
    more_is_better = metrics.of(rows["metric"].iloc[0]).more_is_better
    verdict = verdicts(
        pd.Series([over.low]), pd.Series([over.high]), more_is_better, float(rows["margin"].max())
    )
    points = rows["point"].nunique()
    return Rule(
        tuple(conditions),
        over.value,
        over.low,
        over.high,
        str(verdict.iloc[0]),
        points,
        len(rows),
        planned,
        average,
    )


def _paths(tree: Any, node: int, path: tuple[_Step, ...]) -> Iterator[tuple[int, tuple[_Step, ...]]]:
    """Each leaf below a node of scikit-learn's tree, with the steps that lead to it."""
    left_child, right_child = int(tree.children_left[node]), int(tree.children_right[node])
    if left_child == right_child:  # both are -1 at a leaf
        yield node, path
        return
    factor, threshold = int(tree.feature[node]), float(tree.threshold[node])
    yield from _paths(tree, left_child, (*path, (factor, threshold, True)))
    yield from _paths(tree, right_child, (*path, (factor, threshold, False)))


def _conditions(path: Sequence[_Step], factors: pd.DataFrame) -> list[str]:
    """The steps in words, the last one where one side of a factor is limited twice."""
    steps = {}
    for factor, threshold, at_most in path:
        name = str(factors.columns[factor])
        steps[factor, at_most] = _condition(name, factors[name], threshold, at_most)
        matching = _matching_values(path, factor, factors[name])
        if factors[name].nunique() < _FEW_VALUES and len(matching) == 1 and " is " not in name:
            steps[factor, True] = steps[factor, False] = f"{name} = {quantity(name, matching[0])}"
    of_factors: dict[int, list[str]] = {}
    for (factor, _), text in steps.items():
        of_factors.setdefault(factor, []).append(text)
    return [" ".join(_joined(list(dict.fromkeys(sides)))) for sides in of_factors.values()]


def _joined(sides: Sequence[str]) -> Sequence[str]:
    """Return the two sides of one range as one condition: "loss.p ≥ 2.1 % and < 3.4 %"."""
    if len(sides) == 1:
        return sides
    lower, upper = sorted(sides, key=lambda side: any(mark in side for mark in "<≤"))
    name = upper.split(" ", 1)[0]
    return [lower, "and", upper.removeprefix(f"{name} ")]


def _matching_values(path: Sequence[_Step], factor: int, values: pd.Series) -> list[float]:
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
    # Whole numbers are printed as such, and the printed bound has to part them, too.
    bound = quantity(name, math.ceil(between) if (values % 1 == 0).all() else between)
    return f"{name} < {bound}" if at_most else f"{name} ≥ {bound}"


def _shortest_between(below: float, above: float) -> float:
    """The decimal with the fewest digits that is above the first and at most the second."""
    middle = (below + above) / 2
    decimals = (float(f"{middle:.{digits}g}") for digits in range(1, 18))
    return next((decimal for decimal in decimals if below < decimal <= above), above)
