"""A database of version 1 or 2 is upgraded when it is opened: nothing in it changes, or nothing happens."""

from __future__ import annotations

import dataclasses
import lzma
import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from fecbench.results.store import schema, upgrade
from fecbench.results.store.database import Database, DatabaseError

Rows = dict[str, list[tuple[Any, ...]]]

SAMPLE = Path(__file__).parent / "version-1.sqlite.xz"
POSTGRESQL_OF_VERSION_1 = Path(__file__).parent / "version-1.postgresql.sql"
UPGRADED = f"it has schema version 1, and is upgraded to {schema.VERSION}"


def write_sample(path: str) -> None:
    """A campaign that was recorded by version 1."""
    Path(path).write_bytes(lzma.decompress(SAMPLE.read_bytes()))


def engine_of(address: str) -> sa.Engine:
    is_url = "://" in address
    return sa.create_engine(
        address.replace("postgresql:", "postgresql+psycopg:", 1) if is_url else f"sqlite:///{address}",
        poolclass=sa.NullPool,
    )


def copy_to_postgresql(path: str, url: str) -> None:
    """The tables of version 1, filled from an SQLite file of that version."""
    source, target = engine_of(path), engine_of(url)
    tables = sa.MetaData()
    tables.reflect(source)
    with target.begin() as writing, source.connect() as reading:
        for statement in POSTGRESQL_OF_VERSION_1.read_text().split(";\n"):
            if statement.strip():
                writing.exec_driver_sql(statement)
        for table in tables.sorted_tables:
            rows = [dict(row) for row in reading.execute(sa.select(table)).mappings()]
            if rows:
                writing.execute(sa.insert(table), rows)
        highest = sa.select(sa.func.max(tables.tables["trials"].c.id)).scalar_subquery()
        writing.execute(sa.select(sa.func.setval("trials_id_seq", highest)))
        writing.execute(sa.select(sa.func.setval("campaigns_id_seq", 1)))


XOR, XOR_OF_5 = ("rquic", {"scheme": "xor"}), ("rquic", {"scheme": "xor", "n": 5})
# Of each campaign: its variants, what else its design says of the second, and what it compares.
CAMPAIGNS = {
    "aa-in-name-only": ((XOR, XOR_OF_5), "", "comparison"),
    "yardstick": ((XOR, XOR), "", "against-itself"),
    "other-stack": ((XOR, ("noq-fec", XOR[1])), "", "comparison"),
    "other-server": ((XOR, XOR), 'server = "0"', "comparison"),
    "alone": ((XOR,), "", "comparison"),
}


def write_version_2(address: str) -> None:
    """Campaigns as version 2 recorded them, each with a start, and one with a trial and its task."""
    engine = engine_of(address)
    kind = "postgresql" if "://" in address else "sqlite"
    statements = (Path(__file__).parent / f"version-2.{kind}.sql").read_text().split(";\n")
    with engine.begin() as connection:
        for statement in filter(str.strip, statements):
            connection.exec_driver_sql(statement)
        if kind == "sqlite":
            connection.exec_driver_sql(f"PRAGMA application_id = {schema.APPLICATION_ID}")
            connection.exec_driver_sql("PRAGMA user_version = 2")
    tables = tables_of(address)

    def insert(table: str, **values: Any) -> None:
        connection.execute(sa.insert(tables.tables[table]).values(values))

    with engine.begin() as connection:
        insert("schema_version", application="fecbench", version=2)
        for number, (name, (variants, of_second, _)) in enumerate(CAMPAIGNS.items(), 1):
            campaign = {
                **{"name": name, "title": "", "created_at": "2026-01-02T03:04:05+00:00"},
                **{"seed": "1", "repetitions": 1, "statistic": "median", "provenance": {"cores": 2}},
                "design_text": f'[[variants]]\nlabel = "0"\n[[variants]]\nlabel = "1"\n{of_second}\n',
            }
            insert("campaigns", id=number, **campaign)
            insert("points", campaign_id=number, point=0, factors={"owd_ms": 20})
            of_download = {"workload": "download", "name": "download", "parameters": {}}
            insert("workloads", campaign_id=number, position=0, metric="client.dct_s", **of_download)
            for position, (implementation, options) in enumerate(variants):
                of_variant = {"variant": str(position), "position": position, "baseline": position == 0}
                insert(
                    "variants",
                    campaign_id=number,
                    implementation=implementation,
                    options=options,
                    **of_variant,
                )
            insert(
                "starts",
                id=number,
                campaign_id=number,
                started_at="2026",
                host="ada",
                provenance={"cores": 2},
            )
        insert("tasks", id=1, campaign_id=1, digest="0" * 64, document={"timeout_s": 1.0})
        documents = ("seeds", "dropper", "links", "exits", "stderr", "overhead_s", "checks")
        insert(
            "trials",
            **{"id": 1, "campaign_id": 1, "variant": "0", "workload": "download", "point": 0},
            **{"repetition": 0, "attempt": 1, "superseded": False, "state": "ok", "reason": ""},
            **{"started_at": "2026", "duration_s": 1.5, "start_id": 1, "task_id": 1},
            **{name: {} for name in documents},
        )


