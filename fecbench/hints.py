"""Hints at the right name, for every message about a name that is not known."""

import difflib
from collections.abc import Iterable


def nearest(wrong: str, known: Iterable[str]) -> str:
    """The end of a message: the nearest known name, or all of them."""
    names = sorted(known)
    close = difflib.get_close_matches(wrong, names, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(map(repr, names)) or 'none'}"
