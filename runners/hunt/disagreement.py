"""Disagreement of two engines: trials in virtual time beside the same trials emulated, network by network.

Both trials of a pair have the same endpoints, options, link and losses: were the engines alike, their ratio
emulated / virtual would be 1. A pair has a tolerance of its own, by its round-trip time and by how long its
emulated endpoints were kept from a processor (`results.analysis.tolerances`). A network disagrees where the
median ratio is surely beyond it, by the sign test. That is exact however few the pairs are, and a pair that
is far off by chance counts as one pair.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from fecbench.results import metrics
from fecbench.results.analysis.intervals import median_interval
from fecbench.results.analysis.quantiles import heads_at_least
from fecbench.results.analysis.tolerances import SHARE
from fecbench.results.analysis.twins import Twins, own_tolerance
from fecbench.results.store.records import TrialRecord
from fecbench.runners.hunt.measured import MOST, Floats, Judged

LEAST_SHARE = 0.05
"""A smaller share counts as this one: a ratio of two that nobody wants says nothing."""
COLUMNS = ("place", "log", "low", "high", "virtual", "emulated")
_FAR = 50.0  # a logarithm that stands for ∞ where two are averaged


@dataclass(frozen=True)
class Disagreements:
    """The pairs of a look."""

    count: int
    """The look's networks."""
    pairs: pd.DataFrame
    """A row a pair that can be compared: the `place` of its network, the `log` of its ratio (infinite where
    one engine alone came to no end), its tolerance from `low` to `high`, and the trials `virtual` and
    `emulated`, by id."""
    emulated: int
    """Trials that were emulated, whether they can be compared or not."""

    def judged(self, level: float) -> Judged:
        """Whether each network surely disagrees, with intervals of confidence 1 - `level`."""
        columns = {name: np.full(self.count, math.nan) for name in ("ratio", "low", "high", "margin")}
        is_sure, is_within = (np.zeros(self.count, np.bool_) for _ in range(2))
        pairs = np.zeros(self.count, np.int64)
        for place in self.pairs["place"].unique().tolist():
            rows = self.pairs[self.pairs["place"] == place]
            log = rows["log"].to_numpy(np.float64)
            above, below = int((log > rows["high"]).sum()), int((log < rows["low"]).sum())
            pairs[place] = len(log)
            is_sure[place] = 2 * heads_at_least(max(above, below), len(log)) <= level
            is_within[place] = 2 * heads_at_least(len(log) - above - below, len(log)) <= level
            middle = _median(log)
            side = rows["high"] if middle >= 0 else -rows["low"]
            columns["ratio"][place] = math.exp(middle)
            columns["low"][place], columns["high"][place] = np.exp(
                median_interval(log, range(len(log)), level)
            )
            columns["margin"][place] = math.expm1(_median(side.to_numpy(np.float64)))
        by_failures = np.isin(columns["ratio"], (0.0, math.inf))
        return Judged(
            **columns, is_sure=is_sure, is_open=~is_sure & ~is_within, by_failures=by_failures, pairs=pairs
        )

    def pair(self, place: int, ratio: float) -> tuple[int, int]:
        """Return the trials, virtual and emulated, by id: of a network's pair whose ratio is nearest to this
        one."""
        rows = self.pairs[self.pairs["place"] == place]
        with np.errstate(divide="ignore"):
            far = np.abs(_finite(rows["log"].to_numpy(np.float64)) - _finite(np.log([ratio])))
        row = rows.iloc[int(far.argmin())]
        return int(row["virtual"]), int(row["emulated"])

    def beyond(self) -> list[list[float]]:
        """Return by how much each pair of each network is beyond its tolerance: a logarithm, 0 within."""
        log, low, high = (self.pairs[name].to_numpy(np.float64) for name in ("log", "low", "high"))
        past = np.clip(log - np.clip(log, low, high), -MOST, MOST)
        of_places = self.pairs["place"].to_numpy(np.int64)
        return [past[of_places == place].tolist() for place in range(self.count)]


def row(twins: Twins, name: str, ids: tuple[int, int]) -> tuple[float, float, float, int, int] | None:
    """Return a row of `Disagreements.pairs` without its place, by the metric of this name.

    None for a pair that cannot be compared: one of the two is invalid or lacks the metric, or neither came to
    an end.
    """
    metric = metrics.of(name)
    if twins.left_out:
        return None
    virtual, emulated = (_value(run, metric) for run in (twins.virtual, twins.emulated))
    if math.isnan(virtual) or math.isnan(emulated):
        return None
    if metric.is_share:
        virtual, emulated = max(virtual, LEAST_SHARE), max(emulated, LEAST_SHARE)
        by = SHARE.above + twins.stalled
        return (_log(virtual, emulated), -math.log1p(by / virtual), math.log1p(by / virtual), *ids)
    tolerance, beside = own_tolerance(metric)
    held_beside = twins.round_trip_s if beside == "rtt" else math.inf
    low, high = (float(end[0]) for end in tolerance.ends(np.array([held_beside]), twins.stalled))
    # A tolerance is of virtual / emulated, and the ratio the other way round.
    return (_log(virtual, emulated), -math.log1p(high), -math.log1p(low), *ids)


def _value(run: TrialRecord, metric: metrics.Metric) -> float:
    """Return the metric, of a share the part that is there in time; the worst where the trial had no end."""
    endpoint, _, of_endpoint = metric.name.partition(".")
    value = float(run.metrics.get(endpoint, {}).get(of_endpoint, math.nan))
    came_to_no_end = run.state != "ok" or (metric.absent_is_worst and math.isnan(value))
    if metric.is_share:
        return 0.0 if came_to_no_end else value if metric.more_is_better else 1 - value
    if not came_to_no_end:
        return value
    return 0.0 if metric.more_is_better else math.inf


def _log(virtual: float, emulated: float) -> float:
    """The logarithm of emulated / virtual, 0 where both are the worst."""
    if virtual == emulated:
        return 0.0
    with np.errstate(divide="ignore"):
        return float(np.log(emulated) - np.log(virtual))


def _median(logs: Floats) -> float:
    """The median of logarithms, infinite ones among them."""
    middle = float(np.median(_finite(logs)))
    return math.copysign(math.inf, middle) if abs(middle) > MOST * 2 else middle


def _finite(logs: Floats) -> Floats:
    finite: Floats = np.clip(logs, -_FAR, _FAR)
    return finite


def pairs_of(rows: Sequence[tuple[int, float, float, float, int, int]]) -> pd.DataFrame:
    """The rows as a table, which may have none."""
    columns = {name: [each[index] for each in rows] for index, name in enumerate(COLUMNS)}
    return pd.DataFrame(columns).astype({"log": float, "low": float, "high": float, "place": int})
