"""Factors: what a design varies, and how a place in the unit cube becomes a value.

A planner places points in the unit cube, one axis per factor. A factor maps its axis, [0, 1], to values:
linearly or logarithmically between `min` and `max`, in whole numbers, or over a list of choices or of named
combinations in equal steps.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Discriminator, Tag, field_validator, model_validator

from fecbench.complaint import short_text
from fecbench.designs.table import Number, PlainValue, Table, Value, about, check_unit, dotted, refused

Places = NDArray[np.float64]


class RangeFactor(Table):
    """Numbers from `min` to `max`. With `integer`, each whole number owns a cell of its axis."""

    min: Number
    max: Number
    scale: Literal["linear", "log"] = "linear"
    integer: bool = False

    @model_validator(mode="after")
    def _check_range(self) -> Self:
        if not self.min < self.max:
            raise refused(f"must be less than max = {self.max}", "min", self.min)
        if self.scale == "log" and self.min <= 0:
            raise refused("must be greater than 0 with scale = 'log'", "min", self.min)
        if self.integer:
            for key, bound in (("min", self.min), ("max", self.max)):
                if bound != int(bound):
                    raise refused("must be a whole number with integer = true", key, bound)
        return self

    def value(self, place: float) -> Value:
        """The value at `place` (0 to 1) of the axis."""
        low, high = self._ends()
        position = low + place * (high - low)
        number = math.exp(position) if self.scale == "log" else position
        if self.integer:
            return min(max(math.floor(number), int(self.min)), int(self.max))
        # exp(log(min)) and min + (max - min) can miss the ends by a rounding.
        if place in (0, 1):
            return float(self.max if place else self.min)
        return min(max(number, float(self.min)), float(self.max))

    def place(self, value: Value) -> float:
        """Return the place of `value` on the axis (0 to 1); a whole number is at the middle of its cell."""
        if isinstance(value, bool | str) or not self.min <= value <= self.max:
            raise refused(f"must be a number from {self.min} to {self.max}")
        if self.integer and value != int(value):
            raise refused("must be a whole number")
        low, high = self._ends()
        position = (self._axis(value) + self._axis(value + 1)) / 2 if self.integer else self._axis(value)
        return min(max((position - low) / (high - low), 0.0), 1.0)

    def levels(self, count: int) -> list[float]:
        """`count` equally spaced places from one end of the axis to the other."""
        places = self.snapped(np.linspace(0, 1, count))
        if len(np.unique(places)) < count:
            raise refused(f"must be less: there are too few whole numbers from {self.min} to {self.max}")
        return [float(place) for place in places]

    def snapped(self, places: Places) -> Places:
        """The places of the values at `places`: there are only as many as there are values."""
        if not self.integer:
            return places
        return np.array([self.place(self.value(place)) for place in places])

    def _ends(self) -> tuple[float, float]:
        # A whole number v owns [v, v + 1), so that the last one is as likely as the others.
        return self._axis(self.min), self._axis(self.max + 1 if self.integer else self.max)

    def _axis(self, number: float) -> float:
        return math.log(number) if self.scale == "log" else float(number)


class SteppedFactor(Table, ABC):
    """Values in equal steps along the axis, in the order in which they are written."""

    @property
    @abstractmethod
    def steps(self) -> Sequence[Value]:
        """The value of each step."""

    def value(self, place: float) -> Value:
        """The value at `place` (0 to 1) of the axis."""
        return self.steps[min(int(place * len(self.steps)), len(self.steps) - 1)]

    def place(self, value: Value) -> float:
        """The middle of the step that belongs to `value`."""
        if value not in self.steps:
            raise refused(f"must be one of {', '.join(map(short_text, self.steps))}")
        return (self.steps.index(value) + 0.5) / len(self.steps)

    def levels(self) -> list[float]:
        """The place of each step."""
        return [self.place(step) for step in self.steps]

    def snapped(self, places: Places) -> Places:
        """The places of the steps at `places`."""
        return np.array([self.place(self.value(place)) for place in places])


class ChoiceFactor(SteppedFactor):
    """A list of values."""

    choices: list[PlainValue]

    @property
    def steps(self) -> Sequence[Value]:
        return self.choices

    @field_validator("choices")
    @classmethod
    def _check_choices(cls, choices: list[Value]) -> list[Value]:
        if len(choices) < 2:
            raise refused("must list at least 2 values; a single value belongs in [constants]")
        for index, choice in enumerate(choices):
            # True == 1 == 1.0, and all three look the same on an axis.
            if choice in choices[:index]:
                raise refused(f"{short_text(choice)} is given twice")
        return choices


class LinkedFactor(SteppedFactor):
    """Named combinations of parameters that vary together: the value is a name, and stands for its table."""

    linked: dict[str, Annotated[dict[str, PlainValue], BeforeValidator(dotted)]]

    @property
    def steps(self) -> Sequence[Value]:
        return list(self.linked)

    @property
    def parameters(self) -> list[str]:
        """The names of the parameters that vary together."""
        return list(next(iter(self.linked.values())))

    @model_validator(mode="after")
    def _check_tables(self) -> Self:
        if len(self.linked) < 2:
            raise refused("must have at least 2 tables; a single one belongs in [constants]", "linked")
        for name in self.linked:
            if not name.isprintable() or not name.strip():
                raise refused(f"{name!r} must be one line of text", "linked")
        first, *others = self.linked
        if not self.linked[first]:
            raise refused("must have at least one parameter", f"linked.{first}")
        for name in others:
            if self.linked[name].keys() != self.linked[first].keys():
                parameters = ", ".join(self.linked[first])
                raise refused(f"must have the parameters of linked.{first}: {parameters}", f"linked.{name}")
        for name, table in self.linked.items():
            for parameter, value in table.items():
                with about(f"linked.{name}.{parameter}", value):
                    check_unit(parameter, value)
        return self


def is_factor(value: Any) -> bool:
    """Whether a value in [factors] is a factor (or is meant to be one), and not a table of factors.

    `loss.p` and `loss.r` make a table `loss`, which has none of the keys of a factor.
    """
    keys = {*RangeFactor.model_fields, *ChoiceFactor.model_fields, *LinkedFactor.model_fields}
    return not isinstance(value, dict) or not value or not keys.isdisjoint(value)


def _check_table(factor: Any) -> Any:
    if not isinstance(factor, dict):
        forms = "min and max, choices, or linked"
        raise refused(f"must be a table with {forms}; a single value belongs in [constants]")
    return factor


def _kind(factor: dict[str, Any]) -> str:
    return next((f"({key})" for key in ("choices", "linked") if key in factor), "(range)")


AnyFactor = RangeFactor | ChoiceFactor | LinkedFactor
Factor = Annotated[
    Annotated[RangeFactor, Tag("(range)")]
    | Annotated[ChoiceFactor, Tag("(choices)")]
    | Annotated[LinkedFactor, Tag("(linked)")],
    Discriminator(_kind),
    BeforeValidator(_check_table),
]
