"""Faults around a database: wrong files, locks, full and read-only disks, a killed harness."""

import itertools
import json
import multiprocessing
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
import sqlalchemy as sa

from fecbench.results.store import connector, schema
from fecbench.results.store.database import Database, DatabaseError
from fecbench.results.store.error import Replaced
from fecbench.results.store.records import CampaignInfo, TrialRecord, VerdictLog

Make = Callable[..., TrialRecord]
NewCampaign = Callable[..., CampaignInfo]


def refusal(path: object, *, create: bool) -> str:
    with pytest.raises(DatabaseError) as caught:
        Database.open(str(path), create=create)
    message = str(caught.value)
    assert message.startswith(str(path)), message
    assert "\n" not in message
    return message


def test_a_missing_file_is_refused_unless_it_is_to_be_created(tmp_path: Path) -> None:
    assert "no such database" in refusal(tmp_path / "x.sqlite", create=False)
    assert not (tmp_path / "x.sqlite").exists()
    assert "folder does not exist" in refusal(tmp_path / "absent" / "x.sqlite", create=True)


def test_a_directory_is_refused(tmp_path: Path) -> None:
    for create in (False, True):
        assert "is a directory" in refusal(tmp_path, create=create)


def test_an_empty_file_becomes_a_database_only_when_it_is_to_be_created(tmp_path: Path) -> None:
    file = tmp_path / "x.sqlite"
    file.touch()
    assert "is empty" in refusal(file, create=False)
    Database.open(str(file), create=True).close()
    Database.open(str(file)).close()


def test_a_file_that_is_no_database_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    for create in (False, True):
        for text in ("bandwidth_mbps = 3\n", "x" * 5000, "SQLite format 3\0"):
            file = tmp_path / "notes.txt"
            file.write_text(text)
            assert "is not an SQLite database" in refusal(file, create=create)
            assert file.read_text() == text


