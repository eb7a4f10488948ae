"""Many vertical lines at the cost of few."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike


def vertical_lines(axes: Axes, at: ArrayLike, low: ArrayLike, high: ArrayLike, **look: Any) -> None:
    """Draw a line from `low` to `high` at each of these places; where an end is NaN, none.

    All are one line with gaps. Matplotlib makes, measures and scales each of several lines by itself, and
    thousands of intervals then take longer than all the rest of a report's figures.
    """
    at, low, high = np.asarray(at), np.asarray(low, np.float64), np.asarray(high, np.float64)
    is_whole = ~(np.isnan(low) | np.isnan(high))
    at = np.repeat(at[is_whole], 3)
    ends = np.stack([low, high, np.full(len(low), np.nan)], axis=1)[is_whole].ravel()
    axes.plot(at, ends, solid_capstyle="butt", snap=True, **look)
