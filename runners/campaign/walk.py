"""The order in which a start tries to claim groups: as planned while they are free.

Where others have been before it, it goes on elsewhere: of many who share a campaign each walks a stretch of
its own, and does not try what another has just done.
"""

import random
from collections import deque
from collections.abc import Collection, Iterable, Iterator

from fecbench.results.store.records import Group

STRAYED = 3
"""Lots in a row of which most groups were taken: then most of what is left here may be."""


class Walk:
    """The groups that were not tried yet."""

    def __init__(self, groups: Iterable[Group], seed: int) -> None:
        """`seed` tells walkers apart."""
        self._left = deque(groups)
        self._chance = random.Random(seed)
        self._taken = 0
        """Lots in a row of which most groups were taken."""

    def __len__(self) -> int:
        return len(self._left)

    def __iter__(self) -> Iterator[Group]:
        return iter(self._left)

    def next(self, count: int) -> list[Group]:
        """Return the next groups, at most so many; none at the end."""
        return [self._left.popleft() for _ in range(min(count, len(self._left)))]

    def has_strayed(self, free: int, tried: int) -> bool:
        """Go on elsewhere if most groups of the last lot were not free; whether that has happened often."""
        if 2 * free >= tried:
            self._taken = 0
            return False
        if self._left:
            self._left.rotate(-self._chance.randrange(len(self._left)))
        self._taken += 1
        return self._taken % STRAYED == 0

    def leave_out(self, groups: Collection[Group]) -> None:
        """Drop groups that need not be tried."""
        dropped = set(groups)
        self._left = deque(group for group in self._left if group not in dropped)