def test_a_truncated_database_is_refused(tmp_path: Path, new_campaign: NewCampaign, make: Make) -> None:
    file = tmp_path / "x.sqlite"
    with Database.open(str(file), create=True) as database:
        database.record(new_campaign(database).id, make(0))
    whole = file.read_bytes()
    for size, create in itertools.product((len(whole) - 4096, len(whole) // 2, 1000, 99, 17), (False, True)):
        file.write_bytes(whole[:size])
        assert "is damaged" in (message := refusal(file, create=create)) or "is not an SQLite" in message


def test_a_database_of_another_program_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "x.sqlite"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
    connection.close()
    before = file.read_bytes()
    for create in (False, True):
        assert "database of another program" in refusal(file, create=create)
        assert file.read_bytes() == before


def test_another_schema_version_is_refused(sqlite: str) -> None:
    Database.open(sqlite, create=True).close()
    for version, create in itertools.product((schema.VERSION - 1, schema.VERSION + 1), (False, True)):
        with closing(sqlite3.connect(sqlite)) as connection:
            connection.execute(f"PRAGMA user_version = {version}")
        said = refusal(sqlite, create=create)
        assert f"has schema version {version}, this fecbench reads version" in said
        assert f"git log -S 'VERSION = {version}' -- results/store/schema.py" in said


NAMED: list[tuple[str, bool]] = [
    ("UPDATE campaigns SET title = 'x'", True),
    ("ALTER TABLE campaigns DROP COLUMN title", True),
    ("ALTER TABLE campaigns RENAME COLUMN provenance TO origin", False),
    ("UPDATE campaigns SET provenance = 'no JSON'", False),
    ("UPDATE campaigns SET provenance = '[1]'", False),
    ("""UPDATE campaigns SET provenance = '{"revision": {"commit": null}}'""", False),
    ("""UPDATE campaigns SET provenance = '{"revision": {"commit": "x; rm -r ."}}'""", False),
    ("DROP TABLE campaigns", False),
]


def test_another_schema_version_is_refused_with_the_revision_that_wrote_it_where_it_can_be_read(
    sqlite: str, new_campaign: NewCampaign
) -> None:
    with Database.open(sqlite, create=True) as database:
        new_campaign(database, "older", provenance={"revision": {"commit": "0" * 40}})
        new_campaign(database, "newer", provenance={"revision": {"commit": "0123456789" * 4}})
    whole = Path(sqlite).read_bytes()
    for change, named in NAMED:
        Path(sqlite).write_bytes(whole)
        with closing(sqlite3.connect(sqlite)) as connection, connection:
            connection.execute("PRAGMA user_version = 99")
            connection.execute(change)
        said = refusal(sqlite, create=False)
        assert (f"its revision is {'0123456789' * 4}" in said) == named, change
        assert ("git log -S 'VERSION = 99'" in said) != named, change
        assert "rm -r" not in said


def test_a_path_with_characters_that_urls_reserve_is_a_path(tmp_path: Path) -> None:
    file = tmp_path / "50% loss? #1 &é.sqlite"
    Database.open(str(file), create=True).close()
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_a_locked_database_is_reported(
    sqlite: str, new_campaign: NewCampaign, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connector, "LOCK_WAIT_S", 0.2)
    with Database.open(sqlite, create=True) as database:
        campaign = new_campaign(database)
        holder = sqlite3.connect(sqlite, isolation_level=None)
        holder.execute("BEGIN EXCLUSIVE")
        with pytest.raises(DatabaseError, match="is locked"):
            database.record(campaign.id, make(0))
        assert "is locked" in refusal(sqlite, create=False)
        holder.execute("COMMIT")
        holder.close()
        database.record(campaign.id, make(0))


def test_a_file_that_was_deleted_moved_or_replaced_is_neither_read_nor_written(
    sqlite: str, new_campaign: NewCampaign, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, aside = Path(sqlite), Path(f"{sqlite}.aside")
    with Database.open(sqlite, create=True) as other:
        new_campaign(other)
    for place in (str(file), file.name):  # an address need not be whole, and the folder may change
        monkeypatch.chdir(file.parent)
        with Database.open(place) as database:
            monkeypatch.chdir("/")
            (campaign,) = database.campaigns()
            file.rename(aside)
            for takes_its_place in (False, True):
                if takes_its_place:
                    shutil.copy(aside, file)
                with pytest.raises(Replaced, match="was deleted, moved or replaced"):
                    database.campaigns()
                with pytest.raises(Replaced, match="was deleted, moved or replaced"):
                    database.record(campaign.id, make(0))
            aside.rename(file)
            assert database.campaigns() == [campaign]
    with Database.open(sqlite) as other:
        assert other.trial_count(campaign.id) == 0


# PostgreSQL


NO_POSTGRESQL: list[tuple[str, str]] = [
    ("mysql://me@host/x", "must be a file, or a URL postgresql://USER@HOST:PORT/DATABASE"),
    ("sqlite:///x.sqlite", "must be a file, or a URL postgresql://USER@HOST:PORT/DATABASE"),
    ("://", "must be a file, or a URL postgresql://USER@HOST:PORT/DATABASE"),
    ("postgresql://me@127.0.0.1:1/x", "127.0.0.1"),
    ("postgresql://me@127.0.0.1:1/x?nonsense=1", "nonsense"),
]


def test_a_url_that_leads_to_no_postgresql_is_refused() -> None:
    for url, message in NO_POSTGRESQL:
        assert message in refusal(url, create=False)


def test_an_empty_postgresql_database_is_given_the_schema_only_when_it_is_to_be_created(
    postgresql: str,
) -> None:
    assert "is empty" in refusal(postgresql, create=False)
    Database.open(postgresql, create=True).close()
    Database.open(postgresql).close()


@pytest.mark.parametrize("create", [False, True])
def test_a_postgresql_database_of_another_program_or_version_is_refused(
    postgresql: str, create: bool
) -> None:
    engine = sa.create_engine(postgresql.replace("postgresql", "postgresql+psycopg", 1))
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE bookmarks (url text)")
    assert "database of another program" in refusal(postgresql, create=create)
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE bookmarks")
    Database.open(postgresql, create=True).close()
    with engine.begin() as connection:
        connection.execute(sa.update(schema.schema_version).values(version=99))
    assert "has schema version 99" in refusal(postgresql, create=create)
    engine.dispose()


# Kills and disks


def record_until_killed(path: str, campaign_id: int, first: int, make: Make, committed: Connection) -> None:
    log = VerdictLog("internet", "down", 8 * 4096, 1, random.Random(first).randbytes(4096))
    with Database.open(path) as database:
        for repetition in itertools.count(first):
            record = make(repetition, verdicts=[log])
            database.record(campaign_id, record)
            committed.send(repetition)


def test_a_killed_writer_loses_no_recorded_trial_and_duplicates_none(
    sqlite: str, new_campaign: NewCampaign, make: Make
) -> None:
    moments = random.Random(20260102)
    process = multiprocessing.get_context("fork")
    with Database.open(sqlite, create=True) as database:
        campaign = new_campaign(database, repetitions=10**6)
    committed: set[int] = set()
    for _ in range(60):
        mine, theirs = process.Pipe(duplex=False)
        first = max(committed, default=-1) + 2  # one trial may be committed whose message was not sent
        writer = process.Process(target=record_until_killed, args=(sqlite, campaign.id, first, make, theirs))
        writer.start()
        theirs.close()
        mine.poll(30)
        time.sleep(moments.uniform(0, 0.03))
        writer.kill()
        writer.join()
        try:
            while True:
                committed.add(mine.recv())
        except EOFError:
            mine.close()
        with Database.open(sqlite) as database:
            assert committed <= {key.repetition for key in database.states(campaign.id)}
    assert len(committed) > 60
    with Database.open(sqlite) as database:
        stored = [trial.record for trial in database.trials(campaign.id)]
    keys = [record.key.repetition for record in stored]
    assert len(keys) == len(set(keys))
    assert committed <= set(keys)
    assert all(record.metrics and len(record.verdicts) == 1 for record in stored)
    with sqlite3.connect(sqlite) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


FILL = """
import json, os, subprocess, sys
from fecbench.results.store.database import Database, DatabaseError
from fecbench.results.store.records import NewCampaign, TrialKey, TrialRecord, Variant, VerdictLog, Workload

def refused(action):
    try:
        action()
    except DatabaseError as error:
        return str(error)

folder = sys.argv[1]
path = folder + "/x.sqlite"
database = Database.open(path, create=True)
campaign = database.create_campaign(NewCampaign(
    name="full", title="", design_text="", seed=1, repetitions=10**6, statistic="median", provenance={},
    points=[{}], variants=[Variant(label="v", implementation="i", options={}, baseline=True)],
    workloads=[Workload(label="w", name="download", parameters={})],
))
def record(n):
    key = TrialKey("v", "w", 0, n)
    log = VerdictLog("internet", "up", 80000, 0, bytes(10000))
    return database.record(campaign.id, TrialRecord(key, "ok", "", "", 0.0, verdicts=[log]))
n, full = 0, None
while full is None:
    full = refused(lambda: record(n))
    n += 1
report = {"full": full, "recorded": n - 1, "kept": len(list(database.trials(campaign.id)))}
database.close()
subprocess.run(["mount", "-o", "remount,size=4m", folder], check=True)
database = Database.open(path)
record(n - 1)
report["after"] = database.trial_count(campaign.id)
database.close()
subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
database = Database.open(path)
report["read_only"] = refused(lambda: record(n))
report["read"] = len(list(database.trials(campaign.id)))
print(json.dumps(report))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
def test_a_full_or_read_only_disk_is_reported_and_spoils_nothing(tmp_path: Path) -> None:
    mount = 'mount -t tmpfs -o size=512k none "$1" && exec "$2" -c "$3" "$1"'
    in_own_mounts = ["unshare", "--mount", "sh", "-c", mount, "sh", str(tmp_path), sys.executable, FILL]
    run = subprocess.run(in_own_mounts, check=True, capture_output=True, text=True, timeout=60)
    report = json.loads(run.stdout)
    assert report["full"] == f"{tmp_path}/x.sqlite: cannot be written: the disk is full"
    assert report["recorded"] > 5
    assert report["kept"] == report["recorded"]
    assert report["after"] == report["read"] == report["recorded"] + 1
    assert "is read-only" in report["read_only"]
