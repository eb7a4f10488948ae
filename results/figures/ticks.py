"""Ticks that a person reads: round numbers whose labels don't touch, on linear and logarithmic axes, and on
axes of ratios."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations, pairwise

from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, Locator, MaxNLocator, NullLocator

from fecbench.results.figures.style import em, inches

_LINE = 0.25  # inches, of a line of letters with the room around it

Choices = Callable[[float, float], Iterable[Sequence[float]]]
"""Choices of ticks, between the ends of the visible range."""
Label = Callable[[float], str]
"""Label of a tick."""


def round_ticks(axis: Axis) -> None:
    """Plain numbers at 1, 2 and 5 of each decade of a logarithmic axis, or fewer where they would touch.

    Within one decade, where that leaves a tick or two, any round numbers.
    """
    _sparse_ticks(axis, _round_numbers)


def plain_ticks(axis: Axis) -> None:
    """Round numbers on a linear axis."""
    _sparse_ticks(axis, _evenly_apart)


def ratio_ticks(axis: Axis, reach: float) -> None:
    """Round numbers on a logarithmic axis of ratios that reaches `reach` (a log ratio, above 0) from 1.

    Most ratios lie within one decade, where 1, 2 and 5 would leave a tick or two.
    """
    near = _near_one(reach)
    one = near.index(1)
    thinned = [near[one % step :: step] for step in range(1, len(near))]

    def choices(low: float, high: float) -> Iterable[Sequence[float]]:
        """The visible range may be more than `reach`: a decade each way where all ratios are 1."""
        return _round_numbers(low, high) if max(1 / low, high) >= 4 else thinned

    _sparse_ticks(axis, choices)


def few_ticks(axis: Axis, values: Sequence[float], label: Label) -> None:
    """Set a tick at each of a few values, or at as many of them as have room for their labels."""

    def choices(*_: float) -> Iterable[Sequence[float]]:
        return (some for count in range(len(values), 0, -1) for some in combinations(values, count))

    _sparse_ticks(axis, choices, label)


def _number(value: float) -> str:
    return f"{value:.10g}"


def _sparse_ticks(axis: Axis, choices: Choices, label: Label = _number) -> None:
    axis.set_major_locator(_Sparse(axis, choices, label))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: label(value)))


class _Sparse(Locator):
    """Use the first of several choices of ticks whose labels don't touch, most ticks first."""

    def __init__(self, axis: Axis, choices: Choices, label: Label) -> None:
        self.of_axis, self.choices, self.label = axis, choices, label
        self._of_view: dict[tuple[object, ...], Sequence[float]] = {}

    def __call__(self) -> Sequence[float]:
        """The ticks of the axis as it is now. Matplotlib asks some ten times for those of one view, to lay a
        figure out and to draw it."""
        low, high = sorted(self.of_axis.get_view_interval())
        axes = self.of_axis.axes
        view = (low, high, self.of_axis.get_scale(), *axes.bbox.size, axes.figure.dpi, em())
        if view not in self._of_view:
            self._of_view[view] = self._ticks(low, high)
        return self._of_view[view]

    def _ticks(self, low: float, high: float) -> Sequence[float]:
        ticks: Sequence[float] = []
        for choice in self.choices(low, high):
            ticks = [tick for tick in choice if low <= tick <= high]
            if self._stand_apart(ticks):
                break
        return ticks

    def _stand_apart(self, ticks: Sequence[float]) -> bool:
        axes = self.of_axis.axes
        across = self.of_axis is axes.xaxis
        trans = axes.get_xaxis_transform() if across else axes.get_yaxis_transform()
        at = [trans.transform((tick, tick))[0 if across else 1] for tick in ticks]
        (dots_an_inch, _), _ = axes.figure.dpi_scale_trans.transform([(1, 1), (0, 0)])
        places = [pixels / dots_an_inch / em() for pixels in at]
        lengths = [inches(f"{self.label(tick)} ") if across else _LINE for tick in ticks]
        return all(
            right - left > (first + second) / 2
            for (left, right), (first, second) in zip(pairwise(places), pairwise(lengths), strict=True)
        )


def _round_numbers(low: float, high: float) -> Iterator[Sequence[float]]:
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [m * 10.0**decade for decade in decades for m in (1, 2, 5)]
    if sum(low <= tick <= high for tick in ticks) >= 3:
        yield ticks
        yield from ([10.0**decade for decade in decades if decade % step == 0] for step in range(1, 9))
    else:
        yield from _evenly_apart(low, high)


def _evenly_apart(low: float, high: float) -> Iterator[Sequence[float]]:
    steps = [1, 2, 2.5, 5, 10]
    return (
        list(MaxNLocator(most, steps=steps, min_n_ticks=1).tick_values(low, high)) for most in range(8, 0, -1)
    )


def _near_one(reach: float) -> list[float]:
    if reach >= math.log(2.2):
        return [0.3, 0.4, 0.5, 0.6, 0.8, 1, 1.25, 1.5, 2, 3]
    if reach >= math.log(1.6):
        return [0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 1.75, 2]
    farthest = math.exp(reach) - 1
    step = next((step for step in (0.001, 0.002, 0.005, 0.01, 0.02, 0.05) if farthest / step <= 6), 0.1)
    return [round(1 + i * step, 3) for i in range(-6, 7)]
