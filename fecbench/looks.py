"""The looks of a running campaign at its results, to stop where they decide."""

FIRST_LOOK = 20
"""Repetitions: results of single networks (`until = "decided"`) are looked at no sooner; an interval of few
values holds the truth too seldom."""
FEWEST = 2 * FIRST_LOOK
"""Repetitions, at most, of a campaign that may stop sooner: of fewer, there is a single look, at the end."""


FIRST_LOOK_OF_BUILDS = 6
"""Repetitions: two builds are compared over all networks, of which none has an interval of fewer."""


def looks(most: int, first: int = FIRST_LOOK) -> tuple[int, ...]:
    """Return the repetitions of a network after which its results are looked at, ascending.

    They are `most`, the end, a half of it, a quarter and so on, `first` at least; halves are rounded up.
    """
    looks_at = [most]
    while first <= (half := (looks_at[0] + 1) // 2) < looks_at[0]:
        looks_at.insert(0, half)
    return tuple(looks_at)


def looks_of_builds(most: int) -> tuple[int, ...]:
    """Return after how many repetitions of all networks two builds are compared, of so many at most."""
    return looks(most, FIRST_LOOK_OF_BUILDS)
