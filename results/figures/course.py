"""The figure of the course of one trial: what crossed the network, what was lost and rebuilt, the window, the
RTT, above one axis of time.

Drawn in the style of `results.figures.style`. A trial of which nothing is known raises NothingToDraw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fecbench.results.analysis.trial_course import (
    DROPPED,
    LOST,
    MISSING,
    Congestion,
    Course,
    Crossing,
    Numbers,
)
from fecbench.results.figures.nothing import NothingToDraw
from fecbench.results.figures.over_time import series_panels
from fecbench.results.figures.sheet import heading, legend_below
from fecbench.results.figures.style import Color, as_pixels, look, new_figure, style, wide, wrapped
from fecbench.results.figures.ticks import plain_ticks
from fecbench.results.store.records import VerdictLog

_DARK: Color = (0.2, 0.2, 0.2)
_GREY: Color = (0.58, 0.58, 0.58)
_TALL, _LOW, _ROW = 2.6, 1.7, 0.28  # inches: of a panel that matters most, of another, of a row of events
_KB = 1000
_FATES = {LOST: ("lost", "x"), DROPPED: ("dropped by the link", "v"), MISSING: ("missing", "x")}
"""Names and marks of packets that never came."""


@dataclass(frozen=True)
class Panel:
    """A part of the figure, of so many inches."""

    height: float
    draw: Callable[[Axes], list[Artist]]
    """Returns what its legend explains."""
    is_over_time: bool = True


@dataclass(frozen=True)
class _Events:
    """A row of events: marks at their times, in the colour of each path."""

    label: str
    marker: str
    times: Sequence[tuple[Numbers, Color]]

    @property
    def count(self) -> int:
        return sum(len(times) for times, _ in self.times)


def course_over_time(course: Course, series: Mapping[str, pd.DataFrame] | None = None) -> Figure:
    """A trial over time; `series`: others that it left, as of `frames.series_of`, a panel a column."""
    panels = [*_panels(course), *(Panel(_LOW, draw) for draw in series_panels(series or {}))]
    if not panels:
        raise NothingToDraw("Nothing was recorded of the trial over time, and no losses.")
    with style():
        figure = new_figure(wide(), 1.7 + sum(panel.height for panel in panels))
        heights = {"height_ratios": [panel.height for panel in panels]}
        drawn = list(figure.subplots(len(panels), 1, squeeze=False, gridspec_kw=heights)[:, 0])
        legend: dict[str, Artist] = {}
        for axes, panel in zip(drawn, panels, strict=True):
            legend |= {str(artist.get_label()): artist for artist in panel.draw(axes)}
        over_time = [axes for axes, panel in zip(drawn, panels, strict=True) if panel.is_over_time]
        _share_time(over_time, course)
        if over_time and course.completed_s is not None:
            legend["transfer complete"] = _completion(over_time, course.completed_s)
        if legend:
            legend_below(figure, list(legend.values()))
        heading(figure, "What happened during the trial?", course.detail)
    return figure


def _panels(course: Course) -> Iterator[Panel]:
    crossings = [crossing for crossing in course.crossings if crossing.direction == course.direction]
    if crossings:
        yield Panel(_TALL, lambda axes: _draw_bytes(axes, course, crossings))
    if rows := list(_events(course)):
        yield Panel(0.35 + _ROW * len(rows), lambda axes: _draw_events(axes, rows))
    congestion = [rows for rows in course.congestion if rows.endpoint == course.sender]
    if congestion:
        yield Panel(_LOW, lambda axes: _draw_window(axes, congestion))
        yield Panel(_LOW, lambda axes: _draw_rtt(axes, congestion))
    if course.verdicts:
        height = 0.7 + _ROW * len(course.verdicts)
        yield Panel(height, lambda axes: _draw_verdicts(axes, course.verdicts), is_over_time=False)


def _colors(names: Sequence[str]) -> dict[str, Color]:
    """A colour for each path, in their order."""
    return {name: look(place).color for place, name in enumerate(dict.fromkeys(names))}


def _draw_bytes(axes: Axes, course: Course, crossings: Sequence[Crossing]) -> list[Artist]:
    """Draw the bytes sent and the bytes that came, by path, with marks where packets never came."""
    receiver = "client" if course.sender == "server" else "server"
    colors = _colors([crossing.link for crossing in course.crossings])
    several = len(colors) > 1
    pixels = as_pixels(sum(crossing.sent_s.size for crossing in crossings))
    used: dict[int, None] = {}
    for crossing in crossings:
        color, sent = colors[crossing.link], np.cumsum(crossing.payload_bytes) / _KB
        axes.plot(
            crossing.sent_s, sent, color=color, linewidth=0.9, drawstyle="steps-post", rasterized=pixels
        )
        came = np.argsort(crossing.arrived_s)[: np.count_nonzero(~np.isnan(crossing.arrived_s))]
        axes.plot(
            crossing.arrived_s[came],
            np.cumsum(crossing.payload_bytes[came]) / _KB,
            color=color,
            linewidth=2.4,
            alpha=0.55,
            drawstyle="steps-post",
            rasterized=pixels,
        )
        for fate, (_, marker) in _FATES.items():
            chosen = crossing.fates == fate
            if chosen.any():
                used[fate] = None
                axes.plot(
                    crossing.sent_s[chosen],
                    sent[chosen],
                    linestyle="none",
                    marker=marker,
                    markersize=5,
                    markeredgecolor=_DARK,
                    markerfacecolor=color,
                    rasterized=pixels,
                )
    axes.set_ylabel(wrapped("payload (kB)", _TALL))
    _from_zero(axes)
    line = _DARK if several else next(iter(colors.values()))
    explained: list[Artist] = [
        Line2D([], [], color=color, linewidth=4, label=name) for name, color in colors.items() if several
    ]
    explained += [
        Line2D([], [], color=line, linewidth=0.9, label=f"sent by the {course.sender}"),
        Line2D([], [], color=line, linewidth=2.4, alpha=0.55, label=f"arrived at the {receiver}"),
    ]
    return explained + [
        Line2D(
            *([], []),
            linestyle="none",
            marker=_FATES[fate][1],
            color=_DARK,
            markerfacecolor=line,
            label=_FATES[fate][0],
        )
        for fate in used
    ]


def _events(course: Course) -> Iterator[_Events]:
    """The rows of events: losses of both directions, the data's first, then repair."""
    colors = _colors([crossing.link for crossing in course.crossings])
    back = "up" if course.direction == "down" else "down"
    for direction in (course.direction, back):
        crossings = [crossing for crossing in course.crossings if crossing.direction == direction]
        for fate, (words, marker) in _FATES.items():
            times = [(crossing.times(fate), colors[crossing.link]) for crossing in crossings]
            row = _Events(f"{words}, {direction}", marker, times)
            if row.count or (fate == LOST and crossings):
                yield row
    for repair in sorted(course.repair, key=lambda repair: repair.endpoint != course.sender):
        peer = "client" if repair.endpoint == "server" else "server"
        rebuilt = [other.rebuilt_s for other in course.repair if other.endpoint == peer]
        row = _Events(f"repair sent by the {repair.endpoint}", "|", [(repair.sent_s, _DARK)])
        if row.count or repair.endpoint == course.sender:
            yield row
        gained = _Events(f"rebuilt at the {peer}", "D", [(times, _DARK) for times in rebuilt])
        if gained.count or repair.endpoint == course.sender:
            yield gained


