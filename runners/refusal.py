"""Bad input to a command: one line that names what was wrong and what would be right, and exit status 2."""

import difflib
from collections.abc import Iterable

from pydantic import ValidationError


class Refusal(ValueError):
    """The complete line for the user."""


def nearest(wrong: str, known: Iterable[str]) -> str:
    """A hint at the right name: the nearest known one, or all of them."""
    names = sorted(known)
    close = difflib.get_close_matches(wrong, names, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(map(repr, names)) or 'none'}"


def first_problem(error: ValidationError) -> str:
    """The first problem that pydantic found, as `key.path = value: what is wrong`."""
    problem = error.errors(include_url=False, include_context=False)[0]
    where = ".".join(str(part) for part in problem["loc"]) or "document"
    if problem["type"] == "missing":
        return f"{where}: is missing"
    return f"{where} = {problem['input']!r}: {problem['msg']}"
