"""The loss models that are clocked by packets, in NumPy: the oracle of what the BPF program drops.

Packet n is judged by draw(n, 0), in the state before the transition; draw(n, 1) decides the transition.

Probabilities are 0 to 1. In the Gilbert-Elliott model p = P(good→bad), r = P(bad→good), and k and h are the
probabilities that a packet is **delivered** in the good and in the bad state.
"""

import math
from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from fecbench.complaint import wrong_value
from fecbench.dropper.draws import (
    LONGEST,
    SEEDS,
    LossModelError,
    draws,
    happens,
    require_integer,
    require_probability,
)
from fecbench.dropper.loss_model import Form, LossModel, Parameter, exactly, number, numbers

_ROUNDING = 1e-9  # relative: how far a burst length computed from p and r may fall short of the shortest
_CHUNK = 2**18  # packets judged at a time: the temporary arrays stay in the cache


class Counted(LossModel):
    """Losses that follow from a packet's number alone."""

    @abstractmethod
    def chunks(self, seed: int, packets: int) -> Iterator[NDArray[np.bool_]]:
        """Return the verdicts of packets 0 to packets - 1, one behind the other."""

    def count_dropped(self, seed: int, packets: int) -> int:
        """Return how many of packets 0 to packets - 1 are dropped."""
        return sum(int(chunk.sum()) for chunk in self.chunks(seed, packets))


_DELIVERY = {
    "k": Parameter("The probability of delivery in the good state; 1 without it."),
    "h": Parameter("The probability of delivery in the bad state; 0 without it."),
}
_BURST_MAX = {"burst_max": Parameter("The most packets that are lost in a row; the next one passes.", int)}
_MOST_BURST = 10_000
_TRANSITIONS = {
    "p": Parameter("The probability of good → bad after a packet."),
    "r": Parameter("The probability of bad → good after a packet."),
    "rate": Parameter("The mean loss rate, in place of p and r."),
    "burst": Parameter("The mean burst length in packets, in place of p and r."),
}


@dataclass(frozen=True)
class Uniform(Counted):
    """Each packet is lost with probability p, independently of the others."""

    name: ClassVar[str] = "uniform"
    meaning: ClassVar[str] = "Each packet is lost with probability p, independently of the others."
    forms: ClassVar[tuple[Form, ...]] = (Form(("p",), ("burst_max",)), Form(("rate",)))
    parameters: ClassVar = {
        "p": Parameter("The loss probability of each packet."),
        "rate": Parameter("The mean loss rate, which is p: as other models take it."),
        **_BURST_MAX,
    }

    p: float
    burst_max: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require_probability("p", self.p)
        _require_burst_max(self.burst_max)

    @classmethod
    def of(cls, parameters: Mapping[str, object]) -> "Uniform":
        return Uniform(number(parameters, "rate" if "rate" in parameters else "p"), _burst_max_of(parameters))

    @property
    def own_plain(self) -> dict[str, object]:
        return {"model": self.name, "p": self.p, **_burst_parameter(self.burst_max)}

    @property
    def lines(self) -> dict[str, object]:
        return {"p": exactly(self.p), **_burst_parameter(self.burst_max)}

    def chunks(self, seed: int, packets: int) -> Iterator[NDArray[np.bool_]]:
        raw = (happens(draws(seed, first, count, 0), self.p) for first, count in _chunks(packets))
        yield from _capped(raw, self.burst_max)

    @property
    def mean_rate(self) -> float:
        return self._chain.mean_rate if self.burst_max else self.p

    @property
    def mean_burst(self) -> float:
        return self._chain.mean_burst

    @property
    def _chain(self) -> "GilbertElliott":
        return GilbertElliott(0.0, 0.0, k=1 - self.p, burst_max=self.burst_max)


class Nothing(Uniform):
    """A way to write that no packet is lost."""

    name: ClassVar[str] = "none"
    meaning: ClassVar[str] = "No packet is lost."
    forms: ClassVar = (Form(),)
    parameters: ClassVar = {}

    @classmethod
    def of(cls, parameters: Mapping[str, object]) -> Uniform:  # noqa: ARG003
        return Uniform(0.0)