def _draw_events(axes: Axes, rows: Sequence[_Events]) -> list[Artist]:
    pixels = as_pixels(sum(row.count for row in rows))
    for place, row in enumerate(rows):
        for times, color in row.times:
            axes.plot(
                times,
                np.full(len(times), place),
                linestyle="none",
                marker=row.marker,
                markersize=4 if row.marker == "D" else 6,
                color=color,
                rasterized=pixels,
            )
    axes.set_yticks(range(len(rows)), [f"{row.label} ({row.count})" for row in rows], fontsize="small")
    axes.set_ylim(len(rows) - 0.5, -0.5)
    return []


def _draw_window(axes: Axes, congestion: Sequence[Congestion]) -> list[Artist]:
    window, flight = look(3).color, _GREY
    pixels = as_pixels(sum(rows.t_s.size for rows in congestion))
    for rows in congestion:
        for values, color, width in ((rows.in_flight_bytes, flight, 1.0), (rows.window_bytes, window, 1.8)):
            axes.plot(
                rows.t_s,
                values / _KB,
                color=color,
                linewidth=width,
                drawstyle="steps-post",
                rasterized=pixels,
            )
    axes.set_ylabel(wrapped("window, in flight (kB)", _LOW))
    _from_zero(axes)
    return [
        Line2D([], [], color=window, linewidth=1.8, label="congestion window"),
        Line2D([], [], color=flight, linewidth=1.0, label="in flight"),
    ]


