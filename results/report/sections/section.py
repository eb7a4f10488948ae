"""Common parts of all sections of a document, and the form of numbers that JSON does not know."""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer

from fecbench.documents import number


class Section(BaseModel):
    """A part of a document."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _known_value(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def _written(value: float | None) -> float | str | None:
    return None if value is None else number(value)


Number = Annotated[float | None, BeforeValidator(_known_value), PlainSerializer(_written, when_used="json")]
"""None: it is not known, or there is none."""
Count = Annotated[int | None, BeforeValidator(_known_value)]
"""None: there is nothing to count."""
Word = Annotated[str | None, BeforeValidator(_known_value)]
"""None: there is none."""
