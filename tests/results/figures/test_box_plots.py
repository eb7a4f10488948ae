"""Boxes beside each other: each trial has its variant's marker and place."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.markers import MarkerStyle

from fecbench.results.figures.box_plots import boxes_of
from fecbench.results.figures.style import look

LOOKS = {label: look(place) for place, label in enumerate(("off", "rlc", "safe"))}
SHOWN = {(0, "off"): 5, (0, "safe"): 7, (1, "safe"): 6}


def trials_of(counts: dict[tuple[int, str], int]) -> pd.DataFrame:
    random = np.random.default_rng(1)
    rows = [(*key, value) for key, count in counts.items() for value in random.random(count)]
    return pd.DataFrame(rows, columns=["place", "variant", "dct_s"])


def dots_of(trials: pd.DataFrame, across: str, order: list[object]) -> dict[tuple[int, str], int]:
    """Return the number of dots at each place on the axis, by the variant whose marker they have."""
    axes = Figure().subplots()
    boxes_of(axes, trials, across, "dct_s", order, LOOKS)
    found = {}
    for dots in axes.collections:
        assert isinstance(dots, PathCollection)
        if len(offsets := np.asarray(dots.get_offsets())):
            (path,) = dots.get_paths()
            (variant,) = (label for label, each in LOOKS.items() if is_marker(path.vertices, each.marker))
            found[round(float(offsets[:, 0].mean())), variant] = len(offsets)
    return found


def is_marker(vertices: object, name: str) -> bool:
    marker = MarkerStyle(name)
    wanted = marker.get_path().transformed(marker.get_transform()).vertices
    return np.array_equal(np.asarray(vertices), wanted)


def test_each_trial_is_a_dot_at_its_place_with_the_marker_of_its_variant() -> None:
    assert dots_of(trials_of(SHOWN), "place", [0, 1, 2]) == SHOWN


@pytest.mark.parametrize("order", [["off", "rlc", "safe"], ["safe", "off"]])
def test_variants_side_by_side_keep_their_markers(order: list[object]) -> None:
    shown = dots_of(trials_of(SHOWN), "variant", order)
    assert shown == {(order.index("off"), "off"): 5, (order.index("safe"), "safe"): 13}


def test_crowded_boxes_without_a_trial_beyond_the_whiskers_have_no_dots() -> None:
    assert dots_of(trials_of({(0, "off"): 500, (1, "rlc"): 500}), "place", [0, 1]) == {}
    assert dots_of(trials_of({}), "place", [0, 1]) == {}