@dataclass(frozen=True)
class Beginning(Counted):
    """Each of the first `length` packets is lost with probability p: handshakes meet losses."""

    name: ClassVar[str] = "beginning"
    meaning: ClassVar[str] = "Each of the first packets is lost with probability p, and none behind them."
    forms: ClassVar = (Form(("p", "length")),)
    parameters: ClassVar = {
        "p": Parameter("The loss probability of each packet of the beginning."),
        "length": Parameter("How many packets the beginning has.", int),
    }

    p: float
    length: int

    def __post_init__(self) -> None:
        super().__post_init__()
        require_probability("p", self.p)
        require_integer("length", self.length, 1, LONGEST)

    @classmethod
    def of(cls, parameters: Mapping[str, object]) -> "Beginning":
        return Beginning(number(parameters, "p"), cast(int, parameters["length"]))

    @property
    def own_plain(self) -> dict[str, object]:
        return {"model": self.name, "p": self.p, "length": self.length}

    @property
    def lines(self) -> dict[str, object]:
        return {"p": exactly(self.p), "length": self.length}

    def chunks(self, seed: int, packets: int) -> Iterator[NDArray[np.bool_]]:
        yield from Uniform(self.p).chunks(seed, min(packets, self.length))
        yield np.zeros(max(packets - self.length, 0), dtype=np.bool_)

    @property
    def mean_rate(self) -> float:
        return 0.0


@dataclass(frozen=True)
class GilbertElliott(Counted):
    """A two-state Markov chain that starts in the good state; see the module for p, r, k and h."""

    name: ClassVar[str] = "ge"
    meaning: ClassVar[str] = (
        "The Gilbert-Elliott model: by p and r, or by the mean loss rate and burst length."
    )
    forms: ClassVar = (Form(("p", "r"), ("k", "h", "burst_max")), Form(("rate", "burst"), ("k", "h")))
    parameters: ClassVar = {**_TRANSITIONS, **_DELIVERY, **_BURST_MAX}

    p: float
    r: float
    k: float = 1.0
    h: float = 0.0
    burst_max: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value in self._probabilities.items():
            require_probability(name, value)
        _require_burst_max(self.burst_max)

    @property
    def _probabilities(self) -> dict[str, float]:
        return {"p": self.p, "r": self.r, "k": self.k, "h": self.h}

    @classmethod
    def of(cls, parameters: Mapping[str, object]) -> "GilbertElliott":
        delivery = numbers(parameters, "k", "h")
        if "rate" in parameters:
            return gilbert_elliott_from(number(parameters, "rate"), number(parameters, "burst"), **delivery)
        burst_max = _burst_max_of(parameters)
        k, h = delivery.get("k", 1.0), delivery.get("h", 0.0)
        return GilbertElliott(number(parameters, "p"), number(parameters, "r"), k, h, burst_max)

    @property
    def own_plain(self) -> dict[str, object]:
        return {"model": self.name, **self._probabilities, **_burst_parameter(self.burst_max)}

    @property
    def lines(self) -> dict[str, object]:
        exact = {name: exactly(value) for name, value in self._probabilities.items()}
        return {**exact, **_burst_parameter(self.burst_max)}

    def chunks(self, seed: int, packets: int) -> Iterator[NDArray[np.bool_]]:
        yield from _capped(self._raw(seed, packets), self.burst_max)

    def _raw(self, seed: int, packets: int) -> Iterator[NDArray[np.bool_]]:
        """Return the verdicts without a longest burst."""
        bad = False
        for first, count in _chunks(packets):
            loss, transition = draws(seed, first, count, 0), draws(seed, first, count, 1)
            states = _chain(happens(transition, self.p), happens(transition, self.r), bad)
            bad = bool(states[-1])
            yield np.where(states[:-1], happens(loss, 1 - self.h), happens(loss, 1 - self.k))

    @property
    def bad_share(self) -> float:
        """The share of packets judged in the bad state, in the long run."""
        return self.p / (self.p + self.r) if self.p > 0 else 0.0

    @property
    def mean_rate(self) -> float:
        """The mean share of lost packets (Hasslinger and Hohlfeld, MMB 2008)."""
        if self.burst_max:
            return self._long_run[0]
        return (1 - self.bad_share) * (1 - self.k) + self.bad_share * (1 - self.h)

    @property
    def mean_burst(self) -> float:
        """Each run begins with a delivery followed by a loss, so this is P(lost) / P(delivered, then lost);
        with k = 1 and h = 0 it is 1 / r. It is inf if losses never end, and 0 if there are none."""
        rate = self.mean_rate
        if rate == 0:
            return 0.0
        if self.burst_max:
            return rate / self._long_run[1]
        lost_good, lost_bad, bad = 1 - self.k, 1 - self.h, self.bad_share
        loss_after_good = (1 - self.p) * lost_good + self.p * lost_bad
        loss_after_bad = self.r * lost_good + (1 - self.r) * lost_bad
        begins = (1 - bad) * self.k * loss_after_good + bad * self.h * loss_after_bad
        return rate / begins if begins else math.inf

    @property
    def _long_run(self) -> tuple[float, float]:
        """The shares of packets that are lost, and that begin a burst, where a burst has a maximum m.

        L has the chances of a loss and the next state. Behind each packet that passes, I + L + … + L^(m-1)
        packets are judged, and one more, which passes, if all were lost.
        """
        loss = np.array([1 - self.k, 1 - self.h])
        steps = np.array([[1 - self.p, self.p], [self.r, 1 - self.r]])
        losing, passing = loss[:, None] * steps, (1 - loss)[:, None] * steps
        both = np.block([[losing, np.eye(2)], [np.zeros((2, 2)), np.eye(2)]])
        power = np.linalg.matrix_power(both, self.burst_max or 0)
        all_lost, judged = power[:2, :2], power[:2, 2:]
        returns = judged @ passing + all_lost @ steps
        to_bad, to_good = returns[0, 1], returns[1, 0]
        begins = np.array([to_good, to_bad]) / (to_good + to_bad) if to_bad else np.array([1.0, 0.0])
        packets = (begins @ (judged + all_lost)).sum()
        return float(begins @ judged @ loss / packets), float(begins @ loss / packets)


