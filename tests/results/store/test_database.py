"""Promises to a campaign: laws of writing and reading, the same on SQLite and on PostgreSQL."""

import dataclasses
import math
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fecbench.results.store import database as database_module
from fecbench.results.store.database import Database, DatabaseError, HasResult, UnfitRecord
from fecbench.results.store.digest import TaskDocument
from fecbench.results.store.records import (
    STATES,
    CampaignInfo,
    Group,
    SeriesTable,
    Stop,
    TrialKey,
    TrialRecord,
    VerdictLog,
    Workload,
)
from tests.results.conftest import create_campaign, either
from tests.support.together import run_together

Make = Callable[..., TrialRecord]

names = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=8)
finite = st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | finite | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)
json_objects = st.dictionaries(names, json_values, max_size=3)


def named(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(names, values, max_size=4)


logs = st.builds(
    VerdictLog,
    link=names,
    direction=st.sampled_from(["up", "down"]),
    packets=st.integers(0, 2**31 - 1),
    dropped=st.integers(0, 2**31 - 1),
    bitmap=st.binary(max_size=40),
)
contents = st.fixed_dictionaries(
    {
        "state": st.sampled_from(STATES),
        "duration_s": st.floats(0, 1e6),
        "seeds": named(st.integers(0, 2**64 - 1)),
        "metrics": st.dictionaries(
            st.sampled_from(["client", "server"]), st.dictionaries(names, finite, min_size=1, max_size=4)
        ),
        "verdicts": st.lists(logs, max_size=3, unique_by=lambda log: (log.link, log.direction)).map(
            lambda logs: sorted(logs, key=lambda log: (log.link, log.direction))
        ),
        "dropper": json_objects,
        "links": json_objects,
        "exits": named(st.none() | st.integers(-64, 255)),
        "stderr": named(st.text(max_size=20)),
        "overhead_s": named(st.floats(0, 1e3)),
        "checks": json_objects,
        "task": json_objects,
    }
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(contents=contents)
def test_a_record_is_read_back_as_it_was_written(
    database: Database, campaign: CampaignInfo, make: Make, contents: dict[str, Any]
) -> None:
    record = make(repetition=database.trial_count(campaign.id), **contents)
    stored = database.record(campaign.id, record)
    assert stored.record == record
    assert database.trial_of(campaign.id, record.key) == stored
    assert database.trial(campaign.id, stored.id) == stored


@either
def test_trials_of_some_keys_are_the_runs_that_count_without_those_that_were_not_run(
    database: Database, campaign: CampaignInfo, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "PAGE_TRIALS", 2)
    database.record(campaign.id, make(0, state="invalid", reason="late"))
    runs = [database.record(campaign.id, make(n)) for n in range(4)]
    absent = make(4).key
    keys = [*(one.record.key for one in runs[:3]), absent]
    assert database.trials_of(campaign.id, keys) == {one.record.key: one for one in runs[:3]}
    assert database.trials_of(campaign.id + 1, keys) == {}
    assert database.trials_of(campaign.id, []) == {}


def test_a_campaign_is_read_back_as_it_was_created(database: Database, campaign: CampaignInfo) -> None:
    with Database.open(database.address) as again:
        assert again.campaign("demo") == campaign
        assert again.campaigns() == [campaign]
        assert again.campaign("other") is None
    assert campaign.seed == 2**64 - 1


def test_a_campaign_is_read_as_another_process_has_left_it(database: Database) -> None:
    """A reader that stays open meanwhile, such as a server, sees its stops and calibrations."""
    until_decided = create_campaign(database, "early", design_text='until = "decided"')
    start = database.start(until_decided.id, "host", {})
    stop = Stop("download-2000", 1, 40, "decided", {"rquic-xor": "gain"})
    with Database.open(database.address) as other:
        other.stop(until_decided.id, [stop])
        now = other.add_calibrations(until_decided.id, [{"kind": "skipped"}])
    assert now.stops == {("download-2000", 1): stop}
    assert now.planned_trials == 2 * (3 * 1000 + 40)
    assert (database.campaign("early"), database.campaign_of(start), database.campaigns()) == (
        now,
        now,
        [now],
    )


def test_a_campaign_name_is_taken_once(
    database: Database, campaign: CampaignInfo, new_campaign: Callable[..., CampaignInfo]
) -> None:
    with pytest.raises(DatabaseError, match="campaign 'demo' exists"):
        new_campaign(database, "demo")
    other = new_campaign(database, "other")
    assert database.campaigns() == [campaign, other]


def test_trials_of_one_campaign_are_not_those_of_another(
    database: Database, campaign: CampaignInfo, new_campaign: Callable[..., CampaignInfo], make: Make
) -> None:
    other = new_campaign(database, "other")
    database.record(campaign.id, make(0))
    database.record(other.id, make(0, state="failed"))
    assert [trial.record.state for trial in database.trials(campaign.id)] == ["ok"]
    assert [trial.record.state for trial in database.trials(other.id)] == ["failed"]
    assert database.trial_count(campaign.id) == database.trial_count(other.id) == 1


def test_a_trial_with_a_result_refuses_another_and_keeps_its_own(
    database: Database, campaign: CampaignInfo, make: Make
) -> None:
    for repetition, state in enumerate(state for state in STATES if state != "invalid"):
        first = database.record(campaign.id, make(repetition, state=state))
        for second in STATES:
            with pytest.raises(DatabaseError, match=rf"repetition {repetition}: has a result \({state}\)"):
                database.record(campaign.id, make(repetition, state=second))
        assert database.attempts(campaign.id, first.record.key) == [first]


def test_an_invalid_trial_is_replaced_and_kept_with_its_whole_record(
    database: Database, campaign: CampaignInfo, make: Make
) -> None:
    log = VerdictLog("internet", "down", 9, 1, b"\x04\x00")
    invalid = [
        database.record(campaign.id, make(0, state="invalid", reason=f"late {n}", verdicts=[log]))
        for n in range(3)
    ]
    valid = database.record(campaign.id, make(0))
    key = valid.record.key
    assert database.attempts(campaign.id, key) == [*invalid, valid]
    assert [trial.attempt for trial in [*invalid, valid]] == [1, 2, 3, 4]
    assert list(database.trials(campaign.id)) == [valid] == [database.trial_of(campaign.id, key)]
    assert database.states(campaign.id) == {key: ("ok", 4)}
    assert database.trial_count(campaign.id) == 1


def test_a_result_is_replaced_only_by_one_that_names_its_attempt(
    database: Database, campaign: CampaignInfo, make: Make
) -> None:
    runs = [database.record(campaign.id, make(0, state="failed"))]
    for wrong in (None, 0, 2):
        with pytest.raises(HasResult, match=r"has a result \(failed\)"):
            database.record(campaign.id, make(0), replaces=wrong)
    runs.append(database.record(campaign.id, make(0, state="timeout"), replaces=1))
    with pytest.raises(HasResult):
        database.record(campaign.id, make(0), replaces=1)  # somebody was sooner
    runs.append(database.record(campaign.id, make(0), replaces=2))
    assert database.attempts(campaign.id, runs[0].record.key) == runs
    assert [run.attempt for run in runs] == [1, 2, 3]
    assert list(database.trials(campaign.id)) == runs[-1:]


def test_first_runs_are_committed_together_as_each_by_itself(
    database: Database, campaign: CampaignInfo, new_campaign: Callable[..., CampaignInfo], make: Make
) -> None:
    series = SeriesTable("client", "cwnd", ["t_s"], 1, b"parquet")
    verdicts = [VerdictLog("internet", "down", 9, 1, b"\x01\x00")]
    records = [
        make(0, task={"size": 1}, verdicts=verdicts),
        make(1, task={"size": 2}, series=[series], state="failed"),
        make(2, task={"size": 1}, metrics={}),
        make(3),
    ]
    other = new_campaign(database, "other")
    starts = [database.start(each.id, "ada", {}) for each in (campaign, other)]
    together = database.record_all(campaign.id, records, starts[0].id)
    for record in records:
        database.record(other.id, record, starts[1].id)
    assert list(database.trials(campaign.id)) == together
    assert [trial.record for trial in together] == [trial.record for trial in database.trials(other.id)]
    assert database.series_of(together[1].id) == [series]
    assert {trial.start_id for trial in together} == {starts[0].id}
    assert len({task.id for task in database.tasks(campaign.id)}) == 2
    (of_none,) = database.record_all(campaign.id, [make(4)])
    assert of_none.start_id is None
    assert list(database.trials(campaign.id))[-1] == of_none
    assert database.record_all(campaign.id, []) == []


def test_of_runs_that_are_committed_together_none_is_kept_when_one_cannot_be(
    database: Database, campaign: CampaignInfo, make: Make
) -> None:
    start = database.start(campaign.id, "ada", {})
    database.record(campaign.id, make(1), start.id)
    with pytest.raises(HasResult):
        database.record_all(campaign.id, [make(0), make(1)], start.id)
    with pytest.raises(UnfitRecord):
        database.record_all(campaign.id, [make(0), make(2, checks={"late": math.nan})], start.id)
    with pytest.raises(UnfitRecord):
        database.record_all(campaign.id, [make(0), make(2, metrics={"client": {"x": math.inf}})], start.id)
    with pytest.raises(DatabaseError, match="has no start"):
        database.record_all(campaign.id, [make(0)], start.id + 1)
    assert [key.repetition for key in database.states(campaign.id)] == [1]


def test_states_of_groups_are_those_of_their_trials_alone(
    database: Database, campaign: CampaignInfo, make: Make
) -> None:
    for repetition in range(4):
        for variant in ("rquic-off", "rquic-xor"):
            database.record(campaign.id, make(repetition, variant=variant))
    everything = database.states(campaign.id)
    groups = [Group("download-10000", 0, repetition) for repetition in (1, 3, 9)]
    inside = {key: state for key, state in everything.items() if key.repetition in (1, 3)}
    assert database.states_in(campaign.id, groups) == inside
    assert len(inside) == 4


def test_states_of_groups_are_found_by_the_whole_key_of_their_trials(tmp_path: Path) -> None:
    """The time for a lot does not grow with the campaign."""
    statements: list[tuple[str, Any]] = []

    def keep(_: object, __: object, statement: str, parameters: Any, *___: object) -> None:
        statements.append((statement, parameters))

    path = tmp_path / "x.sqlite"
    with Database.open(str(path), create=True) as database:
        campaign = create_campaign(database)
        sa.event.listen(sa.Engine, "before_cursor_execute", keep)
        database.states_in(campaign.id, [Group("download-10000", 0, number) for number in range(3)])
        sa.event.remove(sa.Engine, "before_cursor_execute", keep)
    (of_trials,) = [each for each in statements if "wanted" in each[0]]
    with closing(sqlite3.connect(path)) as connection:
        plan = connection.execute(f"EXPLAIN QUERY PLAN {of_trials[0]}", of_trials[1]).fetchall()
    wanted = "(campaign_id=? AND variant=? AND workload=? AND point=? AND repetition=?)"
    assert f"SEARCH trials USING INDEX one_trial_per_key {wanted}" in [step for *_, step in plan]


def test_the_tasks_of_a_campaign_are_there_with_the_trials_that_were_asked_for_them(
    database: Database, campaign: CampaignInfo, make: Make
) -> None:
    asked = [("rquic-off", {"a": 1}), ("rquic-xor", {"a": 1}), ("rquic-off", {"a": 2})]
    for repetition, (variant, task) in enumerate(asked):
        database.record(campaign.id, make(repetition, variant=variant, task=task))
    database.record(campaign.id, make(3, task={"a": 1}))  # as the first
    database.record(campaign.id, make(4))  # its task is not known
    tasks = database.tasks(campaign.id)
    assert [(task.key.variant, database.task(task.id)) for task in tasks] == asked
    assert [task.digest for task in tasks] == [TaskDocument.of(task).digest for _, task in asked]


def test_states_count_and_trials_tell_the_same(
    database: Database, campaign: CampaignInfo, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "PAGE_TRIALS", 3)
    stored = [database.record(campaign.id, make(n, state=STATES[n % len(STATES)])) for n in range(13)]
    assert list(database.trials(campaign.id)) == stored
    assert database.trial_count(campaign.id) == len(stored)
    assert database.states(campaign.id) == {t.record.key: (t.record.state, t.attempt) for t in stored}
    for state in STATES:
        assert list(database.trials(campaign.id, {state})) == [t for t in stored if t.record.state == state]


def test_a_slow_reader_does_not_keep_a_campaign_from_writing(
    database: Database, campaign: CampaignInfo, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "PAGE_TRIALS", 2)
    for n in range(4):
        database.record(campaign.id, make(n))
    with Database.open(database.address) as reader:
        reading = reader.trials(campaign.id)
        next(reading)
        database.record(campaign.id, make(4))
        assert len(list(reading)) == 4


UNFIT: list[tuple[dict[str, Any], str]] = [
    ({"key": TrialKey("quic", "download-10000", 0, 0)}, "has no variant 'quic'"),
    ({"key": TrialKey("rquic-off", "page", 0, 0)}, "has no workload 'page'"),
    ({"key": TrialKey("rquic-off", "download-10000", 2, 0)}, "has points 0 to 1"),
    ({"key": TrialKey("rquic-off", "download-10000", -1, 0)}, "has points 0 to 1"),
    ({"key": TrialKey("rquic-off", "download-10000", 0, 1000)}, "has repetitions 0 to 999"),
    ({"state": "done"}, "state 'done': must be one of ok, failed, timeout, unsupported, invalid"),
    ({"metrics": {"client": {"dct_s": float("nan")}}}, "metric client.dct_s is nan: must be a finite"),
    ({"links": {"lateness": float("inf")}}, "not JSON compliant"),
]


def test_a_record_that_does_not_fit_its_campaign_is_refused_whole(
    database: Database, campaign: CampaignInfo, make: Make
) -> None:
    for change, message in UNFIT:
        with pytest.raises(UnfitRecord, match=message) as refusal:
            database.record(campaign.id, dataclasses.replace(make(0), **change))
        assert "\n" not in str(refusal.value)
        assert database.trial_count(campaign.id) == 0


def test_a_reason_that_quotes_any_bytes_is_stored_readably(
    database: Database, campaign: CampaignInfo, make: Make
) -> None:
    record = make(0, state="failed", reason="panic: \0 \udcff ü", stderr={"client": "\0 \udcff ü"})
    database.record(campaign.id, record)
    stored = database.trial_of(campaign.id, record.key)
    assert stored is not None
    assert stored.record.reason == "panic: \N{REPLACEMENT CHARACTER} ? ü"
    assert stored.record.stderr == record.stderr


def test_of_writers_that_record_one_trial_at_once_exactly_one_succeeds(
    database: Database, campaign: CampaignInfo, make: Make
) -> None:
    invalid = database.record(campaign.id, make(0, state="invalid"))
    start = threading.Barrier(8)
    outcomes: list[object] = []

    def write(number: int) -> None:
        with Database.open(database.address) as own:
            start.wait()
            try:
                outcomes.append(own.record(campaign.id, make(0, reason=f"by {number}")))
            except DatabaseError as error:
                outcomes.append(error)

    run_together([lambda number=number: write(number) for number in range(8)])
    stored = [outcome for outcome in outcomes if not isinstance(outcome, DatabaseError)]
    assert len(outcomes) == 8
    assert len(stored) == 1
    assert database.attempts(campaign.id, invalid.record.key) == [invalid, *stored]


def test_writers_of_different_trials_do_not_disturb_each_other(
    database: Database, campaign: CampaignInfo, make: Make
) -> None:
    def write(first: int) -> None:
        for n in range(first, first + 25):
            database.record(campaign.id, make(n))

    run_together([lambda first=first: write(first) for first in range(0, 200, 25)])
    assert sorted(key.repetition for key in database.states(campaign.id)) == list(range(200))


def test_processes_that_create_one_database_at_once_all_open_it(address: str) -> None:
    opened: list[int] = []

    def create() -> None:
        with Database.open(address, create=True) as database:
            opened.append(len(database.campaigns()))

    run_together([create] * 6)
    assert opened == [0] * 6


def test_a_campaign_knows_its_starts_and_a_trial_its_own(
    database: Database, campaign: CampaignInfo, new_campaign: Callable[..., CampaignInfo], make: Make
) -> None:
    assert database.starts(campaign.id) == []
    given = [("ada", {"cores": 1}), ("bob", {"cores": 2})]
    starts = [database.start(campaign.id, *start) for start in given]
    other = database.start(new_campaign(database, "other").id, "eve", {})
    assert database.starts(campaign.id) == starts
    assert [(start.host, start.provenance) for start in starts] == given
    of_starts = [database.record(campaign.id, make(n), start.id) for n, start in enumerate(starts)]
    of_none = database.record(campaign.id, make(2))
    assert [trial.start_id for trial in (*of_starts, of_none)] == [starts[0].id, starts[1].id, None]
    assert list(database.trials(campaign.id)) == [*of_starts, of_none]
    for start_id in (other.id, other.id + 1):
        with pytest.raises(DatabaseError, match=f"campaign {campaign.id} has no start {start_id}"):
            database.record(campaign.id, make(3), start_id)
    assert database.trial_count(campaign.id) == 3


def test_a_start_of_no_campaign_is_refused(database: Database) -> None:
    with pytest.raises(DatabaseError, match="has no campaign of id 7"):
        database.start(7, "ada", {})


def test_a_task_is_stored_once_for_each_different_one(
    database: Database, campaign: CampaignInfo, make: Make
) -> None:
    tasks = [{"a": 1, "b": [1.5, {"c": None}]}, {"b": [1.5, {"c": None}], "a": 1}, {"a": 2}, {}]
    for n in range(12):
        database.record(campaign.id, make(n, task=tasks[n % 4]))
    assert [trial.record.task for trial in database.trials(campaign.id)] == tasks * 3
    with database._transaction(database._readers) as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM tasks").scalar_one() == 2


def test_writers_that_bring_one_new_task_at_once_all_store_their_trials(
    database: Database, campaign: CampaignInfo, make: Make
) -> None:
    task = {"pages": "x" * 100_000}
    start = threading.Barrier(8)

    def write(number: int) -> None:
        with Database.open(database.address) as own:
            start.wait()
            own.record(campaign.id, make(number, task=task))

    run_together([lambda number=number: write(number) for number in range(8)])
    assert [trial.record.task for trial in database.trials(campaign.id)] == [task] * 8


def test_a_run_is_read_by_its_id_also_when_a_later_one_has_superseded_it(
    database: Database, campaign: CampaignInfo, new_campaign: Callable[..., CampaignInfo], make: Make
) -> None:
    other = new_campaign(database, "other")
    runs = [database.record(campaign.id, make(0, state=state)) for state in ("invalid", "ok")]
    for run in runs:
        assert database.trial(campaign.id, run.id) == database.trial(None, run.id) == run
        assert database.trial(other.id, run.id) is None
    assert database.trial(None, runs[-1].id + 1) is None


def test_states_are_those_of_the_runs_that_count_wherever_they_lie(
    sqlite: str, new_campaign: Callable[..., CampaignInfo], make: Make
) -> None:
    with Database.open(sqlite, create=True) as database:
        campaign = new_campaign(database)
        first, second = (database.record(campaign.id, make(0, state=state)) for state in ("invalid", "ok"))
        with closing(sqlite3.connect(sqlite)) as connection, connection:
            for superseded, trial_id in ((True, second.id), (False, first.id)):
                connection.execute("UPDATE trials SET superseded = ? WHERE id = ?", (superseded, trial_id))
        assert database.states(campaign.id) == {first.record.key: ("invalid", 1)}


def test_a_workload_that_names_no_metric_compares_the_completion_time(
    database: Database, new_campaign: Callable[..., CampaignInfo]
) -> None:
    workloads = [
        Workload(label="download", name="download", parameters={}),
        Workload(label="messages", name="messages", parameters={}, metric="client.latency_p99_s"),
    ]
    campaign = new_campaign(database, workloads=workloads)
    assert [workload["metric"] for workload in campaign.workloads] == ["client.dct_s", "client.latency_p99_s"]


def test_sqlite_leaves_one_file_and_nothing_beside_it(
    sqlite: str, new_campaign: Callable[..., CampaignInfo], make: Make
) -> None:
    with Database.open(sqlite, create=True) as database:
        database.record(new_campaign(database).id, make(0))
        assert [path.name for path in Path(sqlite).parent.iterdir()] == [Path(sqlite).name]


def test_a_design_that_cannot_be_read_is_named_with_its_campaign(campaign: CampaignInfo) -> None:
    with pytest.raises(DatabaseError, match=r"^campaign 'demo': its design cannot be read: .+$"):
        _ = dataclasses.replace(campaign, design_text="no TOML").design_name
