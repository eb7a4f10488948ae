"""Folds, forests and what they say of factors, beside scikit-learn's, which take long to load."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.model_selection import GroupKFold
from sklearn.tree import DecisionTreeRegressor

from fecbench.results.analysis import trees
from fecbench.results.analysis.forest import as_trees_have, extremely_random


def test_the_forest_and_its_measures_are_those_of_the_library() -> None:
    random = np.random.default_rng(5)
    factors = np.column_stack([random.normal(size=(300, 3)), random.integers(0, 4, 300)])
    data = trees.Data(factors, factors[:, 0] + random.normal(size=300), np.arange(300))
    forest, library = trees.grown_forest(data), library_forest(data)
    assert (forest.predict(factors) == library.predict(factors)).all()

    names = ["a", "b", "c", "d"]
    for name, effect in trees.effects_of(forest, data, names).items():
        curve = partial_dependence(
            library, factors, [names.index(name)], grid_resolution=40, percentiles=(0, 1)
        )
        assert (effect["value"] == curve["grid_values"][0]).all()
        assert np.log(effect["ratio"].to_numpy()) == pytest.approx(curve["average"][0], rel=1e-9)

    table = pd.DataFrame(factors, columns=names).assign(point=data.points, workload="one")
    surface = trees.surfaces_of(forest, table, names, ["c", "a"])["one"]
    plane = partial_dependence(library, factors, [2, 0], grid_resolution=40, percentiles=(0, 1))
    assert np.log(surface.to_numpy()) == pytest.approx(plane["average"][0], rel=1e-9)


def test_a_forest_is_the_same_however_many_processors_grow_it(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(9)
    data = trees.Data(random.random((40, 3)), random.random(40), np.arange(40))
    elsewhere, predictions = random.random((50, 3)), []
    for processors in (1, 2, 7, None):
        monkeypatch.setattr("os.cpu_count", lambda count=processors: count)
        predictions.append(trees.grown_forest(data).predict(elsewhere).tolist())
    assert all(prediction == library_forest(data).predict(elsewhere).tolist() for prediction in predictions)


def library_forest(data: trees.Data) -> RandomForestRegressor:
    """The library's forest. Its threads add up in any order, so it has one."""
    forest = RandomForestRegressor(100, min_samples_leaf=5, max_samples=None, n_jobs=1, random_state=0)
    return forest.fit(data.factors, data.logs)


@pytest.mark.parametrize("rows", [8, 100])
def test_extremely_randomized_trees_are_those_of_the_library(rows: int) -> None:
    random = np.random.default_rng(7)
    factors, values = random.random((rows, 5)), random.random(rows)
    library = ExtraTreesRegressor(40, min_samples_leaf=3, random_state=0).fit(factors, values)
    forest = extremely_random(factors, values, 40, least=3, seed=0)
    elsewhere = random.random((50, 5))
    assert (forest.predict(elsewhere) == library.predict(elsewhere)).all()


def test_each_tree_of_a_large_forest_grows_from_2000_ratios() -> None:
    random = np.random.default_rng(6)
    data = trees.Data(random.random((6000, 1)), random.random(6000), np.arange(6000))
    roots = {int(tree.weighted_n_node_samples[0]) for tree in trees.grown_forest(data).trees}
    assert roots == {2000}


def test_packages_that_were_empty_for_a_moment_are_whole_later() -> None:
    program = """
import sys
from types import ModuleType
from fecbench.results.analysis import forest
assert "scipy.stats" not in sys.modules
empty = ("scipy.stats", "sklearn.neighbors")
held = [value for module in list(sys.modules.values()) for value in vars(module).values()]
assert not [value for value in held if isinstance(value, ModuleType) and value.__name__ in empty]
from scipy import stats
from sklearn.neighbors import NearestNeighbors
print(stats.norm.cdf(0))
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (result.stdout, result.stderr) == ("0.5\n", "")


def test_a_tree_of_medians_is_the_library_s_and_begins_as_all_smaller_ones_do() -> None:
    random = np.random.default_rng(8)
    factors = np.column_stack([random.random((400, 2)), random.integers(0, 3, 400)])
    logs = 0.4 * (factors[:, 0] > 0.3) - 0.2 * (factors[:, 2] == 1) + random.standard_t(2, 400) / 10
    data, rows = trees.Data(factors, logs, np.arange(400)), as_trees_have(factors)
    sizes = (2, 3, 4, 5, 6)
    for size, predicted in zip(
        sizes, trees.predictions_of_smaller(trees.grown_tree(data, 6), rows, sizes), strict=True
    ):
        library = DecisionTreeRegressor(
            criterion="absolute_error", max_depth=3, max_leaf_nodes=size, min_samples_leaf=32, random_state=0
        ).fit(factors, logs)
        assert library.get_n_leaves() == size
        assert (predicted == library.predict(factors)).all()
        assert (trees.grown_tree(data, size).predict(rows)[:, 0] == predicted).all()


@pytest.mark.parametrize("most", [10_000, 40])
def test_importances_are_those_of_the_library(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(trees, "_MOST_SHUFFLED", most)
    random = np.random.default_rng(7)
    data = trees.Data(random.normal(size=(250, 3)), random.normal(size=250), np.repeat(np.arange(50), 5))
    folds = list(GroupKFold(5, shuffle=True, random_state=0).split(data.factors, groups=data.points))
    assert all(
        np.array_equal(ours, theirs)
        for fold, other in zip(trees._folds(data), folds, strict=True)
        for ours, theirs in zip(fold, other, strict=True)
    )
    growth, error = np.zeros(3), 0.0
    for training, test in folds:
        forest = library_forest(
            trees.Data(data.factors[training], data.logs[training], data.points[training])
        )
        some = np.sort(np.random.default_rng(0).permutation(test)[:most])
        factors, logs = data.factors[some], data.logs[some]
        error += np.abs(logs - forest.predict(factors)).sum()
        shuffled = permutation_importance(
            forest, factors, logs, scoring="neg_mean_absolute_error", random_state=0
        )
        growth += shuffled["importances_mean"] * len(logs)
    importances = trees.importances_of(data, ["a", "b", "c"]).set_index("factor")["importance"]
    assert importances[["a", "b", "c"]].to_numpy() == pytest.approx(growth / error, rel=1e-9, abs=1e-12)


def test_a_factor_that_is_the_same_everywhere_has_no_importance_in_a_sample_either(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trees, "_MOST_SHUFFLED", 10)
    random = np.random.default_rng(8)
    factors = np.stack([random.normal(size=250), np.ones(250)], axis=1)
    data = trees.Data(factors, random.standard_t(2, size=250), np.repeat(np.arange(50), 5))
    importances = trees.importances_of(data, ["varied", "constant"]).set_index("factor")["importance"]
    assert importances["constant"] == pytest.approx(0, abs=1e-12)
    assert abs(importances["varied"]) > 1e-3
