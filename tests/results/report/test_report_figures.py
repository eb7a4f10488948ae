"""The figures of ratios show what was measured, in one look, and ticks that can be read."""

import math
from collections.abc import Callable
from itertools import product

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure

from fecbench.results.analysis import frames
from fecbench.results.analysis.intervals import FEWEST, median_interval
from fecbench.results.figures import ratios as ratio_figures
from fecbench.results.figures.distributions import ecdf_panels
from fecbench.results.figures.nothing import NothingToDraw
from fecbench.results.figures.style import looks
from fecbench.results.figures.ticks import ratio_ticks
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, TrialKey, Variant
from tests.results.conftest import create_campaign, make_record

Table = tuple[pd.DataFrame, CampaignInfo]

Filled = Callable[..., tuple[Database, CampaignInfo]]

OFF, XOR, RLC = "off", "xor", "rlc"
SMALL, LARGE = "download-2000", "download-10000"
VARIANTS = [
    Variant(label=label, implementation="x", options={}, baseline=label == OFF) for label in (OFF, XOR, RLC)
]
POINTS = 40


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """40 points, with XOR at the first 30 of them only."""
    random = np.random.default_rng(1)
    points = [
        {
            "bandwidth_mbps": float(random.uniform(0.3, 100)),
            "loss.p": float(random.uniform(0.01, 0.08)),
            "queue": str(random.choice(["codel", "droptail"])),
        }
        for _ in range(POINTS)
    ]
    file = tmp_path_factory.mktemp("measured") / "campaigns.sqlite"
    with Database.open(str(file), create=True) as database:
        campaign = create_campaign(database, points=points, variants=VARIANTS, repetitions=1)
        records = []
        for variant, workload, point in product((OFF, XOR, RLC), (SMALL, LARGE), range(POINTS)):
            if variant != XOR or point < 30:
                measured = {"client": {"dct_s": float(random.lognormal(0, 0.3))}}
                key = TrialKey(variant, workload, point, 0)
                records.append(make_record(key=key, metrics=measured))
        database.record_all(campaign.id, records)
        return ratio_figures.table(frames.trials(database, campaign), campaign), campaign


def dots(figure: Figure) -> list[PathCollection]:
    return [item for axes in figure.axes for item in axes.collections if isinstance(item, PathCollection)]


def test_a_bar_ends_at_the_median_over_points_and_its_line_is_the_interval(measured: Table) -> None:
    ratios, campaign = measured
    axes = ratio_figures.bars(ratios, campaign).axes[0]
    (lines,) = axes.collections
    by_place = {round(float(segment[0, 0]), 6): segment[:, 1] for segment in lines.get_segments()}  # type: ignore[attr-defined]
    drawing = sorted(
        (
            bar.get_y() + bar.get_height(),  # type: ignore[attr-defined]
            *by_place[round(bar.get_x() + bar.get_width() / 2, 6)],  # type: ignore[attr-defined]
        )
        for bar in axes.patches
    )
    expected = sorted(
        (some["ratio"].median(), *median_interval(some["ratio"], some["point"]))
        for _, some in ratios.groupby(["variant", "workload"], observed=True)
    )
    assert len(expected) == 4
    np.testing.assert_allclose(drawing, expected)


INTERVALS: list[tuple[int, str]] = [
    (FEWEST, "line: its 95 % interval"),
    (FEWEST - 1, f"no interval of fewer than {FEWEST} networks"),
]


def test_bars_say_whether_they_have_an_interval(measured: Table) -> None:
    for points, words in INTERVALS:
        ratios, campaign = measured
        figure = ratio_figures.bars(ratios[ratios["point"] < points], campaign)
        detail = " ".join(figure.texts[-1].get_text().split())
        assert detail.endswith(f"bar: median over networks; {words}"), points


