"""Losses of a path, and their lengths in a row: estimates of Gilbert's model with their intervals.

A packet is lost in the bad state alone: p = P(good→bad), r = P(bad→good). Bursts are clusters, so the number
of losses is no binomial of packets. Transitions from each packet to the next are counted, whose
Jeffreys posteriors are Beta(k + ½, n − k + ½) (Brown, Cai and DasGupta, "Interval estimation for a binomial
proportion", Statistical Science 2001). Draws of both give the interval of p / (p + r).

Bursts with holes, as Gilbert-Elliott's are, are alike over longer than one transition. So the interval of the
share is also one of fewer packets, by how much losses vary from block to block.

The end of a burst, by packets or by time, shows where packets do not come evenly: by the likelihood of the
same losses under a Markov chain that steps with each packet, and under one that runs in time. Both have two
parameters.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fecbench.runners.paths.path import LONGEST, Ends, Estimate
from fecbench.runners.paths.shares import of_none

DRAWS = 20_000
_SEED = 2026
_LEVEL = 0.95
_SURELY = math.log(20)
"""Difference of log likelihoods that decides what ends a burst."""
_CLUSTERED = 0.99
_FEWEST_BLOCKS = 20
"""Fewer blocks do not tell how much losses vary."""
_SPANS = np.geomspace(1e-5, 100, 71)
"""Mean times (s) after which a path has forgotten its state, that are tried."""

Verdicts = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Losses:
    """Estimates of the losses of a path."""

    loss: Estimate
    burst: Estimate
    ends: Ends = ""
    burst_s: Estimate | None = None


@dataclass(frozen=True)
class _Counts:
    """Transitions from one packet to the next: from good or bad, to good or bad."""

    good_good: int
    good_bad: int
    bad_good: int
    bad_bad: int

    @property
    def are_clustered(self) -> bool:
        """Whether a loss surely makes another more likely."""
        generator = np.random.default_rng(_SEED)
        enters = _posterior(generator, self.good_bad, self.good_good)
        stays = _posterior(generator, self.bad_bad, self.bad_good)
        return float(np.mean(stays > enters)) > _CLUSTERED


def estimated(lost: Verdicts, follows: Verdicts | None = None, at_s: Floats | None = None) -> Losses:
    """Return the estimates of losses, in the order in which packets were sent.

    `follows`: whether each packet followed the one before it in the list, and none was left out between;
    `at_s`: when each of them met the losses.
    """
    follows = np.ones(lost.size, dtype=np.bool_) if follows is None else follows
    before, after = lost[:-1][follows[1:]], lost[1:][follows[1:]]
    counts = _Counts(
        good_good=int((~before & ~after).sum()),
        good_bad=int((~before & after).sum()),
        bad_good=int((before & ~after).sum()),
        bad_bad=int((before & after).sum()),
    )
    share = float(lost.mean()) if lost.size else 0.0
    if not lost.any():
        return Losses(of_none(lost.size), Estimate(1.0, 1.0, LONGEST))
    if not counts.are_clustered:
        return _one_by_one(lost, share, counts)
    generator = np.random.default_rng(_SEED)
    p = _posterior(generator, counts.good_bad, counts.good_good)
    r = _posterior(generator, counts.bad_good, counts.bad_bad)
    rates, burst = [_between(p / (p + r)), _of_blocks(generator, lost)], _between(1 / r)
    rate = min(low for low, _ in rates), max(high for _, high in rates)
    mean_burst = max(1.0, int(lost.sum()) / max(1, _bursts(lost, follows)))
    losses = Losses(_around(share, *rate), _around(mean_burst, *burst))
    if at_s is None:
        return losses
    ends, burst_s = _what_ends(lost, follows, at_s)
    return Losses(losses.loss, losses.burst, ends, burst_s)


def lasting(losses: Losses, apart_s: float) -> Estimate | None:
    """Return how long a burst lasts (s), by losses of packets that were sent so far apart.

    None: no loss makes another more likely, so a burst may be of any length that is shorter. In Gilbert's
    model in time, a packet behind a lost one is lost with the probability π + (1 − π) exp(−apart / span),
    where π is the share of losses. A burst lasts for span / (1 − π) on average.
    """
    if losses.burst.low == 1:
        return None
    share = losses.loss.value

    def seconds(in_a_row: float) -> float:
        alike = (1 - 1 / in_a_row - share) / (1 - share)
        return -apart_s / math.log(alike) / (1 - share) if 0 < alike < 1 else 0.0

    burst = losses.burst
    value, low, high = seconds(burst.value), seconds(burst.low), seconds(burst.high)
    return Estimate(value, low, high) if low > 0 else None


def _one_by_one(lost: Verdicts, share: float, counts: _Counts) -> Losses:
    """Return the estimates where no loss makes another more likely: 1 / (1 − loss) in a row."""
    count = int(lost.sum())
    generator = np.random.default_rng(_SEED)
    shares = _between(_posterior(generator, count, lost.size - count))
    longest = float(np.quantile(1 / _posterior(generator, counts.bad_good, counts.bad_bad), 0.975))
    alone = 1 / (1 - share) if share < 1 else 1.0
    return Losses(_around(share, *shares), Estimate(alone, 1.0, max(alone, longest)))


def _posterior(generator: np.random.Generator, events: int, others: int) -> Floats:
    drawn: Floats = generator.beta(events + 0.5, others + 0.5, DRAWS)
    return np.clip(drawn, 1e-12, 1 - 1e-12)


def _between(draws: Floats) -> tuple[float, float]:
    low, high = np.quantile(draws, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return float(low), float(high)


def _of_blocks(generator: np.random.Generator, lost: Verdicts) -> tuple[float, float]:
    """Return the interval of the share by blocks: of as many packets, lost one by one, as would make the
    share of long blocks vary as much (batch means: Schmeiser, Operations Research 30, 1982)."""
    before, share = np.concatenate(([0], np.cumsum(lost))), float(lost.mean())
    alike, length = 1.0, 2
    while lost.size // length >= _FEWEST_BLOCKS:
        variance = float(np.diff(before[::length]).var(ddof=1))
        alike = max(alike, variance / (length * share * (1 - share)))
        length *= 2
    count = lost.size / alike
    return _between(generator.beta(count * share + 0.5, count * (1 - share) + 0.5, DRAWS))


def _around(value: float, low: float, high: float) -> Estimate:
    return Estimate(value, min(low, value), max(high, value))


def _bursts(lost: Verdicts, follows: Verdicts) -> int:
    begins = lost & ~(np.concatenate(([False], lost[:-1])) & follows)
    return int(begins.sum())


def _what_ends(lost: Verdicts, follows: Verdicts, at_s: Floats) -> tuple[Ends, Estimate | None]:
    """Return what ends a burst, and how long it lasts where that is time."""
    within = follows[1:]
    before, after, gaps_s = lost[:-1][within], lost[1:][within], np.diff(at_s)[within]
    gaps_s = np.maximum(gaps_s, 0.0)
    share = float(lost.mean())
    by_packets = _likelihood(before, after, float(after[before].mean()), float(after[~before].mean()))
    likelihoods = []
    for span_s in _SPANS:
        kept = np.exp(-gaps_s / span_s)
        stays, enters = share + (1 - share) * kept, share * (1 - kept)
        likelihoods.append(_likelihood(before, after, stays[before], enters[~before]))
    best = int(np.argmax(likelihoods))
    by_time = likelihoods[best]
    if by_packets > by_time + _SURELY:
        return "packets", None
    if by_time < by_packets + _SURELY:
        return "", None
    likely = _SPANS[np.array(likelihoods) > by_time - 1.92]  # half of χ² of one degree of freedom, at 95 %
    # A state is left at the rate (1 − share) / span.
    step = _SPANS[1] / _SPANS[0]
    ends_s = _SPANS[best], likely[0] / step, likely[-1] * step
    value, low, high = (float(span / (1 - share)) for span in ends_s)
    return "time", Estimate(value, low, high)


def _likelihood(before: Verdicts, after: Verdicts, stays: Floats | float, enters: Floats | float) -> float:
    """The log likelihood of transitions, by the probabilities of a loss behind a loss and behind none."""
    total = 0.0
    for chosen, probability in ((before, stays), (~before, enters)):
        lost = after[chosen]
        shares = np.clip(np.broadcast_to(probability, lost.shape), 1e-12, 1 - 1e-12)
        total += float(np.where(lost, np.log(shares), np.log1p(-shares)).sum())
    return total
