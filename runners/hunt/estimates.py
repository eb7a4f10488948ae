"""Estimates by which a search prefers one network to another, of however few pairs.

A single pair under losses says little: one loss more doubles a time. So each estimate is drawn towards no
difference by as much as the spread of its pairs asks for (an empirical Bayes estimate with a normal prior).
The spread of few pairs is what trees predict from the networks of which more is known (extremely randomized
trees: Geurts, Ernst and Wehenkel, Machine Learning 63, 2006): it hangs on the losses more than on all else.
"""

from __future__ import annotations

import math

import numpy as np

from fecbench.runners.hunt.measured import Floats, Measured
from fecbench.runners.hunt.space import Network, Space

PRIOR = 0.1
"""The standard deviation of log ratios over networks, about."""
LEAST_SPREAD = 0.002
"""Least deviation of a pair: a difference of that much is no sign of anything."""
ENOUGH = 4
"""Pairs that tell a spread to others."""
FEWEST_TO_LEARN = 8
TREES, LEAF = 40, 3
OF_OTHERS = 2
"""The spread of others counts as so many pairs of a network's own."""


class Estimates:
    """All networks that were looked at, each with the estimate of all its looks.

    It only chooses the next look. Results rest on a look that was not part of it.
    """

    def __init__(self, space: Space) -> None:
        self._space = space
        self._of: dict[Network, float] = {}
        self._known: dict[Network, tuple[float, float, float]] = {}
        """The log ratio, its spread and the number of pairs."""
        self._places = np.empty((0, space.axes))
        self._spreads = np.empty(0)

    def __contains__(self, network: object) -> bool:
        return network in self._of

    def __getitem__(self, network: Network) -> float:
        return self._of[network]

    def add(self, networks: list[Network], measured: Measured) -> None:
        """Take a look's measurements, beside those that there are of a network."""
        log, spread, pairs = (
            np.array(values)
            for values in zip(*map(self._with_before, networks, *measured.estimates()), strict=True)
        )
        places = self._space.places(networks)
        tells = (pairs >= ENOUGH) & ~np.isnan(spread)
        self._places = np.concatenate([self._places, places[tells]])
        self._spreads = np.concatenate([self._spreads, spread[tells]])
        of_one = self._spread(places, spread, pairs)
        with np.errstate(divide="ignore", invalid="ignore"):
            shrunk = log * PRIOR**2 / (PRIOR**2 + of_one**2 / pairs)
        for network, estimate in zip(networks, shrunk.tolist(), strict=True):
            self._of[network] = -np.inf if math.isnan(estimate) else estimate

    def _with_before(
        self, network: Network, log: float, spread: float, pairs: float
    ) -> tuple[float, float, float]:
        """The measurements of a look, pooled with those before."""
        if network in self._known and pairs and not math.isnan(log):
            log_before, spread_before, pairs_before = self._known[network]
            if pairs_before and not math.isnan(log_before):
                log = (log * pairs + log_before * pairs_before) / (pairs + pairs_before)
                if not math.isnan(spread_before):
                    spread = math.sqrt(
                        (spread**2 * pairs + spread_before**2 * pairs_before) / (pairs + pairs_before)
                    )
                pairs += pairs_before
        self._known[network] = log, spread, pairs
        return log, spread, pairs

    def effects(self) -> list[tuple[Network, float]]:
        """Each network that has a ratio, with it, or its inverse: above 1 where it is what is sought."""
        return [(network, math.exp(log)) for network, (log, _, _) in self._known.items() if log == log]

    def best(self) -> list[Network]:
        """All networks, the one with most of what is sought first."""
        return sorted(self._of, key=lambda network: -self._of[network])

    def _spread(self, places: Floats, own: Floats, pairs: Floats) -> Floats:
        """Return the spread of one pair of each network: its own, and that of its nearest."""
        near = self._predicted(places)
        freedom = np.where(np.isnan(own), 0.0, np.maximum(pairs - 1, 0))
        squares = np.nan_to_num(own) ** 2 * freedom + near**2 * OF_OTHERS
        spread: Floats = np.sqrt(squares / (freedom + OF_OTHERS)) + LEAST_SPREAD
        return spread

    def _predicted(self, places: Floats) -> Floats:
        """Return the spread at each place by the networks whose spread is known."""
        if len(self._spreads) < FEWEST_TO_LEARN:
            return np.full(len(places), PRIOR)
        from fecbench.results.analysis.forest import extremely_random  # which takes long to load

        logs = np.log(self._spreads + LEAST_SPREAD)
        spread: Floats = np.exp(
            extremely_random(self._places, logs, TREES, least=LEAF, seed=0).predict(places)
        )
        return spread
