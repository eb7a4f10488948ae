"""Recording a trial looks up as much however many trials there are."""

from collections.abc import Callable

import psycopg

from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, TrialRecord
from tests.waiting import wait_until

LOTS, LOT = 30, 20
MOST_READS = 4
"""Rows read for each trial, at most; reading all each time would be LOTS / 2 and more."""


def test_few_rows_are_read_for_a_trial_however_many_there_are(
    postgresql: str, new_campaign: Callable[..., CampaignInfo], make: Callable[..., TrialRecord]
) -> None:
    with Database.open(postgresql, create=True) as database:
        campaign = new_campaign(database, repetitions=LOTS * LOT)
        start = database.start(campaign.id, "ada", {})
        for first in range(0, LOTS * LOT, LOT):
            records = [make(number, task={"number": number}) for number in range(first, first + LOT)]
            assert database.states_in(campaign.id, [record.key.group for record in records]) == {}
            database.record_all(campaign.id, records, start.id)
    for table in ("trials", "tasks"):
        assert rows_read(postgresql, table) <= MOST_READS * LOTS * LOT, table


def rows_read(url: str, table: str) -> int:
    """Return the rows read by all sessions, which have ended."""
    others = "select from pg_stat_activity where datname = current_database() and pid != pg_backend_pid()"
    reads = "select seq_tup_read + idx_tup_fetch from pg_stat_user_tables where relname = %s"
    with psycopg.connect(url, autocommit=True) as connection:
        wait_until(lambda: not connection.execute(others).fetchall(), "the end of all other sessions")
        row = connection.execute(reads, [table]).fetchone()
        assert row is not None
        return int(row[0])
