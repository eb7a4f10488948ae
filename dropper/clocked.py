"""Losses that are clocked by time, in NumPy: what is lost follows from when a packet arrives.

Time counts from the arrival of packet 0 at the dropper. draw(n, 0) decides on packet n, as in all models.
draw(0, 1), draw(1, 1), … make the times at which the state changes, or the number of the first slot.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fecbench.dropper.draws import SEEDS, draws, happens, require_integer, require_probability, require_time
from fecbench.dropper.model import Pattern, stationary_loss_rate

STAYS = 2**16
"""Stays of a Gilbert-Elliott model by the clock, after which they come again: an even number."""
SHORTEST_STAY_S, LONGEST_STAY_S = 1e-5, 4000.0
SHORTEST_SLOT_MS, LONGEST_SLOT_MS = 1.0, 1000.0


@dataclass(frozen=True)
class TimedGilbertElliott:
    """Gilbert-Elliott by the clock: it stays in the good and in the bad state for exponential times.

    `good_s` and `bad_s` are their means, in seconds. After STAYS stays, the same ones come again.
    """

    good_s: float
    bad_s: float
    k: float = 1.0
    h: float = 0.0

    def __post_init__(self) -> None:
        for name in ("good_s", "bad_s"):
            require_time(name, getattr(self, name), SHORTEST_STAY_S, LONGEST_STAY_S, "s")
        for name in ("k", "h"):
            require_probability(name, getattr(self, name))

    @property
    def means_us(self) -> tuple[int, int]:
        """Of a stay in the good and in the bad state, in whole microseconds."""
        return round(1e6 * self.good_s), round(1e6 * self.bad_s)

    @property
    def bad_share(self) -> float:
        """The share of time in the bad state, in the long run."""
        return self.bad_s / (self.good_s + self.bad_s)


@dataclass(frozen=True)
class Slots:
    """What arrives in these slots of time is lost: slot i lasts from i · slot_ms to (i + 1) · slot_ms.

    Behind `length` slots, or the last lost one, all packets pass. With `repeat` the slots come again, and the
    seed draws which of them is the first.
    """

    dropped: tuple[int, ...]
    slot_ms: float
    length: int | None = None
    repeat: bool = False

    def __post_init__(self) -> None:
        require_time("slot_ms", self.slot_ms, SHORTEST_SLOT_MS, LONGEST_SLOT_MS, "ms")
        Pattern(self.dropped, self.length)

    @property
    def slot_ns(self) -> int:
        """How long a slot lasts."""
        return round(1e6 * self.slot_ms)

    @property
    def pattern(self) -> Pattern:
        """The slots, as if they were packets."""
        return Pattern(self.dropped, self.length, self.repeat)


Timed = TimedGilbertElliott | Slots
"""Losses that follow from when a packet arrives, and not from its number."""


def stays_us(model: TimedGilbertElliott, seed: int) -> Iterator[int]:
    """How long it stays in each state, in microseconds: the first is a good one, the next a bad one.

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
    """When its stays end, up to the first that ends after a time; all of them, if none does."""
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
    """What happens to packets that arrive at these times since packet 0, shape (packets,): True is dropped.

    Raises LossModelError for a seed that is not of 64 bits.
    """
    require_integer("seed", seed, 0, SEEDS - 1)
    times = np.asarray(arrivals_ns, dtype=np.int64)
    if isinstance(model, TimedGilbertElliott):
        drawn = draws(seed, 0, times.size, 0)
        loss_bad, loss_good = happens(drawn, 1 - model.h), happens(drawn, 1 - model.k)
        return np.where(is_bad(model, seed, times), loss_bad, loss_good)
    length = model.pattern.packets
    slots = times // model.slot_ns
    if model.repeat and length:
        first = int(draws(seed, 0, 1, 1)[0]) * length // 2**32
        slots = (slots + first) % length
    lost = np.zeros(length + 1, dtype=np.bool_)
    lost[list(model.dropped)] = True
    found: NDArray[np.bool_] = lost[np.minimum(slots, length)]
    return found


def mean_loss_rate(model: Timed) -> float:
    """The share of packets lost in the long run, of packets that come evenly."""
    if isinstance(model, Slots):
        return stationary_loss_rate(model.pattern)
    return (1 - model.bad_share) * (1 - model.k) + model.bad_share * (1 - model.h)
