"""Quantiles, tails, ranks and false discoveries, as `scipy.stats` has them.

That takes longer to load than most commands take to run; `scipy.special`, which computes them, does not.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]


def normal_quantile(share: float) -> float:
    """Return the value that a standard normal variable is below with this probability."""
    return float(special.ndtri(share))


def normal_below(value: float) -> float:
    """The probability that a standard normal value is below this one."""
    return float(special.ndtr(value))


def normal_beyond(values: Any) -> Any:
    """The probability that a standard normal value is above each of these."""
    return special.ndtr(-values)


def t_quantile(share: float, freedom: float) -> float:
    """Return the value that a variable of Student's distribution, with so many degrees of freedom, is
    below with this probability."""
    return float(special.stdtrit(freedom, share))


def t_beyond(value: float, freedom: float) -> float:
    """The probability that a value of Student's distribution is above this one."""
    return float(special.stdtr(freedom, -value))


def heads_at_least(count: int, tosses: int, probability: float = 0.5) -> float:
    """The probability of at least so many heads in tosses of a coin, by default a fair one."""
    return 1.0 if count <= 0 else float(special.bdtrc(count - 1, tosses, probability))


def heads(tosses: int) -> Floats:
    """The probabilities of 0, 1, … heads in tosses of a fair coin, shape (tosses + 1,)."""
    counts = np.arange(tosses + 1)
    ways = special.gammaln(tosses + 1) - special.gammaln(counts + 1) - special.gammaln(tosses - counts + 1)
    probabilities: Floats = np.exp(ways - tosses * np.log(2))
    return probabilities


def share_interval(count: int, of: int, level: float) -> tuple[float, float]:
    """The interval of a share, of confidence 1 - `level` at least (Clopper and Pearson 1934)."""
    low = special.betaincinv(count, of - count + 1, level / 2) if count else 0.0
    high = special.betaincinv(count + 1, of - count, 1 - level / 2) if count < of else 1.0
    return float(low), float(high)


def ranks_of_rows(values: Floats) -> Floats:
    """Return ranks from 1 (shape rows × values); values of a row that tie share their mean."""
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
