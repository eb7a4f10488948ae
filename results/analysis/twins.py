"""Trials of a campaign in virtual time beside the same ones emulated, as tables of differences.

A zero is a value. A trial that timed out is worse than any other, and so is one that lacks a percentile of
messages since too many never arrived. Nothing that both have is left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fecbench.results import metrics
from fecbench.results.analysis.criterion import Differences
from fecbench.results.analysis.pairing import PAIR
from fecbench.results.analysis.tolerances import (
    FAR,
    FAR_EITHER_SHARE,
    MEAN_BY,
    OTHER,
    SHARE,
    TIME,
    Tolerance,
)
from fecbench.results.store.records import TrialKey, TrialRecord

_LEAST_RTT_S = 1e-3  # without any delay, a tolerance by round trips would have no bound
_NOT_CARRIED = ("queue_dropped", "outage_dropped")

Floats = NDArray[np.float64]
Beside = Literal["rtt", "value", ""]
"""The quantity that a tolerance is held beside: the round-trip time, the emulated value, or nothing."""


@dataclass(frozen=True)
class Twins:
    """A trial that was run twice."""

    virtual: TrialRecord
    emulated: TrialRecord
    host: str = ""
    """The host that emulated it; "" where it is not known."""

    @property
    def key(self) -> TrialKey:
        return self.emulated.key

    @property
    def left_out(self) -> str:
        """The reason why they are not compared; empty when they are."""
        states = {"virtual": self.virtual.state, "emulated": self.emulated.state}
        for engine, state in states.items():
            if state == "invalid":
                return f"{engine}: invalid"
        if states["virtual"] == states["emulated"] != "ok":
            return f"both: {states['virtual']}"
        return ""

    @property
    def same_outcome(self) -> bool:
        """Whether both came to an end that can be compared: which of two times out may be chance."""
        return {self.virtual.state, self.emulated.state} <= {"ok", "timeout"}

    @property
    def are_ok(self) -> bool:
        return self.virtual.state == self.emulated.state == "ok"

    @property
    def met_a_loss(self) -> bool:
        """Whether a link lost a packet of one of the two, by its loss model, its queue or an outage."""
        return any(_lost_a_packet(run) for run in (self.virtual, self.emulated))

    @property
    def loss_share(self) -> float:
        """The share of the packets of both that was lost. By one alone, chance would choose those of which
        that one lost more."""
        counts = [_lost_and_all(run) for run in (self.virtual, self.emulated)]
        lost, packets = map(sum, zip(*counts, strict=True))
        return lost / packets if packets else 0.0

    @property
    def round_trip_s(self) -> float:
        """The round-trip time of the first link, without waiting."""
        settings = next(iter(self.emulated.task["links"].values()))["settings"]
        delays_ms = [settings[direction]["owd_ms"] for direction in ("up", "down")]
        return max(math.fsum(delays_ms) / 1e3, _LEAST_RTT_S)

    @property
    def stalled(self) -> float:
        """The share of the time for which the emulated endpoints were kept from a processor; 0 where that
        is not known."""
        stalled_s = self.emulated.checks.get("stalled_s") or 0.0
        dct_s = self.emulated.metrics.get("client", {}).get("dct_s", 0.0)
        return float(stalled_s / dct_s) if dct_s > 0 else 0.0

    @property
    def senders(self) -> tuple[str, ...]:
        """The endpoints whose packets are counted: the server, and also the client where it sends the
        content."""
        demand: Mapping[str, Any] = self.emulated.task["pairs"][0]["demand"]
        return ("client", "server") if demand["up_bytes"] > demand["down_bytes"] else ("server",)


def _lost_a_packet(run: TrialRecord) -> bool:
    return _lost_and_all(run)[0] > 0


def _lost_and_all(run: TrialRecord) -> tuple[int, int]:
    """Return the number of packets that links lost, by loss models, queues or outages, and of all that
    they had to carry."""
    directions = (report.get("directions", {}).values() for report in run.links.values())
    not_carried = sum(
        counted.get(name) or 0 for direction in directions for counted in direction for name in _NOT_CARRIED
    )
    lost = sum(log.dropped for log in run.verdicts) + not_carried
    return lost, sum(log.packets for log in run.verdicts) + not_carried


def own_tolerance(metric: metrics.Metric) -> tuple[Tolerance, Beside]:
    """Return the tolerance of a metric that a workload compares, and the quantity that it is held beside."""
    if metric.is_share:
        return SHARE, ""
    return (TIME, "rtt") if metric.is_time else (OTHER, "")


def table(twins: Sequence[Twins], name: str, tolerance: Tolerance, beside: Beside) -> pd.DataFrame:
    """A row a trial that has a value both times: `variant`, what names a pair, the difference `y` by the
    metric of this name, its tolerance `low` to `high`, `met_a_loss`, `loss_share`, the logarithms of both
    values, `virtual` and `emulated`, and whether one is `below_zero`."""
    metric = metrics.of(name)
    virtual, emulated = (
        np.array([_value(getattr(pair, engine), metric) for pair in twins], dtype=np.float64)
        for engine in ("virtual", "emulated")
    )
    held_beside = {
        "rtt": np.array([pair.round_trip_s for pair in twins], dtype=np.float64),
        "value": np.where(np.isfinite(emulated) & (emulated != 0), np.abs(emulated), math.inf),
        "": np.full(len(twins), math.inf),
    }[beside]
    stalled = np.array([pair.stalled for pair in twins], dtype=np.float64)
    low, high = _ends(tolerance, held_beside, stalled, is_share=metric.is_share)
    rows_of_pairs = pd.DataFrame(
        {
            "variant": [pair.key.variant for pair in twins],
            "host": [pair.host for pair in twins],
            **{name: [getattr(pair.key, name) for pair in twins] for name in PAIR},
            "y": virtual - emulated if metric.is_share else _log_ratios(virtual, emulated),
            "low": low,
            "high": high,
            "met_a_loss": np.array([pair.met_a_loss for pair in twins], dtype=np.bool_),
            "loss_share": np.array([pair.loss_share for pair in twins], dtype=np.float64),
            "virtual": _logs(virtual),
            "emulated": _logs(emulated),
            "below_zero": np.isfinite(virtual) & (virtual < 0) | np.isfinite(emulated) & (emulated < 0),
        }
    )
    return rows_of_pairs[rows_of_pairs["y"].notna()]


def _value(record: TrialRecord, metric: metrics.Metric) -> float:
    """The metric, for a share the late or lost one; NaN where it was not measured."""
    worst = 1.0 if metric.is_share else metric.worst
    endpoint, _, of_endpoint = metric.name.partition(".")
    value = record.metrics.get(endpoint, {}).get(of_endpoint, math.nan)
    if record.state == "timeout" or (metric.absent_is_worst and math.isnan(value)):
        return worst
    return 1 - value if metric.is_share and metric.more_is_better else value


def _log_ratios(virtual: Floats, emulated: Floats) -> Floats:
    """Return log(virtual / emulated), of two values below 0 that of their sizes with the other sign: above 0
    where virtual is the greater. It is 0 where both are the same, and -∞ or ∞ where one alone is 0, the worst
    or below 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.sign(emulated) * (np.log(np.abs(virtual)) - np.log(np.abs(emulated)))
    beyond = np.where(virtual > emulated, math.inf, -math.inf)
    has_ratio = np.isfinite(logs) & (np.sign(virtual) == np.sign(emulated))
    unknown = np.isnan(virtual) | np.isnan(emulated)
    return np.select([unknown, virtual == emulated, has_ratio], [math.nan, 0.0, logs], beyond)


