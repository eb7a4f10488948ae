"""The networks that a figure draws, where a campaign has more than a reader can tell apart."""

from __future__ import annotations

import numpy as np
import pandas as pd

MOST = 3000
_SEED = 0  # the same data are the same figure


def sample(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of MOST networks, chosen by chance alone (column `point`); all rows of fewer."""
    points = np.unique(rows["point"])
    some = np.random.default_rng(_SEED).permutation(points)[:MOST]
    return rows if len(points) <= MOST else rows[rows["point"].isin(some)]


def remark(networks: int) -> str:
    """Return the end of a heading that says how many of so many networks are drawn; "" for all."""
    return f" · a mark for {MOST:,} of them, chosen by chance" if networks > MOST else ""
