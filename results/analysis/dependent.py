"""A mean of values that follow one another in time and may depend on each other, with its interval.

Values are y = X b + e with e of AR(1): each error is rho times the one before, and noise. An estimate of rho
that is taken for true makes intervals too narrow. So each rho of a grid gives b by generalized least squares,
whose posterior is Student's, and these are mixed by how likely each rho is, with the reference prior
1 / sqrt(1 - rho^2) (Berger and Yang, "Noninformative priors and Bayesian testing for the AR(1) model",
Econometric Theory 1994). A drift that no regressor has makes rho near 1 likely, and the interval wide.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fecbench.results.analysis.quantiles import t_below

Floats = NDArray[np.float64]

FEWEST = 20
"""Values of an interval: for this many and more, it was found how often intervals hold the truth."""
_CORRELATIONS = np.linspace(-0.5, 0.99, 75)
_STEPS = 60


@dataclass(frozen=True)
class Posterior:
    """Knowledge of one coefficient: a mixture of Student's distributions."""

    weights: Floats
    means: Floats
    scales: Floats
    freedom: int

    @property
    def mean(self) -> float:
        return float(self.weights @ self.means)

    def below(self, value: float) -> float:
        """Return the probability that the coefficient is below a value."""
        with np.errstate(divide="ignore", invalid="ignore"):
            distances = np.nan_to_num((value - self.means) / self.scales, nan=0.0)
        return float(self.weights @ t_below(distances, self.freedom))

    def quantile(self, share: float) -> float:
        """Return the value below which the coefficient is with this probability."""
        reach = 1e3 * float(self.scales.max())
        low, high = float(self.means.min()) - reach, float(self.means.max()) + reach
        for _ in range(_STEPS):
            middle = (low + high) / 2
            if self.below(middle) < share:
                low = middle
            else:
                high = middle
        return (low + high) / 2

    def interval(self, level: float) -> tuple[float, float]:
        """Return the interval of confidence 1 - `level`."""
        return self.quantile(level / 2), self.quantile(1 - level / 2)

    def p_value(self, value: float = 0.0) -> float:
        """Return twice the probability of the side of `value` on which the coefficient is less likely."""
        share = self.below(value)
        return min(1.0, 2 * min(share, 1 - share))


def mean_of(values: Floats) -> Posterior:
    """Return what is known of the mean of values, in the order of time."""
    return coefficient(values, np.ones((len(values), 1)))


def coefficient(values: Floats, regressors: Floats) -> Posterior:
    """Return what is known of the last coefficient of `regressors` (values × coefficients)."""
    count, coefficients = regressors.shape
    if float(np.ptp(values)) == 0.0:  # all alike, to the last bit: nothing is left to be uncertain of
        constant = np.array([float(values[0]) if coefficients == 1 else 0.0])
        return Posterior(np.ones(1), constant, np.array([1e-12]), count - coefficients)
    logs, means, scales = np.empty((3, len(_CORRELATIONS)))
    for place, rho in enumerate(_CORRELATIONS):
        whitened, design = _whitened(values, rho), _whitened(regressors, rho)
        information = design.T @ design
        solved = np.linalg.solve(information, design.T @ whitened)
        rest = float(((whitened - design @ solved) ** 2).sum())
        freedom = count - coefficients
        means[place] = solved[-1]
        scales[place] = np.sqrt(rest / freedom * np.linalg.inv(information)[-1, -1])
        # log |correlations|^-½ · |information|^-½ · rest^-freedom/2 · prior
        logs[place] = (
            0.5 * np.log(1 - rho**2)
            - 0.5 * np.linalg.slogdet(information)[1]
            - freedom / 2 * np.log(max(rest, 1e-300))
            - 0.5 * np.log(1 - rho**2)
        )
    weights = np.exp(logs - logs.max())
    return Posterior(weights / weights.sum(), means, scales, count - coefficients)


def _whitened(values: Floats, rho: float) -> Floats:
    """Return what is left of a series when each value's share of the one before is taken from it."""
    first = np.sqrt(1 - rho**2) * values[:1]
    rest: Floats = np.concatenate([first, values[1:] - rho * values[:-1]])
    return rest
