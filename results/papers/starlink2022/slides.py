"""The table of the slides: completion times of uploads of 50 kB over Starlink, in strata by their losses.

F. Michel, O. Bonaventure: "Forward Erasure Correction for QUIC loss recovery", slides of 2022, "QUIC + FEC on
Starlink".
"""

from __future__ import annotations

from dataclasses import dataclass

SIZE_BYTES = 50_000
# Its columns: the name of a statistic, and its quantile.
STATISTICS = {"median": 0.5, "95th percentile": 0.95}
# Its rows, and the column of frames by which trials are in them; None: all are.
STRATA = {
    "all": None,
    "with losses": "content.losses",
    "with losses among the last 10 packets": "content.losses_last_10",
}
LAST = tuple(STRATA)[-1]


@dataclass(frozen=True)
class Cell:
    """Two cells of the slides: a statistic of completion times without FEC and with it."""

    without_ms: float
    with_fec_ms: float

    @property
    def ratio(self) -> float:
        return self.with_fec_ms / self.without_ms


# The slides' values by stratum and statistic.
TABLE = {
    ("all", "median"): Cell(248, 247),
    ("all", "95th percentile"): Cell(382, 373),
    ("with losses", "median"): Cell(287, 277),
    ("with losses", "95th percentile"): Cell(395, 386),
    (LAST, "median"): Cell(311, 279),
    (LAST, "95th percentile"): Cell(560, 447),
}
