"""Differences between our experiment and that of the slides, and errors in these."""

from __future__ import annotations

import pandas as pd

from fecbench.quantities import counted
from fecbench.results.analysis.pairing import with_fec
from fecbench.results.metrics.units import size
from fecbench.results.papers.claim import Estimate, shown
from fecbench.results.papers.moskvitin.slides import (
    LARGE,
    LOSSES,
    SIZES,
    TABLE,
    Direction,
    Ways,
    means,
    ratios,
)
from fecbench.results.papers.queues import queue_in_words
from fecbench.results.store.records import CampaignInfo


def differences(frame: pd.DataFrame, campaign: CampaignInfo, direction: Direction, ways: Ways) -> list[str]:
    slower = {
        size_bytes: [
            getattr(TABLE[size_bytes, 0.03], arm) / getattr(TABLE[size_bytes, 0.07], arm)
            for arm in ("without_ms", "with_fec_ms")
        ]
        for size_bytes in LARGE
    }
    columns = ", ".join(
        f"{size(size_bytes)} {without:.1f} and {fec:.1f}" for size_bytes, (without, fec) in slower.items()
    )
    ratios(frame, campaign, direction, ways)  # without any, there is no figure that could differ
    ours = (
        f"{baseline}, {_times(means(frame, campaign, direction, ways, baseline))}"
        for baseline in dict.fromkeys(with_fec(campaign).values())
    )
    slides = {cell: Estimate(of_cell.without_ms / 1000) for cell, of_cell in TABLE.items()}
    sizes = ", ".join(size(size_bytes) for size_bytes in LARGE)
    gains = [1 - TABLE[size_bytes, 0.0].ratio for size_bytes in SIZES]
    return [
        "The slides' columns of 3 % and of 7 % cannot be of one path and one sender: with 3 % loss, messages"
        f" took as many times as long as with 7 %, without FEC and with it: {columns}. And without losses,"
        f" where there is nothing to repair, they gain {_percent(min(gains))} to {_percent(max(gains))} by"
        " FEC. So their times are not compared with ours, but signs and ratios.",
        f"Mean times of {sizes} without FEC, at 3 % and at 7 % loss: the slides, {_times(slides)};"
        f" here {'; '.join(ours)}.",
        "The slides' Cronet 87 with FEC is not public: neither its codes, which adapt themselves, nor its"
        " congestion control are known. They name neither rate, queue, repetitions, nor which way the"
        f" messages went; here the link's queue {queue_in_words(campaign)}, and there are"
        f" {counted(frame['repetition'].nunique(), 'repetition')}.",
        "Their path was Wi-Fi and a cross-country one behind netem, with delays and losses of their own; here"
        " there is the emulated link alone.",
    ]


def _times(of_cells: dict[tuple[int, float], Estimate]) -> str:
    """Return the times of large messages, in the two columns with losses."""
    columns = (
        ", ".join(shown(of_cells.get((size_bytes, loss), Estimate()).value, ".1f") for size_bytes in LARGE)
        for loss in LOSSES[1:]
    )
    return " s and ".join(columns) + " s"


def _percent(share: float) -> str:
    return shown(share, ".0%")
