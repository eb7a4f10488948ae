"""The loss models that are clocked by packets, in NumPy: the oracle of what the BPF program drops.

Packet n is judged by draw(n, 0), in the state before the transition; draw(n, 1) decides the transition.

Probabilities are 0 to 1. In the Gilbert-Elliott model p = P(good→bad), r = P(bad→good), and k and h are the
probabilities that a packet is **delivered** in the good and in the bad state.
"""

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from fecbench.dropper.draws import (
    LONGEST,
    SEEDS,
    LossModelError,
    draws,
    happens,
    require_integer,
    require_probability,
)

_ROUNDING = 1e-9  # relative: how far a burst length computed from p and r may fall short of the shortest
_CHUNK = 2**18  # packets judged at a time: the temporary arrays stay in the cache


@dataclass(frozen=True)
class Uniform:
    """Each packet is lost with probability p, independently of the others."""

    p: float

    def __post_init__(self) -> None:
        require_probability("p", self.p)


@dataclass(frozen=True)
class GilbertElliott:
    """A two-state Markov chain that starts in the good state; see the module for p, r, k and h."""

    p: float
    r: float
    k: float = 1.0
    h: float = 0.0

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            require_probability(name, value)

    @property
    def bad_share(self) -> float:
        """The share of packets judged in the bad state, in the long run."""
        return self.p / (self.p + self.r) if self.p > 0 else 0.0


@dataclass(frozen=True)
class Pattern:
    """The packets of these indices are lost; past `length` packets all pass, or the pattern starts again.

    Without a length the pattern ends behind its last loss.
    """

    dropped: tuple[int, ...]
    length: int | None = None
    repeat: bool = False

    def __post_init__(self) -> None:
        for index in self.dropped:
            require_integer("dropped", index, 0, LONGEST - 1)
        if self.length is not None:
            require_integer("length", self.length, max(self.dropped, default=-1) + 1, LONGEST)

    @property
    def packets(self) -> int:
        """The length of the pattern, given or not."""
        return max(self.dropped, default=-1) + 1 if self.length is None else self.length


Counted = Uniform | GilbertElliott | Pattern
"""Losses that follow from a packet's number alone."""


def markov(p: float, r: float) -> GilbertElliott:
    """The Gilbert-Elliott model that delivers all packets in the good state and none in the bad."""
    return GilbertElliott(p, r, k=1.0, h=0.0)


# ---- Verdicts ----


def _chain(leaves_good: NDArray[np.bool_], leaves_bad: NDArray[np.bool_], bad: bool) -> NDArray[np.bool_]:
    """The states before each transition and after the last, shape (n + 1,); True is bad. `bad` is the first.

    A transition keeps the state if neither event happens, reverses it if both do, and sets it, whatever it
    was, if just one does. So a state is what the last such reset made it, reversed as often as both happened
    since.
    """
    resets = leaves_good != leaves_bad
    states_after_reset = np.concatenate(([bad], leaves_good))
    last_reset = np.maximum.accumulate(
        np.concatenate(([0], np.where(resets, np.arange(1, resets.size + 1), 0)))
    )
    reversals = np.concatenate(([0], np.cumsum(leaves_good & leaves_bad)))
    odd = (reversals - reversals[last_reset]) % 2 == 1
    states: NDArray[np.bool_] = states_after_reset[last_reset] ^ odd
    return states


def _chunks(packets: int) -> Iterator[tuple[int, int]]:
    for first in range(0, packets, _CHUNK):
        yield first, min(_CHUNK, packets - first)


def _uniform_verdicts(model: Uniform, seed: int, packets: int) -> Iterator[NDArray[np.bool_]]:
    for first, count in _chunks(packets):
        yield happens(draws(seed, first, count, 0), model.p)


def _gilbert_elliott_verdicts(model: GilbertElliott, seed: int, packets: int) -> Iterator[NDArray[np.bool_]]:
    bad = False
    for first, count in _chunks(packets):
        loss, transition = draws(seed, first, count, 0), draws(seed, first, count, 1)
        states = _chain(happens(transition, model.p), happens(transition, model.r), bad)
        bad = bool(states[-1])
        yield np.where(states[:-1], happens(loss, 1 - model.h), happens(loss, 1 - model.k))


def _pattern_verdicts(model: Pattern, packets: int) -> NDArray[np.bool_]:
    pattern = np.zeros(model.packets, dtype=np.bool_)
    pattern[list(model.dropped)] = True
    if model.repeat and model.packets:
        return np.resize(pattern, packets)
    return np.concatenate((pattern[:packets], np.zeros(max(packets - model.packets, 0), dtype=np.bool_)))


def _verdicts_in_chunks(
    model: Uniform | GilbertElliott, seed: int, packets: int
) -> Iterator[NDArray[np.bool_]]:
    if isinstance(model, Uniform):
        return _uniform_verdicts(model, seed, packets)
    return _gilbert_elliott_verdicts(model, seed, packets)


