"""Of one network, no median is of those trials alone that a variant got through, pointing another way than
its pairs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from fecbench.results.analysis import frames
from fecbench.results.analysis.summary import summary
from fecbench.results.report.report import report
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, TrialKey
from tests.results.analysis.outcomes import OFF, XOR

WORKLOAD, REPETITIONS = "download-10000", 10
Measured = tuple[Database, CampaignInfo]
Measure = Callable[..., Measured]


@pytest.fixture
def measure(filled: Measure) -> Measure:
    def measure(lost: str, state: str, of: dict[str, float]) -> Measured:
        """Ten repetitions of one network, of which this variant got through four."""
        outcomes = {
            TrialKey(variant, WORKLOAD, 0, n): (state if variant == lost and n >= 4 else "ok", of[variant])
            for variant in (OFF, XOR)
            for n in range(REPETITIONS)
        }
        return filled(outcomes, points=[{"owd_ms": 5}], repetitions=REPETITIONS)

    return measure


def medians(measured: Measured) -> tuple[list[float], float]:
    """Of both variants, and the ratio."""
    database, campaign = measured
    table = summary(frames.trials(database, campaign), campaign).query("workload == @WORKLOAD")
    return table["median_dct_s"].tolist(), table["median_ratio"].tolist()[1]


@pytest.mark.parametrize("state", ["failed", "timeout"])
def test_a_variant_that_mostly_did_not_get_through_has_no_median_of_the_trials_that_it_did(
    measure: Measure, state: str
) -> None:
    assert medians(measure(XOR, state, {OFF: 10.0, XOR: 5.0})) == ([10, math.inf], math.inf)


def test_a_baseline_that_mostly_timed_out_has_none_either(measure: Measure) -> None:
    assert medians(measure(OFF, "timeout", {OFF: 5.0, XOR: 10.0})) == ([math.inf, 10], 0)


def test_what_is_invalid_is_in_no_median(measure: Measure) -> None:
    assert medians(measure(XOR, "invalid", {OFF: 10.0, XOR: 5.0})) == ([10, 5], 0.5)


@pytest.mark.usefixtures("unrendered")
def test_the_report_says_the_same(measure: Measure, tmp_path: Path) -> None:
    measured = measure(XOR, "timeout", {OFF: 10.0, XOR: 5.0})
    page = report(*measured, tmp_path / "report").html.read_text()
    (row,) = re.findall(r"<tr><td>client.dct_s</td>(.*?)</tr>", page[page.index("<h3>Medians of all") :])
    assert re.findall(r">([\d.∞]+)(?: s)?<", row) == ["10", "∞"]
