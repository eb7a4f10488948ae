"""Boxes of trials side by side, with the trials themselves as dots while they can be told apart."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.markers import MarkerStyle

from fecbench.results.figures.seaborn_alone import blank_labels, sns
from fecbench.results.figures.style import Look, as_pixels, line

_MOST_DOTS = 400  # more single trials in one box hide it
_WIDTH = 0.8  # of all boxes at a place
_BOX = 0.9  # of the room that one has


def boxes_of(
    axes: Axes,
    trials: pd.DataFrame,
    across: str,
    up: str,
    order: Sequence[Any],
    look_of: Mapping[str, Look],
    lines: Mapping[tuple[Any, str], float] | None = None,
) -> None:
    """A box of the column `up` at each of the places `order` of the column `across`, for each variant.

    `lines`: where the line of a box is, by place and variant; by default at the median. One at ∞ or NaN is
    not drawn. Trials that failed or timed out have to be left out before.
    """
    own_place = across == "variant"
    labels, width = list(look_of), _WIDTH / (1 if own_place else len(look_of))
    sizes = trials.groupby([across, "variant"], observed=True)[up].count()
    crowded = bool(len(sizes) and sizes.max() > _MOST_DOTS)
    drawn = {"data": trials, "x": across, "y": up, "order": order, "hue": "variant", "hue_order": labels}
    drawn |= {"palette": {label: look.color for label, look in look_of.items()}, "ax": axes, "legend": False}
    known = len(axes.containers)
    blank_labels(axes)
    sns.boxplot(
        **drawn,
        saturation=1,
        width=_WIDTH,
        gap=1 - _BOX,
        showfliers=False,
        linecolor="black",
        linewidth=line(2 / 3),
        medianprops={"visible": lines is None, "linewidth": line(4 / 3)},
    )
    for container in axes.containers[known:]:
        for box in getattr(container, "boxes", ()):
            label = _variant_at(box, labels, own_place)
            box.set(facecolor=(*look_of[label].color, 0.6), hatch=look_of[label].hatch, edgecolor="black")
    for (place, variant), value in (lines or {}).items():
        if place in order and math.isfinite(value) and (place, variant) in sizes.index:
            middle = order.index(place) + (0 if own_place else _beside(labels.index(variant), len(labels)))
            half = _BOX * width / 2
            axes.hlines(value, middle - half, middle + half, color="black", linewidth=line(4 / 3), zorder=4)
    shown = _outliers(trials, list(dict.fromkeys([across, "variant"])), up) if crowded else trials
    if not shown.empty:
        _dots(axes, {**drawn, "data": shown}, look_of, crowded, as_pixels(len(trials)))
    axes.set(xlabel="", ylabel="")


def _dots(
    axes: Axes, drawn: Mapping[str, Any], look_of: Mapping[str, Look], crowded: bool, rasterized: bool
) -> None:
    """Single trials. seaborn knows one marker for all, and draws dots by place, then by variant."""
    own_place = drawn["x"] == "variant"
    known = len(axes.collections)
    with _same_each_time():
        sns.stripplot(
            **drawn,
            dodge=not own_place,
            jitter=0 if crowded else 0.35 * _WIDTH,
            size=3 if crowded else 4,
            linewidth=0.5,
            edgecolor="black",
            zorder=3,
            rasterized=rasterized,
        )
    variants = drawn["order"] if own_place else list(look_of) * len(drawn["order"])
    for dots, label in zip(axes.collections[known:], variants, strict=True):
        marker = MarkerStyle(look_of[label].marker)
        dots.set_paths([marker.get_path().transformed(marker.get_transform())])


def _beside(number: int, variants: int) -> float:
    return _WIDTH / variants * (number - (variants - 1) / 2)


def _variant_at(box: Any, labels: Sequence[str], own_place: bool) -> str:
    """The variant of a box, by where it stands."""
    vertices = box.get_path().vertices[:, 0]
    middle = float(vertices.min() + vertices.max()) / 2
    if own_place:
        return labels[round(middle)]
    return min(
        labels, key=lambda label: abs(middle - round(middle) - _beside(labels.index(label), len(labels)))
    )


def _outliers(trials: pd.DataFrame, by: list[str], up: str) -> pd.DataFrame:
    """The trials beyond the whiskers of their box."""
    of_box = trials.groupby(by, observed=True)[up]
    low, high = of_box.transform("quantile", 0.25), of_box.transform("quantile", 0.75)
    reach = 1.5 * (high - low)
    beyond: pd.DataFrame = trials[(trials[up] < low - reach) | (trials[up] > high + reach)]
    return beyond


@contextmanager
def _same_each_time() -> Iterator[None]:
    """seaborn moves dots aside by NumPy's own random numbers: the same data have to be the same figure."""
    state = np.random.get_state()
    np.random.seed(0)
    try:
        yield
    finally:
        np.random.set_state(state)
