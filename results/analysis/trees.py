"""Trees and forests that describe log ratios by factors, for `results.analysis.rules`.

They are scikit-learn's, which takes long to load. A campaign with too few points for a rule needs none.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fecbench.results.analysis import forest
from fecbench.results.analysis.forest import Forest, Tree, as_trees_have
from fecbench.results.analysis.intervals import LEVEL

_DEPTH = 3  # more conditions are hard to read
_LEAVES = (2, 3, 4, 5, 6)
_TESTED_LEAVES = 4
_LEAST_SHARE = 0.08  # of the ratios in a leaf: a rule about fewer is an anecdote
LEAST_RATIOS = 8  # in a leaf
_LEAST_CENSORED = math.log(2)  # a ratio that is 0 or ∞ is at least this far from 1, beside others that are 1
_FOLDS = 5
_FLIPS = 99
_TREES = 100
_GRID = 40
# The most ratios of computations whose time grows with them: many more make them no surer.
_MOST_TESTED_POINTS = 1000
# Of a forest; each of its trees draws others. With 5,000, forests of 40,000 ratios predict no better.
_MOST_IN_A_TREE = 2000
_MOST_SHUFFLED = 2000  # of a fold
_SHUFFLES = 5
_SEED = 0
_HONEST_SEED = 1  # other folds than those by which a tree is believed

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Data:
    """factors: ratios × factors; logs: of the ratios; points: the point of each ratio."""

    factors: Floats
    logs: Floats
    points: NDArray[np.int64]


def _some_points(data: Data, most: int) -> Data:
    """The ratios of so many points, chosen by chance alone; all, of fewer."""
    names = np.unique(data.points)
    sample = np.random.default_rng(_SEED).permutation(names)[:most]
    rows = np.isin(data.points, sample)
    return Data(data.factors[rows], data.logs[rows], data.points[rows])


Fold = tuple[NDArray[np.int64], NDArray[np.int64]]
Folds = list[Fold]


def _folds(data: Data, seed: int = _SEED) -> Folds:
    """Return rows to learn from and rows to predict; a point is in one of them only. They are those of
    scikit-learn's `GroupKFold`, which takes long to load."""
    points = np.random.RandomState(seed).permutation(np.unique(data.points))
    tests = (np.isin(data.points, part) for part in np.array_split(points, _FOLDS))
    return [(np.flatnonzero(~is_test), np.flatnonzero(is_test)) for is_test in tests]


def grown_tree(data: Data, leaves: int) -> Tree:
    """Return a tree of medians, not means: one loss more or less can cost a timeout, so log ratios have
    heavy tails."""
    return _tree_of(as_trees_have(data.factors), data.logs, leaves)


def _tree_of(factors: NDArray[np.float32], logs: Floats, leaves: int) -> Tree:
    least = max(LEAST_RATIOS, math.ceil(_LEAST_SHARE * len(logs)))
    return forest.tree_of_medians(factors, logs, depth=_DEPTH, leaves=leaves, least=least, seed=_SEED)


@dataclass(frozen=True)
class _Split:
    """A fold with its factors, as trees have them."""

    training_rows: NDArray[np.int64]
    training: NDArray[np.float32]
    test_rows: NDArray[np.int64]
    unseen: NDArray[np.float32]


def _splits(data: Data) -> list[_Split]:
    factors = as_trees_have(data.factors)
    return [_Split(training, factors[training], test, factors[test]) for training, test in _folds(data)]


def _errors(logs: Floats, leaves: Sequence[int], split: _Split) -> list[Floats]:
    """Return, for trees of each of these numbers of leaves, the absolute errors of the log ratios of a fold,
    predicted by a tree that has not seen its points."""
    tree = _tree_of(split.training, logs[split.training_rows], max(leaves))
    unseen = logs[split.test_rows]
    return [np.abs(unseen - predicted) for predicted in predictions_of_smaller(tree, split.unseen, leaves)]


def predictions_of_smaller(
    tree: Tree, factors: NDArray[np.float32], leaves: Sequence[int]
) -> Iterator[Floats]:
    """Yield the predictions of the trees that would have grown to each of these numbers of leaves.

    The leaf that gains most is split first, whatever the number of leaves to come, and its two children are
    the next nodes. So a smaller tree is the first nodes of a greater one, which have their values, too.
    """
    leaf, values = tree.apply(factors), tree.value[:, 0, 0]
    parents = np.zeros(tree.node_count, dtype=np.intp)
    for children in (tree.children_left, tree.children_right):
        parents[children[children > 0]] = np.flatnonzero(children > 0)
    for count in leaves:
        nodes = 2 * count - 1
        within = np.arange(tree.node_count)
        for node in range(nodes, tree.node_count):
            within[node] = within[parents[node]]
        yield values[within[leaf]]


