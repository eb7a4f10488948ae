"""The least difference that matters: the margin of practical equivalence of a comparison.

Where nothing is lost, trials in virtual time have next to no spread, so any difference is seen, and one of
0.3 % helps nobody. A design names the least difference that matters, as a share: with a margin of 0.02, a
ratio from 1 / 1.02 to 1.02 is no difference. The range is symmetric on a logarithmic scale, so exchanging the
two variants exchanges the verdicts.

Virtual time is true within a tolerance only (`docs/virtual-time.md`). No margin is below it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fecbench.results import metrics
from fecbench.results.analysis import tolerances
from fecbench.results.store.records import CampaignInfo, Workload

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
_WORKLOAD = "workload."
"""Prefix of a workload's parameter at a point."""


def margins_of(campaign: CampaignInfo) -> dict[str, float]:
    """The margin of each workload, by its label: that of the campaign, in virtual time no less than what is
    vouched for."""
    return {
        workload["label"]: max(campaign.margin, _vouched(campaign, workload))
        for workload in campaign.workloads
    }


def of_points(ratios: pd.DataFrame, campaign: CampaignInfo) -> Floats:
    """The margin of each row of `Pairing.ratios`, where points differ in the size of a transfer by that size.
    The engine vouches for the difference of shares: as a ratio, it is divided by the baseline's share,
    and greater where few messages are on time."""
    if campaign.engine != "virtual":
        return np.full(len(ratios), campaign.margin)
    of_rows: Floats = np.array(_of_rows(ratios, campaign), dtype=np.float64)
    shares = {name: metrics.of(name).is_share for name in ratios["metric"].unique()}
    is_share = ratios["metric"].map(shares).to_numpy(np.bool_)
    with np.errstate(divide="ignore"):
        vouched = tolerances.SHARE.above / ratios["baseline"].to_numpy(np.float64)
    raised: Floats = np.where(is_share & (vouched > of_rows), vouched, of_rows)
    return raised


def _of_rows(ratios: pd.DataFrame, campaign: CampaignInfo) -> list[float]:
    of_points = [_of_workloads(point) for point in campaign.points]
    if not any(of_points):
        margins = margins_of(campaign)
        return [margins[label] for label in ratios["workload"]]
    workloads = {workload["label"]: workload for workload in campaign.workloads}
    return [
        max(campaign.margin, _vouched(campaign, workloads[label], of_points[point]))
        for label, point in zip(ratios["workload"], ratios["point"], strict=True)
    ]


def _vouched(
    campaign: CampaignInfo, workload: Workload, of_point: Mapping[str, Any] = MappingProxyType({})
) -> float:
    """Return the difference below which a ratio says nothing, where a point has these parameters of
    workloads."""
    if campaign.engine != "virtual":
        return 0.0
    is_share = metrics.of(metrics.compared(workload)).is_share
    return tolerances.vouched(
        is_share=is_share,
        short=tolerances.is_short({**of_point, **workload["parameters"]}),
        statistic=campaign.statistic,
    )


def _of_workloads(point: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of workloads that a point has; those that a workload sets itself go before them."""
    return {
        name.removeprefix(_WORKLOAD): value for name, value in point.items() if name.startswith(_WORKLOAD)
    }


def margins_text(campaign: CampaignInfo) -> str:
    """The margins in words: "2 %", or "2 % for download-10000, 4 % for download-50000"."""
    margins = margins_of(campaign)
    labels: dict[float, list[str]] = {}
    for label, margin in margins.items():
        labels.setdefault(margin, []).append(label)
    if len(labels) == 1:
        return percent(next(iter(labels)))
    return ", ".join(f"{percent(margin)} for {' and '.join(names)}" for margin, names in labels.items())


def below(campaign: CampaignInfo) -> str:
    """The margin that is asked for, in words behind `margins_text`; empty where no workload has a greater
    one."""
    if max(margins_of(campaign).values(), default=0.0) <= campaign.margin:
        return ""
    return f" ({percent(campaign.margin)} is asked for, and the engine vouches for no less)"


def percent(share: float) -> str:
    """A share as people write it: 0.025 is "2.5 %"."""
    return f"{100 * share:.3g} %"
