"""Ranges are read whole and right, or not at all: the refusal names the database and the cause."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from fecbench.results.store import arrow, connector
from fecbench.results.store.database import Database, DatabaseError
from fecbench.results.store.records import CampaignInfo, TrialRecord
from tests.results.conftest import either

Make = Callable[..., TrialRecord]
NewCampaign = Callable[..., CampaignInfo]

LOCK = """
import select, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
select.select([sys.stdin], [], [], float(sys.argv[2]))
"""


@contextmanager
def locked_by_another_process(file: str, for_s: float) -> Iterator[None]:
    """Lock the file by another process, for so long at most."""
    command = [sys.executable, "-c", LOCK, file, str(for_s)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == b"locked\n"
        yield
        holder.communicate()


def metrics_of(database: Database) -> dict[tuple[str, str], float]:
    read = arrow.metrics(database, 1, 1).to_pylist()
    return {(row["endpoint"], row["name"]): row["value"] for row in read}


@either
def test_metrics_are_found_by_any_name(database: Database, campaign: CampaignInfo, make: Make) -> None:
    """Names stand in the SQL: none is taken for a part of it."""

    def metrics_named(*names: str) -> dict[str, float | None]:
        (row,) = arrow.trials(database, campaign.id, 1, 1, names).to_pylist()
        return {name: row[name] for name in names}

    recorded = {end: {"a%b": 1.0, "it's": 2.0, "a:b": 3.0, "a.b": 4.0} for end in ("client", "server")}
    database.record(campaign.id, make(0, metrics=recorded))
    assert len(metrics_of(database)) == 8
    for name, value in recorded["client"].items():
        assert metrics_named(f"client.{name}") == {f"client.{name}": value}
    everything = {f"{end}.{name}": value for end in recorded for name, value in recorded[end].items()}
    assert metrics_named(*everything) == everything
    assert metrics_named("client.other") == {"client.other": None}


def test_a_metric_that_a_thousand_trials_lack_is_read_of_the_next(
    database: Database, new_campaign: NewCampaign, make: Make
) -> None:
    """The library takes the first thousand rows for all."""
    campaign = new_campaign(database, repetitions=1100)
    records = [make(n, metrics={"client": {"late": 0.5} if n == 1099 else {}}) for n in range(1100)]
    database.record_all(campaign.id, records)
    read = arrow.trials(database, campaign.id, 1, 1100, ["client.late"])["client.late"].to_pylist()
    assert read == [None] * 1099 + [0.5]


def test_a_writer_in_another_process_is_waited_for_and_then_named(
    sqlite: str, new_campaign: NewCampaign, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Database.open(sqlite, create=True) as database:
        campaign = new_campaign(database)
        database.record(campaign.id, make(0))
        with locked_by_another_process(sqlite, for_s=0.5):
            assert len(arrow.trials(database, campaign.id, 1, 1)) == 1
        monkeypatch.setattr(connector, "LOCK_WAIT_S", 0.2)
        with locked_by_another_process(sqlite, for_s=60):
            for read in (lambda: arrow.trials(database, campaign.id, 1, 1), lambda: metrics_of(database)):
                with pytest.raises(DatabaseError, match="is locked for more than"):
                    read()


def test_damaged_metrics_are_refused(sqlite: str, new_campaign: NewCampaign, make: Make) -> None:
    with Database.open(sqlite, create=True) as database:
        campaign = new_campaign(database)
        database.record(campaign.id, make(0))
        with closing(sqlite3.connect(sqlite)) as connection:
            [root] = connection.execute(
                "SELECT rootpage FROM sqlite_schema WHERE name = 'metrics'"
            ).fetchone()
            [size] = connection.execute("PRAGMA page_size").fetchone()
        whole = bytearray(Path(sqlite).read_bytes())
        whole[(root - 1) * size : root * size] = b"\xff" * size
        Path(sqlite).write_bytes(whole)
        with pytest.raises(DatabaseError, match=f"{sqlite}: is damaged"):
            metrics_of(database)


@pytest.mark.parametrize("whole_column", [True, False])
def test_a_value_that_is_no_number_is_refused(
    sqlite: str, new_campaign: NewCampaign, make: Make, whole_column: bool
) -> None:
    with Database.open(sqlite, create=True) as database:
        database.record(new_campaign(database).id, make(0, metrics={"client": {"a": 1.0, "b": 2.0}}))
        with closing(sqlite3.connect(sqlite)) as connection, connection:
            where = "" if whole_column else "WHERE name = 'b'"
            connection.execute(f"UPDATE metrics SET value = 'fast' {where}")
        with pytest.raises(DatabaseError, match=sqlite) as refused:
            metrics_of(database)
        assert "\n" not in str(refused.value)


def test_one_library_of_sqlite_is_at_work_at_a_time(
    sqlite: str, new_campaign: NewCampaign, make: Make
) -> None:
    """Closing a file, a library would give up the locks that the other one has on it."""
    with Database.open(sqlite, create=True) as database, ThreadPoolExecutor(1) as another:
        campaign = new_campaign(database)
        database.record(campaign.id, make(0))
        with database.alone():
            read = another.submit(arrow.trials, database, campaign.id, 1, 1)
            assert wait([read], timeout=0.3).not_done
        assert len(read.result(10)) == 1


def test_a_transaction_of_this_process_waits_for_the_other_library(
    sqlite: str, new_campaign: NewCampaign, make: Make
) -> None:
    with Database.open(sqlite, create=True) as database, ThreadPoolExecutor(1) as another:
        campaign = new_campaign(database)
        with Database.open(sqlite) as same_file, same_file.alone():
            written = another.submit(database.record, campaign.id, make(0))
            assert wait([written], timeout=0.3).not_done
        assert written.result(10).record.state == "ok"


def test_a_forked_process_does_not_wait_for_a_thread_that_it_does_not_have(sqlite: str) -> None:
    with Database.open(sqlite, create=True) as database, database.alone():
        child = os.fork()
        if child == 0:
            taken = ThreadPoolExecutor(1).submit(lambda: database.alone().__enter__())
            os._exit(0 if wait([taken], timeout=10).done else 1)
        _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
