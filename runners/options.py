"""An option of an implementation, or a parameter of a workload: its type, its default, what it may be."""

import math
from collections.abc import Mapping
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, model_validator

Value = str | int | float | bool

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


class Option(BaseModel):
    """A named value that a design may choose; its default is allowed."""

    model_config = ConfigDict(extra="forbid", strict=True)

    type: Literal["string", "integer", "number", "boolean"]
    default: Value
    choices: list[Value] | None = None
    minimum: float | None = None
    maximum: float | None = None
    only_with: dict[str, list[Value]] = {}
    """Values of other options with which alone it is read; with any other, it changes nothing."""
    help: str

    @model_validator(mode="after")
    def _default_is_allowed(self) -> Self:
        if problem := self.problem_of(self.default):
            raise ValueError(f"the default {problem}")
        return self

    def problem_of(self, value: object) -> str:
        """Return the problem of a value, or "" for none."""
        fits = isinstance(value, _TYPES[self.type]) and isinstance(value, bool) == (self.type == "boolean")
        if not fits or (isinstance(value, float) and not math.isfinite(value)):
            return f"must be of type {self.type}"
        if self.choices is not None and value not in self.choices:
            return f"must be one of {', '.join(map(str, self.choices))}"
        if isinstance(value, (int, float)):
            if self.minimum is not None and value < self.minimum:
                return f"must be at least {self.minimum:g}"
            if self.maximum is not None and value > self.maximum:
                return f"must be at most {self.maximum:g}"
        return ""

    def unread_because(self, options: Mapping[str, Value]) -> str:
        """Return why an endpoint with all these options does not read it, or ""."""
        for name, values in self.only_with.items():
            if options[name] not in values:
                known = " or ".join(map(repr, values))
                return f"is read only with {name} = {known}, which is {options[name]!r} here"
        return ""

    @property
    def samples(self) -> list[Value]:
        """Some values that it may have."""
        if self.type == "boolean":
            return [True, False]
        if self.choices is not None:
            return list(self.choices)
        beside = [self.default + 1, self.default - 1] if isinstance(self.default, int | float) else []
        tried = [*beside, self.maximum, self.minimum]
        return [value for value in tried if value is not None and not self.problem_of(value)]