def test_each_curve_of_ratios_has_a_panel_with_its_band_from_end_to_end(measured: Table) -> None:
    """The band of Massart: 95 % of 30 or 40 values lie within √(ln 40 / 2n)."""
    ratios, campaign = measured
    curves = {
        variant: dict(list(some.groupby("workload", observed=True)["ratio"]))
        for variant, some in ratios.groupby("variant", observed=True)
    }
    figure = ecdf_panels(curves, OFF, campaign, "A question?", "a campaign", "points")
    panels = iter(figure.axes)
    for variant, of_variant in curves.items():
        for ratio in of_variant.values():
            axes = next(panels)
            (band,) = axes.collections
            assert axes.lines[-1].get_color() == looks(campaign)[variant].color
            assert len(axes.lines) == 1 + len(of_variant)  # the line at 1, and all curves
            least, right = axes.get_xlim()
            at = np.array([least * 1.001, *sorted(ratio), right * 0.999])
            share = np.array([0, *np.arange(1, len(ratio) + 1) / len(ratio), 1])
            half = math.sqrt(math.log(40) / (2 * len(ratio)))
            for x, y in zip(at, share, strict=True):
                low, high = max(0, y - half), min(1, y + half)
                inside = [low + 0.001, high - 0.001]
                outside = [item for item in (low - 0.001, high + 0.001) if 0 <= item <= 1]
                assert all(band.get_paths()[0].contains_point((x * 1.00001, item)) for item in inside)
                assert not any(band.get_paths()[0].contains_point((x * 1.00001, item)) for item in outside)
    assert next(panels, None) is None


def test_every_ratio_of_a_workload_is_drawn_over_every_factor(measured: Table) -> None:
    ratios, campaign = measured
    figure = ratio_figures.over_factors(ratios, campaign, SMALL)
    assert [axes.get_xlabel() for axes in figure.axes] == ["bandwidth (Mbit/s)", "loss.p", "queue"]
    expected = sorted(ratios.loc[ratios["workload"] == SMALL, "ratio"])
    for axes in figure.axes:
        drawing = [item for item in axes.collections if isinstance(item, PathCollection)]
        np.testing.assert_allclose(sorted(y for item in drawing for _, y in item.get_offsets()), expected)


def test_each_interval_over_factors_is_a_line_of_its_own_where_it_is_known(measured: Table) -> None:
    ratios, campaign = measured
    rlc = ratios[(ratios["variant"] == RLC) & (ratios["workload"] == SMALL)]
    bounded = rlc.assign(low=rlc["ratio"] / 1.1, high=rlc["ratio"] * 1.1)
    bounded.loc[bounded.index[::4], ["low", "high"]] = np.nan
    for axes, factor in zip(
        ratio_figures.over_factors(bounded, campaign, SMALL).axes, ("bandwidth_mbps", "loss.p"), strict=False
    ):
        places, ends = (np.asarray(values, np.float64) for values in axes.lines[1].get_data())
        pieces = sorted(zip(places[::3], ends[::3], ends[1::3], strict=True))
        expected = bounded.dropna(subset="low")[[factor, "low", "high"]]
        assert pieces == sorted(expected.itertuples(index=False, name=None))
        assert np.isnan(ends[2::3]).all()


def test_the_cells_of_a_map_hold_every_point_once(measured: Table) -> None:
    for factors in (("bandwidth_mbps", "loss.p"), ("loss.p", "queue"), None):
        ratios, campaign = measured
        *panels, _ = ratio_figures.heat_map(ratios, campaign, XOR, factors).axes
        assert len(panels) == 2, factors
        for axes, workload in zip(panels, (LARGE, SMALL), strict=True):
            words = [text.get_text().split("\n") for text in axes.texts]
            assert sum(int(count.strip("()")) for _, count in words) == 30, (factors, workload)
            some = ratios[(ratios["variant"] == XOR) & (ratios["workload"] == workload)]["ratio"]
            assert all(some.min() - 0.01 <= float(median) <= some.max() + 0.01 for median, _ in words), (
                factors,
                workload,
            )
            assert len(words) > 3, (factors, workload)


def test_a_cell_of_unknown_median_has_a_question_mark_and_its_points(measured: Table) -> None:
    ratios, campaign = measured
    some = ratios[(ratios["variant"] == RLC) & (ratios["workload"] == SMALL)]
    unknown = some.assign(ratio=np.where(np.arange(len(some)) % 2, 0.0, math.inf), censored=True)
    axes, _ = ratio_figures.heat_map(unknown, campaign, RLC, ("bandwidth_mbps", "loss.p")).axes
    texts = {text.get_text().partition("\n")[0]: text.get_text().partition("\n")[2] for text in axes.texts}
    assert set(texts) <= {"?", "∞", "0.00"}
    assert "?" in texts
    assert (
        sum(int(text.get_text().partition("\n")[2].strip("()")) for text in axes.texts if text.get_text())
        == POINTS
    )


