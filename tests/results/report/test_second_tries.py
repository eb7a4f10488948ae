"""A report says how often each arm was run again, and whether first attempts alone decide otherwise."""

from collections.abc import Callable
from itertools import product

import pytest

from fecbench.results.analysis import frames
from fecbench.results.report.second_tries import compare
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, TrialKey, TrialRecord
from tests.results.pages import page_of, text_of

OFF, XOR, WORKLOAD = "rquic-off", "rquic-xor", "download-10000"
POINTS = 8
Made = Callable[..., CampaignInfo]


@pytest.fixture
def make_tried_campaign(
    database: Database, new_campaign: Callable[..., CampaignInfo], make: Callable[..., TrialRecord]
) -> Made:
    """XOR is twice as fast in those of 3 repetitions that were run again, if any, and slower in others."""

    def make_campaign(retried: int) -> CampaignInfo:
        points = [{"owd_ms": n} for n in range(POINTS)]
        campaign = new_campaign(database, points=points, repetitions=3)
        for variant, point, n in product((OFF, XOR), range(POINTS), range(3)):
            key = TrialKey(variant, WORKLOAD, point, n)
            again = n < retried
            if again and variant == XOR:
                database.record(campaign.id, make(key=key, state="invalid", metrics={}))
            dct_s = (1.0 if variant == OFF else 0.5 if again else 1.5) * (1 + point / 100)
            database.record(campaign.id, make(key=key, metrics={"client": {"dct_s": dct_s}}))
        return campaign

    return make_campaign


def test_a_decision_that_second_tries_made_is_named(database: Database, make_tried_campaign: Made) -> None:
    campaign = make_tried_campaign(retried=2)
    compared = compare(frames.trials(database, campaign), campaign)
    assert compared is not None
    assert (compared.groups, compared.left_out) == (3 * POINTS, 2 * POINTS)
    row = compared.table.query("workload == @WORKLOAD").iloc[0]
    assert (row["median_ratio"], row["verdict"]) == (pytest.approx(0.5), "gain")
    assert (row["median_ratio_first"], row["verdict_first"]) == (pytest.approx(1.5), "harm")
    sentence = f"{XOR}, {WORKLOAD}: the median ratio says helps of all trials, and harms of first attempts."
    assert compared.differences == [sentence]
    text = text_of(page_of(database, campaign))
    assert sentence in text
    assert f"{XOR} 40 16 16 16 16 of 40 (40.0 %" in text


def test_a_report_of_first_attempts_leaves_the_groups_out_and_counts_all_trials(
    database: Database, make_tried_campaign: Made
) -> None:
    text = text_of(page_of(database, make_tried_campaign(retried=2), first_attempts=True))
    assert "48 of 96 planned trials are ok (not ok: 0, not run: 48)." in text
    assert (
        "Compared are first attempts alone: 16 of 24 groups needed a second try , and are left out." in text
    )
    assert "10 kB: undecided in all 8 networks: too few repetitions; median DCT ratio" in text


def test_a_campaign_that_was_run_once_has_nothing_to_compare(
    database: Database, make_tried_campaign: Made
) -> None:
    campaign = make_tried_campaign(retried=0)
    assert compare(frames.trials(database, campaign), campaign) is None
    text = text_of(page_of(database, campaign, first_attempts=True))
    assert "no group needed a second try, so none is left out" in text
    assert "decide otherwise" not in text
