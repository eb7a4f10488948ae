"""Numbers of a variant never contradict its pairs: over several networks, or in one, where a variant got
through in some trials only."""

import math
import re
from collections.abc import Callable

import pytest
from matplotlib.collections import LineCollection

from fecbench.results import figures
from fecbench.results.analysis import frames
from fecbench.results.analysis.summary import by_pairs, summary
from fecbench.results.report import tables
from fecbench.results.report.sections.findings import Medians
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, TrialKey
from tests.results.analysis.outcomes import OFF, XOR
from tests.results.pages import page_of

WORKLOAD = "download-10000"
# XOR is 4 % slower in four networks of five, and the median of all its trials is half of the baseline's.
BASELINE_S = [1.0, 2.0, 10.0, 11.0, 12.0]
RATIOS = [1.04, 1.04, 0.5, 1.04, 1.04]
Measured = tuple[Database, CampaignInfo]
Measure = Callable[[int], Measured]


Filled = Callable[..., Measured]
# A counter: the baseline counts none in most networks, where XOR does.
SPARSE = {OFF: [0.0, 0.0, 0.0, 10.0, 12.0], XOR: [3.0, 3.0, 3.0, 10.0, 12.0]}


@pytest.fixture
def measure(filled: Filled) -> Measure:
    def measure(first: int) -> Measured:
        """The campaign of the networks from this one on."""
        times = list(zip(BASELINE_S, RATIOS, strict=True))[first:]
        outcomes = {
            TrialKey(variant, WORKLOAD, point, 0): ("ok", time * (ratio if variant == XOR else 1))
            for point, (time, ratio) in enumerate(times)
            for variant in (OFF, XOR)
        }
        return filled(outcomes, points=[{"owd_ms": n} for n in range(len(times))], repetitions=1)

    return measure


def lines_in_boxes(measured: Measured) -> list[float]:
    """Return the places of the lines, from left to right."""
    database, campaign = measured
    axes = figures.boxes(frames.trials(database, campaign), campaign).axes[0]
    drawing = [collection for collection in axes.collections if isinstance(collection, LineCollection)]
    return [float(start[1]) for collection in drawing for start, _ in collection.get_segments()]


def times_in(page: str) -> list[float]:
    """Return the variants' times in the report's table of metrics."""
    (row,) = re.findall(r"<tr><th[^>]*>client.dct_s</th>(.*?)</tr>", page[page.index("<h3>Medians of all") :])
    return [float(value.replace("∞", "inf")) for value in re.findall(r">([\d.∞]+)(?: s)?<", row)]


def test_the_lines_in_boxes_are_the_medians_of_the_summary(measure: Measure) -> None:
    assert lines_in_boxes(measure(0)) == pytest.approx([10, 10.4])
    assert lines_in_boxes(measure(4)) == pytest.approx([12, 12.48])


def test_a_line_that_would_be_nowhere_is_not_drawn(filled: Filled) -> None:
    """XOR timed out in most networks, so it is slower, and nobody can tell by how much."""
    outcomes = {
        TrialKey(variant, WORKLOAD, point, 0): ("timeout" if variant == XOR and point else "ok", 1.0)
        for point in range(3)
        for variant in (OFF, XOR)
    }
    measured = filled(outcomes, points=[{"owd_ms": n} for n in range(3)], repetitions=1)
    assert lines_in_boxes(measured) == [1.0]


def test_the_metrics_of_the_report_are_as_the_pairs_have_them(measure: Measure) -> None:
    assert times_in(page_of(*measure(0))) == [10, 10.4]


def test_a_median_is_a_variants_own_where_the_ratios_do_not_speak_for_all_networks(filled: Filled) -> None:
    outcomes = {
        TrialKey(variant, WORKLOAD, point, 0): ("ok", value)
        for variant, values in SPARSE.items()
        for point, value in enumerate(values)
    }
    database, campaign = filled(outcomes, points=[{"owd_ms": n} for n in range(5)], repetitions=1)
    table = summary(frames.trials(database, campaign), campaign).query("workload == @WORKLOAD")
    assert table["median_ratio"].tolist()[1] == 1
    assert table["median_dct_s_by_pairs"].tolist() == [0, 3]
    # The times are not what this report compares.
    page = page_of(database, campaign, "server.packets_sent")
    assert times_in(page) == [0, 3]


