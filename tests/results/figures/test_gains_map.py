"""A map of gains has each arm's mean and range in each group of networks."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes

from fecbench.results import figures

ARMS = ["safe", "tail"]


@pytest.fixture
def table() -> pd.DataFrame:
    """Two panels of two groups; in the second panel one arm lacks a group."""
    ratios = np.geomspace(0.5, 2, 101)
    rows = [
        pd.DataFrame({"panel": panel, "group": group, "arm": arm, "ratio": ratios * (1 + place)})
        for place, (panel, group, arm) in enumerate(
            [
                *(("10 kB", group, arm) for group in ("none", "1 %") for arm in ARMS),
                *(("1 MB", "none", arm) for arm in ARMS),
                ("1 MB", "1 %", "safe"),
            ]
        )
    ]
    return pd.concat(rows, ignore_index=True)


def means_and_spans(axes: Axes) -> tuple[list[float], list[tuple[float, float]]]:
    """Return the mark of each arm in each group, and the ends of its line."""
    *drawing, at_1 = axes.lines
    assert np.ravel(at_1.get_ydata()).tolist() == [1, 1]
    lines = [np.ravel(line.get_ydata()) for line in drawing]
    marked = [line.get_marker() not in ("", "None", None) for line in drawing]
    means = [float(y) for ys, is_mark in zip(lines, marked, strict=True) if is_mark for y in ys]
    ends = [ys for ys, is_mark in zip(lines, marked, strict=True) if not is_mark]
    finite_ends = [(float(ys.min()), float(ys.max())) for ys in ends if np.isfinite(ys).any()]
    return [mean for mean in means if np.isfinite(mean)], finite_ends


def test_each_arm_has_its_mean_and_nine_tenths_of_its_networks_in_each_group(table: pd.DataFrame) -> None:
    drawing = figures.gains_map(table, ARMS, "What does it gain?", "ratios")
    assert [axes.get_title(loc="left") for axes in drawing.axes] == ["10 kB", "1 MB"]
    for axes, count in zip(drawing.axes, (4, 3), strict=True):
        assert [label.get_text() for label in axes.get_xticklabels()] == ["none", "1 %"]
        means, spans = means_and_spans(axes)
        assert len(means) == len(spans) == count
    means, spans = means_and_spans(drawing.axes[0])
    assert means[0] == pytest.approx(1)
    assert spans[0] == pytest.approx((4**-0.45, 4**0.45))  # from 5 to 95 % of 0.5 to 2
    assert [text.get_text() for text in drawing.legends[0].get_texts()] == ARMS


def test_whatever_is_drawn_is_seen(table: pd.DataFrame) -> None:
    drawing = figures.gains_map(table, ARMS, "What does it gain?", "ratios")
    for axes in drawing.axes:
        low, high = axes.get_ylim()
        drawn_at = np.concatenate([np.ravel(line.get_ydata()) for line in axes.lines])
        assert all(low <= value <= high for value in drawn_at[np.isfinite(drawn_at)])
