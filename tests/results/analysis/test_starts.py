"""Starts of one campaign, and in what they differ."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from fecbench.results.analysis import frames
from fecbench.results.analysis.starts import sentences, starts_of
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, TrialRecord
from tests.results.pages import page_of

ADA: dict[str, Any] = {
    "kernel": "6.1",
    "cpu": "A",
    "jobs": 1,
    "libraries": {"numpy": "2.1", "scipy": "1.15"},
    "revision": {"commit": "c0ffee", "changed": False},
    "confinement": {"user": "own", "memory": "cgroup v2"},
    "calibration": [{"kind": "skipped"}],
}
MISSED = {"kind": "brief", "measurements": [{"name": "rate", "good": False}, {"name": "delay", "good": True}]}
BOB = ADA | {
    "kernel": "6.8",
    "libraries": {"numpy": "2.2", "scipy": "1.15"},
    "revision": {"commit": "c0ffee", "changed": None},
    "confinement": {"user": "own", "memory": "process limits"},
    "calibration": [MISSED],
}
DIFFERENCES = {
    "host": ("ada", "bob"),
    "kernel": ("6.1", "6.8"),
    "libraries.numpy": ("2.1", "2.2"),
    "revision.changed": ("False", "unknown"),
    "confinement.memory": ("cgroup v2", "process limits"),
    "calibration": ("not measured", "missed rate"),
}


@pytest.fixture
def run(
    sqlite: str, new_campaign: Callable[..., CampaignInfo], make: Callable[..., TrialRecord]
) -> Callable[..., tuple[Database, CampaignInfo]]:
    """A campaign with a trial of each start, of one that ran none, and of none for each None."""

    def run(*starts: tuple[str, dict[str, Any]] | None) -> tuple[Database, CampaignInfo]:
        database = Database.open(sqlite, create=True)
        campaign = new_campaign(database)
        database.start(campaign.id, "idle", {"kernel": "0"})
        for repetition, start in enumerate(starts):
            start_id = None if start is None else database.start(campaign.id, *start).id
            database.record(campaign.id, make(repetition), start_id)
        return database, campaign

    return run


def test_what_differs_between_starts_that_ran_trials_is_named_with_both_values(run: Any) -> None:
    starts = starts_of(*run(("ada", ADA), ("bob", BOB)))
    assert list(starts.trials.values()) == [1, 1]
    assert {d.what: tuple(d.values.values()) for d in starts.differences} == DIFFERENCES
    lines = sentences(starts)
    assert lines[0] == "2 starts have run its trials: 2 on ada (1), 3 on bob (1); they differ in"
    assert "kernel: 6.1 (start 2); 6.8 (start 3)" in lines


def test_starts_that_are_alike_are_counted_and_one_is_not_mentioned(run: Any) -> None:
    (lines,) = sentences(starts_of(*run(("ada", ADA), ("ada", ADA))))
    assert lines.endswith("2 on ada (1), 3 on ada (1), which do not differ.")


def test_a_campaign_of_one_start_says_nothing_of_starts(run: Any) -> None:
    assert sentences(starts_of(*run(("ada", ADA)))) == []


def test_trials_of_which_no_start_is_known_are_counted(run: Any) -> None:
    lines = sentences(starts_of(*run(None, None, ("ada", ADA))))
    assert lines == ["Of 2 trials it is not known which start has run them."]


def test_trials_that_were_read_before_name_the_same_starts(run: Any) -> None:
    database, campaign = run(None, ("ada", ADA), ("bob", BOB), ("bob", BOB))
    _, by_start = frames.with_starts(database, campaign, [])
    assert by_start == database.trials_by_start(campaign.id) == {None: 1, 2: 1, 3: 1, 4: 1}
    assert starts_of(database, campaign, by_start) == starts_of(database, campaign)


def test_the_report_shows_several_starts_and_is_silent_of_one(run: Any) -> None:
    database, campaign = run(("ada", ADA), ("bob", BOB))
    page = page_of(database, campaign)
    assert "The trials of this campaign were run by 2 starts." in page
    section = page[page.index("<h3>Starts</h3>") : page.index('id="provenance"')]
    cells = re.findall(r'<(?:td|th scope="row")[^>]*>([^<]*)</t[hd]>', section)
    for what, values in DIFFERENCES.items():
        place = cells.index(what)
        assert tuple(cells[place + 1 : place + 3]) == values


def test_the_report_is_silent_of_a_single_start(run: Any) -> None:
    page = page_of(*run(("ada", ADA)))
    assert "<h3>Starts</h3>" not in page
