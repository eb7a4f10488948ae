"""The digests of a trial: the same for what is the same, and another for what is not. A metric is no part of
the wire's."""

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from fecbench.results.store import digest, schema
from fecbench.results.store.database import Database
from fecbench.results.store.error import DatabaseError
from fecbench.results.store.records import CampaignInfo, TrialRecord, VerdictLog

Make = Callable[..., TrialRecord]

COUNTED = {"frames_in": 9, "frames_out": 8, "bytes_in": 900, "bytes_out": 800, "queue_dropped": 1, "late": 0}
TIMES = {"times": "0123456789abcdef"}
END = {"implementation": "rquic", "options": {"scheme": "xor"}, "series": []}
LINK = {"settings": {"down": {"owd_ms": 5.0}}, "losses": {"down": {"p": 0.1}}, "late_bound_us": 1000}
TASK: dict[str, Any] = {
    "topology": "single_path",
    "backend": "virtual",
    "timeout_s": 30.0,
    "completion": "dct_s",
    "links": {"internet": LINK},
    "pairs": [{"client": END, "server": END, "workload": {"name": "download", "size_bytes": 9}}],
    "validity": {"stall_share": 0.05},
}
WHOLE: dict[str, Any] = {
    "task": TASK,
    "checks": {"virtual_s": 1.5},
    "metrics": {"client": {"dct_s": 0.1 + 0.2, "packets_sent": 12.0}, "server": {"packets_sent": 3.0}},
    "verdicts": [
        VerdictLog("internet", "down", 9, 1, b"\x01\x00"),
        VerdictLog("internet", "up", 3, 0, b"\x00"),
    ],
    "links": {"internet": {"backend": "virtual", "directions": {"up": COUNTED, "down": COUNTED | TIMES}}},
}


def counted(**changes: int) -> dict[str, Any]:
    directions = {"up": {**COUNTED, **changes}, "down": COUNTED | TIMES}
    return {"internet": {"backend": "virtual", "directions": directions}}


def at_other_times(times: str = "0" * 16) -> dict[str, Any]:
    directions = {"up": COUNTED, "down": {**COUNTED, "times": times}}
    return {"internet": {"backend": "virtual", "directions": directions}}


def asked(**changes: Any) -> dict[str, Any]:
    return {"task": {**TASK, **changes}}


def of_pair(**changes: Any) -> dict[str, Any]:
    return asked(pairs=[{**TASK["pairs"][0], **changes}])


NO_PART: list[dict[str, Any]] = [
    {"started_at": "2027-01-01T00:00:00+00:00"},
    {"duration_s": 99.0},
    {"overhead_s": {"total": 1.0}},
    {"checks": {"virtual_s": 1.5, "trials_at_once": 9}},
    {"seeds": {"content": 5}},
    {"reason": "after 3 s"},
    {"links": counted(late=5)},
    {"links": counted(outage_dropped=0)},
    {"metrics": {**WHOLE["metrics"], "messages": {"freezes": 3.0}}},
    {"metrics": {}},
    asked(validity={"stall_share": 0.5}, completion="last_byte_s"),
    asked(processor={"handshake_ns": 0, "datagram_ns": 0}, schedule=None),
    asked(links={"internet": {**LINK, "late_bound_us": 5}}),
    of_pair(client={**END, "series": ["cwnd"], "options": {"scheme": "xor", "adaptive": False}}),
    of_pair(playout_ms=[100.0], workload={"name": "download", "size_bytes": 9, "paused": False}),
]


def test_the_machine_the_day_and_metrics_are_no_part_of_the_wires(make: Make) -> None:
    for changes in NO_PART:
        assert digest.of_trial(make(**{**WHOLE, **changes})) == digest.of_trial(make(**WHOLE))


