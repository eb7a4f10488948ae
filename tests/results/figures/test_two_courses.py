"""The figure of two trials over time, and that of a searched space."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from fecbench.results.analysis.trial_course import ARRIVED, LOST, Course, Crossing, Repair
from fecbench.results.figures import NothingToDraw, both_over_time, hunted_space

SENT_S = np.array([0.0, 0.1, 0.1, 0.2, 0.3])
DOWN = Crossing("internet", "down", SENT_S, SENT_S + 0.02, np.full(5, 1200), np.full(5, ARRIVED))
ONE = Course("trial 1", "server", completed_s=0.4, crossings=[DOWN])
FATES = np.array([ARRIVED, ARRIVED, ARRIVED, LOST, ARRIVED])
NONE = np.empty(0)
OTHER = dataclasses.replace(
    ONE,
    detail="trial 2",
    completed_s=0.7,
    crossings=[dataclasses.replace(DOWN, fates=FATES)],
    repair=[Repair("server", np.array([0.15, 0.25]), NONE, NONE)],
)


def legend(figure) -> list[str]:
    return [text.get_text() for box in figure.legends for text in box.get_texts()]


def test_two_trials_have_a_line_each_their_ends_and_where_they_part() -> None:
    figure = both_over_time(ONE, OTHER, ("no FEC", "safe"))
    names = legend(figure)
    assert {"no FEC: sent", "safe: sent", "transfer complete"} <= set(names)
    assert "they part: packet 4 down, by its fate" in names
    bytes_sent, events = figure.axes
    ends = {line.get_xdata()[0] for line in bytes_sent.lines if len(set(line.get_xdata())) == 1}
    assert {0.4, 0.7, 0.2} <= ends
    rows = [label.get_text() for label in events.get_yticklabels()]
    assert rows == ["no FEC: never came (0)", "safe: never came (1)", "safe: repair sent by the server (2)"]


def test_trials_that_never_part_have_no_such_line() -> None:
    assert not any("part" in name for name in legend(both_over_time(ONE, ONE, ("A", "B"))))


def test_trials_without_packets_are_not_drawn() -> None:
    with pytest.raises(NothingToDraw, match="packets"):
        both_over_time(ONE, dataclasses.replace(ONE, crossings=[]), ("A", "B"))


LOOKED_AT = pd.DataFrame(
    {
        "workload": ["download"] * 4,
        "owd_ms": [5.0, 10.0, 20.0, 40.0],
        "losses": ["none", "1 %", "none", "1 %"],
        "effect": [1.0, 0.9, 1.5, 8.0],
    }
)


def drawn(looked_at: pd.DataFrame):
    return hunted_space(looked_at, LOOKED_AT[2:3], {"owd_ms": "log"}, 0.06, "Where?", "times as long")


def test_a_space_has_a_panel_for_each_thing_that_varies() -> None:
    figure = drawn(LOOKED_AT)
    assert [axes.get_title(loc="left") or axes.get_title() for axes in figure.axes] == ["owd_ms", "losses"]
    assert figure.axes[0].get_xscale() == "log"
    assert {"looked at (4 networks)", "found (1)", "within the margin"} == set(legend(figure))


def test_what_is_far_beyond_is_drawn_at_the_edge() -> None:
    values = drawn(LOOKED_AT).axes[0].lines[0].get_ydata()
    assert max(values) == 3.0 and min(values) == 0.9


def test_a_space_of_which_nothing_is_known_is_not_drawn() -> None:
    with pytest.raises(NothingToDraw):
        drawn(LOOKED_AT[:0])
