"""Making of the record: the strongest ratio that any campaign has, for each network, size and arm."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from fecbench.errors import BadInput
from fecbench.quantities import counted
from fecbench.results.advice.likeness import NEAR
from fecbench.results.advice.record import CONGESTION_CONTROLS, CONTROLLERS, KINDS, NETWORK, kinds_of
from fecbench.results.analysis import intervals
from fecbench.results.reading import Campaign, Results

CAMPAIGNS = (
    "never-harms",
    "never-harms-bursts",
    "never-harms-no-loss",
    "never-harms-decided",
    "never-harms-sizes",
)
_CELL = ["congestion_control", "controller", "size_bytes"]


def campaigns_in(databases: Sequence[Results]) -> list[Campaign]:
    """Return the CAMPAIGNS that the databases have. Raises BadInput where they have none."""
    found = [
        database[name]
        for database in databases
        for name in CAMPAIGNS
        if name in set(database.campaigns()["campaign"])
    ]
    if not found:
        addresses = ", ".join(database.database.address for database in databases)
        raise BadInput(f"{addresses}: must have one of the campaigns {', '.join(CAMPAIGNS)}, at least")
    return found


def recorded(campaigns: Iterable[Campaign]) -> pd.DataFrame:
    """The record: a row for each network, size, congestion control and controller, by kind of losses and in
    the order of the plan. The ratio of most pairs is kept of several for the same network, or else the first.

    Raises BadInput where a size has fewer networks than advice asks, and where an arm did not get through in
    one of them.
    """
    parts = [part for campaign in campaigns for part in _arms(campaign)]
    rows = pd.concat(parts, ignore_index=True).sort_values("pairs", ascending=False, kind="stable")
    rows = rows.drop_duplicates([*_CELL, *NETWORK])
    is_number = np.isfinite(rows["ratio"]) & (rows["ratio"] > 0)
    for cell, of_cell in rows[~is_number].groupby(_CELL):
        raise BadInput(
            f"{', '.join(map(str, cell))}: {counted(len(of_cell), 'network', 'has/have')} a ratio of"
            " 0 or ∞: an arm did not"
            " get through, and without them the others would speak for it"
        )
    rows = rows.assign(kind=pd.Categorical(kinds_of(rows), KINDS))
    for cell, of_cell in rows.groupby([*_CELL, "kind"], observed=True):
        if len(of_cell) <= NEAR:
            name = ", ".join(map(str, cell))
            raise BadInput(
                f"{name}: has {counted(len(of_cell), 'network')}: must be more than the {NEAR} that are asked"
            )
    rows = rows.sort_values(["kind", *_CELL, "point"], ignore_index=True)
    columns = rows.columns.drop(["kind", "point"])
    record: pd.DataFrame = rows[[*_CELL, *columns.difference(_CELL, sort=False)]]
    return record


def beside(record: pd.DataFrame, before: pd.DataFrame) -> pd.DataFrame:
    """Return the record with the rows of an older one whose campaign and controller the new one lacks.

    As in `recorded`, the ratio of most pairs is kept of several for the same network.
    """
    place = ["campaign", "controller"]
    is_kept = ~pd.MultiIndex.from_frame(before[place]).isin(pd.MultiIndex.from_frame(record[place]))
    rows = pd.concat([record, before[is_kept]], ignore_index=True)
    rows = rows.sort_values("pairs", ascending=False, kind="stable").drop_duplicates([*_CELL, *NETWORK])
    rows = rows.sort_index(ignore_index=True)
    rows = rows.assign(kind=pd.Categorical(kinds_of(rows), KINDS))
    return rows.sort_values(["kind", *_CELL], kind="stable", ignore_index=True).drop(columns="kind")


def _arms(campaign: Campaign) -> Iterator[pd.DataFrame]:
    """The rows of a campaign, an arm at a time. Advice averages them, so those that ran until they were
    decided have the ratio of the first look, and the verdict of all pairs."""
    labels = {variant["label"] for variant in campaign.info.variants}
    for cc_label, congestion_control in CONGESTION_CONTROLS.items():
        for arm, controller in CONTROLLERS.items():
            if f"{cc_label}, {arm}" in labels:
                ratios = intervals.averaged(campaign.intervals(f"{cc_label}, no FEC", f"{cc_label}, {arm}"))
                yield _rows(campaign, ratios).assign(
                    congestion_control=congestion_control, controller=controller
                )


def _rows(campaign: Campaign, ratios: pd.DataFrame) -> pd.DataFrame:
    sizes = {workload["label"]: workload["parameters"]["size_bytes"] for workload in campaign.info.workloads}
    rows = ratios.merge(campaign.points(), on="point", validate="many_to_one")
    return pd.DataFrame(
        {
            "size_bytes": rows["workload"].map(sizes).astype(int),
            "bandwidth_mbps": rows["bandwidth_mbps"],
            "rtt_ms": 2 * rows["owd_ms"],
            "queue_bdp": rows["queue_bdp"],
            **_losses(rows),
            **{column: rows[column].astype(np.float32) for column in ("ratio", "low", "high")},
            "verdict": rows["verdict"].astype(str),
            "pairs": rows["pairs"].astype(np.int16),
            "campaign": campaign.info.name,
            "point": rows["point"],
        }
    )


def _losses(points: pd.DataFrame) -> dict[str, Any]:
    """The share of packets lost, and how many in a row: single losses, Gilbert's, or none."""
    if "loss.r" in points:
        p, r = points["loss.p"], points["loss.r"]
        return {"loss": p / (p + r), "burst": 1 / r}
    if "loss.p" in points:
        return {"loss": points["loss.p"], "burst": 1 / (1 - points["loss.p"])}
    return {"loss": 0.0, "burst": 1.0}