def p_value(data: Data) -> float:
    """Return how often a tree predicts as well when no factor matters; of at most _MOST_TESTED_POINTS points.

    Then log ratios are symmetric about one median everywhere, however their spread depends on the factors,
    and the signs of the residuals of whole points can be flipped (Winkler et al., "Permutation inference for
    the general linear model", NeuroImage 92, 2014).
    """
    data = _some_points(data, _MOST_TESTED_POINTS)
    random = np.random.default_rng(_SEED)
    centred = data.logs - np.median(data.logs)
    names, of_row = np.unique(data.points, return_inverse=True)
    splits = _splits(data)
    observed = _share_explained(centred, splits)
    as_good, enough = 0, LEVEL * (1 + _FLIPS)
    signs = random.choice([-1.0, 1.0], (_FLIPS, len(names)))
    flipped = (flips[of_row] * centred for flips in signs)
    threads = ThreadPoolExecutor(os.cpu_count())  # trees grow without the interpreter's lock
    try:
        shares = threads.map(partial(_share_explained, splits=splits, least=observed), flipped)
        for flips, share in enumerate(shares, start=1):
            as_good += share >= observed
            # No evidence, however many follow (Besag and Clifford, Biometrika 78, 1991).
            if as_good >= enough:
                return as_good / flips
        return (1 + as_good) / (1 + _FLIPS)
    finally:
        threads.shutdown(cancel_futures=True)


def _share_explained(logs: Floats, splits: Sequence[_Split], least: float = -math.inf) -> float:
    """The share of the absolute deviation from the median that a tree predicts, of points it has not seen;
    -∞ as soon as some folds show that it is below `least`."""
    deviation, errors = float(np.abs(logs - np.median(logs)).sum()), 0.0
    for split in splits:
        (of_fold,) = _errors(logs, [_TESTED_LEAVES], split)
        errors += float(of_fold.sum())
        if deviation and 1 - errors / deviation < least:
            return -math.inf
    return 1 - errors / deviation if deviation else 0.0


def fewest_leaves(data: Data) -> int:
    """The fewest leaves whose error is within one standard error of the best (Breiman et al., "Classification
    and Regression Trees", 1984, §3.4.3)."""
    errors = np.empty((len(_LEAVES), len(data.logs)))
    for split in _splits(data):
        errors[:, split.test_rows] = _errors(data.logs, _LEAVES, split)
    of_points = [pd.Series(of_size).groupby(data.points).mean() for of_size in errors]
    best = min(of_points, key=lambda errors: float(errors.mean()))
    bound = best.mean() + best.std() / math.sqrt(len(best))
    return next(leaves for leaves, errors in zip(_LEAVES, of_points, strict=True) if errors.mean() <= bound)


def honest_leaves(tree: Tree, data: Data) -> NDArray[np.int64]:
    """The leaf of the tree to which each row belongs, as trees say that have not seen its point.

    Each of these is grown, to as many leaves, from the other folds of points, and one of its leaves stands
    for that of the tree with which it has most points in common. So no ratio has a say in where it is counted
    (cross-fitting, as in Chernozhukov et al., Econometrics Journal 21, 2018), and all of them are counted.
    """
    honest = np.empty(len(data.logs), dtype=np.int64)
    factors = as_trees_have(data.factors)
    leaves = tree.apply(factors)
    for training_rows, test_rows in _folds(data, _HONEST_SEED):
        training = Data(data.factors[training_rows], data.logs[training_rows], data.points[training_rows])
        honest_of_row = grown_tree(training, tree.n_leaves).apply(factors)
        counterpart = _counterparts(honest_of_row[training_rows], leaves[training_rows])
        honest[test_rows] = [counterpart[leaf] for leaf in honest_of_row[test_rows]]
    return honest


def _counterparts(leaves: NDArray[np.int64], others: NDArray[np.int64]) -> dict[int, int]:
    """Return, for each of these leaves, the other leaf with which it has most rows in common, of all rows
    that are in one of both; `leaves` and `others` say which leaf each row is in."""
    (names, of_row), (other_names, other_of_row) = (
        np.unique(of_rows, return_inverse=True) for of_rows in (leaves, others)
    )
    common = np.bincount(of_row * len(other_names) + other_of_row, minlength=len(names) * len(other_names))
    common = common.reshape(len(names), len(other_names))
    in_one = common.sum(axis=1)[:, np.newaxis] + common.sum(axis=0) - common
    closest = (common / in_one).argmax(axis=1)
    return dict(zip(names.tolist(), other_names[closest].tolist(), strict=True))


