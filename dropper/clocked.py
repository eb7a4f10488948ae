"""Losses that are clocked by time, in NumPy: what is lost follows from when a packet arrives.

Time counts from the arrival of packet 0 at the dropper. draw(n, 0) decides on packet n, as in all models.
draw(0, 1), draw(1, 1), … make the times at which the state changes, or the number of the first slot.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fecbench.complaint import wrong_value
from fecbench.dropper.draws import (
    SEEDS,
    LossModelError,
    draws,
    happens,
    require_integer,
    require_probability,
    require_time,
)
from fecbench.dropper.loss_model import Form, LossModel, Parameter, exactly, number, numbers
from fecbench.dropper.model import Pattern

STAYS = 2**16
"""Stays of a Gilbert-Elliott model by the clock, after which they come again: an even number."""
SHORTEST_STAY_S, LONGEST_STAY_S = 1e-5, 4000.0
SHORTEST_SLOT_MS, LONGEST_SLOT_MS = 1.0, 1000.0


class Timed(LossModel):
    """Losses that follow from when a packet arrives, and not from its number."""

    is_clocked: ClassVar[bool] = True

    @abstractmethod
    def at(self, seed: int, times_ns: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return the verdicts of packets that arrive at these times since packet 0."""


@dataclass(frozen=True)
class TimedGilbertElliott(Timed):
    """Gilbert-Elliott by the clock: it stays in the good and in the bad state for exponential times.

    `good_s` and `bad_s` are their means, in seconds. After STAYS stays, the same ones come again.
    """

    name: ClassVar[str] = "ge-time"
    meaning: ClassVar[str] = (
        "Gilbert-Elliott by the clock: states last for exponential times, whatever is sent."
    )
    forms: ClassVar = (Form(("good_s", "bad_s"), ("k", "h")), Form(("rate", "bad_s"), ("k", "h")))
    parameters: ClassVar = {
        "good_s": Parameter("The mean time in the good state, in seconds."),
        "bad_s": Parameter("The mean time in the bad state, in seconds."),
        "rate": Parameter("The mean loss rate of packets that come evenly, in place of good_s."),
        "k": Parameter("The probability of delivery in the good state; 1 without it."),
        "h": Parameter("The probability of delivery in the bad state; 0 without it."),
    }

    good_s: float
    bad_s: float
    k: float = 1.0
    h: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("good_s", "bad_s"):
            require_time(name, getattr(self, name), SHORTEST_STAY_S, LONGEST_STAY_S, "s")
        for name in ("k", "h"):
            require_probability(name, getattr(self, name))

    @classmethod
    def of(cls, parameters: Mapping[str, object]) -> "TimedGilbertElliott":
        values = numbers(parameters, "good_s", "bad_s", "k", "h")
        if "rate" in parameters:
            rate, k, h = number(parameters, "rate"), values.get("k", 1.0), values.get("h", 0.0)
            for name, value in (("rate", rate), ("k", k), ("h", h)):
                require_probability(name, value)
            if not 1 - k < rate < 1 - h:
                raise LossModelError(
                    wrong_value("rate", rate, f"above 1 - k = {1 - k:.10g} and below 1 - h = {1 - h:.10g}")
                )
            bad_share = (rate - (1 - k)) / (k - h)
            values["good_s"] = values["bad_s"] * (1 - bad_share) / bad_share
        k, h = values.get("k", 1.0), values.get("h", 0.0)
        return TimedGilbertElliott(values["good_s"], values["bad_s"], k, h)

    @property
    def own_plain(self) -> dict[str, object]:
        return {"model": self.name, **self._values}

    @property
    def lines(self) -> dict[str, object]:
        return {name: exactly(value) for name, value in self._values.items()}

    @property
    def _values(self) -> dict[str, float]:
        return {"good_s": self.good_s, "bad_s": self.bad_s, "k": self.k, "h": self.h}

    def at(self, seed: int, times_ns: NDArray[np.int64]) -> NDArray[np.bool_]:
        draw = draws(seed, 0, times_ns.size, 0)
        loss_bad, loss_good = happens(draw, 1 - self.h), happens(draw, 1 - self.k)
        return np.where(is_bad(self, seed, times_ns), loss_bad, loss_good)

    @property
    def mean_rate(self) -> float:
        return (1 - self.bad_share) * (1 - self.k) + self.bad_share * (1 - self.h)

    @property
    def means_us(self) -> tuple[int, int]:
        """Mean durations of a stay in the good and in the bad state, in whole microseconds."""
        return round(1e6 * self.good_s), round(1e6 * self.bad_s)

    @property
    def bad_share(self) -> float:
        """The share of time in the bad state, in the long run."""
        return self.bad_s / (self.good_s + self.bad_s)