def test_a_cell_between_two_ticks_holds_the_points_between_these_values() -> None:
    values = pd.Series(np.geomspace(1, 1000, 100), name="owd_ms")
    cells = ratio_figures._cells(values, {})
    edges = [float(label) for label in cells.labels]
    for cell in range(len(cells)):
        inside = values[cells.of_point == cell]
        low, high = edges[cell], edges[cell + 1]
        assert len(inside)
        assert low * 0.99 <= inside.min() <= inside.max() <= high * 1.01


def test_a_point_without_a_ratio_stays_grey_in_a_pair_plot(measured: Table) -> None:
    ratios, campaign = measured
    grey, coloured, *_ = dots(ratio_figures.pairs(ratios, campaign, XOR))
    assert len(grey.get_offsets()) == POINTS
    of_point = ratios[ratios["variant"] == XOR].groupby("point")["ratio"].median()
    reach = np.quantile(np.abs(np.log2(of_point)), 0.98)
    shades = 0.5 + 0.5 * np.log2(of_point) / reach
    expected = mpl.colormaps["PuOr_r"](shades.to_numpy())
    np.testing.assert_allclose(coloured.get_facecolor(), expected, atol=0.02)


def test_a_variant_has_its_colour_and_mark_in_bars_and_over_factors(measured: Table) -> None:
    ratios, campaign = measured
    color = looks(campaign)[RLC].color
    alone = ratios[ratios["variant"] == RLC]
    bars = ratio_figures.bars(alone, campaign).axes[0].patches
    over = dots(ratio_figures.over_factors(alone, campaign, SMALL))
    assert {bar.get_facecolor()[:3] for bar in bars} == {color}
    assert {tuple(item.get_facecolor()[0][:3]) for item in over} == {color}
    assert len({(look.color, look.marker, look.hatch) for look in looks(campaign).values()}) == 3


def test_what_a_figure_lacks_is_said(measured: Table, filled: Filled) -> None:
    ratios, campaign = measured
    with pytest.raises(NothingToDraw, match="No ratio was measured for 2 kB"):
        ratio_figures.over_factors(ratios[ratios["workload"] == LARGE], campaign, SMALL)
    for draw in (ratio_figures.heat_map, ratio_figures.pairs):
        with pytest.raises(NothingToDraw, match="No ratio of xor was measured"):
            draw(ratios[ratios["variant"] == RLC], campaign, XOR)
    _, alike = filled({}, points=[{"owd_ms": 1}, {"owd_ms": 1}])
    with pytest.raises(NothingToDraw, match="varies no factor"):
        ratio_figures.over_factors(ratios, alike, SMALL)
    _, one = filled({}, points=[{"owd_ms": 1}, {"owd_ms": 2}])
    with pytest.raises(NothingToDraw, match="one factor only"):
        ratio_figures.heat_map(ratios, one, XOR)


def test_a_dct_of_zero_has_no_ratio(filled: Filled) -> None:
    keys = [TrialKey(variant, SMALL, 0, 0) for variant in (OFF, XOR)]
    for zero, words in zip(keys, ["so there is no DCT ratio", "A DCT of 0 s"], strict=True):
        outcomes = {key: ("ok", 0.0 if key == zero else 1.0) for key in keys}
        database, campaign = filled(outcomes, variants=VARIANTS)
        with pytest.raises(NothingToDraw, match=words):
            ratio_figures.table(frames.trials(database, campaign), campaign)


@given(reach=st.floats(1e-3, math.log(100)))
@settings(max_examples=50, deadline=None)
def test_an_axis_of_ratios_has_two_ticks_or_more_and_one_at_1(reach: float) -> None:
    axes = Figure().subplots()
    axes.set(xscale="log", xlim=(math.exp(-reach), math.exp(reach)))
    ratio_ticks(axes.xaxis, reach)
    inside = [tick for tick in axes.get_xticks() if math.exp(-reach) <= tick <= math.exp(reach)]
    assert len(inside) >= 2
    assert min(abs(tick - 1) for tick in inside) < 1e-9
