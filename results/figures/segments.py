"""Many straight lines on logarithmic axes, at the cost of few."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection


def scale_at_once(axes: Axes, lines: LineCollection) -> None:
    """Apply the scales of the axes to the ends of all these lines. The scales must not change afterwards.

    The picture is the same. Matplotlib would scale one line after another, each time that it measures or
    draws them, and thousands of intervals then take longer than all the rest of a report's figures.
    """
    ends = [path.vertices for path in lines.get_paths()]
    if ends:
        scaled = axes.transScale.transform(np.concatenate(ends))
        lines.set_segments(list(scaled.reshape(len(ends), -1, 2)))
        lines.set_transform(axes.transLimits + axes.transAxes)
