"""Factors: what a design varies, and how a place in the unit cube becomes a value.

A planner places points in the unit cube, one axis per factor. A factor maps its axis, [0, 1], to values:
linearly or logarithmically between `min` and `max`, in whole numbers, or over a list of choices in equal
steps.
"""

import math
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Discriminator, Tag, field_validator, model_validator

from designs.table import Number, PlainValue, Table, Value, refused, shown

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
        """Where `value` lies on the axis (0 to 1): a whole number at the middle of its cell."""
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


class ChoiceFactor(Table):
    """A list of values, in equal steps along the axis in the order in which they are written."""

    choices: list[PlainValue]

    @field_validator("choices")
    @classmethod
    def _check_choices(cls, choices: list[Value]) -> list[Value]:
        if len(choices) < 2:
            raise refused("must list at least 2 values; a single value belongs in [constants]")
        for index, choice in enumerate(choices):
            # True == 1 == 1.0, and all three look the same on an axis.
            if choice in choices[:index]:
                raise refused(f"{shown(choice)} is given twice")
        return choices

    def value(self, place: float) -> Value:
        """The value at `place` (0 to 1) of the axis."""
        return self.choices[min(int(place * len(self.choices)), len(self.choices) - 1)]

    def place(self, value: Value) -> float:
        """The middle of the step that belongs to `value`."""
        if value not in self.choices:
            raise refused(f"must be one of {', '.join(map(shown, self.choices))}")
        return (self.choices.index(value) + 0.5) / len(self.choices)

    def levels(self) -> list[float]:
        """The place of each choice."""
        return [self.place(choice) for choice in self.choices]

    def snapped(self, places: Places) -> Places:
        """The places of the choices at `places`."""
        return np.array([self.place(self.value(place)) for place in places])


def is_factor(value: Any) -> bool:
    """Whether a value in [factors] is a factor (or is meant to be one), and not a table of factors.

    `loss.p` and `loss.r` make a table `loss`, which has none of the keys of a factor.
    """
    keys = {*RangeFactor.model_fields, *ChoiceFactor.model_fields}
    return not isinstance(value, dict) or not value or not keys.isdisjoint(value)


def _check_table(factor: Any) -> Any:
    if not isinstance(factor, dict):
        raise refused("must be a table with min and max, or choices; a single value belongs in [constants]")
    return factor


Factor = Annotated[
    Annotated[RangeFactor, Tag("(range)")] | Annotated[ChoiceFactor, Tag("(choices)")],
    Discriminator(lambda factor: "(choices)" if "choices" in factor else "(range)"),
    BeforeValidator(_check_table),
]
