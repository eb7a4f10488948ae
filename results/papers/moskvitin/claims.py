"""The claims of the slides, judged by our trials by signs and ratios: their runs were not on equal paths.

Judged as `results.papers.claim` says. A gain agrees with the slides' where it is as great at least, and
beyond the margin; a smaller one agrees in direction. The slides name no code, so a cell agrees where one of
ours is as much faster than its own baseline.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import pandas as pd

from fecbench.results.analysis.intervals import LEVEL
from fecbench.results.analysis.margins import percent
from fecbench.results.analysis.pairing import with_fec
from fecbench.results.metrics.units import size
from fecbench.results.papers.claim import NOT_MEASURED, Claim, Estimate, all_hold, one_holds, shown
from fecbench.results.papers.forms import bound_of, margin_of, ours
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
from fecbench.results.store.records import CampaignInfo


@dataclass(frozen=True)
class Measured:
    """Mean times of a variant with FEC and of its baseline, and the ratio of the former to the latter."""

    with_fec_s: float
    without_s: float
    ratio: Estimate

    def __str__(self) -> str:
        times = " / ".join(shown(1000 * time, ".0f") for time in (self.with_fec_s, self.without_s))
        return f"{self.ratio:.2f} ({times} ms)"


Cells = dict[tuple[str, int, float], Measured]
"""The measurements by variant, size and loss rate."""
Table = Callable[[float], Cells]
"""A table with intervals of confidence 1 - the given level."""


def claims(frame: pd.DataFrame, campaign: CampaignInfo, direction: Direction, ways: Ways) -> list[Claim]:
    @cache
    def cells(level: float) -> Cells:
        table = ratios(frame, campaign, direction, ways, level)
        return {
            (row["variant"], row["size_bytes"], row["loss"]): Measured(
                row["with_fec_s"], row["without_s"], Estimate(row["ratio"], row["low"], row["high"])
            )
            for row in table.to_dict("records")
        }

    return [
        *(_of_cell(cells, campaign, direction, size_bytes, loss) for loss in LOSSES for size_bytes in SIZES),
        *(_of_growth(cells, campaign, variant) for variant in with_fec(campaign)),
        *_of_columns(frame, campaign, direction, ways),
    ]


def _of_cell(
    cells: Table, campaign: CampaignInfo, direction: Direction, size_bytes: int, loss: float
) -> Claim:
    """Whether FEC shortens the messages of a cell as much."""
    slides = TABLE[size_bytes, loss]
    times = f"{slides.with_fec_ms:.0f} / {slides.without_ms:.0f} ms"

    def of_variants(level: float) -> dict[str, Measured]:
        return {
            variant: measured
            for (variant, of_size, of_loss), measured in cells(level).items()
            if (of_size, of_loss) == (size_bytes, loss)
        }

    bound = bound_of(slides.ratio, margin_of(campaign, size_bytes, statistic="mean"))
    measured = of_variants(LEVEL)
    return Claim(
        f"{direction}s of {size(size_bytes)} at {_percent(loss)} loss: mean time with FEC / without",
        f"{slides.ratio:.2f} ({times})",
        "; ".join(f"{variant}: {measurement}" for variant, measurement in measured.items()) or NOT_MEASURED,
        holds=one_holds(
            lambda level: [measurement.ratio.below(bound) for measurement in of_variants(level).values()]
        ),
        in_direction=one_holds(
            lambda level: [measurement.ratio.shorter() for measurement in of_variants(level).values()]
        ),
        size=f"below {bound:.3g} with one of the codes",
        ours=", ".join(ours(measurement.ratio.value, ".2f") for measurement in measured.values()) or "–",
    )


def _of_growth(cells: Table, campaign: CampaignInfo, variant: str) -> Claim:
    """The slides' gain at 7 % loss is above that without losses, whatever the size."""

    def gains(level: float) -> dict[int, tuple[Estimate, Estimate]]:
        table = cells(level)
        ends = {
            size_bytes: (
                table.get((variant, size_bytes, LOSSES[0])),
                table.get((variant, size_bytes, LOSSES[-1])),
            )
            for size_bytes in SIZES
        }
        return {
            size_bytes: (first.ratio, last.ratio)
            for size_bytes, (first, last) in ends.items()
            if first is not None and last is not None
        }

    def falls(by: dict[int, float]) -> bool | None:
        return all_hold(
            lambda level: [first.exceeds(last, by[of]) for of, (first, last) in gains(level).items()]
        )

    measured = "; ".join(
        f"{size(size_bytes)}: {shown(first.value, '.2f')} → {shown(last.value, '.2f')}"
        for size_bytes, (first, last) in gains(LEVEL).items()
    )
    by = {size_bytes: margin_of(campaign, size_bytes, statistic="mean") for size_bytes in SIZES}
    return Claim(
        f"{variant}: the ratio falls from no loss to {_percent(LOSSES[-1])}, of every size",
        "it does: from 0.89 to 0.98 without losses to 0.72 to 0.84",
        measured or NOT_MEASURED,
        holds=all_hold(
            lambda level: [
                first.exceeds(last, by[of_size]) for of_size, (first, last) in gains(level).items()
            ]
        ),
        in_direction=all_hold(lambda level: [first.exceeds(last) for first, last in gains(level).values()]),
        size=f"by more than {' and '.join(map(percent, sorted(set(by.values()))))}",
        ours=", ".join(ours(first.value / last.value - 1, ".0%") for first, last in gains(LEVEL).values())
        or "–",
    )


def _of_columns(
    frame: pd.DataFrame, campaign: CampaignInfo, direction: Direction, ways: Ways
) -> Iterator[Claim]:
    """The slides' column of 3 % against that of 7 %, without FEC."""
    for baseline in dict.fromkeys(with_fec(campaign).values()):
        of_cells = means(frame, campaign, direction, ways, baseline)
        for size_bytes in LARGE:
            less, more = (of_cells.get((size_bytes, loss), Estimate()) for loss in LOSSES[1:])
            slides = [TABLE[size_bytes, loss].without_ms / 1000 for loss in LOSSES[1:]]
            least = slides[0] / slides[1] / (1 + margin_of(campaign, size_bytes, statistic="mean"))
            ratio = ours(less.value / more.value, ".2f")
            of_less, of_more = (shown(mean.value, ".1f") for mean in (less, more))
            yield Claim(
                f"{baseline}: {direction}s of {size(size_bytes)}, mean time at 3 % loss / at 7 %",
                f"{slides[0] / slides[1]:.1f} ({slides[0]:.1f} / {slides[1]:.1f} s)",
                NOT_MEASURED if math.isnan(less.value + more.value) else f"{ratio} ({of_less} / {of_more} s)",
                holds=less.exceeds(more, least - 1),
                in_direction=less.exceeds(more),
                size=f"above {least:.2g}",
                ours=ratio,
            )


def _percent(loss: float) -> str:
    return shown(loss, ".0%")