@pytest.fixture
def version_2(address: str) -> str:
    """The address of a database of version 2."""
    write_version_2(address)
    return address


def write_version_1(address: str, folder: Path) -> None:
    """The recorded demo as version 1 kept it."""
    if "://" not in address:
        write_sample(address)
    else:
        write_sample(str(folder / "sample.sqlite"))
        copy_to_postgresql(str(folder / "sample.sqlite"), address)
    assert version_of(address) == 1


@pytest.fixture
def version_1(address: str, tmp_path: Path) -> str:
    """The address of a database of version 1."""
    write_version_1(address, tmp_path)
    return address


@pytest.fixture(params=[1, 2])
def earlier(request: pytest.FixtureRequest, address: str, tmp_path: Path) -> str:
    """The address of a database of each earlier version in turn."""
    if request.param == 1:
        write_version_1(address, tmp_path)
    else:
        write_version_2(address)
    return address


def version_of(address: str) -> int:
    with engine_of(address).connect() as connection:
        if "://" in address:
            return int(connection.exec_driver_sql("SELECT version FROM schema_version").scalar_one())
        return int(connection.exec_driver_sql("PRAGMA user_version").scalar_one())


def tables_of(address: str) -> sa.MetaData:
    tables = sa.MetaData()
    tables.reflect(engine_of(address))
    return tables


def rows_of(address: str, tables: sa.MetaData) -> Rows:
    """Every value in the columns of these tables but the version's own."""
    with engine_of(address).connect() as connection:
        return {
            table.name: sorted((tuple(row) for row in connection.execute(sa.select(table))), key=repr)
            for table in tables.sorted_tables
            if table.name != "schema_version"
        }


def structure_of(address: str) -> dict[str, Any]:
    """Columns, keys and indexes of all tables, as the database itself tells them."""
    inspector = sa.inspect(engine_of(address))
    return {
        name: (
            [(c["name"], str(c["type"]), c["nullable"]) for c in inspector.get_columns(name)],
            inspector.get_pk_constraint(name)["constrained_columns"],
            sorted(
                (key["constrained_columns"], key["referred_table"], key["referred_columns"])
                for key in inspector.get_foreign_keys(name)
            ),
            sorted(key["column_names"] for key in inspector.get_unique_constraints(name)),
            sorted((index["name"] or "", index["column_names"]) for index in inspector.get_indexes(name)),
        )
        for name in inspector.get_table_names()
    }


def test_an_upgrade_changes_no_value(earlier: str) -> None:
    tables = tables_of(earlier)
    before = rows_of(earlier, tables)
    assert len(before["trials"]) in (120, 1)
    Database.open(earlier).close()
    assert version_of(earlier) == schema.VERSION
    assert rows_of(earlier, tables) == before


def test_an_upgrade_tells_by_the_record_which_campaigns_ran_one_variant_against_itself(
    version_2: str,
) -> None:
    with Database.open(version_2) as database:
        kinds = {campaign.name: campaign.kind for campaign in database.campaigns()}
    assert kinds == {name: kind for name, (_, _, kind) in CAMPAIGNS.items()}


def test_starts_of_version_2_are_read(version_2: str) -> None:
    with Database.open(version_2) as database:
        (start,) = database.starts(1)
        assert (start.host, start.holder, start.beat) == ("ada", None, 0)
        assert database.trials_by_start(1) == {start.id: 1}


def test_an_upgraded_database_has_the_tables_of_a_new_one(earlier: str, tmp_path: Path) -> None:
    Database.open(earlier).close()
    upgraded = structure_of(earlier)
    if "://" in earlier:  # there is one PostgreSQL database for each test: it is made anew
        tables_of(earlier).drop_all(engine_of(earlier))
        new = earlier
    else:
        new = str(tmp_path / "new.sqlite")
    Database.open(new, create=True).close()
    assert upgraded == structure_of(new)


def test_a_campaign_of_version_1_is_gone_on_with(version_1: str) -> None:
    with Database.open(version_1) as database:
        (campaign,) = database.campaigns()
        trials = list(database.trials(campaign.id))
        assert len(trials) == campaign.planned_trials == 120
        assert all(trial.start_id is None and trial.record.task == {} for trial in trials)
        assert {workload["metric"] for workload in campaign.workloads} == {"client.dct_s"}
        with pytest.raises(DatabaseError, match="has a result"):
            database.record(campaign.id, trials[0].record)
        start = database.start(campaign.id, "ada", {})
        again = dataclasses.replace(trials[0].record, task={"timeout_s": 1})
        with engine_of(version_1).begin() as connection:
            connection.exec_driver_sql(f"DELETE FROM metrics WHERE trial_id = {trials[0].id}")
            connection.exec_driver_sql(f"DELETE FROM verdicts WHERE trial_id = {trials[0].id}")
            connection.exec_driver_sql(f"DELETE FROM trials WHERE id = {trials[0].id}")
        assert database.record(campaign.id, again, start.id) == database.trial_of(campaign.id, again.key)


