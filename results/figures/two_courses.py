"""The figure of two trials that met the same losses, over one axis of time: what each sent, and where they
part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fecbench.results.analysis.parting import partings
from fecbench.results.analysis.trial_course import DROPPED, LOST, MISSING, Congestion, Course, Numbers
from fecbench.results.figures.nothing import NothingToDraw
from fecbench.results.figures.sheet import heading, legend_below
from fecbench.results.figures.style import PALETTE, as_pixels, new_figure, style, wide, wrapped
from fecbench.results.figures.ticks import plain_ticks

_KB = 1000
_DARK = (0.2, 0.2, 0.2)
_TALL, _LOW, _ROW = 2.8, 1.7, 0.32  # inches: of the bytes, of the window, of a row of events
_LINES: tuple[Literal["-", "--"], ...] = ("-", "--")
_Row = tuple[str, Numbers, int]
"""A row of events: its name, their times, and the place of the trial."""


def both_over_time(one: Course, other: Course, labels: tuple[str, str]) -> Figure:
    """Two trials over time, by the labels of their variants.

    Raises NothingToDraw where nobody recorded the packets of one of them.
    """
    courses = (one, other)
    if not all(course.crossings for course in courses):
        raise NothingToDraw("Nothing was recorded of the packets of one of the trials.")
    rows = [row for place, course in enumerate(courses) for row in _events(course, labels[place], place)]
    has_window = all(_congestion(course) for course in courses)
    heights = [_TALL, 0.35 + _ROW * len(rows), *([_LOW] if has_window else [])]
    with style():
        figure = new_figure(wide(), 1.9 + sum(heights))
        panels = list(
            figure.subplots(
                len(heights), 1, squeeze=False, sharex=True, gridspec_kw={"height_ratios": heights}
            )[:, 0]
        )
        explained = _draw_bytes(panels[0], courses, labels)
        _draw_events(panels[1], rows)
        if has_window:
            _draw_window(panels[2], courses)
        for place, course in enumerate(courses):
            if course.completed_s is not None:
                for axes in panels:
                    axes.axvline(course.completed_s, color=PALETTE[place], linewidth=1, linestyle=":")
        explained.append(Line2D([], [], color=_DARK, linewidth=1, linestyle=":", label="transfer complete"))
        for apart in partings(one, other):
            is_data = apart.direction == one.direction
            look: dict[str, Any] = {
                "color": _DARK,
                "linewidth": 1.6 if is_data else 0.9,
                "linestyle": "-" if is_data else "-.",
            }
            for axes in panels:
                axes.axvline(apart.first_s, **look)
            name = f"they part: packet {apart.packet} {apart.direction}, by its {apart.why}"
            explained.append(Line2D([], [], label=name, **look))
        end_s = max(course.end_s for course in courses)
        panels[0].set_xlim(-0.01 * end_s, 1.01 * end_s)
        plain_ticks(panels[0].xaxis)
        panels[-1].set_xlabel("time since the client's first packet (s)")
        legend_below(figure, explained)
        heading(figure, "Where do the two trials part?", f"{one.detail}; {other.detail}")
    return figure


def _draw_bytes(axes: Axes, courses: Sequence[Course], labels: Sequence[str]) -> list[Artist]:
    """Draw the bytes that the sender of the data had sent, and those that had come, in both trials."""
    explained: list[Artist] = []
    for place, course in enumerate(courses):
        color, line = PALETTE[place], _LINES[place]
        for crossing in course.crossings:
            if crossing.direction != course.direction:
                continue
            pixels = as_pixels(crossing.sent_s.size)
            sent = np.cumsum(crossing.payload_bytes) / _KB
            axes.plot(
                crossing.sent_s,
                sent,
                color=color,
                linestyle=line,
                linewidth=1.2,
                marker=".",
                markersize=3,
                drawstyle="steps-post",
                rasterized=pixels,
            )
            lost = np.isin(crossing.fates, (LOST, DROPPED, MISSING))
            axes.plot(
                crossing.sent_s[lost],
                sent[lost],
                linestyle="none",
                marker="x",
                markersize=5,
                color=color,
                rasterized=pixels,
            )
        explained.append(Line2D([], [], color=color, linestyle=line, label=f"{labels[place]}: sent"))
    axes.set_ylabel(wrapped("payload (kB)", _TALL))
    axes.set_ylim(0, 1.05 * axes.dataLim.y1)
    plain_ticks(axes.yaxis)
    return [*explained, Line2D([], [], color=_DARK, linestyle="none", marker="x", label="never came")]


def _events(course: Course, label: str, place: int) -> list[_Row]:
    """Rows of events, each with the place of its trial: packets that never came, and repair."""
    never = [
        crossing.sent_s[np.isin(crossing.fates, (LOST, DROPPED, MISSING))] for crossing in course.crossings
    ]
    rows = [(f"{label}: never came", np.concatenate(never))]
    rows += [
        (f"{label}: repair sent by the {repair.endpoint}", repair.sent_s)
        for repair in course.repair
        if repair.sent_s.size
    ]
    return [(f"{name} ({times.size})", times, place) for name, times in rows]


def _draw_events(axes: Axes, rows: Sequence[_Row]) -> None:
    for height, (name, times, place) in enumerate(rows):
        marker = "|" if "repair" in name else "x"
        axes.plot(times, np.full(times.size, height), linestyle="none", marker=marker, color=PALETTE[place])
    axes.set_yticks(range(len(rows)), [name for name, _, _ in rows], fontsize="small")
    axes.set_ylim(len(rows) - 0.5, -0.5)


def _congestion(course: Course) -> list[Congestion]:
    return [rows for rows in course.congestion if rows.endpoint == course.sender]


def _draw_window(axes: Axes, courses: Sequence[Course]) -> None:
    for place, course in enumerate(courses):
        for rows in _congestion(course):
            axes.plot(
                rows.t_s,
                rows.window_bytes / _KB,
                color=PALETTE[place],
                linestyle=_LINES[place],
                linewidth=1.5,
                drawstyle="steps-post",
                rasterized=as_pixels(rows.t_s.size),
            )
    axes.set_ylabel(wrapped("window (kB)", _LOW))
    axes.set_ylim(0, 1.05 * axes.dataLim.y1)
    plain_ticks(axes.yaxis)
