"""Quantiles, tails, ranks and false discoveries, as `scipy.stats` has them.

That takes longer to load than most commands take to run, and so does `scipy.special`. Its functions are in a
module that loads in no time.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fecbench.lazy import standing_aside

with standing_aside("scipy.special"):
    from scipy.special._ufuncs import bdtrc, betaincinv, gammaln, ndtr, ndtri, stdtr, stdtrit

Floats = NDArray[np.float64]


def normal_quantile(share: float) -> float:
    """Return the value that a standard normal variable is below with this probability."""
    return float(ndtri(share))


def normal_below(value: float) -> float:
    """The probability that a standard normal value is below this one."""
    return float(ndtr(value))


def normal_beyond(values: Any) -> Any:
    """The probability that a standard normal value is above each of these."""
    return ndtr(-values)


def t_quantile(share: float, freedom: float) -> float:
    """Return the value that a variable of Student's distribution, with so many degrees of freedom, is
    below with this probability."""
    return float(stdtrit(freedom, share))


def t_below(values: Floats, freedom: float) -> Floats:
    """Return the probability that a value of Student's distribution is below each of these."""
    probabilities: Floats = stdtr(freedom, values)
    return probabilities


def t_beyond(value: float, freedom: float) -> float:
    """The probability that a value of Student's distribution is above this one."""
    return float(stdtr(freedom, -value))


def heads_at_least(count: int, tosses: int, probability: float = 0.5) -> float:
    """The probability of at least so many heads in tosses of a coin, by default a fair one."""
    return 1.0 if count <= 0 else float(bdtrc(count - 1, tosses, probability))


def heads(tosses: int) -> Floats:
    """The probabilities of 0, 1, … heads in tosses of a fair coin, shape (tosses + 1,)."""
    probabilities: Floats = np.exp(_log_ways(tosses, np.arange(tosses + 1)) - tosses * np.log(2))
    return probabilities


def share_interval(count: int, of: int, level: float) -> tuple[float, float]:
    """The interval of a share, of confidence 1 - `level` at least (Clopper and Pearson 1934)."""
    low = betaincinv(count, of - count + 1, level / 2) if count else 0.0
    high = betaincinv(count + 1, of - count, 1 - level / 2) if count < of else 1.0
    return float(low), float(high)


Counts = tuple[int, int]


def fisher(one: Counts, other: Counts) -> float:
    """Return the p-value of Fisher's exact test that two shares are equal; of each, the counts of both
    outcomes. It sums all tables that are no more probable."""
    probabilities, place = _tables(one, other)
    # Logarithms of factorials are exact to 9 digits: tables that are equally probable differ by that.
    return min(1.0, float(probabilities[probabilities <= probabilities[place] * (1 + 1e-7)].sum()))


def fisher_greater(one: Counts, other: Counts) -> float:
    """Return the p-value of the same test against a greater share of the first outcome in `one`."""
    probabilities, place = _tables(one, other)
    return min(1.0, float(probabilities[place:].sum()))


def _tables(one: Counts, other: Counts) -> tuple[Floats, int]:
    """Return the probabilities of all tables with these sums, if both shares are equal, by the first count of
    `one`, and the place of the table itself."""
    first, of_one, of_other = one[0] + other[0], sum(one), sum(other)
    least = max(0, first - of_other)
    counts = np.arange(least, min(first, of_one) + 1)
    ways = _log_ways(of_one, counts) + _log_ways(of_other, first - counts)
    probabilities: Floats = np.exp(ways - _log_ways(of_one + of_other, np.array([first])))
    return probabilities, one[0] - least


def _log_ways(total: int, counts: NDArray[np.int64]) -> Floats:
    """Return the logarithm of the number of ways to choose so many of all."""
    logs: Floats = gammaln(total + 1) - gammaln(counts + 1) - gammaln(total - counts + 1)
    return logs


def ranks_of_rows(values: Floats) -> Floats:
    """Return ranks from 1 (shape rows × values); values of a row that tie share their mean."""
    import pandas as pd  # takes long to load, and is used here alone

    ranked: Floats = pd.DataFrame(values).rank(axis=1).to_numpy(np.float64)
    return ranked


def false_discoveries(p_values: Sequence[float] | Floats) -> Floats:
    """Return, for each p-value, the least share of false discoveries at which it is a discovery (Benjamini
    and Hochberg, Journal of the Royal Statistical Society B 57, 1995)."""
    p = np.asarray(p_values, np.float64)
    downwards = np.argsort(-p, kind="stable")
    adjusted = np.empty(len(p))
    adjusted[downwards] = np.minimum.accumulate(p[downwards] * len(p) / np.arange(len(p), 0, -1))
    return np.minimum(adjusted, 1)
