"""A variant that names its baseline is divided by that one, and every table and figure says so."""

import math
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure

from fecbench.results import figures
from fecbench.results.analysis import frames
from fecbench.results.analysis.attempts import by_variant
from fecbench.results.analysis.pairing import baselines_of, comparisons
from fecbench.results.analysis.summary import summary
from fecbench.results.figures import ratios as ratio_figures
from fecbench.results.report.finding_sentences import findings, headline
from fecbench.results.report.report import report
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, TrialKey, Variant
from tests.results.conftest import either

Filled = Callable[..., tuple[Database, CampaignInfo]]

CUBIC, BBR, CUBIC_FEC, BBR_FEC = "Cubic", "BBRv3", "Cubic, RLC", "BBRv3, RLC"
TIMES_S = {CUBIC: 8.0, BBR: 2.0, CUBIC_FEC: 4.0, BBR_FEC: 3.0}
OWN = {CUBIC_FEC: CUBIC, BBR_FEC: BBR}
BASELINES = {BBR: CUBIC, CUBIC_FEC: CUBIC, BBR_FEC: BBR}
RATIOS = {BBR: 0.25, CUBIC_FEC: 0.5, BBR_FEC: 1.5}
VARIANTS = [
    Variant(
        label=label, implementation="x", options={}, baseline=label == CUBIC, compared_with=OWN.get(label)
    )
    for label in TIMES_S
]


KEYS = [
    TrialKey(variant, workload, point, 0)
    for variant, workload, point in product(TIMES_S, ("download-2000", "download-10000"), range(2))
]


@pytest.fixture
def campaign(filled: Filled) -> tuple[Database, CampaignInfo]:
    """A campaign whose variants take the same time at all points."""
    outcomes = {key: ("ok", TIMES_S[key.variant]) for key in KEYS}
    return filled(outcomes, variants=VARIANTS, repetitions=1)


@pytest.fixture
def measured(campaign: tuple[Database, CampaignInfo]) -> tuple[pd.DataFrame, CampaignInfo]:
    return frames.trials(*campaign), campaign[1]


@either
def test_a_database_keeps_what_each_variant_is_compared_with(
    database: Database, new_campaign: Callable[..., CampaignInfo]
) -> None:
    campaign_id = new_campaign(database, variants=VARIANTS)
    assert baselines_of(campaign_id) == BASELINES
    assert database.campaign(campaign_id.name) == campaign_id


def test_each_variant_is_divided_by_the_one_that_it_names_or_by_the_designs_baseline(
    measured: tuple[pd.DataFrame, CampaignInfo],
) -> None:
    pairings = comparisons(*measured)
    assert {variant: pairing.ratios["ratio"].unique().tolist() for variant, pairing in pairings.items()} == {
        variant: [ratio] for variant, ratio in RATIOS.items()
    }
    assert {p.variant_label: p.baseline_label for p in pairings.values()} == BASELINES


def test_variants_that_name_a_baseline_are_compared_without_one_of_the_design(
    measured: tuple[pd.DataFrame, CampaignInfo], filled: Filled
) -> None:
    _, without = filled({}, variants=[{**variant, "baseline": False} for variant in VARIANTS])
    assert baselines_of(without) == OWN
    assert comparisons(measured[0], without).keys() == OWN.keys()


def test_the_table_names_what_each_ratio_is_to(measured: tuple[pd.DataFrame, CampaignInfo]) -> None:
    table = summary(*measured).query("workload == 'download-2000'").set_index("variant")
    assert table["compared_with"].to_dict() == {CUBIC: "", **BASELINES}
    assert table["median_ratio"].dropna().to_dict() == RATIOS


def test_the_headline_names_what_each_variant_is_compared_with(
    measured: tuple[pd.DataFrame, CampaignInfo],
) -> None:
    table = findings(*measured, ratio_figures.table(*measured))
    text = " ".join(headline(*measured, table))
    for variant, baseline in BASELINES.items():
        assert f"{variant} against {baseline}, " in text


def test_invalid_attempts_are_held_against_those_of_the_own_baseline(filled: Filled) -> None:
    invalid = (BBR, BBR_FEC)
    outcomes = {key: ("invalid" if key.variant in invalid else "ok", TIMES_S[key.variant]) for key in KEYS}
    p_values = by_variant(*filled(outcomes, variants=VARIANTS)).set_index("variant")["p_value"]
    assert math.isnan(p_values[CUBIC])
    # 4 of 4 against 0 of 4, of 8 attempts: 1 in 35 on each side.
    assert p_values[BBR] == pytest.approx(2 / 70)
    assert p_values[BBR_FEC] == p_values[CUBIC_FEC] == 1


def words(figure: Figure) -> str:
    """Return all text of a figure, without line breaks."""
    texts = [*figure.texts, *(text for legend in figure.legends for text in legend.get_texts())]
    labels = [axis.get_label() for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)]
    bars = [axes.get_ylabel() for axes in figure.axes]
    return " ".join(" ".join([*(text.get_text() for text in [*texts, *labels]), *bars]).split())


def test_a_figure_of_several_baselines_names_each(measured: tuple[pd.DataFrame, CampaignInfo]) -> None:
    frame, info = measured
    ratios = ratio_figures.table(frame, info)
    of_several = {
        "bars": figures.bars(ratios, info),
        "over_factors": figures.over_factors(ratios, info, "download-2000"),
        "ratio_ecdf": figures.ratio_ecdf(frame, info),
    }
    for drawing, figure in of_several.items():
        assert "DCT / DCT of its baseline" in words(figure), drawing
        for variant, baseline in BASELINES.items():
            assert f"{variant} against {baseline}" in words(figure), drawing


def test_a_figure_of_one_variant_names_its_baseline(measured: tuple[pd.DataFrame, CampaignInfo]) -> None:
    frame, info = measured
    for (variant, baseline), drawing in product(BASELINES.items(), ("heat_map", "pairs")):
        figure = getattr(figures, drawing)(ratio_figures.table(frame, info), info, variant)
        assert words(figure).endswith(f"DCT / DCT of {baseline}"), (drawing, variant)


def test_a_figure_of_variants_with_one_baseline_names_it_once(
    measured: tuple[pd.DataFrame, CampaignInfo],
) -> None:
    frame, info = measured
    ratios = ratio_figures.table(frame, info).query("variant != @BBR_FEC")
    text = words(figures.bars(ratios, info))
    assert "DCT / DCT of Cubic" in text
    assert "against" not in text


@pytest.mark.usefixtures("unmade")
def test_the_report_says_what_each_variant_is_compared_with(
    campaign: tuple[Database, CampaignInfo], tmp_path: Path
) -> None:
    page = report(*campaign, tmp_path).html.read_text()
    assert "DCT ratio of each variant to its own baseline" in page
    assert "to the baseline" not in page
    for variant, baseline in BASELINES.items():
        assert f"<td>{variant}</td><td>{baseline}</td>" in page


def test_a_variant_that_is_compared_with_none_is_in_no_ratio(filled: Filled) -> None:
    alone = [{**variant, "compared_with": ""} if variant["label"] == BBR else variant for variant in VARIANTS]
    _, campaign = filled({}, variants=alone)
    assert baselines_of(campaign) == {label: other for label, other in BASELINES.items() if label != BBR}
