"""Groups that one host has run: a ratio is of two trials of the same host.

A group is a (workload, point, repetition): all its variants met the same losses. It is proposed to one host,
but where that dies, or another host goes on with the campaign, the variants that lack are run elsewhere. Then
a ratio would be of two hosts as much as of two variants. In virtual time a trial is the same everywhere.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import pandas as pd

from fecbench.results.store.records import CampaignInfo

if TYPE_CHECKING:
    from fecbench.results.store.database import Database

COLUMNS = ("host", "engine")
"""The columns of a frame that say where its trials ran, and whether that matters."""
_GROUP = ["workload", "point", "repetition"]
_NONE = pd.MultiIndex.from_arrays([[], [], []], names=_GROUP)


def matters(database: Database, campaign: CampaignInfo) -> bool:
    """Whether trials of the campaign may differ since several hosts ran it."""
    hosts = {start.host for start in database.starts(campaign.id)}
    return campaign.engine == "emulated" and len(hosts) > 1


def of_several_hosts(frame: pd.DataFrame, variants: Collection[str]) -> pd.MultiIndex:
    """The groups in which trials of these variants ran on different hosts, by workload, point and repetition.

    None in virtual time, and where the frame lacks COLUMNS. A trial whose host is unknown is not
    counted.
    """
    if not set(COLUMNS) <= set(frame.columns) or frame["host"].nunique() < 2:
        return _NONE
    on_a_host = (
        frame["variant"].isin(list(variants)) & frame["host"].notna() & (frame["engine"] == "emulated")
    )
    trials = frame.loc[on_a_host, [*_GROUP, "host"]]
    if trials["host"].nunique() < 2:
        return _NONE
    hosts = trials.assign(host=trials["host"].astype(str)).groupby(_GROUP, observed=True)["host"].nunique()
    return pd.MultiIndex.from_frame(hosts.index[hosts > 1].to_frame(index=False))
