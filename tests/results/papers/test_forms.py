"""A claim of more or less counts by its size and by the margin, and agrees in direction by less."""

import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fecbench.results.analysis import tolerances
from fecbench.results.papers import words
from fecbench.results.papers.claim import Claim, Estimate, Share
from fecbench.results.papers.forms import (
    are_longer,
    are_shorter,
    bound_of,
    claim_of_less,
    claim_of_longer,
    claim_of_share,
    margin_of,
)
from fecbench.results.papers.words import MOST, VAST_MAJORITY, ShareWord
from fecbench.runners.tasks.validity import Validity
from tests.support.campaigns import campaign_info

logarithms = st.floats(-1.0, 1.0)
some_ratios = st.lists(logarithms.map(lambda value: 2.0**value), min_size=6, max_size=60)
margins = st.floats(0.0, 0.5)
share_words = st.sampled_from([MOST, VAST_MAJORITY])
estimates = (
    st.tuples(logarithms, logarithms, logarithms)
    .map(sorted)
    .map(lambda powers: Estimate(2 ** powers[1], 2 ** powers[0], 2 ** powers[2]))
)


def of_shorter(ratios: list[float], by: float, word: ShareWord = MOST) -> Claim:
    table = pd.Series(ratios)
    return claim_of_share("", "", word, lambda by: Share.of(are_shorter(table, by), table.notna()), by)


def of_longer(ratios: list[float], by: float, word: ShareWord = MOST) -> Claim:
    table = pd.Series(ratios)
    return claim_of_share("", "", word, lambda by: Share.of(are_longer(table, by), table.notna()), by)


def of_less(ratio: Estimate, by: float) -> Claim:
    return claim_of_less("", "", ratio, by, "")


def of_more(ratio: Estimate, by: float) -> Claim:
    return claim_of_longer("", "", ratio, by, "")


def exchanged(ratio: Estimate) -> Estimate:
    return Estimate(1 / ratio.value, 1 / ratio.high, 1 / ratio.low)


@given(some_ratios, margins, share_words)
def test_exchanging_the_arms_exchanges_the_claims(ratios: list[float], by: float, word: ShareWord) -> None:
    assume(all(abs(value * (1 + by) - 1) > 1e-9 and abs(value / (1 + by) - 1) > 1e-9 for value in ratios))
    contrary = [1 / value for value in ratios]
    assert of_shorter(ratios, by, word).verdict == of_longer(contrary, by, word).verdict
    assert of_longer(ratios, by, word).verdict == of_shorter(contrary, by, word).verdict


@given(estimates, margins)
def test_exchanging_the_arms_exchanges_the_claims_about_one_ratio(ratio: Estimate, by: float) -> None:
    ends = (ratio.low, ratio.high)
    assume(all(abs(end * (1 + by) - 1) > 1e-9 and abs(end / (1 + by) - 1) > 1e-9 for end in ends))
    assert of_less(ratio, by).verdict == of_more(exchanged(ratio), by).verdict
    assert of_more(ratio, by).verdict == of_less(exchanged(ratio), by).verdict


def assert_no_better(greater: Claim, less: Claim) -> None:
    """Assert that the verdict of a claim of a greater size is no better than that of the smaller one."""
    may_follow = {
        "agrees": {"agrees", "agrees in direction", "cannot tell", "differs"},
        "agrees in direction": {"agrees in direction"},
        "cannot tell": {"cannot tell", "differs"},
        "differs": {"differs"},
    }
    assert greater.verdict in may_follow[less.verdict]


@given(some_ratios, margins, margins, share_words)
def test_a_greater_margin_never_makes_a_claim_agree(
    ratios: list[float], one: float, other: float, word: ShareWord
) -> None:
    less, greater = sorted((one, other))
    assert_no_better(of_shorter(ratios, greater, word), of_shorter(ratios, less, word))
    assert_no_better(of_longer(ratios, greater, word), of_longer(ratios, less, word))


@given(estimates, margins, margins)
def test_a_greater_margin_never_makes_a_claim_about_one_ratio_agree(
    ratio: Estimate, one: float, other: float
) -> None:
    less, greater = sorted((one, other))
    assert_no_better(of_less(ratio, greater), of_less(ratio, less))
    assert_no_better(of_more(ratio, greater), of_more(ratio, less))


@given(some_ratios, margins)
def test_by_no_margin_a_majority_is_what_any_difference_makes_it(ratios: list[float], by: float) -> None:
    by_any = of_shorter(ratios, 0.0)
    assert by_any.verdict != "agrees in direction"
    assert (of_shorter(ratios, by).in_direction is True) == (by_any.verdict == "agrees")


@given(estimates, margins)
def test_what_holds_in_sign_and_fails_in_size_agrees_in_direction(ratio: Estimate, by: float) -> None:
    claim = of_less(ratio, by)
    if ratio.high < 1 and ratio.low >= 1 / (1 + by):
        assert claim.verdict == "agrees in direction"
    if ratio.low >= 1:
        assert claim.verdict == "differs"


def test_a_majority_by_less_than_the_margin_agrees_in_direction_alone() -> None:
    """The 130 points of Fig. 6 of Networking 2019 are such a case, with 10 kB."""
    ratios = [0.9995] * 64 + [0.7] * 47 + [1.0] * 19
    for engine in ("virtual", "local"):
        campaign = campaign_info(provenance={"engine": engine})
        by = margin_of(campaign, 10_000, statistic="median")
        claim = of_shorter(ratios, by)
        assert claim.measured.startswith("36 % of 130 (28 % to 45 %)")
        assert claim.ours == "36 %"
        assert claim.verdict == "agrees in direction", engine
        assert of_shorter(ratios, 0.0).verdict == "agrees", engine


def test_the_margin_is_what_the_engine_vouches_for() -> None:
    emulated, virtual = (campaign_info(provenance={"engine": engine}) for engine in ("local", "virtual"))
    for size_bytes in (1_000, 10_000, 10_001, None):
        for statistic in ("median", "mean", "p95"):
            is_short = size_bytes is not None and size_bytes <= 10_000
            vouched = tolerances.vouched(is_share=False, short=is_short, statistic=statistic)
            assert margin_of(virtual, size_bytes, statistic=statistic) == vouched
            assert margin_of(emulated, size_bytes, statistic=statistic) == Validity().stall_share


def test_a_gain_is_as_great_as_a_papers_only_beyond_the_margin() -> None:
    assert bound_of(0.80, 0.04) == pytest.approx(0.832)
    assert bound_of(0.98, 0.04) == pytest.approx(1 / 1.04)


@given(estimates, st.floats(0.3, 0.99), margins, margins)
def test_a_greater_margin_never_turns_a_papers_number_from_differs_to_agrees(
    ratio: Estimate, of_paper: float, one: float, other: float
) -> None:
    less, greater = (
        Claim("", "", "", ratio.below(bound_of(of_paper, by)), ratio.shorter()) for by in sorted((one, other))
    )
    assert (less.verdict, greater.verdict) != ("differs", "agrees")


def test_each_word_has_one_meaning() -> None:
    rows = [line.split("|")[1].strip() for line in words.table().splitlines()[2:]]
    verdicts = [word for row in rows for word in row.split(", ")]
    assert len(verdicts) == len(set(verdicts))
    sizes = [word.least for word in words.SIZES]
    assert sizes == sorted(set(sizes))
    assert sizes[0] >= words.SLIGHTLY
