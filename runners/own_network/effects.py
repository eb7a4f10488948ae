"""Effects of a variant beside another in the networks of a path: at the mean, median and 95th percentile.

Each interval is of 95 %, by resampling networks, and in each of them pairs of trials (the bootstrap of two
stages: Davison and Hinkley, "Bootstrap methods and their application", 1997, §3.8), with Student's quantile
for the normal one: of sixteen networks, intervals without it hold the truth in 90 to 92 % of cases where
effects differ. A trial that did not end counts as long as it was waited for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from fecbench.results.advice import CongestionControl
from fecbench.runners.own_network.own_design import CONTROLLERS, LABELS, NONE, PAIRS, TIMEOUT_S, label

if TYPE_CHECKING:
    import pandas as pd

TIME, BYTES = "client.dct_s", "server.bytes_sent"
METRICS = (TIME, BYTES)
_RESAMPLED = 1000
_SEED = 2026
_TAIL = 0.95

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Number:
    """A number, and its interval of 95 %."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Effect:
    """A variant beside another one."""

    ratio: Number
    """Ratio of the mean times."""
    saved_ms: Number
    """Time saved of the mean."""
    median_saved_ms: Number
    tail_saved_ms: Number | None
    """Time saved at the 95th percentile; None: there are too few pairs."""
    tail_ratio: Number | None
    more_bytes: float
    """Share of bytes that the sender sends more."""
    more_bytes_interval: tuple[float, float]
    shorter_in: int
    """The number of networks in which its mean time is shorter."""
    networks: int
    pairs: int

    def document(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Run:
    """Effects in the trials of a path."""

    trials: int
    unfinished: int
    """Trials that did not end, of any arm."""
    fec: Mapping[tuple[CongestionControl, str], Effect]
    """Each controller beside no FEC, by the congestion control of both."""
    congestion_control: Mapping[CongestionControl, Effect]
    """Each congestion control beside the other one, both without FEC."""
    means_ms: Mapping[str, float]
    """The mean time of each arm."""
    end: Literal["by trials", "by time"] = "by trials"
    """The end of the run: all planned trials, or before them that of its time, when another machine may say
    otherwise."""

    @property
    def pairs(self) -> int:
        """The number of pairs of each two variants."""
        return next(iter(self.fec.values())).pairs

    def document(self) -> dict[str, Any]:
        arms = [
            {"congestion_control": control, "controller": controller, **effect.document()}
            for (control, controller), effect in self.fec.items()
        ]
        others = [
            {"congestion_control": control, "scheme": "none", **effect.document()}
            for control, effect in self.congestion_control.items()
        ]
        return {
            "trials": self.trials,
            "unfinished": self.unfinished,
            "fec": arms,
            "congestion_controls": others,
            "mean_ms": dict(self.means_ms),
            "planned_pairs": PAIRS,
            "ended": self.end,
        }


def effects(trials: pd.DataFrame) -> Run | None:
    """Return what trials show (`frames.trials`); None for too few of them, or if none ended."""
    from fecbench.results.analysis.intervals import FEWEST  # loads pandas

    if not (trials["state"] == "ok").any():
        return None
    counted = trials[trials["state"].isin(["ok", "timeout", "failed"])]
    unfinished = int((counted["state"] != "ok").sum())
    times = counted[TIME].where(counted["state"] == "ok", TIMEOUT_S)
    key = ["point", "repetition"]
    table = (
        counted.assign(time=times)
        .pivot(index=key, columns="variant", values="time")
        .reindex(columns=[label(cc, arm) for cc in LABELS for arm in (NONE, *CONTROLLERS)])
        .dropna()
        .sort_index()
    )
    if len(table) < FEWEST:
        return None
    sent = counted.pivot(index=key, columns="variant", values=BYTES).reindex(table.index)
    points = table.index.get_level_values("point").to_numpy()
    resampled = _resampled(tuple(points.tolist()))

    def beside(variant: str, baseline: str) -> Effect:
        times_of = (table[name].to_numpy(np.float64) for name in (variant, baseline))
        bytes_of = [sent[name].to_numpy(np.float64) for name in (variant, baseline)]
        return _effect(*times_of, bytes_of=bytes_of, resampled=resampled, points=points)

    fec = {
        (control, controller): beside(label(control, controller), label(control, NONE))
        for control in LABELS
        for controller in CONTROLLERS
    }
    controls = {
        control: beside(label(control, NONE), label(other, NONE))
        for control in LABELS
        for other in LABELS
        if other != control
    }
    means = {str(name): 1e3 * float(table[name].mean()) for name in table.columns}
    return Run(len(counted), unfinished, fec, controls, means)


@lru_cache(maxsize=1)  # runs that are judged again and again have the same points
def _resampled(of_pairs: tuple[int, ...]) -> NDArray[np.intp]:
    """Return places of pairs (_RESAMPLED × pairs): networks drawn with replacement, then pairs in each."""
    generator, points = np.random.default_rng(_SEED), np.array(of_pairs)
    of_points = [np.flatnonzero(points == point) for point in np.unique(points)]
    rows = []
    for _ in range(_RESAMPLED):
        chosen = generator.integers(0, len(of_points), len(of_points))
        places = np.concatenate([generator.choice(of_points[one], len(of_points[one])) for one in chosen])
        rows.append(np.resize(places, len(points)))  # networks may have a pair more or less
    return np.array(rows)


def _effect(
    variant: Floats,
    baseline: Floats,
    *,
    bytes_of: Sequence[Floats],
    resampled: NDArray[np.intp],
    points: NDArray[Any],
) -> Effect:
    from fecbench.results.analysis.intervals import FEWEST_OF_TAIL, LEVEL  # loads pandas
    from fecbench.results.analysis.quantiles import normal_below, t_quantile

    networks, of_pair = np.unique(points, return_inverse=True)
    below = normal_below(t_quantile(LEVEL / 2, max(len(networks) - 1, 1)))
    ends = [below, 1 - below]
    draws = variant[resampled], baseline[resampled]
    is_counted = ~np.isnan(bytes_of).any(axis=0)  # a pair of which one did not end compares no bytes
    sent = [np.where(is_counted, of_arm, np.nan) for of_arm in bytes_of]
    more_of, of_baseline = (np.nanmean(of_arm) for of_arm in sent)
    shares = np.nanmean(sent[0][resampled], axis=1) / np.nanmean(sent[1][resampled], axis=1) - 1
    low_bytes, high_bytes = np.quantile(shares, ends)

    def number(statistic: Any) -> Number:
        low, high = np.quantile(statistic(*draws), ends)
        (value,) = statistic(variant[np.newaxis], baseline[np.newaxis])
        return Number(float(value), float(low), float(high))

    def saved(of: Any) -> Number:
        return number(lambda first, second: 1e3 * (of(second) - of(first)))

    def ratio(of: Any) -> Number:
        return number(lambda first, second: of(first) / of(second))

    def mean(times: Floats) -> Floats:
        return np.asarray(times.mean(axis=1))

    def median(times: Floats) -> Floats:
        return np.asarray(np.median(times, axis=1))

    def tail(times: Floats) -> Floats:
        return np.asarray(np.quantile(times, _TAIL, axis=1))

    sums_of_networks = (np.bincount(of_pair, times) for times in (variant, baseline))
    has_tail = len(variant) >= FEWEST_OF_TAIL
    return Effect(
        ratio=ratio(mean),
        saved_ms=saved(mean),
        median_saved_ms=saved(median),
        tail_saved_ms=saved(tail) if has_tail else None,
        tail_ratio=ratio(tail) if has_tail else None,
        more_bytes=float(more_of / of_baseline) - 1,
        more_bytes_interval=(float(low_bytes), float(high_bytes)),
        shorter_in=int(np.less(*sums_of_networks).sum()),
        networks=len(networks),
        pairs=len(variant),
    )