def verdicts(model: Counted, seed: int, packets: int) -> NDArray[np.bool_]:
    """What happens to packets 0 to packets - 1, shape (packets,): True is dropped.

    Raises LossModelError for a seed that is not of 64 bits and for more than LONGEST packets.
    """
    require_integer("seed", seed, 0, SEEDS - 1)
    require_integer("packets", packets, 0, LONGEST)
    if isinstance(model, Pattern):
        return _pattern_verdicts(model, packets)
    return np.concatenate([np.empty(0, dtype=np.bool_), *_verdicts_in_chunks(model, seed, packets)])


def dropped_packets(model: Counted, seed: int, packets: int) -> int:
    """How many of packets 0 to packets - 1 are dropped: of any number of them, since none is kept.

    Raises LossModelError for a seed that is not of 64 bits.
    """
    require_integer("seed", seed, 0, SEEDS - 1)
    if not isinstance(model, Pattern):
        return sum(int(chunk.sum()) for chunk in _verdicts_in_chunks(model, seed, packets))
    dropped = sorted(set(model.dropped))
    if not model.repeat or not dropped:
        return bisect_left(dropped, packets)
    rounds, rest = divmod(packets, model.packets)
    return rounds * len(dropped) + bisect_left(dropped, rest)


# ---- Closed forms ----


def stationary_loss_rate(model: Counted) -> float:
    """The share of packets lost in the long run (Gilbert-Elliott: Hasslinger, Hohlfeld, MMB 2008)."""
    match model:
        case Uniform(p):
            return p
        case GilbertElliott(k=k, h=h):
            return (1 - model.bad_share) * (1 - k) + model.bad_share * (1 - h)
        case Pattern(dropped, repeat=repeat):
            return len(set(dropped)) / model.packets if repeat and dropped else 0.0


def mean_burst_length(model: Uniform | GilbertElliott) -> float:
    """The mean length of an unbroken run of losses in the long run, in packets.

    Each run begins with a delivery followed by a loss, so this is P(lost) / P(delivered, then lost); with
    k = 1 and h = 0 it is 1 / r. It is inf if losses never end, and 0 if there are none.
    """
    chain = GilbertElliott(0.0, 0.0, k=1 - model.p) if isinstance(model, Uniform) else model
    rate = stationary_loss_rate(chain)
    if rate == 0:
        return 0.0
    lost_good, lost_bad, bad = 1 - chain.k, 1 - chain.h, chain.bad_share
    loss_after_good = (1 - chain.p) * lost_good + chain.p * lost_bad
    loss_after_bad = chain.r * lost_good + (1 - chain.r) * lost_bad
    begins = (1 - bad) * chain.k * loss_after_good + bad * chain.h * loss_after_bad
    return rate / begins if begins else math.inf


def gilbert_elliott_from(
    loss_rate: float, mean_burst_length: float, k: float = 1.0, h: float = 0.0
) -> GilbertElliott:
    """The model of this stationary loss rate and mean burst length (packets): what `stationary_loss_rate` and
    `mean_burst_length` give, solved for p and r.

    With b the share of the bad state and f the share of packets that a transition follows, in one direction,
    P(delivered, then lost) = (1-b)·k·(1-k) + b·h·(1-h) + f·(k-h)² (as balance makes f the same for both);
    then p = f / (1-b) and r = f / b. Where there is no such model, raises LossModelError, which says what
    can be reached.
    """
    for name, value in (("rate", loss_rate), ("k", k), ("h", h)):
        require_probability(name, value)
    if k <= h:
        raise LossModelError(f"h = {h!r}: must be less than k = {k!r} for a mean loss rate and burst length")
    if loss_rate == 0 and k == 1:
        return GilbertElliott(0.0, 1.0, k, h)
    if not 1 - k < loss_rate < 1 - h:
        raise LossModelError(
            f"rate = {loss_rate!r}: must be above 1 - k = {1 - k:.10g} and below 1 - h = {1 - h:.10g}"
        )
    bad = (loss_rate - (1 - k)) / (k - h)
    within_states = (1 - bad) * k * (1 - k) + bad * h * (1 - h)
    most_changes = min(bad, 1 - bad)
    shortest = loss_rate / (within_states + most_changes * (k - h) ** 2)
    longest = loss_rate / within_states if within_states else math.inf
    reachable = (
        isinstance(mean_burst_length, Real) and shortest * (1 - _ROUNDING) <= mean_burst_length < longest
    )
    if not reachable:
        raise LossModelError(
            f"burst = {mean_burst_length!r}: must be from {shortest:.10g} to below {longest:.10g} packets"
            f" for rate = {loss_rate!r}, k = {k!r}, h = {h!r}"
        )
    changes = (loss_rate / mean_burst_length - within_states) / (k - h) ** 2
    return GilbertElliott(min(changes / (1 - bad), 1.0), min(changes / bad, 1.0), k, h)
