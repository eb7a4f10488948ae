"""A correlation with a ratio is found though no tree predicts it; noise is not."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from fecbench.results.analysis import correlations as module
from fecbench.results.analysis.correlations import (
    in_words,
    rank_correlations,
    ranks_of_signed,
    with_combinations,
)
from fecbench.results.analysis.intervals import LEVEL


def two_paths(random: np.random.Generator, points: int) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "path1.owd_ms": random.uniform(5, 100, points),
            "path2.owd_ms": random.uniform(5, 100, points),
            "path2.bandwidth_mbps": random.uniform(1, 50, points),
        }
    )


def test_a_quotient_that_drives_the_ratio_is_the_strongest() -> None:
    random = np.random.default_rng(1)
    factors = two_paths(random, 40)
    logs = 0.1 * np.log(factors["path2.owd_ms"] / factors["path1.owd_ms"]) + random.normal(0, 0.03, 40)
    table = rank_correlations(factors, logs.to_numpy(), np.arange(40))  # type: ignore[attr-defined]
    assert table["factor"][0] == "path2.owd_ms / path1.owd_ms"
    assert table["rho"][0] > 0.8
    assert table["p_value"][0] < 0.01
    by_name = table.set_index("factor")["rho"]
    for name in factors:
        assert by_name[name] == pytest.approx(stats.spearmanr(factors[name], logs).statistic)
    assert by_name["path1.owd_ms"] < 0 < by_name["path2.owd_ms"]
    assert "path2.owd_ms / path1.owd_ms +0." in in_words(table, LEVEL)


def test_combinations_are_chosen_by_names_alone() -> None:
    random = np.random.default_rng(2)
    names = ["bandwidth_mbps", "owd_ms", "loss.p", "loss.r", "size_bytes"]
    factors = pd.DataFrame({name: random.uniform(1, 2, 30) for name in names})
    assert list(with_combinations(factors)) == [
        *names,
        "bandwidth_mbps × owd_ms",
        "loss.p × size_bytes",
        "loss.p / loss.r",
    ]
    of_paths = list(with_combinations(two_paths(random, 30)))
    assert of_paths[3:] == [
        "path2.owd_ms / path1.owd_ms",
        "path2.owd_ms - path1.owd_ms",
        "path2.bandwidth_mbps × path2.owd_ms",
    ]


def test_a_combination_that_orders_as_a_factor_does_is_left_out() -> None:
    factors = pd.DataFrame({"path1.owd_ms": [5.0, 5, 5], "path2.owd_ms": [1.0, 2, 3]})
    assert list(with_combinations(factors)) == list(factors)


def test_noise_has_a_sure_correlation_in_the_nominal_share_of_campaigns_at_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_FLIPS", 499)
    random, campaigns, sure = np.random.default_rng(3), 100, 0
    for _ in range(campaigns):
        points = np.repeat(np.arange(20), 3)  # three workloads meet the same losses
        factors = two_paths(random, 20).loc[points].assign(size_bytes=np.tile([1e3, 5e4, 1e6], 20))
        logs = random.standard_t(2, 20)[points] + random.normal(0, 0.1, 60)
        sure += (rank_correlations(factors.reset_index(drop=True), logs, points)["p_value"] <= LEVEL).any()
    assert sure <= stats.binom.ppf(0.999, campaigns, LEVEL)


def test_none_that_is_sure_is_said_with_the_strongest() -> None:
    random = np.random.default_rng(4)
    table = rank_correlations(two_paths(random, 12), random.normal(0, 1, 12), np.arange(12))
    assert (table["p_value"] > LEVEL).all()
    assert in_words(table, LEVEL).startswith("No rank correlation with the ratio is sure (p after Holm's")
    assert table["factor"][0] in in_words(table, LEVEL)


def test_ranks_of_signed_values_are_those_of_their_products() -> None:
    for count, digits in product((1, 5, 40), (0, 1, 9)):
        random = np.random.default_rng(count)
        values = random.normal(0, 1, count).round(digits)  # with ties and zeros, where digits are few
        values = values[np.argsort(np.abs(values))]
        signs = random.choice([-1.0, 1.0], (count, 30))
        expected = stats.rankdata(signs * values[:, np.newaxis], axis=0)
        np.testing.assert_array_equal(ranks_of_signed(values, signs), expected)