@dataclass(frozen=True)
class Slots(Timed):
    """Losses of all packets that arrive in these slots of time: slot i lasts from i · slot_ms to (i + 1) ·
    slot_ms.

    After `length` slots, or after the last lost one, all packets pass. With `repeat` the slots come again,
    and the seed draws which of them is the first.
    """

    name: ClassVar[str] = "slots"
    meaning: ClassVar[str] = "Exactly what arrives in these slots of time is lost."
    forms: ClassVar = (Form(("drop", "slot_ms"), ("length", "repeat")),)
    parameters: ClassVar = {
        "drop": Parameter("The slots in which packets are lost, as indices and ranges: 3,7-9.", str),
        "slot_ms": Parameter("How long a slot lasts: 1 to 1000 ms."),
        "length": Parameter("How many slots there are.", int),
        "repeat": Parameter("Begin the slots again at their end, and with one that the seed draws.", bool),
    }

    dropped: tuple[int, ...]
    slot_ms: float
    length: int | None = None
    repeat: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        require_time("slot_ms", self.slot_ms, SHORTEST_SLOT_MS, LONGEST_SLOT_MS, "ms")
        Pattern(self.dropped, self.length)

    @classmethod
    def of(cls, parameters: Mapping[str, object]) -> "Slots":
        pattern = Pattern.of(parameters)
        return Slots(pattern.dropped, number(parameters, "slot_ms"), pattern.length, pattern.repeat)

    @property
    def own_plain(self) -> dict[str, object]:
        return {**self.pattern.own_plain, "model": self.name, "slot_ms": self.slot_ms}

    @property
    def lines(self) -> dict[str, object]:
        return {"slot_ms": exactly(self.slot_ms), **self.pattern.lines}

    def at(self, seed: int, times_ns: NDArray[np.int64]) -> NDArray[np.bool_]:
        length = self.pattern.packets
        slots = times_ns // self.slot_ns
        if self.repeat and length:
            first = int(draws(seed, 0, 1, 1)[0]) * length // 2**32
            slots = (slots + first) % length
        lost = np.zeros(length + 1, dtype=np.bool_)
        lost[list(self.dropped)] = True
        verdicts: NDArray[np.bool_] = lost[np.minimum(slots, length)]
        return verdicts

    @property
    def mean_rate(self) -> float:
        return self.pattern.mean_rate

    @property
    def slot_ns(self) -> int:
        """The duration of a slot."""
        return round(1e6 * self.slot_ms)

    @cached_property
    def pattern(self) -> Pattern:
        """The slots, as if they were packets."""
        return Pattern(self.dropped, self.length, self.repeat)


def stays_us(model: TimedGilbertElliott, seed: int) -> Iterator[int]:
    """Yield the durations of its stays, in microseconds: the first stay is a good one, the next a bad one.

    Each stay is exponential by comparisons alone (von Neumann, 1951). Numbers are drawn as long as each is
    below the last. If there is an odd number of them, the first is the fraction of the stay. If not, they are
    rejected, and the stay is longer by its mean.
    """
    numbers = _numbers_drawn(seed)
    for stay in range(STAYS):
        rejected = 0
        while True:
            fallen = [next(numbers)]
            while (number := next(numbers)) < fallen[-1]:
                fallen.append(number)
            if len(fallen) % 2:
                break
            rejected += 1
        mean = model.means_us[stay % 2]
        yield rejected * mean + mean * fallen[0] // 2**32


def _numbers_drawn(seed: int) -> Iterator[int]:
    first = 0
    while True:
        yield from draws(seed, first, 1024, 1).tolist()
        first += 1024


@lru_cache(maxsize=64)
def _ends_us(model: TimedGilbertElliott, seed: int, until_us: int) -> NDArray[np.int64]:
    """Return the times at which its stays end, up to the first after `until_us`; all of them, if none is
    later."""
    ends, end = [], 0
    for stay in stays_us(model, seed):
        end += stay
        ends.append(end)
        if end > until_us:
            break
    return np.array(ends)


def is_bad(model: TimedGilbertElliott, seed: int, times_ns: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Whether the state is bad at these times since packet 0."""
    times_us = np.asarray(times_ns, dtype=np.int64) // 1000
    last = int(times_us.max(initial=0))
    # Rounded up to powers of two, so that trials of the same seed share what is kept.
    ends = _ends_us(model, seed, 1 << max(20, last.bit_length()))
    if len(ends) == STAYS:
        times_us %= ends[-1]
    bad: NDArray[np.bool_] = np.searchsorted(ends, times_us, side="right") % 2 == 1
    return bad


def verdicts_at(model: Timed, seed: int, arrivals_ns: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Return the verdicts of packets that arrive at these times since packet 0, shape (packets,): True is
    dropped.

    Raises LossModelError for a seed that is not of 64 bits.
    """
    require_integer("seed", seed, 0, SEEDS - 1)
    return model.at(seed, np.asarray(arrivals_ns, dtype=np.int64))
