"""The arms of Michel's thesis: a variant with a delivery, and what each measured at a point.

An arm is a variant on one workload, so two arms need not be of the same workload: the thesis compares
datagrams with a reliable stream. A trial that failed or timed out counts as worse than any value
(`results.analysis.outcomes`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from fecbench.results import metrics
from fecbench.results.analysis import frames, pairing
from fecbench.results.analysis.point_statistic import by_group
from fecbench.results.figures.nothing import NothingToDraw
from fecbench.results.store.records import CampaignInfo

OVERHEAD, RECEIVED, REBUFFERING = (
    f"messages.{name}" for name in ("overhead", "received_bytes", "rebuffering_s")
)
RECEIVED_2, REBUFFERING_2 = (f"messages.{name}" for name in ("received_2_bytes", "rebuffering_2_s"))


@dataclass(frozen=True)
class Arm:
    """A variant, by its implementation and scheme, with the delivery of its messages."""

    name: str
    """The thesis' name of it."""
    implementation: str
    scheme: str
    delivery: str = "datagram"
    n: int | None = None
    """The n of its code; None: the design has one of that scheme alone."""
    options: tuple[tuple[str, object], ...] = ()
    """Others by which it is known."""


UDP = Arm("UDP", "udp", "none")
RELIABLE = Arm("reliable QUIC", "noq-fec", "none", "reliable")
REED_SOLOMON = Arm("Reed-Solomon", "noq-fec", "rs", n=30)
XOR = Arm("interleaved XOR", "noq-fec", "xor")
RLC = Arm("RLC", "noq-fec", "rlc")


def variant_of(campaign: CampaignInfo, arm: Arm) -> str:
    """The label of the arm's variant. Raises NothingToDraw when the design has none."""
    for variant in campaign.variants:
        options = variant["options"]
        if (
            variant["implementation"] == arm.implementation
            and options.get("scheme") == arm.scheme
            and arm.n in (None, options.get("n"))
            and all(options.get(name) == value for name, value in arm.options)
        ):
            return variant["label"]
    raise NothingToDraw(f"No variant of this design is {arm.name}.")


def workload_of(campaign: CampaignInfo, arm: Arm) -> str:
    """The label of the arm's workload. Raises NothingToDraw when the design has none."""
    for workload in campaign.workloads:
        if workload["parameters"].get("delivery", "datagram") == arm.delivery:
            return workload["label"]
    raise NothingToDraw(f"No workload of this design has the delivery {arm.delivery} of {arm.name}.")


def at_points(frame: pd.DataFrame, campaign: CampaignInfo, metric: str, arms: Iterable[Arm]) -> pd.DataFrame:
    """One row a point at which one of these arms was run, by its index in the design: the factors, and for
    each arm by its name the design's statistic of the metric over the repetitions in which each of them is
    ok, failed or timed out.

    That is infinite, on the worse side, where it is a timeout, and NaN where there is no such repetition.
    Raises NothingToDraw when an arm has no trial that measured it, failed or timed out, or none of them
    measured it.
    """
    compared, values, points = metrics.of(metric), {}, set()
    for arm in arms:
        of_workload = frame[frame["workload"] == workload_of(campaign, arm)]
        trials = pairing.values_of(of_workload, variant_of(campaign, arm), compared)
        rows = trials[trials["value"].notna()]
        if rows.empty:
            raise NothingToDraw(f"No trial of {arm.name} is ok and measured {metric}.")
        values[arm.name] = rows.set_index(["point", "repetition"])["value"]
        points |= set(trials["point"])
    if not any(np.isfinite(of_arm).any() for of_arm in values.values()):
        raise NothingToDraw(f"No trial of {', '.join(values)} is ok and measured {metric}.")
    both = pd.DataFrame(values).dropna().reset_index()
    table = pd.DataFrame(
        {
            name: by_group(both, ["point"], name, campaign.statistic, compared.more_is_better)
            for name in values
        }
    ).reset_index()
    of_design = frames.points(campaign)
    merged = of_design[of_design["point"].isin(points)].merge(table, on="point", how="left")
    return merged.set_index(merged["point"].to_numpy())


def is_known(table: pd.DataFrame, first: Arm, second: Arm) -> pd.Series:
    """Return whether it is known which of two arms has more, by row of `at_points`. It is not where both are
    timeouts."""
    of_first, of_second = table[first.name], table[second.name]
    is_known_there: pd.Series = (
        of_first.notna() & of_second.notna() & (np.isfinite(of_first) | np.isfinite(of_second))
    )
    return is_known_there


def ratios(table: pd.DataFrame, metric: str, of: Arm, to: Arm) -> pd.DataFrame:
    """Return, by the index of `at_points`, the `ratio` of one arm's value to another's, and whether it is
    `censored` (`Pairing.ratios`); NaN where it is unknown, and where the other's is 0."""
    arms = pd.DataFrame({"baseline": table[to.name], "variant": table[of.name]})
    ratio = pairing.ratio_of(arms, metrics.of(metric)).where(arms["baseline"] != 0)
    return pd.DataFrame({"ratio": ratio, "censored": pairing.is_censored(arms, metrics.of(metric))})
