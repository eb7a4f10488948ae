"""Figures of links that change."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from fecbench.results.figures.sheet import heading
from fecbench.results.figures.style import new_figure, style, wide


def trace(
    columns: Mapping[str, ArrayLike],
    windows: tuple[ArrayLike, ArrayLike] | None = None,
    outages_s: Sequence[tuple[float, float]] = (),
    window_s: float = 0.5,
) -> Figure:
    """The rate and the one-way delay of a trace over its time.

    `columns`: `keep_us` of each step, and `owd_us` if there are delays, as in its file. `windows`: edges (s)
    and mean rates (Mbit/s) between them. `outages_s`: when it carries nothing, and for how long.
    """
    edges_s = np.concatenate([[0.0], np.cumsum(np.array(columns["keep_us"]) / 1e6)])
    panels = []
    if windows is not None:
        panels.append(
            (f"rate over {1e3 * window_s:g} ms (Mbit/s)", np.array(windows[1]), np.array(windows[0]))
        )
    if "owd_us" in columns:
        panels.append(("one-way delay (ms)", np.array(columns["owd_us"]) / 1e3, edges_s))
    with style():
        figure = new_figure(wide(), 1 + 2.2 * len(panels))
        for axes, (label, values, at_s) in zip(
            figure.subplots(len(panels), sharex=True, squeeze=False).flat, panels, strict=True
        ):
            axes.stairs(values, at_s)
            axes.set_ylabel(label)
            axes.set_ylim(bottom=0)
            if outages_s:
                top = axes.get_ylim()[1]
                axes.broken_barh(outages_s, (0, top), color="0.8", zorder=0, label="carries nothing")
                axes.set_ylim(top=top)
        if outages_s:
            figure.axes[0].legend(loc="upper right")
        axes.set_xlabel("time of the trace (s)")
        heading(figure, "How does the link change?")
        return figure
