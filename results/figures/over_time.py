"""The figure of one trial over time, from the series that its endpoints left.

Drawn in the style of `results.figures.style`. A trial that left nothing raises NothingToDraw.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fecbench.quantities import counted
from fecbench.results.figures.nothing import NothingToDraw
from fecbench.results.figures.sheet import heading, legend_below
from fecbench.results.figures.style import Color, line, look, new_figure, style, wide, wrapped
from fecbench.results.figures.ticks import plain_ticks
from fecbench.results.metrics import ENDPOINTS, column_of, of
from fecbench.results.metrics.units import unit_of

_KEY = ["id", "variant", "workload", "point", "repetition"]
_NO_PANEL = {*_KEY, "endpoint", "connection", "t_s"}
_PANEL = 1.9  # inches
_MARKS = 8  # of a line, evenly over its time
_MOST_VECTORS = 5000  # rows of a line: more make a PDF slow


@dataclass(frozen=True)
class _Panel:
    """A column of a series, of one trial."""

    series: str
    column: str
    rows: pd.DataFrame

    @property
    def label(self) -> str:
        """Words and unit of the column."""
        unit, known = column_of(self.series, self.column).unit, of(self.column)
        words = known.words or (self.column.rpartition("_")[0] if unit_of(self.column) else self.column)
        return replace(known, unit=unit, words=words.replace("_", " ")).title


def trial_over_time(series: Mapping[str, pd.DataFrame], trial: int | None = None) -> Figure:
    """Each column of some series of one trial over time: a panel each, with a line for each endpoint.

    `series`: by their names, frames as `frames.series` gives them. `trial`: its id, which may be absent where
    they hold one trial only. A value holds until the next row; connections are lines of their own.
    """
    chosen = {name: _of_trial(frame, trial) for name, frame in series.items()}
    panels = _panels(chosen)
    if not panels:
        which = "The trial" if trial is None else f"Trial {trial}"
        raise NothingToDraw(f"{which} left none of these series: {', '.join(series) or 'none was named'}.")
    keys = pd.concat([rows[_KEY] for rows in chosen.values()]).drop_duplicates()
    if len(keys) > 1:
        raise NothingToDraw(f"These series are of {counted(len(keys), 'trial')}: choose one by its id.")
    looks = _looks(panels)
    with style():
        figure = new_figure(wide(), 1.6 + _PANEL * len(panels))
        drawn = figure.subplots(len(panels), 1, squeeze=False, sharex=True)[:, 0]
        for axes, panel in zip(drawn, panels, strict=True):
            _draw_panel(axes, panel, looks)
            if len(series) > 1:
                axes.set_title(panel.series, fontsize="small", pad=3)
        drawn[-1].set_xlabel("time since the connection began (s)")
        legend_below(figure, _legend(looks))
        heading(figure, "What happened during the trial?", _detail(keys.iloc[0]))
    return figure


def series_panels(series: Mapping[str, pd.DataFrame]) -> list[Callable[[Axes], list[Artist]]]:
    """Return a function for each column of some series of one trial: it draws the column into a panel, and
    returns what the legend of the figure has to explain."""
    panels = _panels(series)
    looks = _looks(panels)

    def drawer(panel: _Panel) -> Callable[[Axes], list[Artist]]:
        def draw(axes: Axes) -> list[Artist]:
            _draw_panel(axes, panel, looks)
            return _legend(looks)

        return draw

    return [drawer(panel) for panel in panels]


def _panels(series: Mapping[str, pd.DataFrame]) -> list[_Panel]:
    return [
        _Panel(name, str(column), rows)
        for name, rows in series.items()
        for column in rows.columns
        if column not in _NO_PANEL and rows[column].notna().any()
    ]


def _looks(panels: Sequence[_Panel]) -> dict[str, tuple[Color, str]]:
    """The colour and the marker of each endpoint that has left any of these."""
    endpoints = [
        endpoint
        for endpoint in ENDPOINTS
        if any((panel.rows["endpoint"] == endpoint).any() for panel in panels)
    ]
    return {endpoint: (look(place).color, look(place).marker) for place, endpoint in enumerate(endpoints)}


def _legend(looks: Mapping[str, tuple[Color, str]]) -> list[Artist]:
    return [
        Line2D([], [], color=color, marker=marker, label=endpoint.replace("_", " "))
        for endpoint, (color, marker) in looks.items()
    ]


def _draw_panel(axes: Axes, panel: _Panel, looks: Mapping[str, tuple[Color, str]]) -> None:
    for endpoint, (color, marker) in looks.items():
        _draw_endpoint(axes, panel, endpoint, color, marker)
    axes.set_ylabel(wrapped(panel.label, _PANEL - 0.1))
    plain_ticks(axes.yaxis)
    if panel.rows[panel.column].min() >= 0:
        axes.set_ylim(bottom=0)


def _of_trial(frame: pd.DataFrame, trial: int | None) -> pd.DataFrame:
    return frame if trial is None else frame[frame["id"] == trial]


def _draw_endpoint(axes: Axes, panel: _Panel, endpoint: str, color: Color, marker: str) -> None:
    rows = panel.rows[(panel.rows["endpoint"] == endpoint) & panel.rows[panel.column].notna()]
    if "smoothed_rtt" in panel.column:
        rows = rows[rows[panel.column] > 0]  # before the first measurement it is 0
    connections = rows["connection"] if "connection" in rows else pd.Series(0, rows.index)
    for _, of_connection in rows.groupby(connections.fillna(0)):
        axes.plot(
            of_connection["t_s"],
            of_connection[panel.column],
            color=color,
            linewidth=line(0.8),
            drawstyle="steps-post",
            marker=marker,
            markevery=_marked(of_connection["t_s"]),
            rasterized=len(of_connection) > _MOST_VECTORS,
        )


def _marked(times: pd.Series) -> list[int]:
    """The rows at which a line has its marker: some for all would hide it."""
    evenly = np.linspace(times.iloc[0], times.iloc[-1], _MARKS)
    return sorted(set(np.searchsorted(times, evenly).tolist()))


def _detail(key: pd.Series) -> str:
    return (
        f"trial {key['id']} · {key['variant']} · {key['workload']} · point {key['point']}"
        f" · repetition {key['repetition']}"
    )
