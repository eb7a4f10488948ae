"""Axes of factors have the scale of the design, in every figure that draws over factors."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fecbench.results import figures
from fecbench.results.analysis.scales import is_log
from fecbench.results.figures.ticks import round_ticks
from tests.support.campaigns import campaign_info, frame_of, variants

DESIGN = """
[factors]
bandwidth_mbps = { min = 1, max = 10, scale = "log" }
owd_ms = { min = 5, max = 500 }
loss.p = { min = 0.001, max = 0.1, scale = "log" }
network = { values = ["a", "b"] }
"""
POINTS = [
    {"bandwidth_mbps": 1 + 9 * s, "owd_ms": 5 + 495 * s, "loss.p": 0.001 + 0.099 * s}
    for s in np.linspace(0, 1, 9)
]


def test_a_campaign_knows_the_scales_of_the_ranges_of_its_design() -> None:
    campaign = campaign_info(design_text=DESIGN)
    assert campaign.scales == {"bandwidth_mbps": "log", "owd_ms": "linear", "loss.p": "log"}


def test_the_design_decides_and_else_the_width_of_the_values() -> None:
    for name, log in (("bandwidth_mbps", True), ("owd_ms", False), ("unknown", True)):
        scales = campaign_info(design_text=DESIGN).scales
        assert is_log(pd.Series(np.linspace(1, 500, 9), name=name), scales) == log, name


def test_ticks_are_those_of_the_view_and_size_of_now() -> None:
    axes = Figure(figsize=(10, 4)).subplots()
    axes.set(xscale="log", xlim=(1, 100))
    round_ticks(axes.xaxis)
    assert list(axes.get_xticks()) == [1, 2, 5, 10, 20, 50, 100]
    axes.set_xlim(10, 1000)
    assert list(axes.get_xticks()) == [10, 20, 50, 100, 200, 500, 1000]
    axes.figure.set_figwidth(2)
    assert list(axes.get_xticks()) == [10, 100, 1000]


def test_the_points_of_a_design_are_drawn_on_its_scales() -> None:
    figure = figures.points(campaign_info(design_text=DESIGN, points=POINTS))
    scale_of = {}
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if label := " ".join(axis.get_label_text().split()):
                scale_of[label] = axis.get_scale()
    assert scale_of == {"bandwidth (Mbit/s)": "log", "owd (ms)": "linear", "loss.p": "log"}


def test_a_factor_of_numbers_and_words_is_one_of_words() -> None:
    points = [{**point, "option.mode": (1, "auto", 2.5)[n % 3]} for n, point in enumerate(POINTS)]
    campaign = campaign_info(points=points, variants=variants("off", "fec"))
    rows = (
        {"variant": label, "workload": "download-1", "point": n, "repetition": 0, "state": "ok"}
        | {"client.dct_s": 1.0 + (label == "fec") * n}
        for label, n in product(("off", "fec"), range(len(points)))
    )
    ratios = figures.table(frame_of(rows, campaign), campaign)
    others = (figures.points(campaign), figures.over_factors(ratios, campaign, "download-1"))
    for figure in (*others, figures.pairs(ratios, campaign, "fec")):
        figure.canvas.draw()
        ticks = [axis.get_ticklabels() for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)]
        assert ["1", "auto", "2.5"] in [[tick.get_text() for tick in of_axis] for of_axis in ticks]
