"""The answer of a campaign says its counts in plain words, and how far to trust them."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import pytest

from fecbench.results.analysis.intervals import FEWEST
from fecbench.results.metrics.units import decimals, estimate
from fecbench.results.report.answer_sentences import statistic_of
from fecbench.results.report.collecting import collect
from fecbench.results.report.document import Document
from fecbench.results.report.sections.trials import Attempts
from fecbench.results.report.trust import _invalid
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, TrialKey

Filled = Callable[..., tuple[Database, CampaignInfo]]
OFF, XOR = "rquic-off", "rquic-xor"
POINTS = [{"owd_ms": n} for n in range(8)]


def collected(filled: Filled, factors: dict[str, list[float | None]], repetitions: int = FEWEST) -> Document:
    """XOR's time at each point is that without FEC times a factor; None: now so, now so."""
    outcomes = {
        TrialKey(variant, workload, point, n): (
            "ok",
            1.0 if variant == OFF else of_point[point] or (0.5, 2.0)[n % 2],
        )
        for workload, of_point in factors.items()
        for variant, point, n in product((OFF, XOR), range(len(of_point)), range(repetitions))
    }
    return collect(*filled(outcomes, repetitions=repetitions, points=POINTS))


def test_of_networks_too_few_for_an_interval_the_counts_are_said_and_not_that_it_is_undecided(
    filled: Filled,
) -> None:
    """A network has its own verdict, of its repetitions: `compare` calls such a build slower."""
    outcomes = {
        TrialKey(variant, "download-2000", point, n): ("ok", 1.0 if variant == OFF else 1.5)
        for variant, point, n in product((OFF, XOR), range(FEWEST - 1), range(FEWEST))
    }
    (answer,) = collect(*filled(outcomes, repetitions=FEWEST, points=POINTS[: FEWEST - 1])).answers
    assert (answer.harms, answer.rule) == (FEWEST - 1, "")
    assert f"helps in 0 of {FEWEST - 1} cases" in answer.sentence
    assert f"by more than 2 %, harms in {FEWEST - 1}, " in answer.sentence


def test_a_variant_has_one_sentence_with_its_effect_and_its_counts(filled: Filled) -> None:
    slow: list[float | None] = [1.5] * 8
    document = collected(
        filled, {"download-2000": [0.5, 0.5, 0.5, 2.0, 1.01, None, None, None], "download-10000": slow}
    )
    (answer,) = document.answers
    assert (answer.helps, answer.harms, answer.neither, answer.undecided, answer.cases) == (3, 9, 4, 3, 16)
    assert answer.sentence == (
        "rquic-xor changes the median download completion time of rquic-off by +13 % [-50, +100], 0.1 s"
        " [-0.5, 1.0] more (2 kB) to +50.0 % [+50.0, +50.0], 500 ms [500, 500] more (10 kB)"
        " (median over the networks); helps in 3 of 16 cases by more than 2 %, harms in 9, makes no"
        " difference in 1, and is undecided in 3."
    )
    assert document.lead == (
        "Compared is the download completion time in 16 cases: 8 networks × 2 workloads (10 kB, 2 kB)."
    )


def test_a_statistic_is_not_said_twice_where_the_words_of_a_metric_begin_with_it() -> None:
    assert statistic_of("mean", "mean bit rate of the video") == "mean of the mean bit rate of the video"
    assert statistic_of("median", "mean bit rate of the video") == "median mean bit rate of the video"
    assert statistic_of("mean", "meaning") == "mean meaning"


def test_without_a_mean_the_median_is_told(filled: Filled) -> None:
    factors: dict[str, list[float | None]] = {"download-2000": [0.5] * 4 + [1.5] * 4}
    outcomes = {
        TrialKey(variant, "download-2000", point, n): (
            "timeout" if (variant, point) == (XOR, 7) else "ok",
            1.0 if variant == OFF else factors["download-2000"][point] or 0,
        )
        for variant, point, n in product((OFF, XOR), range(8), range(6))
    }
    (answer,) = collect(*filled(outcomes, repetitions=6, points=POINTS)).answers
    assert "by +0 % [-50, +∞] (2 kB) (median over the networks)" in answer.sentence


def test_the_counts_of_an_answer_are_those_of_the_findings(filled: Filled) -> None:
    document = collected(filled, {"download-2000": [0.5, 2.0, None], "download-10000": [0.5, 0.5, 1.0]})
    rows = [row for row in document.findings if row.compared_with]
    (answer,) = document.answers
    assert answer.helps == sum(row.helps or 0 for row in rows)
    assert answer.harms == sum(row.harms or 0 for row in rows)
    assert answer.cases == answer.helps + answer.harms + answer.neither == sum(row.points for row in rows)


def test_too_few_repetitions_are_said_to_tell_nothing_from_chance(filled: Filled) -> None:
    (answer,) = collected(filled, {"download-2000": [0.5] * 8}, repetitions=2).answers
    assert "is undecided in all 8 cases (of 16 planned): too few repetitions" in answer.sentence


