"""Marks of many colours and shapes. seaborn draws them, and would look up the colour and shape of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, Normalize
from matplotlib.markers import MarkerStyle
from numpy.typing import NDArray

from fecbench.results.figures.style import Color

Colors = NDArray[np.float64]


def scatter(
    axes: Axes,
    rows: pd.DataFrame,
    x: str,
    y: str,
    colors: Colors,
    shapes: pd.Series | None = None,
    **look: Any,
) -> None:
    """Draw a mark for each row that has both values, in its own of the colors (rows × 4) and of the shapes,
    which are names of Matplotlib's markers."""
    has_place = rows[[x, y]].notna().all(axis=1).to_numpy()
    if not has_place.any():
        return
    sns.scatterplot(rows[has_place], x=x, y=y, legend=False, ax=axes, **look)
    marks = axes.collections[-1]
    marks.set(facecolor=colors[has_place])
    if shapes is not None:
        paths = {name: _path(name) for name in shapes.unique()}
        marks.set_paths([paths[name] for name in shapes[has_place]])


def on_scale(values: pd.Series, scale: Normalize, colors: Colormap) -> Colors:
    """The colours of values (rows × 4)."""
    rows: Colors = colors(scale(values.to_numpy(np.float64)))
    return rows


def of_names(names: pd.Series, palette: Mapping[str, Color]) -> Colors:
    """The colours of names (rows × 4)."""
    codes, different = pd.factorize(names)
    rows: Colors = np.array([(*palette[name], 1.0) for name in different])[codes]
    return rows


def _path(name: str) -> Any:
    marker = MarkerStyle(name)
    return marker.get_path().transformed(marker.get_transform())
