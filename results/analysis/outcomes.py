"""The value of a trial wherever trials are compared, drawn or chosen from: no trial is left out silently.

A trial that is ok counts as its value. A trial that failed or timed out counts as worse than any value: its
user did not get the download. Without these, a variant is judged by the networks that it got through, and
gains by failing where it is slow. Trials that are `invalid` (the harness cannot vouch for them),
`unsupported` or not run say nothing of a variant, and are left out and counted.

A percentile of messages is absent where it falls on a message that never was whole: that is worse than any
value, too.

A neighbour's share is measured whatever becomes of the trial, so it is its value (`Metric.of_any_end`).

A drawing that cannot show the worst value, such as a box, says how many it lacks, and of which variant
(`lacking`).
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from fecbench.results.metrics import Metric

WORST = ("failed", "timeout")
COUNTED = ("ok", *WORST)
"""The states of trials that say something of their variant."""


def is_worst(frame: pd.DataFrame) -> pd.Series:
    """Whether each trial is worse than any that has a value."""
    worst: pd.Series = frame["state"].isin(WORST)
    return worst


def values(frame: pd.DataFrame, metric: Metric) -> pd.Series:
    """Return the value of each trial of a frame by this metric: its own, `metric.worst`, or NaN for a
    trial that says nothing.

    The frame holds all trials of its workloads: an absent percentile is the worst where any trial of the
    workload has one, and else the workload has none.
    """
    ok = frame["state"] == "ok"
    measured = frame[metric.name].astype("float64") if metric.name in frame else math.nan
    has_value = ok | is_worst(frame) if metric.of_any_end else ok
    counted = pd.Series(
        np.select([has_value, is_worst(frame)], [measured, metric.worst], math.nan), frame.index
    )
    if metric.absent_is_worst:
        has_it = (ok & counted.notna()).groupby(frame["workload"], observed=True).transform("any")
        counted = counted.mask(ok & counted.isna() & has_it, metric.worst)
    return counted


def shares(frame: pd.DataFrame, metric: Metric) -> pd.Series:
    """The same of a metric that is a share, of which more is better, for what is drawn and counted by its
    size: the worst share is 0."""
    return values(frame, metric).clip(lower=0.0)


def lacking(frame: pd.DataFrame, metric: Metric | None = None) -> str:
    """Return how many trials of each variant failed or timed out, for the caption of a figure that cannot
    draw them; "" for none: "failed or timed out: A 3 of 40, B 12 of 40". With `metric`, those are counted,
    too, in which it is absent and that is the worst."""
    counted = frame[frame["state"].isin(COUNTED)]
    worst = is_worst(counted) if metric is None else values(counted, metric) == metric.worst
    reasons = (
        "failed or timed out" if worst.equals(is_worst(counted)) else "failed, timed out or lost too much"
    )
    by_variant = worst.groupby(counted["variant"], observed=True).agg(["sum", "size"])
    counts = [
        f"{variant} {missed:,} of {size:,}"
        for variant, missed, size in by_variant.itertuples(name=None)
        if missed
    ]
    return f"{reasons}: {', '.join(counts)}" if counts else ""
