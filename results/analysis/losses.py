"""Data packets of a transfer that the loss model dropped: its verdicts, beside the series `content`.

That series numbers the datagrams with data that the sender of the content sent, up to the one with its end,
and the loss model judges datagrams in that order. So this knows what a transfer met, whatever its endpoints
made of it: losses of a handshake, of acknowledgements, and of retransmissions after the end are no such
losses.

| column | what it is |
|---|---|
| `content.losses` | data packets that were dropped, of those up to the end of the content |
| `content.losses_last_10` | of the last LAST of them, the one with the end included |

Both are NaN where they cannot be known: without the series, where packets have no verdict, since the link
dropped them or the loss model judges long ones alone, where a link may copy packets or change their order,
and beyond the FIRST_PACKETS of which verdicts are read. A retransmission that was sent before the end is a
data packet as any other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo
from fecbench.results.store.stored_series import unpack

SERIES = "content"
LAST = 10
COLUMNS = ("content.losses", f"content.losses_last_{LAST}")

_DIRECTIONS = {"client": "up", "server": "down"}
"""The direction of each endpoint's datagrams."""


_MOVING = ("duplicate", "reorder", "reorder_p")
"""The settings of a direction by which packets leave twice, or in another order."""


class Content(NamedTuple):
    """The content that one trial sent."""

    direction: str
    datagrams: NDArray[np.int64]
    """The numbers of the datagrams, from 0, in the order in which they were sent."""


def contents(database: Database, campaign: CampaignInfo) -> dict[int, Content]:
    """Return the content by the trial's id, of trials in which an endpoint left the series with a row.

    In a campaign in which a link may copy packets, or change their order, it has no datagrams.
    """
    if SERIES not in database.series_columns(campaign.id):
        return {}
    count = None
    if any(_moves_packets(database.task(task.id)) for task in database.tasks(campaign.id)):
        count = 0
    return {
        series.trial_id: Content(
            _DIRECTIONS[series.table.endpoint],
            unpack(series.table.data, ["datagram"])["datagram"].to_numpy().astype(np.int64)[:count],
        )
        for series in database.series(campaign.id, SERIES)
        if series.table.rows and series.table.endpoint in _DIRECTIONS
    }


def _moves_packets(task: Mapping[str, Any]) -> bool:
    directions = (of for link in task["links"].values() for of in link["settings"].values())
    return any(of.get(name) for of in directions for name in _MOVING)


def frame(
    contents: Mapping[int, Content], drops: pa.Table, unjudged: pd.DataFrame, first_packets: int
) -> pd.DataFrame:
    """The COLUMNS of these trials, by id, all of them in `unjudged`: by direction of a link, how many frames
    the loss model did not judge once.

    `drops` is what `arrow.drops` reads of the first `first_packets` packets.
    """
    bitmaps = {
        (trial, link, direction): bitmap
        for trial, link, direction, bitmap in zip(
            *(drops[name].to_pylist() for name in ("trial_id", "link", "direction", "bitmap")), strict=True
        )
    }
    links = dict.fromkeys(name.split(".")[0] for name in unjudged.columns)
    rows = {}
    for trial, content in contents.items():
        if trial not in unjudged.index or len(links) != 1:
            continue
        (link,) = links
        bitmap = bitmaps.get((trial, link, content.direction), b"")
        is_known = len(content.datagrams) and unjudged.at[trial, f"{link}.{content.direction}"] == 0
        rows[trial] = _counts(content.datagrams, bitmap, first_packets) if is_known else (math.nan, math.nan)
    table = pd.DataFrame.from_dict(rows, orient="index", columns=list(COLUMNS), dtype=np.float64)
    return table.reindex(unjudged.index)


def _counts(datagrams: NDArray[np.int64], bitmap: bytes, first_packets: int) -> tuple[float, float]:
    if datagrams[-1] >= first_packets:
        return math.nan, math.nan
    dropped = np.zeros(first_packets, np.bool_)
    bits = np.unpackbits(np.frombuffer(bitmap, np.uint8), bitorder="little")
    dropped[: len(bits)] = bits
    lost = dropped[datagrams]
    return float(lost.sum()), float(lost[-LAST:].sum())