ELSE: list[dict[str, Any]] = [
    {"state": "timeout"},
    {"verdicts": [VerdictLog("internet", "down", 9, 1, b"\x02\x00"), WHOLE["verdicts"][1]]},
    {"verdicts": [VerdictLog("internet", "down", 10, 1, b"\x01\x00"), WHOLE["verdicts"][1]]},
    {"links": counted(queue_dropped=2)},
    {"links": counted(outage_dropped=1)},
    {"links": counted(bytes_in=901)},
    {"links": at_other_times()},
    {"links": at_other_times(times="")},
    {"checks": {"virtual_s": 1.6}},
    asked(timeout_s=31.0),
    asked(links={"internet": {**LINK, "settings": {"down": {"owd_ms": 6.0}}}}),
    asked(links={"internet": {**LINK, "losses": {"down": {"p": 0.2}}}}),
    asked(processor={"handshake_ns": 1, "datagram_ns": 0}),
    of_pair(server={**END, "implementation": "noq-fec"}),
    of_pair(workload={"name": "download", "size_bytes": 10}),
]


def test_whatever_else_happened_on_the_wire_changes_it(make: Make) -> None:
    for changes in ELSE:
        assert digest.of_trial(make(**{**WHOLE, **changes})) != digest.of_trial(make(**WHOLE))


def test_metrics_have_a_digest_of_their_own(make: Make) -> None:
    for changes in (
        {"metrics": {**WHOLE["metrics"], "client": {"dct_s": 0.3, "packets_sent": 12.0}}},
        {"metrics": {"client": WHOLE["metrics"]["client"]}},
        {"metrics": {**WHOLE["metrics"], "messages": {"freezes": 3.0}}},
    ):
        was, now = make(**WHOLE), make(**{**WHOLE, **changes})
        assert digest.of_metrics(now) != digest.of_metrics(was)
        other_order = {"server": {"packets_sent": 3}, "client": {"packets_sent": 12, "dct_s": 0.1 + 0.2}}
        elsewhere = make(**{**WHOLE, "metrics": other_order, "links": {}, "state": "timeout"})
        assert digest.of_metrics(elsewhere) == digest.of_metrics(was)


def test_what_was_recorded_without_times_is_compared_without_them(make: Make) -> None:
    before, now = make(**{**WHOLE, "links": counted()}), make(**WHOLE)
    for counters in before.links["internet"]["directions"].values():
        counters.pop("times", None)
    assert digest.of_trial(digest.as_far_as(now, before)) == digest.of_trial(before)
    assert digest.as_far_as(now, now) == digest.as_far_as(now, make(**{**WHOLE, "links": at_other_times()}))
    assert digest.as_far_as(before, now) == before
    assert now.links == make(**WHOLE).links


def test_metrics_that_both_have_are_compared_by_their_values(make: Make) -> None:
    was = make(metrics={"client": {"dct_s": 1.0, "gone": 2.0}, "messages": {"freezes": 0.0}})
    now = make(
        metrics={"client": {"dct_s": 1.0, "new": 3.0}, "messages": {"freezes": 4.0}, "server": {"x": 1}}
    )
    assert digest.other_metrics(was, now) == {"messages.freezes": (0.0, 4.0)}


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


def test_a_digest_of_an_earlier_fecbench_is_not_taken_for_that_of_the_wire(
    database: Database, campaign: CampaignInfo, new_campaign: Callable[..., CampaignInfo], make: Make
) -> None:
    """The digest of an earlier version had metrics in it, and there was no other."""
    other, earlier = new_campaign(database, "other"), make(**WHOLE)
    database.record(campaign.id, with_digest(make(**WHOLE)))
    checks = {**earlier.checks, "digest": "0" * 64}
    database.record(other.id, dataclasses.replace(earlier, checks=checks))
    assert database.digest(campaign.id) == database.digest(other.id)
    assert database.metrics_digest(campaign.id) == database.metrics_digest(other.id)


def test_where_the_task_was_left_out_an_earlier_digest_is_refused(
    database: Database, campaign: CampaignInfo, make: Make
) -> None:
    database.record(campaign.id, make(**{**WHOLE, "task": {}, "checks": {"digest": "0" * 64}}))
    with pytest.raises(DatabaseError, match="trial 1: its task was left out"):
        database.digest(campaign.id)


def with_digest(record: TrialRecord) -> TrialRecord:
    digests = {"digest": digest.of_trial(record), "metrics_digest": digest.of_metrics(record)}
    return dataclasses.replace(record, checks={**record.checks, **digests})