def grown_forest(data: Data) -> Forest:
    """Many trees predict more smoothly than one: they rank the factors and draw their effects."""
    return forest.grown(data.factors, data.logs, _TREES, least=5, most=_MOST_IN_A_TREE, seed=_SEED)


def importances_of(data: Data, names: Sequence[str]) -> pd.DataFrame:
    """Permutation importances (Breiman, "Random Forests", 2001) on points that the forest has not seen."""
    growth, error = np.zeros(len(names)), 0.0
    for training_rows, test_rows in _folds(data):
        trained = grown_forest(
            Data(data.factors[training_rows], data.logs[training_rows], data.points[training_rows])
        )
        # The same with and without shuffling, since samples differ in their errors.
        some = np.sort(np.random.default_rng(_SEED).permutation(test_rows)[:_MOST_SHUFFLED])
        factors, logs = data.factors[some], data.logs[some]
        errors = np.abs(logs - trained.predict(factors))
        error += float(errors.sum())
        growth += (_errors_when_shuffled(trained, factors, logs) - errors.mean()) * len(logs)
    importance = growth / error if error else growth
    frame = pd.DataFrame({"factor": list(names), "importance": importance})
    return frame.sort_values("importance", ascending=False, kind="stable", ignore_index=True)


def _errors_when_shuffled(trained: Forest, factors: Floats, logs: Floats) -> Floats:
    """Return the mean absolute error with each factor shuffled, _SHUFFLES times. The shuffles are those of
    scikit-learn's `permutation_importance`, predicted at once: each prediction of a few ratios costs as much
    as a small tree."""
    random = np.random.RandomState(np.random.RandomState(_SEED).randint(np.iinfo(np.int32).max + 1))
    order, source, orders = np.arange(len(logs)), np.arange(len(logs)), []
    for _ in range(_SHUFFLES):
        random.shuffle(order)
        source = source[order]
        orders.append(source)
    shuffled = np.tile(factors, (factors.shape[1], _SHUFFLES, 1, 1))
    for factor, of_factor in enumerate(shuffled):
        of_factor[:, :, factor] = factors[np.array(orders), factor]
    predicted = trained.predict(shuffled.reshape(-1, factors.shape[1])).reshape(shuffled.shape[:-1])
    errors: Floats = np.abs(logs - predicted).mean(axis=(1, 2))
    return errors


def effects_of(trained: Forest, data: Data, names: Sequence[str]) -> dict[str, pd.DataFrame]:
    """Partial dependence of the ratio on each factor."""
    effects = {}
    for index, name in enumerate(names):
        grid = _grid(data.factors[:, index])
        ratios = np.exp(trained.partial_dependence(grid[:, np.newaxis], [index]))
        effects[name] = pd.DataFrame({"value": grid, "ratio": ratios})
    return effects


def surfaces_of(
    trained: Forest, table: pd.DataFrame, names: Sequence[str], strongest: Sequence[str]
) -> dict[str, pd.DataFrame]:
    """Partial dependence of the ratio on two factors, of the rows of each workload; none when there is one
    factor only. A factor of the points is the same at all workloads of a point."""
    of_points = [name for name in strongest if table.groupby("point")[name].nunique().max() == 1][:2]
    if len(of_points) < 2:
        return {}
    columns = [names.index(name) for name in of_points]
    surfaces, by_grid = {}, dict[bytes, Floats]()  # most workloads have the same networks, so the same grid
    for workload, rows in table.groupby("workload", observed=True, sort=False):
        across, up = (pd.Index(_grid(rows[name].to_numpy(np.float64)), name=name) for name in of_points)
        grid = np.stack(np.meshgrid(across, up, indexing="ij"), axis=-1)
        if grid.tobytes() not in by_grid:
            logs = trained.partial_dependence(grid.reshape(-1, 2), columns)
            by_grid[grid.tobytes()] = np.exp(logs.reshape(grid.shape[:2]))
        surfaces[str(workload)] = pd.DataFrame(by_grid[grid.tobytes()], index=across, columns=up)
    return surfaces


def _grid(values: Floats) -> Floats:
    """Return the different values of a factor, or _GRID between the least and the greatest of more."""
    distinct = np.unique(values)
    return distinct if len(distinct) < _GRID else np.linspace(distinct[0], distinct[-1], _GRID)


def log_ratios(ratios: pd.Series) -> Floats:
    """The log ratios. If an arm timed out, the ratio is 0 or ∞, and counts as the farthest from 1 that is a
    number. Its true distance is unknown, and does not matter for medians."""
    with np.errstate(divide="ignore"):
        logs = np.log(ratios.to_numpy(np.float64))
    farthest = np.abs(logs[np.isfinite(logs)]).max(initial=_LEAST_CENSORED)
    censored: Floats = np.clip(logs, -farthest, farthest)
    return censored
