"""A random forest of regression trees (Breiman, "Random Forests", 2001): prediction and partial dependence.

The trees are scikit-learn's. Forests are its `RandomForestRegressor` and `ExtraTreesRegressor`, to the bit.
That module and those of inspection take as long to load as a small campaign takes to explain. Its classes of
trees check arguments for longer than a small tree takes to grow, so trees are grown by what lies below these
classes.

That imports packages of which it needs next to nothing, and which take longer to load than all else here. So
they stand aside. Those of NumPy are loaded by SciPy, which imports all names of NumPy that there are.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from fecbench.lazy import standing_aside

with standing_aside(
    *("scipy.special", "sklearn", "sklearn.neighbors", "sklearn.tree", "sklearn.utils"),
    *("sklearn.utils.validation", "numpy.f2py", "numpy.testing", "numpy.polynomial", "numpy.ctypeslib"),
):
    from sklearn.tree._criterion import MAE, MSE
    from sklearn.tree._splitter import BestSplitter, RandomSplitter
    from sklearn.tree._tree import BestFirstTreeBuilder, DepthFirstTreeBuilder, Tree

__all__ = [
    "Forest",
    "Tree",
    "as_trees_have",
    "extremely_random",
    "grown",
    "tree_of_medians",
]

Floats = NDArray[np.float64]

_ANY_DEPTH = np.iinfo(np.int32).max


@dataclass(frozen=True)
class Forest:
    """The low-level trees of scikit-learn."""

    trees: Sequence[Tree]

    def predict(self, factors: Floats) -> Floats:
        """Return the mean prediction of the trees for each row."""
        rows = as_trees_have(factors)
        total: Floats = np.zeros(len(rows))
        for tree in self.trees:
            total += tree.predict(rows)[:, 0]
        return total / len(self.trees)

    def partial_dependence(self, grid: Floats, columns: Sequence[int]) -> Floats:
        """Return the mean prediction at each row of the grid, which has values of these factors alone, over
        the ratios that the trees grew from (Friedman, "Greedy function approximation", 2001)."""
        rows, targets = as_trees_have(grid), np.array(columns, dtype=np.intp)
        total: Floats = np.zeros(len(rows))
        for tree in self.trees:
            tree.compute_partial_dependence(rows, targets, total)
        return total / len(self.trees)


def grown(factors: Floats, logs: Floats, count: int, *, least: int, most: int, seed: int) -> Forest:
    """Return a forest of so many trees, with `least` rows in a leaf. Each tree grows from rows drawn with
    replacement: as many as there are, but at most `most`."""
    random = np.random.RandomState(seed)
    seeds = [random.randint(np.iinfo(np.int32).max) for _ in range(count)]
    grow = partial(_grown, as_trees_have(factors), logs, least, min(most, len(logs)))
    processors = os.cpu_count() or 1
    with ThreadPoolExecutor(processors) as threads:  # trees grow without the interpreter's lock
        parts = threads.map(grow, (part.tolist() for part in np.array_split(seeds, processors)))
        return Forest([tree for part in parts for tree in part])


def _grown(
    factors: NDArray[np.float32], logs: Floats, least: int, draws: int, seeds: Sequence[int]
) -> list[Tree]:
    """Return a tree of each seed."""
    builder = DepthFirstTreeBuilder(
        _splitter(MSE(1, len(logs)), factors, least), 2 * least, least, 0.0, _ANY_DEPTH, 0.0
    )
    trees = []
    for seed in seeds:
        rows = _seeded(seed).randint(0, len(logs), draws)
        weights = np.bincount(rows, minlength=len(logs)).astype(np.float64)
        _seeded(seed)
        trees.append(_built(builder, factors, logs, weights))
    return trees


def extremely_random(factors: Floats, values: Floats, count: int, *, least: int, seed: int) -> Forest:
    """Return the extremely randomized trees of `ExtraTreesRegressor` (Geurts, Ernst and Wehenkel, Machine
    Learning 63, 2006), to the bit: so many, each of all rows, with `least` of them in a leaf."""
    random = np.random.RandomState(seed)
    rows, trees = as_trees_have(factors), []
    splitter = RandomSplitter(MSE(1, len(values)), rows.shape[1], least, 0.0, _RANDOM.state, None)
    builder = DepthFirstTreeBuilder(splitter, 2 * least, least, 0.0, _ANY_DEPTH, 0.0)
    for _ in range(count):
        _seeded(random.randint(np.iinfo(np.int32).max))
        trees.append(_built(builder, rows, values, None))
    return Forest(trees)


def tree_of_medians(
    factors: NDArray[np.floating], logs: Floats, *, depth: int, leaves: int, least: int, seed: int
) -> Tree:
    """Return the tree of `DecisionTreeRegressor(criterion="absolute_error")` with at most so many leaves, of
    `least` rows each. The leaf that gains most is split next."""
    rows = as_trees_have(factors)
    splitter = _splitter(MAE(1, len(logs)), rows, least)
    builder = BestFirstTreeBuilder(splitter, 2 * least, least, 0.0, depth, leaves, 0.0)
    _seeded(seed)
    return _built(builder, rows, logs, None)


def _splitter(criterion: MAE | MSE, factors: NDArray[np.float32], least: int) -> BestSplitter:
    """Return a splitter that draws from this thread's generator, which is to be seeded before each tree."""
    return BestSplitter(criterion, factors.shape[1], least, 0.0, _RANDOM.state, None)


class _Random(threading.local):
    """A generator for each thread. To make one takes several times as long as a small tree grows, since it
    is seeded from the system first."""

    def __init__(self) -> None:
        self.state = np.random.RandomState()


_RANDOM = _Random()


def _seeded(seed: int) -> np.random.RandomState:
    """Return this thread's generator, as a new one of this seed is."""
    _RANDOM.state.seed(seed)
    return _RANDOM.state


def _built(
    builder: BestFirstTreeBuilder | DepthFirstTreeBuilder,
    factors: NDArray[np.float32],
    logs: Floats,
    weights: Floats | None,
) -> Tree:
    tree = Tree(factors.shape[1], np.ones(1, dtype=np.intp), 1)
    builder.build(tree, factors, np.ascontiguousarray(logs, np.float64).reshape(-1, 1), weights, None)
    return tree


def as_trees_have(factors: NDArray[np.floating]) -> NDArray[np.float32]:
    """Return factors as trees compare them. With these the library needs no check, which takes as long as a
    small tree grows."""
    return np.ascontiguousarray(factors, dtype=np.float32)
