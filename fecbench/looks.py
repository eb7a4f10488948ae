"""When a campaign looks at its results while it runs, to stop where they decide (`until = "decided"`)."""

FIRST_LOOK = 20
"""Repetitions: results are looked at no sooner; an interval of few values holds the truth too seldom."""
FEWEST = 2 * FIRST_LOOK
"""Repetitions, at most, of a campaign that may stop sooner: of fewer, there is a single look, at the end."""


def looks(most: int) -> tuple[int, ...]:
    """After how many repetitions of a network its results are looked at, ascending: `most`, which is the end,
    a half of it, a quarter and so on, FIRST_LOOK at least; halves are rounded up."""
    found = [most]
    while (half := (found[0] + 1) // 2) >= FIRST_LOOK:
        found.insert(0, half)
    return tuple(found)
