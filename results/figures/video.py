"""Figures of videos: what a ladder is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
from matplotlib.figure import Figure

from fecbench.results.figures.style import WIDTH, heading, legend_below, plain_ticks, style

if TYPE_CHECKING:
    from collections.abc import Sequence


class Level(Protocol):
    """One level of a ladder."""

    @property
    def kbps(self) -> float: ...

    @property
    def sizes(self) -> Sequence[int]: ...

    @property
    def resolution(self) -> str: ...


class Ladder(Protocol):
    """A video at several bit rates."""

    @property
    def segment_s(self) -> float: ...

    @property
    def levels(self) -> Sequence[Level]: ...


def segments(ladder: Ladder) -> Figure:
    """The rate of each segment of each level, in Mbit/s, over the time of the video."""
    with style():
        figure = Figure(figsize=(WIDTH, 5.5))
        axes = figure.subplots()
        for level in reversed(ladder.levels):
            rates = 8e-6 * np.array(level.sizes) / ladder.segment_s
            times = ladder.segment_s * np.arange(len(rates) + 1)
            axes.stairs(rates, times, label=f"{level.kbps:g} kbps, {level.resolution}")
        axes.set_xlabel("time of the video (s)")
        axes.set_ylabel("rate of a segment (Mbit/s)")
        axes.set_yscale("log")
        plain_ticks(axes.yaxis)
        heading(figure, "How large are the segments of each level?")
        legend_below(figure, axes.get_legend_handles_labels()[0])
        return figure
