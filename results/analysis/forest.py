"""A random forest of regression trees (Breiman, "Random Forests", 2001): prediction and partial dependence.

The trees are scikit-learn's, and the forest is its `RandomForestRegressor`, to the bit. That module and those
of inspection take as long to load as a small campaign takes to explain, and a thread for each prediction
takes longer than a small tree does.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.tree import DecisionTreeRegressor

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Forest:
    """The low-level trees of scikit-learn."""

    trees: Sequence[Any]

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
    with ThreadPoolExecutor(os.cpu_count()) as threads:  # trees grow without the interpreter's lock
        return Forest(list(threads.map(grow, seeds)))


def _grown(factors: NDArray[np.float32], logs: Floats, least: int, draws: int, seed: int) -> Any:
    rows = np.random.RandomState(seed).randint(0, len(logs), draws)
    weights = np.bincount(rows, minlength=len(logs))
    tree = DecisionTreeRegressor(min_samples_leaf=least, random_state=seed)
    with config_context(skip_parameter_validation=True):
        return tree.fit(factors, logs, sample_weight=weights, check_input=False).tree_


def as_trees_have(factors: Floats) -> NDArray[np.float32]:
    """Return factors as trees compare them. With these the library needs no check, which takes as long as a
    small tree grows."""
    return np.ascontiguousarray(factors, dtype=np.float32)
