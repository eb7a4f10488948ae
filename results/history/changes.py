"""The commits at which a stack got slower or faster, by comparisons of any two commits.

The level of a commit is the logarithm of its times. A comparison measures the difference between the levels
of two commits; its interval has the error. If the level changes at one commit alone, all comparisons across
that commit show the same difference, and all others show none. So weighted least squares estimates, for each
commit, the change there and its number of standard errors. The commit with the most standard errors is a
change if that number is rare without any change. The search then goes on beside the changes so far. Each of
these is searched anew, and all are fitted together.

A simulation with the errors of these comparisons determines how many standard errors are rare. So the
probability of a false alarm at any commit and workload is at most LEVEL. All comparisons have the same seeds:
those of one release with many commits share what chance did to it, and are no independent witnesses. So
chance is simulated in several ways (`_chances`), and the one with the most false alarms counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fecbench.results.history.entries import Entry, Version

LEVEL = 0.05
"""The probability of any change in a history without one."""
MOST = 10
"""Changes of a workload that are looked for."""
_SIMULATIONS = 4000
_QUANTILE = 1.959964  # of the normal distribution, for intervals of 95 %
_LEAST_ERROR = 1e-4
"""Standard error of a logarithm, at least: the interval of two builds that are the same has no width."""
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Change:
    """A commit from which on a workload takes longer or shorter."""

    workload: str
    commit: int
    """The place of the commit in `History.versions`."""
    ratio: float
    """The times from it on, divided by those before."""
    low: float
    high: float
    """The ends of its interval of 95 %."""


@dataclass(frozen=True)
class Levels:
    """The times of each commit of a history, divided by those of the first."""

    ratio: Floats
    low: Floats
    high: Floats
    """NaN where no chain of comparisons leads to the commit."""


@dataclass(frozen=True)
class History:
    """Comparisons, and the commits that they compared, in the order of their dates."""

    entries: Sequence[Entry]
    versions: Sequence[Version]
    places: Sequence[tuple[int, int]]
    """The places of OLD and NEW of each entry in `versions`."""

    @property
    def workloads(self) -> list[str]:
        """The workloads, and all networks together, that have a ratio in any comparison."""
        return list(dict.fromkeys(name for entry in self.entries for name in entry.ratios))


def history(entries: Sequence[Entry]) -> History:
    """Return the history of comparisons. A build with changes that were not committed comes after all commits
    that were made before it was compared."""
    first_seen: dict[tuple[object, ...], tuple[str, Version]] = {}
    keys = []
    for entry in entries:
        both = []
        for version in (entry.old, entry.new):
            is_commit = version.commit is not None and not version.changed
            key = (version.commit,) if is_commit else (version.commit, version.word, entry.at)
            first_seen.setdefault(key, (version.committed_at if is_commit else entry.at, version))
            both.append(key)
        keys.append(both)
    order = sorted(first_seen, key=lambda key: first_seen[key][0])
    place = {key: number for number, key in enumerate(order)}
    versions = [first_seen[key][1] for key in order]
    return History(entries, versions, [(place[old], place[new]) for old, new in keys])


def changes(of: History) -> list[Change]:
    """Return the changes of all workloads, by their commits. A change is no smaller than the margin of the
    comparisons."""
    workloads = of.workloads
    margin = math.log1p(min(entry.margin for entry in of.entries))
    parts = [
        change for name in workloads for change in _of_workload(of, name, LEVEL / len(workloads), margin)
    ]
    return sorted(parts, key=lambda change: (change.commit, change.workload))


def _of_workload(of: History, workload: str, level: float, margin: float) -> list[Change]:
    places, logs, errors = _measured(of, workload)
    crosses = _crossings(places, len(of.versions)) / errors[:, None]
    looked_at = np.flatnonzero((crosses != 0).any(axis=0))
    chances = _chances(places, len(of.versions), errors)
    noises = [
        chance @ np.random.default_rng(1).standard_normal((chance.shape[1], _SIMULATIONS))
        for chance in chances
    ]
    crosses, values = crosses[:, looked_at], logs / errors
    picks: list[int] = []
    for _ in range(min(MOST, len(looked_at))):
        place, scores, limit = _next(crosses, values, noises, picks, level)
        if scores <= limit:
            break
        picks = _settled(crosses, values, noises, [*picks, place], level)
    if not picks:
        return []
    sizes, spread = _fitted(crosses[:, picks], values, chances)
    return [
        Change(
            workload,
            int(looked_at[place]),
            *(math.exp(size + side * _QUANTILE * error) for side in (0, -1, 1)),
        )
        for place, size, error in zip(picks, sizes, spread, strict=True)
        if abs(size) > margin
    ]


def _settled(
    crosses: Floats, values: Floats, noises: Sequence[Floats], picks: list[int], level: float
) -> list[int]:
    """Return the picks, each searched anew beside the others until none moves: the first pick may lie between
    several changes. A pick that chance explains is dropped."""
    for _ in range(MOST):
        before = sorted(picks)
        for pick in before:
            picks = [other for other in picks if other != pick]
            place, scores, limit = _next(crosses, values, noises, picks, level)
            picks += [place] if scores > limit else []
        if sorted(picks) == before:
            break
    return picks


def _measured(of: History, workload: str) -> tuple[list[tuple[int, int]], Floats, Floats]:
    """The places of the comparisons that have a ratio of the workload, its logarithms, and their errors."""
    places, logs, errors = [], [], []
    for entry, place in zip(of.entries, of.places, strict=True):
        if workload in entry.ratios and place[0] != place[1]:
            ratio, low, high = entry.ratios[workload]
            places.append(place)
            logs.append(math.log(ratio))
            error = entry.errors.get(workload, math.log(high / low) / (2 * _QUANTILE))
            errors.append(max(error, _LEAST_ERROR))
    return places, np.array(logs), np.array(errors)


def _crossings(places: Sequence[tuple[int, int]], count: int) -> Floats:
    """Return the effect of a change of 1 at each commit on each comparison: 1, 0 or -1."""
    commits = np.arange(count)
    rows = [
        ((old < commits) & (commits <= new)) * 1.0 - ((new < commits) & (commits <= old))
        for old, new in places
    ]
    return np.array(rows, dtype=np.float64).reshape(len(places), count)


def _chances(places: Sequence[tuple[int, int]], count: int, errors: Floats) -> list[Floats]:
    """Return a matrix for each kind of chance. Times independent normal numbers, it is the noise of the
    comparisons, in their errors.

    Chance is new in each comparison; or a commit's own, the same in all of its comparisons, as in virtual
    time; or it comes with a commit and stays, where later commits change nothing.
    """
    from scipy.optimize import nnls  # no other command needs it

    own = np.zeros((len(places), count))
    for row, (old, new) in enumerate(places):
        own[row, [old, new]] = -math.sqrt(0.5), math.sqrt(0.5)
    crosses = _crossings(places, count)
    weights = np.abs(crosses) / errors[:, None] ** 2  # the sums of variances are those of the comparisons
    stays = crosses * np.sqrt(nnls(weights, np.ones(len(places)))[0]) / errors[:, None]
    rest = np.sqrt(np.maximum(0.0, 1 - (stays**2).sum(axis=1)))
    return [np.eye(len(places)), own, np.hstack([stays, np.diag(rest)])]


def _next(
    crosses: Floats, values: Floats, noises: Sequence[Floats], picks: Sequence[int], level: float
) -> tuple[int, float, float]:
    """Return the commit with the most standard errors beside `picks`, their number, and the number that is
    exceeded in at most `level` of histories without a further change, by any of the noises."""
    rest = _without(crosses[:, picks])
    columns = rest @ crosses
    widths = np.sqrt((columns**2).sum(axis=0))
    widths[widths < 1e-9 * max(1.0, float(np.abs(crosses).max()))] = np.inf  # moves nothing that is left
    scores = np.abs(columns.T @ values) / widths
    most = [(np.abs(columns.T @ noise) / widths[:, None]).max(axis=0) for noise in noises]
    place = int(scores.argmax())
    return place, float(scores[place]), max(float(np.quantile(one, 1 - level)) for one in most)


def _without(columns: Floats) -> Floats:
    """Return the projection onto what columns do not explain."""
    return np.eye(len(columns)) - columns @ np.linalg.pinv(columns)


def _fitted(columns: Floats, values: Floats, chances: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Return the least squares fit, and its standard errors by the chance that makes them largest."""
    inverse = np.linalg.pinv(columns)
    return inverse @ values, np.max([np.sqrt(((inverse @ one) ** 2).sum(axis=1)) for one in chances], axis=0)


def levels(of: History, workload: str) -> Levels:
    """Return the times of each commit, divided by those of the first, by all chains of comparisons."""
    places, logs, errors = _measured(of, workload)
    count = len(of.versions)
    rows = np.zeros((len(places), count))
    for row, (old, new) in enumerate(places):
        rows[row, old], rows[row, new] = -1, 1
    reached = _reached(places, count)
    root = min(reached, default=0)
    free = [place for place in reached if place != root]
    size, spread = np.full(count, np.nan), np.full(count, np.nan)
    if free:
        chances = _chances(places, count, errors)
        size[free], spread[free] = _fitted(rows[:, free] / errors[:, None], logs / errors, chances)
    size[root] = spread[root] = 0.0
    low, high = (np.exp(size + side * _QUANTILE * spread) for side in (-1, 1))
    return Levels(np.exp(size), low, high)


def _reached(places: Sequence[tuple[int, int]], count: int) -> list[int]:
    """Return the commits to which comparisons lead from the first that was compared."""
    if not places:
        return []
    reached = {min(min(place) for place in places)}
    for _ in range(count):
        reached |= {place for pair in places if reached & set(pair) for place in pair}
    return sorted(reached)
