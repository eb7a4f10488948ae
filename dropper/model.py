"""The loss models in NumPy: the oracle that says, without root, which packets the BPF program drops.

Normative rules (the BPF program follows them to the bit):

- `draw(n, j)` is the upper 32 bits of SplitMix64's output function applied to
  `seed + (2n + j + 1) · 0x9E3779B97F4A7C15` modulo 2⁶⁴ (Steele, Lea, Flood, OOPSLA 2014).
- An event of probability q happens iff `draw < threshold(q)`.
- Packet n is judged by draw(n, 0), in the state before the transition; draw(n, 1) decides the transition.

Probabilities are 0 to 1. In the Gilbert-Elliott model p = P(good→bad), r = P(bad→good), and k and h are the
probabilities that a packet is **delivered** in the good and in the bad state.
"""

import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from numbers import Real
from typing import cast

import numpy as np
from numpy.typing import NDArray

from fecbench.errors import BadInput

GOLDEN_GAMMA = 0x9E3779B97F4A7C15
SEEDS = 2**64
LONGEST = 2**24
"""Packets in the longest sequence of verdicts, as in the BPF program: a bitmap of 2 MiB."""

_ROUNDING = 1e-9  # relative: how far a burst length computed from p and r may fall short of the shortest
_CHUNK = 2**18  # packets judged at a time: the temporary arrays stay in the cache


class LossModelError(BadInput):
    """A loss model, or what is asked of one, is wrong: the text says key, value and what is right."""


