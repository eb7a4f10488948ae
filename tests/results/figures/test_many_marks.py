"""Figures of thousands of points show what those of all marks would, in files that can be opened."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from fecbench.results import figures
from fecbench.results.analysis.intervals import ecdf
from fecbench.results.figures import distributions
from fecbench.results.figures.style import style
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo

Filled = Callable[..., tuple[Database, CampaignInfo]]

REACH = np.log(3)


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
    drawn = as_svg(figures.points(campaign_of(filled, points)))
    assert ("<image" in drawn) == pixels
    assert drawn.count("<use") > (50 if pixels else points)  # letters and ticks, and marks
    assert len(drawn) < 3e5 or not pixels


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
    drawn = as_svg(figures.over_factors(ratios, campaign, rows["workload"]))
    assert "<image" in drawn
    assert len(re.findall("<path", drawn)) < 1500


def test_a_curve_of_many_steps_is_drawn_within_a_pixel_of_all_of_them() -> None:
    random = np.random.default_rng(1)
    ratios = np.concatenate([random.lognormal(0, 0.2, 60_000), np.ones(20_000), [0, np.inf]])
    whole = distributions._to_the_ends(ecdf(ratios), REACH)
    thinned = distributions._thinned(whole, REACH)
    assert len(thinned) < 3000 < len(whole)
    across, up = 10 * 150, 2.8 * 150  # the greatest panel, in inches, at the resolution of a PNG

    def path(curve: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
        return (np.log(curve["value"].to_numpy()) / REACH + 1) / 2 * across, curve["share"].to_numpy() * up

    x, y = path(thinned)

    def height(at: np.ndarray) -> np.ndarray:
        """Of the curve that is drawn, which holds each share until the next."""
        return y[(np.searchsorted(x, at, side="right") - 1).clip(0)]

    corner, share = path(whole)
    assert (share <= height(corner + 1) + 1).all()
    assert (share >= height(corner - 1) - 1).all()


def test_a_curve_of_few_steps_is_drawn_with_all_of_them() -> None:
    whole = distributions._to_the_ends(ecdf(np.linspace(0.5, 2, 1000)), REACH)
    assert distributions._thinned(whole, REACH) is whole


def test_boxes_of_many_trials_have_their_outliers_as_pixels(filled: Filled) -> None:
    figure = mpl.figure.Figure()
    axes, campaign = figure.subplots(), campaign_of(filled, 1)
    look = next(iter(distributions.looks(campaign).values()))  # type: ignore[attr-defined]
    for position, count in enumerate((1000, 2001)):
        distributions.box(axes, position, 0.5, np.random.default_rng(0).lognormal(0, 1, count), look)  # type: ignore[attr-defined]
    outliers = [line for line in axes.lines if line.get_marker() == look.marker]
    assert [line.get_rasterized() for line in outliers] == [False, True]
