"""The record that advice is given from: a row for each network, size, controller and congestion control.

Its columns: `congestion_control`, `controller`, `size_bytes`, `bandwidth_mbps`, `rtt_ms`, `queue_bdp`, `loss`
(the share of packets lost), `burst` (how many in a row, on average). `ratio` is that of the mean download
times with FEC and without. Beside it are its interval `low` to `high`, its `verdict`, its `campaign`, and the
number of `pairs` that it is from.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fecbench.results.advice.recorded_rows import Rows
from fecbench.results.analysis import tolerances
from fecbench.results.store.records import DEFAULT_MARGIN

if TYPE_CHECKING:
    import pandas as pd

RECORD = Path(__file__).parent.with_name("advice.parquet")
CONTROLLERS = {"safe": "safe", "RLC (3, 2, 20), tail": "tail"}
"""The arms that are advised, as the designs label them, and what noq-fec calls their controllers. The first
one harms least where the network changes."""
CONGESTION_CONTROLS = {"Cubic": "cubic", "BBRv3": "bbr3"}
NETWORK = ["bandwidth_mbps", "rtt_ms", "loss", "burst"]
"""The columns that tell one recorded network from another."""
NO_LOSSES, SINGLE_LOSSES, BURSTS = "none", "single", "bursts"
"""The kinds of losses: none but those of a full queue, each packet on its own, or several in a row."""
KINDS = [SINGLE_LOSSES, BURSTS, NO_LOSSES]


def kinds_of(rows: Rows | pd.DataFrame) -> NDArray[np.str_]:
    """The kind of losses of each row. Where each packet is lost on its own with probability p, 1 / (1 - p)
    are lost in a row on average."""
    loss, burst = (np.asarray(rows[name], np.float64) for name in ("loss", "burst"))
    is_single = burst * (1 - loss) < 1 + 1e-6
    return np.where(loss == 0, NO_LOSSES, np.where(is_single, SINGLE_LOSSES, BURSTS))


def by_kind(record: Rows, congestion_control: str) -> dict[str, Rows]:
    """The rows of each kind of losses beside a congestion control; `network` numbers their networks."""
    rows = record.at(record["congestion_control"] == congestion_control)
    networks = np.column_stack([rows[name] for name in NETWORK])
    _, numbers = np.unique(networks, axis=0, return_inverse=True)
    numbered, kinds = Rows({**rows.columns, "network": numbers.ravel()}), kinds_of(rows)
    return {str(kind): numbered.at(kinds == kind) for kind in np.unique(kinds)}


def margin_of(size_bytes: float) -> float:
    """The margin of the verdicts of a size: what virtual time is vouched for in means (`margins`)."""
    short = tolerances.is_short({"size_bytes": round(size_bytes)})
    return max(DEFAULT_MARGIN, tolerances.vouched(is_share=False, short=short, statistic="mean"))
