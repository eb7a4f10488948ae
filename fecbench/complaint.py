"""Refusals of values, each in one line: `key = value: must be what would be right`.

One is the first problem that pydantic finds in a document.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # programs without pydantic load this, too
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

LONGEST_VALUE = 60
"""Letters of a value that a line shows."""


def complaint(error: ValidationError) -> str:
    """Return the first problem in a line: `variants[1].options.k = 3: must be a string`."""
    first = error.errors(include_url=False)[0]
    key, value = _key(first), first["input"]
    if first["type"] == "missing":
        return f"{key}: is missing"
    if first["type"] == "extra_forbidden":
        return f"{key}: is no key here"
    if _has_own_key(first):
        value = first["ctx"]["value"]
    message = in_our_words(first["msg"])
    if value is None or (isinstance(value, dict | list) and value != []):
        return f"{key}: {message}" if key else message
    return f"{key} = {short_text(value)}: {message}" if key else f"{short_text(value)}: {message}"


def in_our_words(message: str) -> str:
    """Return a message of pydantic's without its own words."""
    return message.replace("Value error, ", "").replace("Input should be", "must be")


def wrong_value(name: str, value: object, right: str) -> str:
    """Return the refusal of a value: `owd_ms = -1: must be a number from 0 to 10000`."""
    return f"{name} = {short_text(value)}: must be {right}"


def short_text(value: object) -> str:
    """Return a value as it stands in an error message: on one line, and short."""
    if isinstance(value, int) and abs(value) > 10**40:
        return "an integer of over 40 digits"
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 3]}..."


def _key(error: ErrorDetails) -> str:
    """Return the place without the tags "(…)" that only say which model was chosen."""
    parts = [part for part in error["loc"] if not str(part).startswith("(")]
    if _has_own_key(error):
        parts.append(error["ctx"]["key"])
    steps = [f"[{part}]" if isinstance(part, int) else str(part) for part in parts]
    return ".".join(steps).replace(".[", "[")


def _has_own_key(error: ErrorDetails) -> bool:
    """Whether the error is one of `designs.table.refused` about a key of the table that was checked."""
    return error["type"] == "refused" and bool(error["ctx"]["key"])
