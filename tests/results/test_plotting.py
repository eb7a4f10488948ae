"""A notebook draws the figures of a campaign into its own axes, in its own settings."""

from collections.abc import Callable, Iterator
from itertools import product

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

import fecbench
from fecbench.errors import BadInput
from fecbench.results.figures import NothingToDraw
from fecbench.results.figures.style import looks
from fecbench.results.reading import Campaign
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, TrialKey, Variant

Filled = Callable[..., tuple[Database, CampaignInfo]]
OFF, XOR, RLC = "off", "xor", "rlc"
SMALL, LARGE = "download-2000", "download-10000"


@pytest.fixture
def campaign(filled: Filled, sqlite: str) -> Iterator[Campaign]:
    """Thirty points; XOR helps where the delay is long."""
    random = np.random.default_rng(3)
    points = [{"owd_ms": float(10 + i), "loss.p": float(random.uniform(0.01, 0.1))} for i in range(30)]
    variants = [
        Variant(label=label, implementation="x", options={}, baseline=label == OFF)
        for label in (OFF, XOR, RLC)
    ]
    outcomes = {
        TrialKey(variant, workload, point, repetition): (
            "ok",
            float((0.7 if variant == XOR and point > 14 else 1) * random.lognormal(0, 0.05)),
        )
        for variant, workload, point, repetition in product(
            (OFF, XOR, RLC), (SMALL, LARGE), range(30), range(6)
        )
    }
    filled(outcomes, variants=variants, points=points, repetitions=6)
    with fecbench.open(sqlite) as opened:
        yield opened["campaign-0"]


def test_every_figure_of_one_panel_is_drawn_into_axes_and_returns_them(campaign: Campaign) -> None:
    plot = campaign.plot
    for name, draw in {
        "ratio": lambda ax: plot.ratio(ax=ax),
        "bars": lambda ax: plot.bars(ax=ax),
        "values": lambda ax: plot.values(ax=ax),
        "over_factor": lambda ax: plot.over_factor("owd_ms", workload=SMALL, ax=ax),
        "cells": lambda ax: plot.cells(arm=XOR, workloads=[SMALL], ax=ax),
        "map": lambda ax: plot.map(arm=XOR, workloads=[SMALL], ax=ax),
        "effects": lambda ax: plot.effects("owd_ms", arm=XOR, ax=ax),
    }.items():
        figure = Figure()
        axes = figure.subplots()
        assert draw(axes) is axes, name
        assert axes.has_data(), name
        assert figure.texts == [], name  # no heading of ours in a figure of the reader's
        assert axes.get_xlabel(), name


def test_axes_of_another_number_are_refused_with_what_to_choose(campaign: Campaign) -> None:
    with pytest.raises(ValueError, match=r"1 axes for a figure of 2 panels.*choose some of factors="):
        campaign.plot.over_factor(workload=SMALL, ax=Figure().subplots())
    first_axes, right = Figure().subplots(1, 2)
    campaign.plot.over_factor(workload=SMALL, ax=[first_axes, right])
    assert (first_axes.get_xlabel(), right.get_xlabel()) == ("owd (ms)", "loss.p")


def test_an_unknown_or_missing_label_is_told(campaign: Campaign) -> None:
    for draw, message in (
        (lambda: campaign.plot.ratio(arms=["xo"]), "has no variant 'xo'; did you mean 'xor'"),
        (lambda: campaign.plot.ratio(workloads=["download-2001"]), "did you mean 'download-2000'"),
        (lambda: campaign.plot.cells(), "choose one with arm=: 'xor', 'rlc'"),
        (lambda: campaign.plot.over_factor("owd_ms", workload="download-1"), "workload 'download-1'"),
    ):
        with pytest.raises(BadInput, match=message):
            draw()
    with pytest.raises(NothingToDraw, match="does not vary 'owd'"):
        campaign.plot.over_factor("owd", workload=SMALL)


def test_a_chosen_arm_keeps_its_colour(campaign: Campaign) -> None:
    expected = looks(campaign.info)[RLC].color
    axes = Figure().subplots()
    campaign.plot.bars(arms=[RLC], ax=axes)
    assert {to_rgb(bar.get_facecolor()) for bar in axes.patches} == {expected}  # type: ignore[arg-type]


def test_settings_of_the_reader_win_over_ours(campaign: Campaign) -> None:
    choice = {"font.size": 7.0, "font.family": ["serif"], "grid.linestyle": ":", "lines.linewidth": 0.5}
    with mpl.rc_context(choice):
        figure = campaign.plot.ratio(arms=[XOR], workloads=[SMALL])
    assert isinstance(figure, Figure)
    (axes,) = figure.axes
    assert axes.xaxis.label.get_fontfamily() == ["serif"]
    assert {text.get_fontsize() for text in figure.texts} == {7.0}
    assert {line.get_linestyle() for line in axes.get_xgridlines()} == {":"}
    assert max(line.get_linewidth() for line in axes.lines) < 1
    ours = campaign.plot.ratio(arms=[XOR], workloads=[SMALL])
    assert isinstance(ours, Figure)
    assert {text.get_fontsize() for text in ours.texts} == {12.0}


def test_a_panel_counts_the_verdicts_that_the_summary_counts(campaign: Campaign) -> None:
    summary = campaign.summary().set_index(["variant", "workload"])
    figure = campaign.plot.ratio(arms=[XOR])
    assert isinstance(figure, Figure)
    titles = [axes.get_title("left").splitlines()[1] for axes in figure.axes]
    expected = [summary.loc[(XOR, workload)] for workload in (LARGE, SMALL)]
    assert titles == [f"helps in {row['helps']}, harms in {row['harms']} of 30" for row in expected]
    assert 0 < expected[0]["helps"] < 30  # by far fewer than the ratios below 1
    ratios = campaign.ratios()
    assert (ratios[ratios["variant"] == XOR]["ratio"] < 1).sum() > 2 * expected[0]["helps"]
