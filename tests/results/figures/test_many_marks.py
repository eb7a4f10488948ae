"""Figures of thousands of points show what those of all marks would, in files that can be opened."""

import io
import re
from collections.abc import Callable
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure

from fecbench.results import figures
from fecbench.results.figures.box_plots import boxes_of
from fecbench.results.figures.curves import curve
from fecbench.results.figures.style import looks, style
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo

Filled = Callable[..., tuple[Database, CampaignInfo]]


def as_svg(figure: Figure) -> str:
    with style():
        file = io.StringIO()
        figure.savefig(file, format="svg")
    return file.getvalue()


def campaign_of(filled: Filled, points: int) -> CampaignInfo:
    random = np.random.default_rng(points)
    factors = [{"owd_ms": float(owd), "loss.p": float(p)} for owd, p in random.random((points, 2))]
    return filled({}, points=factors)[1]


@pytest.mark.parametrize(("points", "pixels"), [(2000, False), (2001, True)])
def test_more_than_two_thousand_marks_are_pixels_and_text_and_axes_are_not(
    filled: Filled, points: int, pixels: bool
) -> None:
    drawing = as_svg(figures.points(campaign_of(filled, points)))
    assert ("<image" in drawing) == pixels
    assert drawing.count("<use") >= (0 if pixels else points)
    assert "one-way delay" in drawing or "owd" in drawing  # text stays text
    assert len(drawing) < 3e5 or not pixels


def test_of_more_networks_than_can_be_told_apart_some_are_drawn_and_the_figure_says_so(
    filled: Filled,
) -> None:
    for points, is_sample in ((3000, False), (3001, True)):
        figure = figures.points(campaign_of(filled, points))
        (marks,) = (marks for axes in figure.axes for marks in axes.collections)
        assert len(marks.get_offsets()) == 3000
        texts = " ".join(" ".join(text.get_text() for text in figure.texts).split())
        assert ("a mark for 3,000 of them, chosen by chance" in texts) == is_sample
        assert f"{points:,} networks" in texts


def test_ratios_over_factors_are_pixels_where_all_panels_together_have_too_many(filled: Filled) -> None:
    random = np.random.default_rng(2)
    campaign = campaign_of(filled, 1500)
    rows: dict[str, Any] = {
        "variant": campaign.variants[1]["label"],
        "workload": campaign.workloads[0]["label"],
        "point": range(1500),
        "metric": "client.dct_s",
        "ratio": random.lognormal(0, 0.3, 1500),
        "low": 0.9,
        "verdict": "undecided",
        "high": 1.1,
        "censored": False,
    }
    ratios = pd.DataFrame(rows).join(pd.DataFrame(campaign.points))
    drawing = as_svg(figures.over_factors(ratios, campaign, rows["workload"]))
    assert "<image" in drawing
    assert len(re.findall("<path", drawing)) < 1500


@pytest.mark.parametrize(("steps", "pixels"), [(2000, False), (2001, True)])
def test_a_curve_of_more_than_two_thousand_steps_is_pixels_with_all_of_them(steps: int, pixels: bool) -> None:
    values = np.random.default_rng(1).lognormal(0, 0.2, steps - 2)
    axes = mpl.figure.Figure().subplots()
    curve(axes, [*values, 0.0, np.inf], (0.1, 10.0))
    (line,) = axes.lines
    assert line.get_rasterized() == pixels
    drawing = [float(x) for x in line.get_xdata() if x > -np.inf]  # seaborn begins there
    assert (min(drawing), max(drawing)) == (0.1, 10.0)
    inside = [x for x in drawing if 0.1 < x < 10]
    assert inside == sorted(values)


def test_boxes_of_many_trials_have_their_outliers_as_pixels(filled: Filled) -> None:
    campaign = campaign_of(filled, 1)
    label, look = next(iter(looks(campaign).items()))
    for count, pixels in ((1000, False), (2001, True)):
        axes = mpl.figure.Figure().subplots()
        values = np.random.default_rng(0).lognormal(0, 1, count)
        low, high = np.quantile(values, [0.25, 0.75])
        trials = pd.DataFrame({"workload": "w", "variant": label, "dct_s": values})
        boxes_of(axes, trials, "workload", "dct_s", ["w"], {label: look})
        marks = [collection for collection in axes.collections if isinstance(collection, PathCollection)]
        assert [collection.get_rasterized() for collection in marks] == [pixels], count
        beyond = (values > high + 1.5 * (high - low)) | (values < low - 1.5 * (high - low))
        assert len(marks[0].get_offsets()) == np.count_nonzero(beyond)
