"""The document of a report is JSON, and the page is made from it and from the figures alone."""

import json
from collections.abc import Callable
from itertools import product
from typing import NoReturn

import pytest

from fecbench.results.analysis.intervals import FEWEST
from fecbench.results.figures.saving import Drawing
from fecbench.results.report.collecting import collect
from fecbench.results.report.document import Document
from fecbench.results.report.drawings import Drawings
from fecbench.results.report.page import page
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, TrialKey, TrialRecord
from tests.results.analysis.twin_campaigns import Laboratory, but

OFF, XOR = "rquic-off", "rquic-xor"
KEYS = [
    TrialKey(*key) for key in product((OFF, XOR), ("download-10000", "download-2000"), (0, 1), range(FEWEST))
]
INTERESTING = ["no trial", "infinite ratios", "second tries", "crosscheck"]


@pytest.fixture
def campaign(
    request: pytest.FixtureRequest,
    database: Database,
    new_campaign: Callable[..., CampaignInfo],
    make: Callable[..., TrialRecord],
) -> CampaignInfo:
    """A campaign whose report has numbers that JSON does not know."""
    if request.param == "crosscheck":
        Laboratory(database).compare(but("timeout"))
        return database.campaign("x")
    campaign = new_campaign(database, repetitions=FEWEST)
    for key in KEYS if request.param != "no trial" else []:
        if request.param == "second tries" and key.repetition == 0:
            database.record(campaign.id, make(key=key, state="invalid"))
        timed_out = request.param == "infinite ratios" and key.variant == XOR and key.point == 0
        metrics = {"client": {"dct_s": 1.0 + key.point + key.repetition / 10}}
        database.record(campaign.id, make(key=key, state="timeout" if timed_out else "ok", metrics=metrics))
    return campaign


def refuse(constant: str) -> NoReturn:
    raise AssertionError(f"{constant} is no JSON")


@pytest.mark.parametrize("campaign", INTERESTING, indirect=True)
def test_a_document_is_json_that_reads_back_to_the_same_and_makes_the_same_page(
    database: Database, campaign: CampaignInfo
) -> None:
    document = collect(database, campaign)
    text = json.dumps(document.as_json())
    json.loads(text, parse_constant=refuse)
    assert Document.model_validate_json(text) == document
    absent = Drawing(sentence="It is not drawn.")
    drawings = Drawings(absent, [], [], [[absent] for _ in document.explained], [])
    read_back = Document.model_validate(document.as_json())
    assert page(read_back, drawings) == page(document, drawings)


@pytest.mark.parametrize("campaign", ["infinite ratios"], indirect=True)
def test_what_is_infinite_is_told_from_what_is_not_known(database: Database, campaign: CampaignInfo) -> None:
    document = collect(database, campaign).as_json()
    of_baseline, of_variant = document["findings"][:2]
    assert (of_baseline["median_ratio"], of_variant["median_ratio"]) == (None, "Infinity")
    of_workload = document["comparisons"][0]
    assert (of_workload["median_ratio"], of_workload["interval"]) == ("Infinity", None)


@pytest.mark.parametrize("campaign", ["second tries"], indirect=True)
def test_a_document_of_first_attempts_counts_all_trials(database: Database, campaign: CampaignInfo) -> None:
    document = collect(database, campaign, "client.dct_s", first_attempts=True)
    assert document.first_attempts
    assert document.findings[1].trials == 2 * (FEWEST - 1)
    assert document.attempts[1].attempts == 4 * (FEWEST + 1)