class Markov(GilbertElliott):
    """A way to write a Gilbert-Elliott model: all packets pass in the good state, none in the bad."""

    name: ClassVar[str] = "markov"
    meaning: ClassVar[str] = (
        "Gilbert-Elliott with k = 1 and h = 0: all packets pass in the good state, none in the bad."
    )
    forms: ClassVar = (Form(("p", "r"), ("burst_max",)), Form(("rate", "burst")))
    parameters: ClassVar = {**_TRANSITIONS, **_BURST_MAX}


@dataclass(frozen=True)
class Pattern(Counted):
    """The packets of these indices are lost; past `length` packets all pass, or the pattern starts again.

    Without a length the pattern ends behind its last loss.
    """

    name: ClassVar[str] = "pattern"
    meaning: ClassVar[str] = "Exactly these packets are lost."
    forms: ClassVar = (Form(("drop",), ("length", "repeat")),)
    parameters: ClassVar = {
        "drop": Parameter("The packets to drop, as indices and ranges: 3,7-9.", str),
        "length": Parameter("How many packets the pattern has.", int),
        "repeat": Parameter("Begin the pattern again at its end.", bool),
    }

    dropped: tuple[int, ...]
    length: int | None = None
    repeat: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for index in self.dropped:
            require_integer("dropped", index, 0, LONGEST - 1)
        if self.length is not None:
            require_integer("length", self.length, max(self.dropped, default=-1) + 1, LONGEST)

    @classmethod
    def of(cls, parameters: Mapping[str, object]) -> "Pattern":
        drop, length, repeat = parameters["drop"], parameters.get("length"), parameters.get("repeat", False)
        if not isinstance(drop, str | list | tuple):
            raise LossModelError(wrong_value("drop", drop, 'packet indices, as in "3,7-9" or [3, 7, 8, 9]'))
        if not isinstance(repeat, bool):
            raise LossModelError(wrong_value("repeat", repeat, "true or false"))
        if length is not None:
            require_integer("length", length, 0, LONGEST)
        dropped = parse_drop_list(drop) if isinstance(drop, str) else tuple(drop)
        return Pattern(dropped, cast(int | None, length), repeat)

    @property
    def own_plain(self) -> dict[str, object]:
        return {"model": self.name, "drop": list(self.dropped), "length": self.length, "repeat": self.repeat}

    @cached_property
    def lines(self) -> dict[str, object]:
        return {
            "drop": drop_list(self.dropped),
            "length": self.packets,
            "repeat": str(self.repeat).lower(),
        }

    @property
    def packets(self) -> int:
        """The length of the pattern, given or not."""
        return max(self.dropped, default=-1) + 1 if self.length is None else self.length

    def chunks(self, seed: int, packets: int) -> Iterator[NDArray[np.bool_]]:  # noqa: ARG002
        pattern = np.zeros(self.packets, dtype=np.bool_)
        pattern[list(self.dropped)] = True
        if self.repeat and self.packets:
            yield np.resize(pattern, packets)
            return
        yield np.concatenate((pattern[:packets], np.zeros(max(packets - self.packets, 0), dtype=np.bool_)))

    def count_dropped(self, seed: int, packets: int) -> int:  # noqa: ARG002
        dropped = sorted(set(self.dropped))
        if not self.repeat or not dropped:
            return bisect_left(dropped, packets)
        rounds, rest = divmod(packets, self.packets)
        return rounds * len(dropped) + bisect_left(dropped, rest)

    @property
    def mean_rate(self) -> float:
        return len(set(self.dropped)) / self.packets if self.repeat and self.dropped else 0.0


def markov(p: float, r: float) -> GilbertElliott:
    """The Gilbert-Elliott model that delivers all packets in the good state and none in the bad."""
    return GilbertElliott(p, r, k=1.0, h=0.0)


# ---- Drop lists ----