def _logs(values: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        logs: Floats = np.log(values)
    return logs


def ratios(
    arm: pd.DataFrame, baseline: pd.DataFrame, tolerance: Tolerance, *, is_share: bool
) -> pd.DataFrame:
    """The same of the ratio of an arm to its baseline, of shares of the difference: `y` of the arm less that
    of the baseline. A pair met a loss if one of its trials did. Without a ratio is only a pair of which both
    trials timed out, or both values are 0, in one engine alone: the arms themselves have these. Pairs of
    which two hosts emulated a trial each are left out, as in `one_host`. Where any value is below 0, no pair
    has a ratio, as in `pairing`."""
    if arm["below_zero"].any() or baseline["below_zero"].any():
        arm = arm[:0]
    of_baseline = baseline[[*PAIR, "host", "y", "met_a_loss", "loss_share"]]
    pairs = arm.merge(of_baseline, on=PAIR, suffixes=("", "_baseline"))
    hosts = pairs["host"], pairs["host_baseline"]
    pairs = pairs[(hosts[0] == hosts[1]) | (hosts[0] == "") | (hosts[1] == "")]
    beside = np.full(len(pairs), math.inf)
    low, high = _ends(tolerance, beside, np.zeros(len(pairs)), is_share=is_share)
    with np.errstate(invalid="ignore"):
        y = pairs["y"] - pairs["y_baseline"]
    met_a_loss = pairs["met_a_loss"] | pairs["met_a_loss_baseline"]
    loss_share = (pairs["loss_share"] + pairs["loss_share_baseline"]) / 2
    compared = pairs.assign(y=y, low=low, high=high, met_a_loss=met_a_loss, loss_share=loss_share)
    return compared[compared["y"].notna()]


def _ends(tolerance: Tolerance, beside: Floats, stalled: Floats, *, is_share: bool) -> tuple[Floats, Floats]:
    """The ends of the tolerance of each `y`."""
    low, high = tolerance.ends(beside, stalled)
    return (low, high) if is_share else (np.log1p(low), np.log1p(high))


def differences(
    rows: pd.DataFrame,
    *,
    is_share: bool,
    far_either: float = FAR_EITHER_SHARE,
    has_tail: bool = False,
) -> Differences:
    """Return the differences of a table's rows, of which the share `far_either` may be far off.
    `has_tail`: they are times of their own, whose tail is asked, too."""
    y, low, high, loss_share, virtual, emulated = (
        rows[name].to_numpy(np.float64) for name in ("y", "low", "high", "loss_share", "virtual", "emulated")
    )
    far, mean_by = (FAR, 0.0) if is_share else (math.log1p(FAR), math.log1p(MEAN_BY))
    return Differences(
        y=y,
        low=low,
        high=high,
        far=far,
        mean_by=mean_by,
        met_a_loss=rows["met_a_loss"].to_numpy(np.bool_),
        far_either=far_either,
        loss_share=loss_share,
        times=(virtual, emulated) if has_tail else None,
    )
