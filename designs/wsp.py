"""The WSP algorithm: a space-filling subset of candidates in the unit cube.

J. Santiago, M. Claeys-Bruno, M. Sergent: "Construction of space-filling designs using WSP algorithm for high
dimensional spaces", Chemometrics and Intelligent Laboratory Systems 113 (2012) 26-31.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from designs.error import DesignError

# How far `wsp_of_size` scans to either side of the place where n(dmin) crosses the wanted size. As n is
# about proportional to dmin to the power -d, a relative step of 1 / (size · d) changes it by one on average;
# but it jumps by some percent from step to step (1,000 points in 10 dimensions: by 12; one step in 30 hits).
SCAN_STEPS = 100
SCAN_STEP_POINTS = 0.25


def wsp(candidates: ArrayLike, dmin: float) -> NDArray[np.intp]:
    """Row indices of the selected candidates, in order of selection.

    `candidates` has shape (N, d), in the unit cube; distances are Euclidean. The selection starts at the
    candidate nearest the centre. Candidates closer than `dmin` (strictly) to the current point are deleted,
    the nearest survivor becomes the current point, and so on until none is left. Ties go to the lowest index.
    Raises DesignError for candidates that are no such matrix and for a dmin that is negative or NaN.
    """
    if not dmin >= 0:
        raise DesignError(f"dmin = {dmin}: must be 0 or more")
    columns = _columns(candidates)
    return _select(columns, dmin, most=columns.shape[1]).indices


def wsp_of_size(candidates: ArrayLike, size: int) -> tuple[NDArray[np.intp], float] | None:
    """A selection of exactly `size` candidates and its dmin, or None when no dmin was found that gives it.

    n(dmin) falls as dmin grows, but not monotonically. So dmin is bisected to a place where n crosses `size`,
    and then the neighbourhood is scanned outwards. A selection only depends on which of the distances met are
    below dmin, so it is the same over an interval of dmin; the scan steps over these intervals, which makes
    it exhaustive for small sets.
    """
    columns = _columns(candidates)
    dimensions, count = columns.shape
    if not 1 <= size <= count:
        raise DesignError(f"size = {size}: must be from 1 to the number of candidates, {count}")
    if size == count:
        return _select(columns, 0.0, size).indices, 0.0
    low, high = 0.0, 2.0 * float(np.sqrt(dimensions))
    while low < high:
        dmin = (low + high) / 2 if low < (low + high) / 2 else high
        selection = _select(columns, dmin, size)
        if len(selection.indices) == size:
            return selection.indices, dmin
        if len(selection.indices) > size:
            low = selection.high
        else:
            high = selection.low
    return _scan(columns, size, low)


@dataclass(frozen=True)
class _Selection:
    """What any dmin in (low, high] selects; cut short when it holds one candidate more than was asked for."""

    indices: NDArray[np.intp]
    low: float
    high: float


def _select(columns: NDArray[np.float64], dmin: float, most: int) -> _Selection:
    """WSP over candidates given as columns, shape (d, N), until more than `most` are selected."""
    alive = np.arange(columns.shape[1])
    current = int(np.argmin(_distances(columns, np.full(len(columns), 0.5))))
    selected: list[int] = []
    low, high = 0.0, np.inf
    while len(selected) <= most:
        selected.append(int(alive[current]))
        distances = _distances(columns, columns[:, current])
        distances[current] = -1.0  # the current point itself is below every dmin
        kept = distances >= dmin
        low = max(low, float(distances.max(where=~kept, initial=low)))
        alive, columns, distances = alive[kept], columns[:, kept], distances[kept]
        if not len(alive):
            break
        current = int(np.argmin(distances))
        high = min(high, float(distances[current]))
    return _Selection(np.array(selected, dtype=np.intp), low, high)


def _scan(columns: NDArray[np.float64], size: int, crossing: float) -> tuple[NDArray[np.intp], float] | None:
    """Steps away from `crossing`, in turn to smaller and to larger dmin, until `size` are selected."""
    step = crossing * SCAN_STEP_POINTS / (size * len(columns))
    smaller, larger = crossing, float(np.nextafter(crossing, np.inf))
    for _ in range(SCAN_STEPS):
        selection = _select(columns, smaller, size)
        if len(selection.indices) == size:
            return selection.indices, smaller
        smaller = max(min(selection.low, smaller - step), 0.0)
        if np.isfinite(larger):
            selection = _select(columns, larger, size)
            if len(selection.indices) == size:
                return selection.indices, larger
            larger = max(float(np.nextafter(selection.high, np.inf)), larger + step)
    return None


def _distances(columns: NDArray[np.float64], point: NDArray[np.float64]) -> NDArray[np.float64]:
    """Euclidean distances of all columns to `point`, added axis by axis: the same bits on every machine."""
    squares = np.zeros(columns.shape[1])
    for axis, coordinate in zip(columns, point, strict=True):
        squares += (axis - coordinate) ** 2
    return np.sqrt(squares)


def _columns(candidates: ArrayLike) -> NDArray[np.float64]:
    matrix = np.asarray(candidates, dtype=np.float64)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise DesignError(f"candidates of shape {matrix.shape}: must be a matrix, one candidate per row")
    # Written so that NaN, which fails every comparison, is refused too.
    if not ((matrix >= 0) & (matrix <= 1)).all():
        raise DesignError("candidates: every coordinate must be from 0 to 1")
    return np.ascontiguousarray(matrix.T)
