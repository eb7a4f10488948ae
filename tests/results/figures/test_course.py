"""The figure of the course of a trial draws what the course has, and counts it."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes

from fecbench.results.analysis.trial_course import (
    ARRIVED,
    DROPPED,
    LOST,
    Congestion,
    Course,
    Crossing,
    Numbers,
    Repair,
)
from fecbench.results.figures import NothingToDraw, course_over_time
from fecbench.results.store.records import VerdictLog


def crossing(link: str, direction: str, fates: list[int]) -> Crossing:
    became = np.array(fates)
    sent_s = 0.1 * np.arange(len(fates))
    arrived_s = np.where(became == ARRIVED, sent_s + 0.05, np.nan)
    return Crossing(link, direction, sent_s, arrived_s, np.full(len(fates), 1000), became)


def congestion(endpoint: str, window: float) -> Congestion:
    times = np.array([0.0, 1.0])
    return Congestion(endpoint, times, np.full(2, window), np.zeros(2), np.full(2, 25.0))


def times(*values: float) -> Numbers:
    return np.array(values)


TWO_PATHS = Course(
    detail="trial 3",
    sender="server",
    completed_s=0.6,
    crossings=[
        crossing("path1", "down", [ARRIVED, LOST, ARRIVED, DROPPED, LOST]),
        crossing("path2", "down", [ARRIVED, LOST]),
        crossing("path1", "up", [ARRIVED, ARRIVED]),
    ],
    congestion=[congestion("server", 20_000), congestion("client", 90_000)],
    repair=[
        Repair("server", times(0.1, 0.2, 0.2), times(), times()),
        Repair("client", times(), times(0.3, 0.4), times(0.4)),
    ],
)


def rows_of(axes: Axes) -> list[str]:
    return [label.get_text() for label in axes.get_yticklabels()]


def test_each_event_has_its_mark_and_each_row_its_count() -> None:
    _, events, _, _ = course_over_time(TWO_PATHS).axes
    assert rows_of(events) == [
        *("lost, down (3)", "dropped by the link, down (1)", "lost, up (0)"),
        *("repair sent by the server (3)", "rebuilt at the client (1)"),
    ]
    drawing = [len(line.get_xdata()) for line in events.lines]  # type: ignore[arg-type]
    assert sum(drawing[:-1]) == 3 + 1 + 0 + 3 + 1  # the last line is the completion


def test_all_panels_have_one_axis_of_time_and_the_senders_window_alone_is_drawn() -> None:
    figure = course_over_time(TWO_PATHS)
    assert len({axes.get_xlim() for axes in figure.axes}) == 1
    window = figure.axes[2].lines[1].get_ydata()
    assert max(window) == 20  # type: ignore[arg-type]


def test_paths_have_colours_of_their_own() -> None:
    arrived = [line for line in course_over_time(TWO_PATHS).axes[0].lines if line.get_linewidth() > 2]
    assert len(arrived) == 2
    assert len({line.get_color() for line in arrived}) == 2
    assert [max(line.get_ydata()) for line in arrived] == [2, 1]  # type: ignore[arg-type]


def test_a_stack_that_tells_nothing_of_repair_is_drawn_without_it() -> None:
    plain = Course("trial 1", "server", crossings=TWO_PATHS.crossings)
    _, events = course_over_time(plain).axes
    assert not any("repair" in row for row in rows_of(events))


def test_losses_without_times_are_drawn_by_number_beside_series_of_others() -> None:
    log = VerdictLog("internet", "down", 8, 2, bytes([0b100_0010]))
    columns = ["id", "variant", "workload", "point", "repetition", "endpoint", "t_s", "gap_ms"]
    own = pd.DataFrame([[1, "v", "w", 0, 0, "client", 0.5, 3.0]], columns=columns)
    losses, other = course_over_time(Course("trial 1", "server", verdicts=[log]), {"mine": own}).axes
    assert rows_of(losses) == ["lost, down (2 of 8)"]
    assert losses.lines[0].get_xdata().tolist() == [1, 6]  # type: ignore[union-attr]
    assert "gap" in other.get_ylabel()


def test_of_nothing_nothing_is_drawn() -> None:
    with pytest.raises(NothingToDraw):
        course_over_time(Course("trial 1", "server"))
