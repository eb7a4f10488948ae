"""Fields that documents leave out while they have a default.

No older document has them, and what digests of recorded trials pin must not change with each new field.
"""

from typing import Any

from pydantic import Field


def left_out(default: object = None) -> Any:
    """Return the annotation of a field that documents leave out where it has this value."""
    if default is None:
        return Field(exclude_if=lambda value: value is None)  # arrays have an equality of their own
    return Field(exclude_if=lambda value: value == default)