def test_an_upgraded_file_is_not_written_again(sqlite: str) -> None:
    write_sample(sqlite)
    Database.open(sqlite).close()
    upgraded = Path(sqlite).read_bytes()
    for create in (False, True):
        Database.open(sqlite, create=create).close()
        assert Path(sqlite).read_bytes() == upgraded


def test_those_that_upgrade_one_database_at_once_all_open_it(version_1: str) -> None:
    counts: list[int] = []
    start = threading.Barrier(6)

    def count() -> None:
        start.wait()
        with Database.open(version_1) as database:
            counts.append(database.trial_count(1))

    threads = [threading.Thread(target=count) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [120] * 6


def test_an_upgrade_that_fails_leaves_version_1_whole(
    version_1: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables, structure = tables_of(version_1), structure_of(version_1)
    before = rows_of(version_1, tables)
    step = upgrade.STEPS[1]

    def and_fail(connection: sa.Connection) -> None:
        step(connection)
        connection.exec_driver_sql("no SQL")

    monkeypatch.setitem(upgrade.STEPS, 1, and_fail)
    with pytest.raises(DatabaseError, match=UPGRADED) as refused:
        Database.open(version_1)
    assert "\n" not in str(refused.value)
    assert (version_of(version_1), structure_of(version_1)) == (1, structure)
    assert rows_of(version_1, tables) == before


KILLED = """
import os, signal, sys
import fecbench.results.store.connector as connector
from fecbench.results.store.database import Database
connector.Connector.set_version = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
Database.open(sys.argv[1])
"""


def test_an_upgrade_that_is_killed_leaves_version_1_whole(version_1: str) -> None:
    tables, structure = tables_of(version_1), structure_of(version_1)
    before = rows_of(version_1, tables)
    killed = subprocess.run([sys.executable, "-c", KILLED, version_1], timeout=60)
    assert killed.returncode == -9
    assert (version_of(version_1), structure_of(version_1)) == (1, structure)
    assert rows_of(version_1, tables) == before
    Database.open(version_1).close()
    assert version_of(version_1) == schema.VERSION


READ_ONLY = """
mount -t tmpfs none "$1" && cp "$2" "$1/x.sqlite" && mount -o remount,ro "$1" &&
exec "$3" -c "from fecbench.results.store.database import Database; Database.open('$1/x.sqlite')"
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a disk needs root")
def test_a_read_only_file_of_version_1_is_refused_with_what_to_do(sqlite: str, tmp_path: Path) -> None:
    write_sample(sqlite)
    (disk := tmp_path / "disk").mkdir()
    command = ["unshare", "--mount", "sh", "-c", READ_ONLY, "sh", str(disk), sqlite, sys.executable]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert run.stderr.splitlines()[-1] == (
        f"fecbench.results.store.error.DatabaseError: {disk}/x.sqlite: is read-only:"
        " make it writable, or use a copy"
        f" that is ({UPGRADED} when it is opened)"
    )


def test_a_postgresql_user_who_may_not_upgrade_is_refused_in_a_line(postgresql: str, tmp_path: Path) -> None:
    write_sample(str(tmp_path / "sample.sqlite"))
    copy_to_postgresql(str(tmp_path / "sample.sqlite"), postgresql)
    with engine_of(postgresql).begin() as connection:
        connection.exec_driver_sql("DROP ROLE IF EXISTS reader")
        connection.exec_driver_sql("CREATE ROLE reader LOGIN")
        connection.exec_driver_sql("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
    with pytest.raises(DatabaseError, match=UPGRADED) as refused:
        Database.open(postgresql.replace("fecbench@", "reader@"))
    assert "\n" not in str(refused.value)
    assert version_of(postgresql) == 1
    with engine_of(postgresql).begin() as connection:
        connection.exec_driver_sql("DROP OWNED BY reader")
        connection.exec_driver_sql("DROP ROLE reader")


def test_what_version_1_wrote_meanwhile_is_read(sqlite: str) -> None:
    """An older fecbench that has the file open goes on with the columns that it knows."""
    write_sample(sqlite)
    with closing(sqlite3.connect(sqlite)) as older:
        columns = [row[1] for row in older.execute("PRAGMA table_info(trials)")]
        Database.open(sqlite).close()
        others = ", ".join(columns).replace("id, ", "NULL, ", 1).replace("superseded", "1")
        insert = f"INSERT INTO trials ({', '.join(columns)}) SELECT {others} FROM trials WHERE id = 1"
        with older:
            older.execute(insert)
    with Database.open(sqlite) as database:
        (campaign,) = database.campaigns()
        assert len(database.attempts(campaign.id, next(database.trials(campaign.id)).record.key)) == 2
