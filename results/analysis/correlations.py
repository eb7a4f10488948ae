"""Rank correlations of factors with a ratio, one by one, for ratios that no tree predicts.

Beside the factors stand combinations of them that mean something in a network. They are chosen by the names
of the factors alone, without a look at ratios: the quotient and the difference of one parameter of two
links, the bandwidth-delay product of a link, the expected losses of a transfer, and the odds of two
transitions of a loss model.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fecbench.results.analysis.quantiles import ranks_of_rows

_FLIPS = 9999  # enough to resolve a p-value of 0.05 after the correction of hundreds
_AT_ONCE = 1_000_000  # values that are ranked at a time: bounds the memory
_MOST_ROWS = 3000  # more make it no surer
_SEED = 0
_LOSS_RATES = ("p", "rate")

Floats = NDArray[np.float64]


def rank_correlations(factors: pd.DataFrame, logs: Floats, points: NDArray[np.int64]) -> pd.DataFrame:
    """Spearman's rank correlation of log ratios with each factor and `with_combinations`.

    `factors`: one row a ratio, one column a factor; `points`: the point of each ratio. One row a column,
    the strongest first: `factor`, `rho` (-1 to 1), `p_value` after Holm's correction (Scandinavian Journal of
    Statistics 6, 1979) for all of them.

    Where no factor matters, log ratios are symmetric about their median, and the signs of whole points can be
    flipped: workloads of a point meet the same losses. The p-value is the share of flips that correlate as
    much.
    """
    columns = with_combinations(factors)
    rows = np.flatnonzero(np.isin(points, _some(points)))
    ranks = _standardized(ranks_of_rows(columns.to_numpy(np.float64)[rows].T).T)
    centred = (logs - np.median(logs))[rows]
    rho = ranks.T @ _standardized(ranks_of_rows(centred[np.newaxis]).T)[:, 0]
    p_values = _holm(_shares_of_flips(ranks, centred, points[rows], np.abs(rho)))
    table = pd.DataFrame({"factor": list(columns.columns), "rho": rho, "p_value": p_values})
    return table.sort_values("rho", key=lambda of: -of.abs(), kind="stable", ignore_index=True)


def in_words(correlations: pd.DataFrame, level: float) -> str:
    """Return a sentence with the correlations that are sure, or with the strongest if none is."""
    of_all = f"p after Holm's correction for {len(correlations)}"
    sure = correlations[correlations["p_value"] <= level]
    coefficients = ", ".join(
        f"{row.factor} {row.rho:+.2f} (p = {row.p_value:.2g})"
        for row in (sure if len(sure) else correlations[:1]).itertuples(index=False)
    )
    if len(sure):
        return f"Rank correlations with the ratio ({of_all}): {coefficients}."
    return f"No rank correlation with the ratio is sure ({of_all}); the strongest is {coefficients}."


def with_combinations(factors: pd.DataFrame) -> pd.DataFrame:
    """Return the factors and combinations of them. A column that orders rows as another does is left out."""
    columns = dict(factors.items())
    ordered = [column.rank().to_numpy() for column in columns.values()]
    with np.errstate(divide="ignore", invalid="ignore"):
        combined = list(_combinations(factors))
    for name, values in combined:
        order = values.rank().to_numpy()
        is_repeated = any(
            np.array_equal(order, other_order) or np.array_equal(len(order) + 1 - order, other_order)
            for other_order in ordered
        )
        if np.isfinite(values).all() and values.nunique() > 1 and not is_repeated:
            columns[name] = values
            ordered.append(order)
    return pd.DataFrame(columns)


def _combinations(factors: pd.DataFrame) -> Iterator[tuple[str, pd.Series]]:
    names = [str(name) for name in factors.columns]
    for first, second in combinations(names, 2):
        if _of_two_links(first, second):
            yield f"{second} / {first}", factors[second] / factors[first]
            yield f"{second} - {first}", factors[second] - factors[first]
    for name in names:
        link = name.removesuffix("bandwidth_mbps")
        for delay in (f"{link}owd_ms", f"{link}rtt_ms"):
            if link != name and delay in names:
                yield f"{name} × {delay}", factors[name] * factors[delay]
        model, _, parameter = name.rpartition(".")
        if not model.endswith("loss") or parameter not in _LOSS_RATES:
            continue
        if "size_bytes" in names:
            yield f"{name} × size_bytes", factors[name] * factors["size_bytes"]
        if parameter == "p" and f"{model}.r" in names:
            yield f"{name} / {model}.r", factors[name] / factors[f"{model}.r"]


def _of_two_links(first: str, second: str) -> bool:
    """Whether both are the same parameter, of two links: path1.owd_ms and path2.owd_ms."""
    (link, _, parameter), (other, _, same) = (name.partition(".") for name in (first, second))
    return bool(parameter) and parameter == same and link != other


def _some(points: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return so many points that they have _MOST_ROWS rows, chosen by chance alone; all, if they have
    fewer."""
    names = np.unique(points)
    most = max(1, _MOST_ROWS * len(names) // len(points))
    sample: NDArray[np.int64] = np.random.default_rng(_SEED).permutation(names)[:most]
    return sample


def _standardized(ranks: Floats) -> Floats:
    """Columns whose products are correlations; 0 of a column that is the same everywhere."""
    centred = ranks - ranks.mean(axis=0)
    length = np.sqrt((centred**2).sum(axis=0))
    standardized: Floats = np.divide(centred, length, out=np.zeros_like(centred), where=length > 0)
    return standardized


def _shares_of_flips(ranks: Floats, centred: Floats, points: NDArray[np.int64], observed: Floats) -> Floats:
    """Return how often each correlation is as strong when the signs of whole points are by chance."""
    random = np.random.default_rng(_SEED)
    by_size = np.argsort(np.abs(centred), kind="stable")
    names, of_row = np.unique(points, return_inverse=True)
    count, at_once = len(centred), max(1, _AT_ONCE // len(centred))
    both = np.array([-1, 1], dtype=np.int8)
    as_strong = np.zeros(ranks.shape[1])
    for first in range(0, _FLIPS, at_once):
        signs = random.choice(both, (len(names), min(at_once, _FLIPS - first)))[of_row[by_size]]
        flipped = ranks_of_signed(centred[by_size], signs)
        # All ranks have one mean, and the columns of `ranks` have 0: their products need no other.
        length = np.sqrt(np.einsum("ij,ij->j", flipped, flipped) - count * (count + 1) ** 2 / 4)
        products = np.abs(ranks[by_size].T @ flipped)
        rho = np.divide(products, length, out=np.zeros_like(products), where=length > 0)
        as_strong += (rho >= observed[:, np.newaxis] - 1e-9).sum(axis=1)
    shares: Floats = (1 + as_strong) / (1 + _FLIPS)
    return shares


def ranks_of_signed(values: Floats, signs: NDArray[np.integer | np.floating]) -> Floats:
    """The ranks, from 1, of `values` times each column of `signs` (values × flips, of -1 and 1), in which
    ties share their mean.

    The sizes of the values ascend, so nothing is sorted: below a positive one are all negative ones and the
    smaller positive ones, and below a negative one the greater negative ones.
    """
    sizes, count = np.abs(values), len(values)
    first, last = (np.searchsorted(sizes, sizes, side) for side in ("left", "right"))  # of those that tie
    zeros = int(np.searchsorted(sizes, 0.0, "right"))
    # Flips × values: sums along a row are fastest.
    positive = np.ascontiguousarray(((signs > 0) == (values > 0)[:, np.newaxis]).T)
    positive[:, :zeros] = False
    before = np.zeros((signs.shape[1], count + 1), dtype=np.int32)  # positive ones among so many
    np.cumsum(positive, axis=1, out=before[:, 1:])
    of_all = before[:, -1:]
    is_tied = bool((last - first > 1).any())
    # Twice the ranks, which are halves where an even number ties.
    ranks = (
        before.take(first, axis=1) + before.take(last, axis=1) if is_tied else before[:, :-1] + before[:, 1:]
    )
    both = (first + last).astype(np.int32)
    ranks += (2 * count + 1 - both) - 2 * of_all
    ranks += positive * both
    ranks[:, :zeros] = 2 * (count - of_all) - zeros + 1
    return (ranks / 2.0).T


def _holm(p_values: Floats) -> Floats:
    order = np.argsort(p_values)
    scaled = np.maximum.accumulate(p_values[order] * np.arange(len(order), 0, -1))
    corrected = np.empty(len(order))
    corrected[order] = np.minimum(scaled, 1)
    return corrected