def _draw_rtt(axes: Axes, congestion: Sequence[Congestion]) -> list[Artist]:
    for rows in congestion:
        axes.plot(
            rows.t_s,
            rows.smoothed_rtt_ms,
            color=look(1).color,
            linewidth=1.5,
            drawstyle="steps-post",
            rasterized=as_pixels(rows.t_s.size),
        )
    axes.set_ylabel(wrapped("smoothed RTT (ms)", _LOW))
    _from_zero(axes)
    return []


def _from_zero(axes: Axes) -> None:
    """An axis of amounts, with room above the greatest."""
    axes.set_ylim(0, 1.05 * axes.dataLim.y1)
    plain_ticks(axes.yaxis)


def _draw_verdicts(axes: Axes, verdicts: Sequence[VerdictLog]) -> list[Artist]:
    """Draw which packets were lost, by number: their times are not known."""
    several = len({log.link for log in verdicts}) > 1
    rows = []
    for log in verdicts:
        bits = np.unpackbits(np.frombuffer(log.bitmap, np.uint8), bitorder="little")
        where = f"{log.link}, {log.direction}" if several else log.direction
        label = f"lost, {where} ({log.dropped} of {log.packets})"
        rows.append((label, np.flatnonzero(bits)))
    colors = _colors([log.link for log in verdicts])
    for place, ((_, numbers), log) in enumerate(zip(rows, verdicts, strict=True)):
        axes.plot(
            numbers,
            np.full(numbers.size, place),
            linestyle="none",
            marker="x",
            markersize=5,
            color=colors[log.link],
            rasterized=as_pixels(numbers.size),
        )
        axes.plot([0, log.packets], [place, place], color=_DARK, linewidth=0.6, zorder=1)
    axes.set_yticks(range(len(rows)), [label for label, _ in rows], fontsize="small")
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(left=0)
    axes.set_xlabel("number of the packet at the loss model")
    plain_ticks(axes.xaxis)
    return []


def _share_time(over_time: Sequence[Axes], course: Course) -> None:
    if not over_time:
        return
    first, *others = over_time
    for axes in others:
        axes.sharex(first)
        axes.label_outer()
    for axes in over_time[:-1]:
        axes.tick_params(labelbottom=False)
    end_s = course.end_s
    if end_s > 0:
        first.set_xlim(-0.01 * end_s, 1.01 * end_s)
    plain_ticks(first.xaxis)
    whose = "the client's first packet" if course.crossings else "each end's connection began"
    over_time[-1].set_xlabel(f"time since {whose} (s)")
    over_time[-1].tick_params(labelbottom=True)


def _completion(over_time: Sequence[Axes], completed_s: float) -> Artist:
    for axes in over_time:
        axes.axvline(completed_s, color=_DARK, linewidth=1, linestyle=":")
    return Line2D([], [], color=_DARK, linewidth=1, linestyle=":", label="transfer complete")
