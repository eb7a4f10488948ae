"""The arms of Michel's thesis: a variant with a delivery, and what each measured at a point.

An arm is a variant on one workload, so two arms need not be of the same workload: the thesis compares
datagrams with a reliable stream.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from results.analysis import frames
from results.figures.nothing import NothingToDraw
from results.store.records import CampaignInfo

OVERHEAD, RECEIVED, REBUFFERING = (
    f"messages.{name}" for name in ("overhead", "received_bytes", "rebuffering_s")
)
RECEIVED_2, REBUFFERING_2 = (f"messages.{name}" for name in ("received_2_bytes", "rebuffering_2_s"))


@dataclass(frozen=True)
class Arm:
    """A variant, by its implementation and scheme, with the delivery of its messages."""

    name: str
    """As the thesis calls it."""
    implementation: str
    scheme: str
    delivery: str = "datagram"
    n: int | None = None
    """Of its code; None: the design has one of that scheme alone."""
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
    """One row a point: the factors, and for each arm by its name the design's statistic of the metric over
    the repetitions in which all these arms are ok; NaN where there is none.

    Raises NothingToDraw when an arm has no trial that measured it.
    """
    ok = frame[frame["state"] == "ok"]
    values = {}
    for arm in arms:
        chosen = (ok["variant"] == variant_of(campaign, arm)) & (ok["workload"] == workload_of(campaign, arm))
        of_arm = ok[chosen]
        if metric not in of_arm or of_arm[metric].isna().all():
            raise NothingToDraw(f"No trial of {arm.name} is ok and measured {metric}.")
        values[arm.name] = of_arm.set_index(["point", "repetition"])[metric]
    together = pd.DataFrame(values).dropna()
    table = together.groupby("point").agg(campaign.statistic).reset_index()
    return frames.points(campaign).merge(table, on="point", how="left")


def ratio(table: pd.DataFrame, of: Arm, to: Arm) -> pd.Series:
    """Of `at_points`: one arm's value divided by another's; NaN where the other's is 0."""
    return table[of.name] / table[to.name].where(table[to.name] > 0, np.nan)
