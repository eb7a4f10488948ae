"""A loss model: its name and parameters, the packets that it loses, and its written form.

A model is a class of `model.py` or `clocked.py`, which `parameters.MODELS` lists. Whatever else names models,
such as `fecbench losses`, is made of these classes.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from fecbench.complaint import wrong_value
from fecbench.dropper.draws import LossModelError, require_integer


@dataclass(frozen=True)
class Form:
    """A way to give a model its parameters: those that it needs, and those that it may have."""

    needed: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()

    @property
    def keys(self) -> set[str]:
        return {*self.needed, *self.optional}

    def __str__(self) -> str:
        return ", ".join([*self.needed, *(f"[{key}]" for key in self.optional)]) or "nothing"


@dataclass(frozen=True)
class Parameter:
    """A parameter in designs and of commands. The name of a time ends in _s or _ms. Only models that time
    clocks have such parameters, and readers of results recognise these models by them."""

    meaning: str
    kind: type = float
    """float, int, bool, or str for a list of indices and ranges."""


LONGEST_PACKET_BYTES = 65_535


@dataclass(frozen=True)
class LossModel(ABC):
    """Decides which packets are lost, by a seed."""

    name: ClassVar[str]
    """The name in designs, commands and texts."""
    meaning: ClassVar[str]
    forms: ClassVar[tuple[Form, ...]]
    parameters: ClassVar[Mapping[str, Parameter]] = {}
    is_clocked: ClassVar[bool] = False
    """Whether losses follow from when a packet arrives, and not from its number."""

    only_longer_than: int | None = field(default=None, kw_only=True)
    """The bytes of the longest IP packet that always passes and has no number; None: all packets count."""

    def __post_init__(self) -> None:
        if self.only_longer_than is not None:
            require_integer("only_longer_than", self.only_longer_than, 1, LONGEST_PACKET_BYTES)

    @classmethod
    @abstractmethod
    def of(cls, parameters: Mapping[str, object]) -> "LossModel":
        """Return the model with these parameters, whose names fit a form. Raises LossModelError."""

    @property
    @abstractmethod
    def own_plain(self) -> dict[str, object]:
        """The name and the parameters that not every model has, fit for JSON: `of` undoes it."""

    @property
    def plain(self) -> dict[str, object]:
        """The parameters, fit for JSON: `loss_model` undoes it."""
        return {**self.own_plain, **self._filter}

    @property
    @abstractmethod
    def mean_rate(self) -> float:
        """The share of packets lost in the long run; where time decides, of packets that come evenly."""

    @property
    def mean_burst(self) -> float | None:
        """The mean length of an unbroken run of losses in the long run, in packets; None: nothing says it."""
        return None

    @property
    @abstractmethod
    def lines(self) -> Mapping[str, object]:
        """Values by name, as `written_losses.c` reads them."""

    def written(self, seed: int) -> str:
        """Return the text of the model with this seed: lines "name value"."""
        lines = {"model": self.name, **self.lines, **self._filter, "seed": seed}
        return "".join(f"{name} {value}\n" for name, value in lines.items())

    @property
    def _filter(self) -> dict[str, object]:
        return {} if self.only_longer_than is None else {ONLY_LONGER_THAN: self.only_longer_than}


ONLY_LONGER_THAN = "only_longer_than"
"""A parameter of each model that may lose packets."""


def number(parameters: Mapping[str, object], key: str) -> float:
    """Return a parameter that is a number. Raises LossModelError for any other value."""
    value = parameters[key]
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise LossModelError(wrong_value(key, value, "a number"))
    return float(value)


def numbers(parameters: Mapping[str, object], *keys: str) -> dict[str, float]:
    """Return those of the parameters that are given."""
    return {key: number(parameters, key) for key in keys if key in parameters}


def exactly(value: float) -> str:
    """Return a number in the letters that give it back to the bit."""
    return repr(float(value))
