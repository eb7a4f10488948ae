"""ECDFs, with values that no axis has: trials that failed or timed out, messages that never came."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from fecbench.results.analysis.intervals import ecdf
from fecbench.results.figures.seaborn_alone import blank_labels, sns
from fecbench.results.figures.style import Color, as_pixels, line


def curve(
    axes: Axes,
    values: ArrayLike,
    ends: tuple[float, float],
    *,
    worst: float = 0.0,
    **look: Any,
) -> None:
    """The ECDF of values from one end of an axis to the other; what lies at or beyond the ends is not seen.

    `worst`: how many values there are besides, beyond the upper end. None for no values.
    """
    data = np.clip(np.asarray(values, dtype=np.float64), *ends)
    data = data[~np.isnan(data)]
    if not len(data):
        return
    points = pd.DataFrame(
        {"value": [ends[0], *data, ends[1]], "weight": [0.0, *np.ones(len(data)), float(worst)]}
    )
    blank_labels(axes)
    sns.ecdfplot(
        points, x="value", weights="weight", ax=axes, legend=False, rasterized=as_pixels(len(data)), **look
    )
    axes.set(xlabel="", ylabel="")


def behind(axes: Axes, values: Sequence[float] | pd.Series, ends: tuple[float, float]) -> None:
    """A thin grey curve behind others. seaborn looks at all ticks for each: of thousands, for minutes."""
    known = ecdf(pd.Series(np.clip(np.asarray(values, dtype=np.float64), *ends)))
    axes.step(
        [ends[0], *known["value"].iloc[1:], ends[1]],
        [0, *known["share"].iloc[1:], 1],
        where="post",
        color="0.7",
        linewidth=line(2 / 3),
        rasterized=as_pixels(len(known)),
    )


def band(
    axes: Axes, values: Sequence[float] | pd.Series, ends: tuple[float, float], color: Color, alpha: float
) -> None:
    """The band of `intervals.ecdf` around this curve."""
    known = ecdf(values)
    known = known[known["value"] < np.inf]
    known = pd.concat([known, known.iloc[[-1]].assign(value=ends[1])])
    axes.fill_between(
        known["value"].clip(*ends),
        known["low"],
        known["high"],
        step="post",
        color=color,
        alpha=alpha,
        linewidth=0,
        rasterized=as_pixels(len(known)),
    )
