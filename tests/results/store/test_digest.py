"""The digest of a trial: the same for what is the same, and another for what is not."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from results.store import digest, schema
from results.store.database import Database
from results.store.records import CampaignInfo, TrialRecord, VerdictLog

Make = Callable[..., TrialRecord]

COUNTED = {"frames_in": 9, "frames_out": 8, "bytes_in": 900, "bytes_out": 800, "queue_dropped": 1, "late": 0}
WHOLE: dict[str, Any] = {
    "metrics": {"client": {"dct_s": 0.1 + 0.2, "packets_sent": 12.0}, "server": {"packets_sent": 3.0}},
    "verdicts": [
        VerdictLog("internet", "down", 9, 1, b"\x01\x00"),
        VerdictLog("internet", "up", 3, 0, b"\x00"),
    ],
    "links": {"internet": {"backend": "virtual", "directions": {"up": COUNTED, "down": COUNTED}}},
}


def counted(**changes: int) -> dict[str, Any]:
    return {"internet": {"backend": "virtual", "directions": {"up": {**COUNTED, **changes}, "down": COUNTED}}}


@pytest.mark.parametrize(
    "changes",
    [
        {"started_at": "2027-01-01T00:00:00+00:00"},
        {"duration_s": 99.0},
        {"overhead_s": {"total": 1.0}},
        {"checks": {"trials_at_once": 9}},
        {"seeds": {"content": 5}},
        {"reason": "after 3 s"},
        {"links": counted(late=5)},
        {"links": counted(outage_dropped=0)},
        {"metrics": {"server": {"packets_sent": 3}, "client": {"packets_sent": 12, "dct_s": 0.1 + 0.2}}},
    ],
)
def test_what_is_of_the_machine_or_the_day_is_no_part_of_it(make: Make, changes: dict[str, Any]) -> None:
    assert digest.of_trial(make(**{**WHOLE, **changes})) == digest.of_trial(make(**WHOLE))


@pytest.mark.parametrize(
    "changes",
    [
        {"state": "timeout"},
        {"metrics": {**WHOLE["metrics"], "client": {"dct_s": 0.3, "packets_sent": 12.0}}},
        {"metrics": {"client": WHOLE["metrics"]["client"]}},
        {"verdicts": [VerdictLog("internet", "down", 9, 1, b"\x02\x00"), WHOLE["verdicts"][1]]},
        {"verdicts": [VerdictLog("internet", "down", 10, 1, b"\x01\x00"), WHOLE["verdicts"][1]]},
        {"links": counted(queue_dropped=2)},
        {"links": counted(outage_dropped=1)},
        {"links": counted(bytes_in=901)},
    ],
)
def test_whatever_else_a_trial_came_to_changes_it(make: Make, changes: dict[str, Any]) -> None:
    assert digest.of_trial(make(**{**WHOLE, **changes})) != digest.of_trial(make(**WHOLE))


def test_that_of_a_campaign_does_not_depend_on_the_order_and_is_kept_by_the_database(
    database: Database, campaign: CampaignInfo, new_campaign: Callable[..., CampaignInfo], make: Make
) -> None:
    other = new_campaign(database, "other")
    runs = [make(n, variant=variant, **WHOLE) for n in range(3) for variant in ("rquic-off", "rquic-xor")]
    for run in runs:
        database.record(campaign.id, with_digest(run))
    for run in reversed(runs):
        database.record(other.id, with_digest(run))
    expected = digest.of_trials((run.key, digest.of_trial(run)) for run in runs)
    assert database.digest(campaign.id) == database.digest(other.id) == expected


def test_trials_that_have_none_yet_get_theirs_when_it_is_asked_for(
    database: Database, campaign: CampaignInfo, new_campaign: Callable[..., CampaignInfo], make: Make
) -> None:
    other = new_campaign(database, "other")
    for n in range(3):
        database.record(campaign.id, make(n, **WHOLE))
        database.record(other.id, with_digest(make(n, **WHOLE)))
    assert database.digest(campaign.id) == database.digest(other.id)


def test_a_superseded_run_does_not_count(
    database: Database, campaign: CampaignInfo, new_campaign: Callable[..., CampaignInfo], make: Make
) -> None:
    other = new_campaign(database, "other")
    database.record(campaign.id, make(state="invalid"))
    for each in (campaign, other):
        database.record(each.id, with_digest(make(**WHOLE)))
    assert database.digest(campaign.id) == database.digest(other.id)


def test_it_is_found_in_the_checks_by_sql(database: Database, campaign: CampaignInfo, make: Make) -> None:
    stored = database.record(campaign.id, with_digest(make(**WHOLE)))
    with database._connector.engine.execution_options(sqlite_begin="BEGIN").begin() as connection:
        text = connection.scalar(sa.select(sa.cast(schema.trials.c.checks, sa.Text)))
    assert json.loads(text or "")["digest"] == digest.of_trial(stored.record)


def with_digest(record: TrialRecord) -> TrialRecord:
    return dataclasses.replace(record, checks={"digest": digest.of_trial(record)})