def test_a_median_is_a_variants_own_where_values_are_below_0(filled: Filled) -> None:
    scores = {OFF: [-1.0, -1.0, 4.0], XOR: [-3.0, -3.0, 4.0]}
    outcomes = {
        TrialKey(variant, WORKLOAD, point, 0): ("ok", value)
        for variant, values in scores.items()
        for point, value in enumerate([*values, 5.0])
    }
    outcomes[TrialKey(XOR, WORKLOAD, 3, 0)] = ("ok", -1.0)
    database, campaign = filled(outcomes, points=[{"owd_ms": n} for n in range(4)], repetitions=1)
    page = page_of(database, campaign, "server.packets_sent")
    (row,) = re.findall(r"<tr><th[^>]*>client.dct_s</th>(.*?)</tr>", page[page.index("<h3>Medians of all") :])
    assert re.findall(r">([−-]?[\d.]+)(?: s)?<", row) == ["1.5", "-2"]


def test_the_value_of_a_variant_follows_its_own_baseline_and_that_ones_baseline() -> None:
    medians = {"plain": 4.0, "bbr": 9.0, "bbr with FEC": 1.0, "alone": 7.0}
    ratios = {"plain": float("nan"), "bbr": 0.5, "bbr with FEC": 1.5, "alone": float("nan")}
    table = by_pairs(medians, ratios, {"bbr": "plain", "bbr with FEC": "bbr"})
    assert table == {"plain": 4.0, "bbr": 2.0, "bbr with FEC": 3.0, "alone": 7.0}


@pytest.fixture
def measure_one(filled: Filled) -> Filled:
    def measure_one(lost: str, state: str, of: dict[str, float]) -> Measured:
        """Ten repetitions of one network, of which this variant got through four."""
        outcomes = {
            TrialKey(variant, WORKLOAD, 0, n): (state if variant == lost and n >= 4 else "ok", of[variant])
            for variant in (OFF, XOR)
            for n in range(10)
        }
        return filled(outcomes, points=[{"owd_ms": 5}], repetitions=10)

    return measure_one


def medians(measured: Measured) -> tuple[list[float], float]:
    """Return the medians of both variants, and the ratio."""
    database, campaign = measured
    table = summary(frames.trials(database, campaign), campaign).query("workload == @WORKLOAD")
    return table["median_dct_s"].tolist(), table["median_ratio"].tolist()[1]


@pytest.mark.parametrize("state", ["failed", "timeout"])
def test_a_variant_that_mostly_did_not_get_through_has_no_median_of_the_trials_that_it_did(
    measure_one: Filled, state: str
) -> None:
    assert medians(measure_one(XOR, state, {OFF: 10.0, XOR: 5.0})) == ([10, math.inf], math.inf)


def test_a_baseline_that_mostly_timed_out_has_none_either(measure_one: Filled) -> None:
    assert medians(measure_one(OFF, "timeout", {OFF: 5.0, XOR: 10.0})) == ([math.inf, 10], 0)


def test_what_is_invalid_is_in_no_median(measure_one: Filled) -> None:
    assert medians(measure_one(XOR, "invalid", {OFF: 10.0, XOR: 5.0})) == ([10, 5], 0.5)


def test_the_report_says_the_same(measure_one: Filled) -> None:
    measured = measure_one(XOR, "timeout", {OFF: 10.0, XOR: 5.0})
    assert times_in(page_of(*measured)) == [10, math.inf]


def test_a_metric_that_an_arm_lacks_is_not_0_of_all() -> None:
    """TCP has no counter of rebuilt packets, and a variant that rebuilt none has 0."""
    rows = {"client.packets_recovered": [math.nan, 0.0], "client.spurious_losses": [0.0, 0.0]}
    of_workload = Medians(workload="w", groups=3, lacking="", variants=["tcp", "off"], medians=rows)
    (table,) = tables.medians(of_workload)
    assert table.rows == [["client.packets_recovered", "–", "0 packets"]]
    assert table.same == ["client.spurious_losses: 0"]
