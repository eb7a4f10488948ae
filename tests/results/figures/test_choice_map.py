"""A map of what to take shows where something gains, and how sure that is."""

from __future__ import annotations

import pandas as pd
from matplotlib.patches import Rectangle

from results import figures

LOSSES = [pd.Interval(0.001, 0.01, closed="left"), pd.Interval(0.01, 0.1, closed="left")]
DELAYS = [pd.Interval(10, 50, closed="left"), pd.Interval(50, 300, closed="left")]
VARIANTS = ["no FEC", "XOR", "RLC"]


def test_cells_with_a_gain_have_its_colour_and_numbers_and_the_others_are_white() -> None:
    cells = [(loss, delay) for loss in LOSSES for delay in DELAYS]
    table = pd.DataFrame(cells, columns=["loss.p", "owd_ms"]).assign(
        panel="Cubic", variant=["no FEC", "no FEC", "RLC", "no FEC"], ratio=0.8, low=0.75, high=0.86
    )
    table = table.assign(points=20, unknown=0, timed_out=[()] * 4)
    drawn = figures.choice_map(table, VARIANTS, "loss.p", "owd_ms", "Where?", "Cells.")
    (axes,) = drawn.axes
    assert [text.get_text() for text in axes.texts] == ["0.80\n0.75–0.86"]
    assert axes.texts[0].xy == (1.5, 0.5)
    rectangles = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    colored = [patch.get_xy() for patch in rectangles if patch.get_facecolor()[:3] != (1, 1, 1)]
    assert (len(rectangles), colored) == (4, [(1, 0)])
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0.1 %", "1 %", "10 %"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["10 ms", "50 ms", "300 ms"]
    assert [label.get_text() for label in drawn.legends[0].get_texts()] == ["no FEC", "RLC"]


def test_a_cell_that_timeouts_leave_open_says_so_and_by_whom() -> None:
    table = pd.DataFrame(
        [(LOSSES[0], DELAYS[0], 0, ()), (LOSSES[1], DELAYS[0], 3, ("RLC", "XOR"))],
        columns=["loss.p", "owd_ms", "unknown", "timed_out"],
    ).assign(
        panel="Cubic", variant="no FEC", ratio=float("nan"), low=float("nan"), high=float("nan"), points=20
    )
    drawn = figures.choice_map(table, VARIANTS, "loss.p", "owd_ms", "Where?", "Cells.")
    assert [text.get_text() for text in drawn.axes[0].texts] == ["?\n3 of 20"]
    said = " ".join(" ".join(text.get_text() for text in drawn.texts).split())
    assert "timeouts in so many of the networks, of RLC, XOR" in said
