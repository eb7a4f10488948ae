"""Hints at the right name, for every message about a name that is not known."""

import difflib
from collections.abc import Iterable

MOST_NAMES = 24
"""Most names in a message; of more names, it has the nearest."""
_NEAREST = 8


def nearest(wrong: str, candidates: Iterable[str]) -> str:
    """The end of a message: the nearest known name, or all of them, or of many the nearest ones."""
    names = sorted(candidates)
    group, _, end = wrong.rpartition(".")
    ends = {name.rpartition(".")[2]: name for name in names if group and name.rpartition(".")[0] == group}
    if ends:  # what they begin with alone would make all of them alike
        names = list(ends.values())
        close = [ends[match] for match in difflib.get_close_matches(end, ends, n=1)]
        close += [name for known_end, name in ends.items() if end and known_end.startswith(end)]
    else:
        close = difflib.get_close_matches(wrong, names, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    if len(names) <= MOST_NAMES:
        return f"known: {', '.join(map(repr, names)) or 'none'}"
    likest = difflib.get_close_matches(wrong, names, n=_NEAREST, cutoff=0)
    return f"the nearest of {len(names)}: {', '.join(map(repr, likest))}"