def _require_probability(name: str, value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= value <= 1:
        raise LossModelError(f"{name} = {value!r}: must be a probability, from 0 to 1")


def _require_integer(name: str, value: object, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
        raise LossModelError(f"{name} = {value!r}: must be an integer from {least} to {most}")


@dataclass(frozen=True)
class Uniform:
    """Each packet is lost with probability p, independently of the others."""

    p: float

    def __post_init__(self) -> None:
        _require_probability("p", self.p)


@dataclass(frozen=True)
class GilbertElliott:
    """A two-state Markov chain that starts in the good state; see the module for p, r, k and h."""

    p: float
    r: float
    k: float = 1.0
    h: float = 0.0

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            _require_probability(name, value)

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
            _require_integer("dropped", index, 0, LONGEST - 1)
        if self.length is not None:
            _require_integer("length", self.length, max(self.dropped, default=-1) + 1, LONGEST)

    @property
    def packets(self) -> int:
        """The length of the pattern, given or not."""
        return max(self.dropped, default=-1) + 1 if self.length is None else self.length


LossModel = Uniform | GilbertElliott | Pattern


def markov(p: float, r: float) -> GilbertElliott:
    """The Gilbert-Elliott model that delivers all packets in the good state and none in the bad."""
    return GilbertElliott(p, r, k=1.0, h=0.0)


# ---- Verdicts ----


def threshold(probability: float) -> int:
    """round(q · 2³²), halves rounded to even; the product itself is exact."""
    return round(probability * 2**32)


def draws(seed: int, first: int, packets: int, j: int) -> NDArray[np.uint64]:
    """draw(n, j) for n = first, first + 1, …: 32-bit values, shape (packets,)."""
    n = np.arange(first, first + packets, dtype=np.uint64)
    offset = np.uint64((seed + (j + 1) * GOLDEN_GAMMA) % SEEDS)
    z = n * np.uint64(2 * GOLDEN_GAMMA % SEEDS) + offset
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z ^ (z >> np.uint64(31))) >> np.uint64(32)


def _happens(drawn: NDArray[np.uint64], probability: float) -> NDArray[np.bool_]:
    return drawn < np.uint64(threshold(probability))


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
        yield _happens(draws(seed, first, count, 0), model.p)


def _gilbert_elliott_verdicts(model: GilbertElliott, seed: int, packets: int) -> Iterator[NDArray[np.bool_]]:
    bad = False
    for first, count in _chunks(packets):
        loss, transition = draws(seed, first, count, 0), draws(seed, first, count, 1)
        states = _chain(_happens(transition, model.p), _happens(transition, model.r), bad)
        bad = bool(states[-1])
        yield np.where(states[:-1], _happens(loss, 1 - model.h), _happens(loss, 1 - model.k))


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


def verdicts(model: LossModel, seed: int, packets: int) -> NDArray[np.bool_]:
    """What happens to packets 0 to packets - 1, shape (packets,): True is dropped.

    Raises LossModelError for a seed that is not of 64 bits and for more than LONGEST packets.
    """
    _require_integer("seed", seed, 0, SEEDS - 1)
    _require_integer("packets", packets, 0, LONGEST)
    if isinstance(model, Pattern):
        return _pattern_verdicts(model, packets)
    return np.concatenate([np.empty(0, dtype=np.bool_), *_verdicts_in_chunks(model, seed, packets)])


def dropped_packets(model: LossModel, seed: int, packets: int) -> int:
    """How many of packets 0 to packets - 1 are dropped: of any number of them, since none is kept.

    Raises LossModelError for a seed that is not of 64 bits.
    """
    _require_integer("seed", seed, 0, SEEDS - 1)
    if not isinstance(model, Pattern):
        return sum(int(chunk.sum()) for chunk in _verdicts_in_chunks(model, seed, packets))
    dropped = sorted(set(model.dropped))
    if not model.repeat or not dropped:
        return bisect_left(dropped, packets)
    rounds, rest = divmod(packets, model.packets)
    return rounds * len(dropped) + bisect_left(dropped, rest)


def pack(verdicts: NDArray[np.bool_]) -> bytes:
    """The bitmap of these verdicts: bit n % 8 of byte n // 8 is packet n."""
    return np.packbits(verdicts, bitorder="little").tobytes()


def unpack(bitmap: bytes, packets: int) -> NDArray[np.bool_]:
    """The verdicts of a bitmap, shape (packets,). Raises LossModelError if it holds fewer."""
    _require_integer("packets", packets, 0, 8 * len(bitmap))
    bits = np.unpackbits(np.frombuffer(bitmap, dtype=np.uint8), count=packets, bitorder="little")
    return bits.astype(np.bool_)


# ---- Closed forms ----


def stationary_loss_rate(model: LossModel) -> float:
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
        _require_probability(name, value)
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


# ---- Models as plain parameters ----


@dataclass(frozen=True)
class _Form:
    """One way to write a model: the keys that it needs and those that it may have."""

    needed: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()

    @property
    def keys(self) -> set[str]:
        return {*self.needed, *self.optional}

    def __str__(self) -> str:
        return ", ".join([*self.needed, *(f"[{key}]" for key in self.optional)]) or "nothing"


FORMS = {
    "none": (_Form(),),
    "uniform": (_Form(("p",)),),
    "ge": (_Form(("p", "r"), ("k", "h")), _Form(("rate", "burst"), ("k", "h"))),
    "markov": (_Form(("p", "r")), _Form(("rate", "burst"))),
    "pattern": (_Form(("drop",), ("length", "repeat")),),
}
"""The models by name, each with its forms."""

_TRANSITIONS = {
    "p": "The probability of good → bad after a packet.",
    "r": "The probability of bad → good after a packet.",
    "rate": "The mean loss rate, in place of p and r.",
    "burst": "The mean burst length in packets, in place of p and r.",
}
PARAMETERS: dict[str, dict[str, str]] = {
    "none": {},
    "uniform": {"p": "The loss probability of each packet."},
    "ge": {
        **_TRANSITIONS,
        "k": "The probability of delivery in the good state; 1 without it.",
        "h": "The probability of delivery in the bad state; 0 without it.",
    },
    "markov": _TRANSITIONS,
    "pattern": {
        "drop": "The packets to drop, as indices and ranges: 3,7-9.",
        "length": "How many packets the pattern has.",
        "repeat": "Begin the pattern again at its end.",
    },
}
"""What the parameters of each model mean."""

MEANINGS = {
    "none": "No packet is lost.",
    "uniform": "Each packet is lost with probability p, independently of the others.",
    "ge": "The Gilbert-Elliott model: by p and r, or by the mean loss rate and burst length.",
    "markov": "Gilbert-Elliott with k = 1 and h = 0: all packets pass in the good state, none in the bad.",
    "pattern": "Exactly these packets are lost.",
}
"""What each model does."""


def _require_form(name: str, keys: set[str]) -> None:
    forms = FORMS[name]
    if any(set(form.needed) <= keys <= form.keys for form in forms):
        return
    right = f"model {name} takes {' or '.join(map(str, forms))}"
    unknown = sorted(keys - set().union(*(form.keys for form in forms)))
    if unknown:
        raise LossModelError(f"unknown key {unknown[0]}: {right}")
    raise LossModelError(f"{right} (given: {', '.join(sorted(keys)) or 'nothing'})")


def _number(parameters: Mapping[str, object], key: str) -> float:
    value = parameters[key]
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise LossModelError(f"{key} = {value!r}: must be a number")
    return float(value)


def _numbers(parameters: Mapping[str, object], *keys: str) -> dict[str, float]:
    return {key: _number(parameters, key) for key in keys if key in parameters}


def _gilbert_elliott(parameters: Mapping[str, object]) -> GilbertElliott:
    delivery = _numbers(parameters, "k", "h")
    if "rate" in parameters:
        return gilbert_elliott_from(_number(parameters, "rate"), _number(parameters, "burst"), **delivery)
    return GilbertElliott(_number(parameters, "p"), _number(parameters, "r"), **delivery)


def _pattern(parameters: Mapping[str, object]) -> Pattern:
    drop, length, repeat = parameters["drop"], parameters.get("length"), parameters.get("repeat", False)
    if not isinstance(drop, str | list | tuple):
        raise LossModelError(f'drop = {drop!r}: must be packet indices, as in "3,7-9" or [3, 7, 8, 9]')
    if not isinstance(repeat, bool):
        raise LossModelError(f"repeat = {repeat!r}: must be true or false")
    if length is not None:
        _require_integer("length", length, 0, LONGEST)
    dropped = parse_drop_list(drop) if isinstance(drop, str) else tuple(drop)
    return Pattern(dropped, cast(int | None, length), repeat)


def parse_drop_list(text: str) -> tuple[int, ...]:
    """The packet indices of a list such as "3,7-9": separated by commas or white space."""
    dropped: list[int] = []
    for part in text.replace(",", " ").split():
        numbers = part.split("-")
        if len(numbers) > 2 or not all(number.isascii() and number.isdigit() for number in numbers):
            raise LossModelError(
                f"drop = {text[:40]!r}: {part[:20]!r} must be a packet index or a range, as in 3,7-9"
            )
        first, last = int(numbers[0]), int(numbers[-1])
        if not first <= last < LONGEST:
            raise LossModelError(
                f"drop = {text[:40]!r}: {part[:20]!r} must be ascending, and below {LONGEST}"
            )
        dropped.extend(range(first, last + 1))
    return tuple(dropped)


def loss_model(parameters: Mapping[str, object]) -> LossModel:
    """The model of plain parameters, such as {"model": "ge", "p": 0.01, "r": 0.25}; `FORMS` has all keys.

    `markov` is a ge model and `none` a uniform one with p = 0. Raises LossModelError for unknown and missing
    keys and for values out of range.
    """
    name = parameters.get("model")
    if not isinstance(name, str) or name not in FORMS:
        raise LossModelError(f"model = {name!r}: must be one of {', '.join(FORMS)}")
    _require_form(name, set(parameters) - {"model"})
    match name:
        case "none":
            return Uniform(0.0)
        case "uniform":
            return Uniform(_number(parameters, "p"))
        case "pattern":
            return _pattern(parameters)
        case _:
            return _gilbert_elliott(parameters)


def parameters_of(model: LossModel) -> dict[str, object]:
    """The plain parameters of a model: the inverse of `loss_model`, fit for JSON."""
    match model:
        case Uniform(p):
            return {"model": "uniform", "p": p}
        case GilbertElliott(p, r, k, h):
            return {"model": "ge", "p": p, "r": r, "k": k, "h": h}
        case Pattern(dropped, length, repeat):
            return {"model": "pattern", "drop": list(dropped), "length": length, "repeat": repeat}
