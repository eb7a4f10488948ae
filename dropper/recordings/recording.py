"""A recording: which packets of one direction were lost, one after another, and what is known of them."""

from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from fecbench.dropper.recordings.course import Course
from fecbench.errors import BadInput

MOST_PACKETS = 10_000_000

Verdicts = NDArray[np.bool_]
Direction = Literal["up", "down"]
DIRECTIONS: tuple[Direction, ...] = ("up", "down")


@dataclass(frozen=True, eq=False)
class Recording:
    """The losses of one direction."""

    lost: Verdicts
    """Whether each packet was lost, in the order in which they were sent."""
    source: str = ""
    """The sender for a person: addresses, or the endpoint that kept the qlog."""
    direction: Direction | None = None
    """Down is from the server to the client. None: the recording does not say which."""
    notes: tuple[str, ...] = ()
    """Remarks on how it was read: whole sentences."""
    course: Course | None = None
    """Times at which packets were sent and came, where the recording says them."""

    def noting(self, *notes: str) -> Self:
        return replace(self, notes=(*self.notes, *notes))


def drop_list(lost: Verdicts) -> str:
    """Return what was lost as a list of packets and ranges, "3,7-9": what a pattern takes."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], lost.astype(np.int8), [0]))))
    runs = zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
    return ",".join(str(first) if end == first + 1 else f"{first}-{end - 1}" for first, end in runs)


def missing(numbers: list[int], where: str) -> Verdicts:
    """Return which numbers are missing from the first to the last of those that came.

    Raises BadInput, which begins with `where`, when there are none, or more are missing than came.
    """
    if not numbers:
        raise BadInput(f"{where}: no packet has a number there")
    first, last = min(numbers), max(numbers)
    if last - first >= MOST_PACKETS:
        raise BadInput(f"{where}: its numbers go from {first} to {last}: more than {MOST_PACKETS} packets")
    lost = np.ones(last - first + 1, dtype=np.bool_)
    lost[np.array(numbers) - first] = False
    absent = int(lost.sum())
    if absent > lost.size - absent:
        raise BadInput(
            f"{where}: numbers go from {first} to {last}: {lost.size - absent} came and {absent} are missing,"
            " more than came; are the place and the byte order right?"
        )
    return lost
