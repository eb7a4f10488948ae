"""The WSP algorithm: a space-filling subset of candidates in the unit cube.

J. Santiago, M. Claeys-Bruno, M. Sergent: "Construction of space-filling designs using WSP algorithm for high
dimensional spaces", Chemometrics and Intelligent Laboratory Systems 113 (2012) 26-31.

pydoe, which makes the plans of textbooks, has no WSP. This file needs nothing but NumPy and SciPy, and has
the form of pydoe's own, so that it can become one of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from scipy.spatial import cKDTree

# How far `wsp_of_size` scans to either side of the place where n(dmin) crosses the wanted size. As n is
# about proportional to dmin to the power -d, a relative step of 1 / (size · d) changes it by one on average;
# but it jumps by some percent from step to step (1,000 points in 10 dimensions: by 12; one step in 30 hits).
SCAN_STEPS = 100
SCAN_STEP_POINTS = 0.25
# From so many candidates on, a tree may find the near ones: those within NEAR times dmin, where the next
# point mostly is. If they are more than a share of all, there is no tree; a few PROBES estimate that.
FEWEST_IN_TREE = 4000
NEAR = 1.25
MOST_NEAR = 0.05
PROBES = 20
# Up to so many candidates, those about each one are remembered while dmin changes little: most selections
# meet the same. Together these are at most so many.
MOST_REMEMBERING = 10_000
MOST_REMEMBERED = 4_000_000


def wsp(candidates: ArrayLike, dmin: float) -> NDArray[np.intp]:
    """
    Select a space-filling subset of candidates: no two of them are closer than `dmin`.

    The selection starts at the candidate nearest the centre of the cube. Candidates closer to it than `dmin`
    (strictly, Euclidean) are deleted, the nearest survivor comes next, and so on until none is left. Ties go
    to the lowest index.

    Parameters
    ----------
    candidates : array_like, shape (n_candidates, n_factors)
        Points in the unit cube.
    dmin : float
        Minimum distance; 0 or more.

    Returns
    -------
    indices : 1d-array of int
        Rows of the selected candidates, in order of selection.

    Raises
    ------
    ValueError
        If `candidates` is no such matrix, or `dmin` is negative or NaN.

    Examples
    --------
    ::

        >>> wsp([[0.5, 0.5], [0.5, 0.6], [0.1, 0.1], [0.9, 0.9]], 0.2)
        array([0, 2, 3])

    """
    if not dmin >= 0:
        raise ValueError(f"dmin = {dmin}: must be 0 or more")
    columns = _columns(candidates)
    return _select(columns, dmin, most=columns.shape[1]).indices


def wsp_of_size(candidates: ArrayLike, size: int) -> tuple[NDArray[np.intp], float] | None:
    """
    Select exactly `size` candidates by WSP.

    Parameters
    ----------
    candidates : array_like, shape (n_candidates, n_factors)
        Points in the unit cube.
    size : int
        How many to select: from 1 to `n_candidates`.

    Returns
    -------
    selection : (indices, dmin) or None
        As `wsp(candidates, dmin)` selects them; None when no `dmin` was found that selects so many.

    Raises
    ------
    ValueError
        If `candidates` is no such matrix, or `size` is out of bounds.

    Notes
    -----
    The number of selected candidates falls as `dmin` grows, but not monotonically. So `dmin` is bisected to a
    place where the number crosses `size`, and then the neighbourhood is scanned outwards. A selection only
    depends on which of the distances met are below `dmin`, so it is the same over an interval; the scan steps
    over these intervals, which makes it exhaustive for small sets.

    Examples
    --------
    ::

        >>> wsp_of_size([[0.5, 0.5], [0.5, 0.6], [0.1, 0.1], [0.9, 0.9]], 3)[0]
        array([0, 2, 3])

    """
    columns = _columns(candidates)
    dimensions, count = columns.shape
    if not 1 <= size <= count:
        raise ValueError(f"size = {size}: must be from 1 to the number of candidates, {count}")
    if size == count:
        return _select(columns, 0.0, size).indices, 0.0
    surroundings = _Surroundings(columns) if count <= MOST_REMEMBERING else None
    low, high = 0.0, 2.0 * float(np.sqrt(dimensions))
    while low < high:
        dmin = (low + high) / 2 if low < (low + high) / 2 else high
        selection = _select(columns, dmin, size, surroundings)
        if len(selection.indices) == size:
            return selection.indices, dmin
        if len(selection.indices) > size:
            low = selection.high
        else:
            high = selection.low
    return _scan(columns, size, low, surroundings)


@dataclass(frozen=True)
class _Selection:
    """The selection that any dmin in (low, high] makes. It is cut short when it holds one candidate more
    than was asked for."""

    indices: NDArray[np.intp]
    low: float
    high: float


def _select(
    columns: NDArray[np.float64], dmin: float, most: int, surroundings: _Surroundings | None = None
) -> _Selection:
    """WSP over candidates given as columns, shape (d, N), until more than `most` are selected."""
    remaining = _Remaining(columns, NEAR * dmin) if surroundings is None else surroundings.all_alive(dmin)
    current = int(np.argmin(_distances(columns, np.full(len(columns), 0.5))))
    selected: list[int] = []
    low, high = 0.0, np.inf
    while len(selected) <= most:
        selected.append(current)
        step = remaining.step(current, dmin)
        low = max(low, step.deleted)
        if step.nearest is None:
            break
        current = step.nearest
        high = min(high, step.distance)
    return _Selection(np.array(selected, dtype=np.intp), low, high)


@dataclass(frozen=True)
class _Step:
    """The effect of the current point on the remaining candidates."""

    deleted: float
    """The greatest distance of those that are deleted."""
    nearest: int | None
    """The nearest survivor, which is the next point; None when none is left."""
    distance: float
    """The distance of the nearest survivor."""


class _Remaining:
    """The remaining candidates, from which each step takes those about a point.

    A step costs the distances to all of them. Where they are many, and few of them near, a tree finds the
    near ones, and only their distances are computed. The tree is grown anew when half of its candidates are
    deleted. The result of a step is the same to the bit.
    """

    def __init__(self, columns: NDArray[np.float64], reach: float) -> None:
        self._columns, self._reach = columns, reach
        self._rows = np.arange(columns.shape[1])
        """The candidates that `columns` has, as rows of all candidates, ascending."""
        self._alive = np.ones(columns.shape[1], dtype=bool)
        """Whether each of these remains."""
        self._count = columns.shape[1]
        self._tree = self._grown()

    def step(self, current: int, dmin: float) -> _Step:
        """Delete the current point and all that are closer to it than `dmin`."""
        place = int(np.searchsorted(self._rows, current))
        near = self._near(place)
        columns = self._columns if self._tree is None else self._columns[:, near]
        distances = _distances(columns, self._columns[:, place])
        distances[np.searchsorted(near, place)] = -1.0  # the current point itself is below every dmin
        survives = distances >= dmin
        deleted = float(distances.max(where=~survives, initial=0.0))
        self._delete(near[~survives])
        if not self._count:
            return _Step(deleted, None, np.inf)
        near, distances = near[survives], distances[survives]
        # Rounding in the tree cannot hide candidates that are well within its reach.
        if self._tree is None or (len(near) and distances.min() < (1 - 1e-9) * self._reach):
            nearest = int(np.argmin(distances))
        else:
            near = np.flatnonzero(self._alive)
            distances = _distances(self._columns[:, near], self._columns[:, place])
            nearest = int(np.argmin(distances))
        outcome = _Step(deleted, int(self._rows[near[nearest]]), float(distances[nearest]))
        self._compact()
        return outcome

    def _near(self, place: int) -> NDArray[np.intp]:
        """Return the remaining candidates within reach of a place, or all of them, ascending."""
        if self._tree is None:
            return np.arange(self._count)
        within = self._tree.query_ball_point(self._columns[:, place], self._reach, return_sorted=True)
        near = np.array(within, dtype=np.intp)
        return near[self._alive[near]]

    def _delete(self, places: NDArray[np.intp]) -> None:
        self._alive[places] = False
        self._count -= len(places)

    def _compact(self) -> None:
        """Forget what is deleted, at once where all distances are computed in each step."""
        if self._tree is not None and 2 * self._count > len(self._rows):
            return
        self._columns, self._rows = self._columns[:, self._alive], self._rows[self._alive]
        self._alive = np.ones(self._count, dtype=bool)
        if self._tree is not None:
            self._tree = self._grown()

    def _grown(self) -> cKDTree | None:
        """None where it would not pay."""
        if self._count < FEWEST_IN_TREE:
            return None
        from scipy.spatial import cKDTree  # takes longer to load than most plans take to make

        tree = cKDTree(self._columns.T)
        some = self._columns[:, :: self._count // PROBES].T
        near = tree.query_ball_point(some, self._reach, return_length=True)
        return tree if near.mean() < MOST_NEAR * self._count else None


class _Surroundings:
    """The candidates about each candidate, with their distances, from one selection to the next.

    They are few, so the distances to all are computed once for each that is looked at: no tree is needed.
    """

    def __init__(self, columns: NDArray[np.float64]) -> None:
        self._columns, self._reach = columns, 0.0
        self._about: dict[int, tuple[NDArray[np.intp], NDArray[np.float64]]] = {}
        self._remembered = 0
        self._alive = np.ones(columns.shape[1], dtype=bool)
        """Whether each remains in the current selection."""

    def all_alive(self, dmin: float) -> _Surroundings:
        """Return these with no candidate deleted, for a selection by this dmin."""
        self._alive[:] = True
        if not dmin <= self._reach <= NEAR**3 * dmin:
            self._forget()
            self._reach = NEAR**2 * dmin
        return self

    def step(self, current: int, dmin: float) -> _Step:
        """Delete the current point and all that are closer to it than `dmin`."""
        rows, distances = self._of(current)
        remain = self._alive[rows]
        rows, distances = rows[remain], distances[remain]
        survives = distances >= dmin
        deleted = float(distances.max(where=~survives, initial=0.0))
        self._alive[rows[~survives]] = False
        rows, distances = rows[survives], distances[survives]
        if not len(rows):  # the next point, if there is any, is further away
            rows = np.flatnonzero(self._alive)
            if not len(rows):
                return _Step(deleted, None, np.inf)
            distances = _distances(self._columns[:, rows], self._columns[:, current])
        nearest = int(np.argmin(distances))
        return _Step(deleted, int(rows[nearest]), float(distances[nearest]))

    def _of(self, row: int) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Return the candidates within reach of one, ascending, and their distances."""
        if row not in self._about:
            distances = _distances(self._columns, self._columns[:, row])
            distances[row] = -1.0  # the current point itself is below every dmin
            near = np.flatnonzero(distances <= self._reach)
            if self._remembered + len(near) > MOST_REMEMBERED:
                self._forget()
            self._remembered += len(near)
            self._about[row] = near, distances[near]
        return self._about[row]

    def _forget(self) -> None:
        self._about.clear()
        self._remembered = 0


def _scan(
    columns: NDArray[np.float64], size: int, crossing: float, surroundings: _Surroundings | None
) -> tuple[NDArray[np.intp], float] | None:
    """Steps away from `crossing`, in turn to smaller and to larger dmin, until `size` are selected."""
    step = crossing * SCAN_STEP_POINTS / (size * len(columns))
    smaller, larger = crossing, float(np.nextafter(crossing, np.inf))
    for _ in range(SCAN_STEPS):
        selection = _select(columns, smaller, size, surroundings)
        if len(selection.indices) == size:
            return selection.indices, smaller
        smaller = max(min(selection.low, smaller - step), 0.0)
        if np.isfinite(larger):
            selection = _select(columns, larger, size, surroundings)
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
        raise ValueError(f"candidates of shape {matrix.shape}: must be a matrix, one candidate per row")
    # Written so that NaN, which fails every comparison, is refused too.
    if not ((matrix >= 0) & (matrix <= 1)).all():
        raise ValueError("candidates: every coordinate must be from 0 to 1")
    return np.ascontiguousarray(matrix.T)