def test_a_mean_with_a_timeout_is_no_lack_of_repetitions(filled: Filled) -> None:
    outcomes = {
        TrialKey(variant, "download-2000", point, n): ("timeout" if variant == XOR and n == 0 else "ok", 1.0)
        for variant, point, n in product((OFF, XOR), range(8), range(12))
    }
    document = collect(*filled(outcomes, repetitions=12, points=POINTS, statistic="mean"))
    undecided = "undecided in all 8 {}: too few repetitions, or means that are 0 or have a timeout"
    (answer,) = document.answers
    assert undecided.format("cases (of 16 planned)") in answer.sentence
    assert any(undecided.format("networks") in sentence for sentence in document.headline)


def test_values_below_0_are_said_to_have_no_ratio(filled: Filled) -> None:
    outcomes = {
        TrialKey(variant, "download-2000", point, n): ("ok", score)
        for (variant, score), point, n in product(((OFF, -1.0), (XOR, -2.0)), range(8), range(6))
    }
    document = collect(*filled(outcomes, repetitions=6, points=POINTS))
    (answer,) = document.answers
    assert answer.sentence == f"{XOR} has no ratio; cannot be compared with {OFF} by one."
    assert any("in all 8 networks there is no DCT ratio" in sentence for sentence in document.headline)


def test_the_box_of_trust_names_whom_failures_are_of_and_what_was_not_run(filled: Filled) -> None:
    outcomes = {
        TrialKey(variant, "download-2000", 0, n): ("timeout" if (variant, n) == (XOR, 1) else "ok", 1.0)
        for variant, n in product((OFF, XOR), range(3))
    }
    document = collect(*filled(outcomes, repetitions=3, points=POINTS))
    about = {item.about: item for item in document.trust}
    assert about["trials"].text.startswith("5 of 96 trials are ok; 90 were not run")
    assert about["trials"].warns
    lost = next(item for item in document.trust if item.about == "missing")
    assert lost.text == "Failed or timed out, and counted as worse than any value: rquic-xor 1."
    assert about["engine"].text.startswith("Emulated")


@pytest.mark.parametrize(
    ("invalid", "runs", "share"), [(1, 200, "0.5 %"), (199, 200, "99.5 %"), (10, 10, "100 %")]
)
def test_the_share_of_invalid_runs_is_no_power_of_ten(invalid: int, runs: int, share: str) -> None:
    of_variant = Attempts.model_construct(invalid=invalid, attempts=runs)
    assert f" of {runs} ({share}) w" in _invalid([of_variant]).text


DIGITS: list[tuple[float, float, int]] = [
    (0.83, 1.02, 2),
    (0.998, 1.003, 3),
    (0.4, 1.9, 1),
    (1, 20, 0),
    (1, float("inf"), 2),
]


def test_a_ratio_has_the_digits_that_its_interval_allows() -> None:
    for low, high, places in DIGITS:
        assert decimals(low, high) == places, (low, high)


def test_an_estimate_without_an_interval_is_the_ratio_alone() -> None:
    assert estimate(0.954, float("nan"), float("nan")) == "0.95"
    assert estimate(0.954, 0.831, 1.019) == "0.95 [0.83, 1.02]"
    assert estimate(float("inf"), 1.2, float("inf")) == "∞ [1.20, ∞]"


def test_losses_that_are_clocked_by_time_are_told_apart(filled: Filled) -> None:
    for model, parameter, is_told in (
        ("ge-time", "bad_s = 1", True),
        ("slots", "slot_ms = 5", True),
        ("ge", "p = 0.1", False),
    ):
        database, campaign = filled({TrialKey(OFF, "download-2000", 0, 0): ("ok", 1.0)}, points=POINTS)
        text = f'{campaign.design_text}\n[constants]\nloss.model = "{model}"\nloss.{parameter}\n'
        document = collect(database, replace(campaign, design_text=text))
        assert any(item.about == "losses" for item in document.trust) == is_told, model


def test_a_campaign_whose_factors_have_ranges_says_that_nobody_looked_between_its_points(
    filled: Filled,
) -> None:
    database, campaign = filled({TrialKey(OFF, "download-2000", 0, 0): ("ok", 1.0)}, points=POINTS)
    ranges = "\n[factors]\nowd_ms = { min = 0, max = 7 }\n"
    for more, is_told in ((ranges, True), ("\n[factors]\nowd_ms = { choices = [0, 7] }\n", False)):
        name = "" if "name =" in campaign.design_text else 'name = "mine"\n'
        text = f"{name}{campaign.design_text}{more}"
        trust = collect(database, replace(campaign, design_text=text)).trust
        between = [item.text for item in trust if item.about == "between"]
        assert bool(between) == is_told
        assert all(f"--arm {XOR} searches there" in line for line in between)


def test_the_hunt_that_is_named_is_of_the_file_that_the_campaign_was_run_from(filled: Filled) -> None:
    database, campaign = filled({TrialKey(OFF, "download-2000", 0, 0): ("ok", 1.0)}, points=POINTS)
    text = f"{campaign.design_text}\n[factors]\nowd_ms = {{ min = 0, max = 7 }}\n"
    name = campaign.design_name
    for word in (name, "papers/lossy.toml"):
        command = ["fecbench", "run", "--db", "x.sqlite", word]
        trust = collect(database, replace(campaign, design_text=text, provenance={"command": command})).trust
        (line,) = (each.text for each in trust if each.about == "between")
        assert f": fecbench hunt {word} --arm" in line
