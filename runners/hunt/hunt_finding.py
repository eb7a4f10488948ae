"""Findings: networks in which what is sought is surely there, over repetitions that did not choose them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fecbench.results.analysis.intervals import LEVEL
from fecbench.runners.hunt.measured import Judging
from fecbench.runners.hunt.space import Network


@dataclass(frozen=True)
class Box:
    """A neighbourhood of a network, and how much of it is like it."""

    ends: dict[str, tuple[float, float]]
    """The ends of each factor with a range."""
    harmed: float
    """The share of the networks that were looked at in it in which what is sought is surely there."""
    networks: int


@dataclass(frozen=True)
class Noisy:
    """The same network where delays have noise."""

    noise_ms: float
    """Mean of the noise."""
    ratio: float
    interval: tuple[float, float]
    """Interval; each network by itself."""
    is_sure: bool
    """Whether what is sought is surely there, too."""


@dataclass(frozen=True)
class Finding:
    """A confirmed network."""

    network: Network
    ratio: float
    interval: tuple[float, float]
    """Interval; all networks that were confirmed at a time share the error."""
    margin: float
    repetitions: int
    by_failures: bool
    """Whether one arm's failures make the difference, and not how long it takes."""
    pair: tuple[int, int]
    """The trials, by id, of the baseline and of the arm: of the pair nearest to the ratio."""
    shrunk_from: Network
    box: Box | None = None
    noisy: Noisy | None = None

    @property
    def sure_effect(self) -> float:
        """The logarithm of how much it is at least: of the end of the interval that is nearer to 1."""
        low, high = self.interval
        with np.errstate(divide="ignore"):
            return float(max(np.log(low), -np.log(high)))


def confirmed(networks: list[Network], origins: list[Network], measured: Judging, of: int) -> list[Finding]:
    """The networks of a look in which what is sought is surely there: the level is shared among the `of`
    networks that are confirmed at all.

    `origins`: of each, the network that it was shrunk from, which may be itself.
    """
    judged = measured.judged(LEVEL / of)
    return [
        Finding(
            network=network,
            ratio=float(judged.ratio[place]),
            interval=(float(judged.low[place]), float(judged.high[place])),
            margin=float(judged.margin[place]),
            repetitions=int(judged.pairs[place]),
            by_failures=bool(judged.by_failures[place]),
            pair=measured.pair(place, float(judged.ratio[place])),
            shrunk_from=origin,
        )
        for place, (network, origin) in enumerate(zip(networks, origins, strict=True))
        if judged.is_sure[place]
    ]
