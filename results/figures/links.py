"""Figures of links that change."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from fecbench.results.figures.style import WIDTH, heading, style


def trace(columns: Mapping[str, ArrayLike]) -> Figure:
    """The rate and the one-way delay of a trace over its time.

    `columns`: `keep_us` of each step, and any of `rate_bps`, `owd_us` and `burst_bytes`, as in its file.
    """
    keep_s = np.array(columns["keep_us"]) / 1e6
    edges_s = np.concatenate([[0.0], np.cumsum(keep_s)])
    panels = []
    if "rate_bps" in columns:
        panels.append(("rate (Mbit/s)", np.array(columns["rate_bps"]) / 1e6))
    if "burst_bytes" in columns:
        panels.append(("bursts (Mbit/s)", 8e-6 * np.array(columns["burst_bytes"]) / keep_s))
    if "owd_us" in columns:
        panels.append(("one-way delay (ms)", np.array(columns["owd_us"]) / 1e3))
    with style():
        figure = Figure(figsize=(WIDTH, 1 + 2.2 * len(panels)))
        for axes, (label, values) in zip(
            figure.subplots(len(panels), sharex=True, squeeze=False).flat, panels, strict=True
        ):
            axes.stairs(values, edges_s)
            axes.set_ylabel(label)
            axes.set_ylim(bottom=0)
        axes.set_xlabel("time of the trace (s)")
        heading(figure, "How does the link change?")
        return figure
