"""Loss models as plain parameters: those of a design, of a command and of a document."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np

from fecbench.dropper.clocked import Slots, Timed, TimedGilbertElliott
from fecbench.dropper.draws import LONGEST, LossModelError, require_integer, require_probability
from fecbench.dropper.model import Counted, GilbertElliott, Pattern, Uniform, gilbert_elliott_from

LossModel = Counted | Timed


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
    "ge-time": (_Form(("good_s", "bad_s"), ("k", "h")), _Form(("rate", "bad_s"), ("k", "h"))),
    "slots": (_Form(("drop", "slot_ms"), ("length", "repeat")),),
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
    "ge-time": {
        "good_s": "The mean time in the good state, in seconds.",
        "bad_s": "The mean time in the bad state, in seconds.",
        "rate": "The mean loss rate of packets that come evenly, in place of good_s.",
        "k": "The probability of delivery in the good state; 1 without it.",
        "h": "The probability of delivery in the bad state; 0 without it.",
    },
    "slots": {
        "drop": "The slots in which packets are lost, as indices and ranges: 3,7-9.",
        "slot_ms": "How long a slot lasts: 1 to 1000 ms.",
        "length": "How many slots there are.",
        "repeat": "Begin the slots again at their end, and with one that the seed draws.",
    },
}
"""What the parameters of each model mean."""

MEANINGS = {
    "none": "No packet is lost.",
    "uniform": "Each packet is lost with probability p, independently of the others.",
    "ge": "The Gilbert-Elliott model: by p and r, or by the mean loss rate and burst length.",
    "markov": "Gilbert-Elliott with k = 1 and h = 0: all packets pass in the good state, none in the bad.",
    "pattern": "Exactly these packets are lost.",
    "ge-time": "Gilbert-Elliott by the clock: states last for exponential times, whatever is sent.",
    "slots": "Exactly what arrives in these slots of time is lost.",
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


def _timed_gilbert_elliott(parameters: Mapping[str, object]) -> TimedGilbertElliott:
    numbers = _numbers(parameters, "good_s", "bad_s", "k", "h")
    if "rate" in parameters:
        rate, k, h = _number(parameters, "rate"), numbers.get("k", 1.0), numbers.get("h", 0.0)
        for name, value in (("rate", rate), ("k", k), ("h", h)):
            require_probability(name, value)
        if not 1 - k < rate < 1 - h:
            raise LossModelError(
                f"rate = {rate!r}: must be above 1 - k = {1 - k:.10g} and below 1 - h = {1 - h:.10g}"
            )
        bad_share = (rate - (1 - k)) / (k - h)
        numbers["good_s"] = numbers["bad_s"] * (1 - bad_share) / bad_share
    return TimedGilbertElliott(**numbers)


def _slots(parameters: Mapping[str, object]) -> Slots:
    pattern = _pattern(parameters)
    return Slots(pattern.dropped, _number(parameters, "slot_ms"), pattern.length, pattern.repeat)


def _pattern(parameters: Mapping[str, object]) -> Pattern:
    drop, length, repeat = parameters["drop"], parameters.get("length"), parameters.get("repeat", False)
    if not isinstance(drop, str | list | tuple):
        raise LossModelError(f'drop = {drop!r}: must be packet indices, as in "3,7-9" or [3, 7, 8, 9]')
    if not isinstance(repeat, bool):
        raise LossModelError(f"repeat = {repeat!r}: must be true or false")
    if length is not None:
        require_integer("length", length, 0, LONGEST)
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
        case "ge-time":
            return _timed_gilbert_elliott(parameters)
        case "slots":
            return _slots(parameters)
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
        case TimedGilbertElliott(good_s, bad_s, k, h):
            return {"model": "ge-time", "good_s": good_s, "bad_s": bad_s, "k": k, "h": h}
        case Slots(dropped, slot_ms, length, repeat):
            listed = {"drop": list(dropped), "slot_ms": slot_ms}
            return {"model": "slots", **listed, "length": length, "repeat": repeat}
