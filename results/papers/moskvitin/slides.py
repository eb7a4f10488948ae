"""The table of the slides, and ours of the same form: mean times by size and loss rate.

D. Moskvitin, E. Onegin et al.: "Forward Erasure Correction for Short-Message Delay-Sensitive QUIC
Connection", slides, "Test From Lab".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pandas as pd

from fecbench.results import metrics
from fecbench.results.analysis import frames, outcomes
from fecbench.results.analysis.intervals import LEVEL, ratio_intervals
from fecbench.results.analysis.pairing import paired, with_fec
from fecbench.results.figures.nothing import NothingToDraw
from fecbench.results.papers.claim import Estimate
from fecbench.results.store.records import CampaignInfo

DCT = "client.dct_s"
UP, DOWN = "loss.up.p", "loss.down.p"

Direction = Literal["upload", "download"]
Ways = Literal["one way", "both ways"]
"""The directions in which packets are lost: from the client to the server alone, as the slides read, or
both."""


@dataclass(frozen=True)
class Cell:
    """A cell of the slides: mean end-to-end times."""

    with_fec_ms: float
    without_ms: float

    @property
    def ratio(self) -> float:
        return self.with_fec_ms / self.without_ms


LOSSES = (0.0, 0.03, 0.07)
# The slides' values by size in bytes and loss rate.
TABLE = {
    (1_000, 0.0): Cell(296.81, 332.68),
    (1_000, 0.03): Cell(400.495, 452.92),
    (1_000, 0.07): Cell(307.99, 387.83),
    (8_000, 0.0): Cell(317.09, 332.99),
    (8_000, 0.03): Cell(458.907, 557.29),
    (8_000, 0.07): Cell(320.83, 447.93),
    (16_000, 0.0): Cell(314.21, 335.68),
    (16_000, 0.03): Cell(503.321, 734.09),
    (16_000, 0.07): Cell(329.2, 409.85),
    (1_000_000, 0.0): Cell(1091.2, 1215.08),
    (1_000_000, 0.03): Cell(10158.519, 15472.02),
    (1_000_000, 0.07): Cell(1607.68, 2238.35),
    (2_000_000, 0.0): Cell(1913.41, 2058.37),
    (2_000_000, 0.03): Cell(19259.726, 28520.84),
    (2_000_000, 0.07): Cell(2943.16, 3522.01),
    (5_000_000, 0.0): Cell(4413.24, 4511.16),
    (5_000_000, 0.03): Cell(41864.547, 70281.02),
    (5_000_000, 0.07): Cell(7350.2, 8993.82),
}
SIZES = sorted({size_bytes for size_bytes, _ in TABLE})
LARGE = [size_bytes for size_bytes in SIZES if size_bytes >= 1_000_000]


def ratios(
    frame: pd.DataFrame, campaign: CampaignInfo, direction: Direction, ways: Ways, level: float = LEVEL
) -> pd.DataFrame:
    """The mean time with FEC divided by that without, of each variant with FEC and cell of the slides.

    One row a (variant, size_bytes, loss), of the means over the repetitions. Columns besides: `with_fec_s`
    and `without_s`, their `ratio`, `low` and `high`, an interval of confidence 1 - `level`, and `pairs`.
    Raises NothingToDraw where there is none.
    """
    trials = _trials(frame, campaign, direction, ways)
    arms = {"variant": "with_fec_s", "baseline": "without_s"}
    rows = [
        ratio_intervals(paired(trials, baseline, variant, DCT, "mean"), "mean", level)
        .rename(columns=arms)
        .assign(variant=variant)
        for variant, baseline in with_fec(campaign).items()
    ]
    table = pd.concat(rows, ignore_index=True) if rows else pd.DataFrame()
    if table.empty:
        raise NothingToDraw(f"No {direction} with losses {ways} is ok with and without FEC.")
    return table.assign(
        size_bytes=table["workload"].astype(str).map(_sizes(campaign, direction)),
        loss=table["point"].map(_losses(campaign, ways)),
    )


def means(
    frame: pd.DataFrame, campaign: CampaignInfo, direction: Direction, ways: Ways, variant: str
) -> dict[tuple[int, float], Estimate]:
    """The mean time of a variant in seconds, by size and loss rate; ∞ where a trial failed or timed
    out."""
    trials = _trials(frame, campaign, direction, ways)
    trials = trials[(trials["variant"] == variant) & trials["state"].isin(outcomes.COUNTED)]
    times = outcomes.values(trials, metrics.of(DCT))
    sizes, losses = _sizes(campaign, direction), _losses(campaign, ways)
    return {
        (sizes[str(workload)], losses[int(str(point))]): Estimate.of_mean(of_cell)
        for (workload, point), of_cell in times.groupby([trials["workload"], trials["point"]], observed=True)
    }


def _trials(frame: pd.DataFrame, campaign: CampaignInfo, direction: Direction, ways: Ways) -> pd.DataFrame:
    has_workload = frame["workload"].isin(list(_sizes(campaign, direction)))
    return frame[has_workload & frame["point"].isin(list(_losses(campaign, ways)))]


def _sizes(campaign: CampaignInfo, direction: Direction) -> dict[str, int]:
    """Return the sizes of a direction's workloads that the slides have, by label."""
    sizes = {
        workload["label"]: workload["parameters"].get("size_bytes")
        for workload in campaign.workloads
        if workload["name"] == direction
    }
    return {label: int(size) for label, size in sizes.items() if size in SIZES}


def _losses(campaign: CampaignInfo, ways: Ways) -> dict[int, float]:
    """Return the losses of the points whose losses are of this kind, by number."""
    points = frames.points(campaign)
    if not {UP, DOWN} <= set(points.columns):
        raise NothingToDraw(f"This design does not say {UP} and {DOWN} of its points.")
    other = 0.0 if ways == "one way" else points[UP]
    points_of_kind = points[(points[DOWN] == other) & points[UP].isin(list(LOSSES))]
    return dict(zip(points_of_kind["point"], points_of_kind[UP], strict=True))