def parse_drop_list(text: str) -> tuple[int, ...]:
    """The packet indices of a list such as "3,7-9": separated by commas or white space."""
    dropped: list[int] = []
    for part in text.replace(",", " ").split():
        ends = part.split("-")
        if len(ends) > 2 or not all(end.isascii() and end.isdigit() for end in ends):
            raise LossModelError(
                f"drop = {text[:40]!r}: {part[:20]!r} must be a packet index or a range, as in 3,7-9"
            )
        first, last = int(ends[0]), int(ends[-1])
        if not first <= last < LONGEST:
            raise LossModelError(
                f"drop = {text[:40]!r}: {part[:20]!r} must be ascending, and below {LONGEST}"
            )
        dropped.extend(range(first, last + 1))
    return tuple(dropped)


def drop_list(dropped: Iterable[int]) -> str:
    """Return the list of some packet indices, whose runs are ranges: `parse_drop_list` undoes it."""
    indices = np.unique(np.fromiter(dropped, np.int64))
    firsts = indices[np.diff(indices, prepend=-2) != 1].tolist()
    lasts = indices[np.diff(indices, append=LONGEST + 1) != 1].tolist()
    return ",".join(
        str(first) if first == last else f"{first}-{last}" for first, last in zip(firsts, lasts, strict=True)
    )


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


def _burst_max_of(parameters: Mapping[str, object]) -> int | None:
    value = parameters.get("burst_max")
    _require_burst_max(value)
    return cast(int | None, value)


def _require_burst_max(value: object) -> None:
    if value is not None:
        require_integer("burst_max", value, 1, _MOST_BURST)


def _burst_parameter(burst_max: int | None) -> dict[str, object]:
    return {} if burst_max is None else {"burst_max": burst_max}


def _capped(chunks: Iterable[NDArray[np.bool_]], burst_max: int | None) -> Iterator[NDArray[np.bool_]]:
    """Return the verdicts in which no more than so many packets are lost in a row: the next one passes, and a
    longer burst begins anew behind it."""
    burst = 0
    for lost in chunks:
        if burst_max is None:
            yield lost
            continue
        places = np.arange(lost.size)
        last_passed = np.maximum.accumulate(np.where(lost, -1 - burst, places)) if lost.size else places
        before = places - last_passed - 1
        if lost.size:
            burst = int(before[-1]) + 1 if lost[-1] else 0
        yield lost & (before % (burst_max + 1) != burst_max)


def _chunks(packets: int) -> Iterator[tuple[int, int]]:
    for first in range(0, packets, _CHUNK):
        yield first, min(_CHUNK, packets - first)


def verdicts(model: Counted, seed: int, packets: int) -> NDArray[np.bool_]:
    """Return the verdicts of packets 0 to packets - 1, shape (packets,): True is dropped.

    Raises LossModelError for a seed that is not of 64 bits and for more than LONGEST packets.
    """
    require_integer("seed", seed, 0, SEEDS - 1)
    require_integer("packets", packets, 0, LONGEST)
    return np.concatenate([np.empty(0, dtype=np.bool_), *model.chunks(seed, packets)])


def dropped_packets(model: Counted, seed: int, packets: int) -> int:
    """Return the number of packets 0 to packets - 1 that are dropped. It may be any number, since none is
    stored.

    Raises LossModelError for a seed that is not of 64 bits.
    """
    require_integer("seed", seed, 0, SEEDS - 1)
    return model.count_dropped(seed, packets)


# ---- Closed forms ----


def gilbert_elliott_from(
    loss_rate: float, mean_burst_length: float, k: float = 1.0, h: float = 0.0
) -> GilbertElliott:
    """Return the model of this mean loss rate and mean burst length (packets): `mean_rate` and `mean_burst`,
    solved for p and r.

    With b the share of the bad state and f the share of packets that a transition follows, in one direction,
    P(delivered, then lost) = (1-b)·k·(1-k) + b·h·(1-h) + f·(k-h)² (as balance makes f the same for both);
    then p = f / (1-b) and r = f / b. Where there is no such model, raises LossModelError, which says what
    can be reached.
    """
    for name, value in (("rate", loss_rate), ("k", k), ("h", h)):
        require_probability(name, value)
    if k <= h:
        raise LossModelError(
            wrong_value("h", h, f"less than k = {k!r} for a mean loss rate and burst length")
        )
    if loss_rate == 0 and k == 1:
        return GilbertElliott(0.0, 1.0, k, h)
    if not 1 - k < loss_rate < 1 - h:
        raise LossModelError(
            wrong_value("rate", loss_rate, f"above 1 - k = {1 - k:.10g} and below 1 - h = {1 - h:.10g}")
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
            wrong_value(
                "burst",
                mean_burst_length,
                f"from {shortest:.10g} to below {longest:.10g} packets"
                f" for rate = {loss_rate!r}, k = {k!r}, h = {h!r}",
            )
        )
    changes = (loss_rate / mean_burst_length - within_states) / (k - h) ** 2
    return GilbertElliott(min(changes / (1 - bad), 1.0), min(changes / bad, 1.0), k, h)
