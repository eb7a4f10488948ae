"""Ranges of trials and of their metrics as Arrow tables, which the databases' own C libraries fill.

A Python object for each value would cost several times what the database needs for it.

ADBC has an SQLite of its own, and to the system the locks on a file are the process's, whichever library took
them. So other processes may write meanwhile, this one must not.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from typing import Any

import adbc_driver_manager
import adbc_driver_postgresql.dbapi
import adbc_driver_sqlite.dbapi
import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from results.store import connector, schema
from results.store.database import Database, DatabaseError
from results.store.records import TRIAL_COLUMNS
from results.store.sqlite import CAUSES

_TYPES = {sa.Integer: pa.int64(), sa.Double: pa.float64(), sa.Text: pa.string()}
_CAUSES_OF_SQLITE = {
    "database disk image is malformed": CAUSES[sqlite3.SQLITE_CORRUPT],
    "database is locked": CAUSES[sqlite3.SQLITE_BUSY],
    "disk I/O error": CAUSES[sqlite3.SQLITE_IOERR],
    "unable to open database file": CAUSES[sqlite3.SQLITE_CANTOPEN],
}


def trials(database: Database, campaign_id: int, first_id: int, last_id: int) -> pa.Table:
    """The columns TRIAL_COLUMNS of the campaign's trials with these ids, by id.

    Raises DatabaseError when the database cannot be read, as `metrics` does.
    """
    columns = schema.trials.c
    query = sa.select(*(columns[name] for name in TRIAL_COLUMNS)).where(
        # "+ 0" keeps SQLite from the campaign's index, which it would go through whole for every range of ids
        columns.campaign_id + 0 == campaign_id,
        schema.counts,
        columns.id.between(first_id, last_id),
    )
    return _read(database, query.order_by(columns.id))


def metrics(
    database: Database, first_id: int, last_id: int, names: Collection[str] | None = None
) -> pa.Table:
    """The metrics ("endpoint.name"; None: all) of the runs with these ids, whatever their campaign.

    One row a metric: `trial_id`, `endpoint`, `name`, `value`.
    """
    columns = schema.metrics.c
    query = sa.select(schema.metrics).where(columns.trial_id.between(first_id, last_id))
    if names is not None:
        pairs = (name.partition(".")[::2] for name in names)
        wanted = [(columns.endpoint == endpoint) & (columns.name == name) for endpoint, name in pairs]
        query = query.where(sa.or_(sa.false(), *wanted))
    return _read(database, query)


def _read(database: Database, query: sa.Select[Any]) -> pa.Table:
    wanted = pa.schema([(column.name, _TYPES[type(column.type)]) for column in query.selected_columns])
    try:
        table = (
            _from_sqlite(database.uri, query) if database.is_file else _from_postgresql(database.uri, query)
        )
        return table.cast(wanted)  # SQLite's columns have the types of what is in them
    except (adbc_driver_manager.Error, OSError, pa.ArrowInvalid) as error:
        raise DatabaseError(f"{database.address}: {_explain(str(error))}") from error


def _from_sqlite(uri: str, query: sa.Select[Any]) -> pa.Table:
    with adbc_driver_sqlite.dbapi.connect(uri) as connection, connection.cursor() as cursor:
        cursor.execute(f"PRAGMA busy_timeout = {connector.LOCK_WAIT_S * 1000:.0f}")
        cursor.execute(_sql(query, sqlite.dialect()))
        return cursor.fetch_arrow_table()


def _from_postgresql(uri: str, query: sa.Select[Any]) -> pa.Table:
    dialect = postgresql.dialect(paramstyle="named")  # type: ignore[no-untyped-call]  # others double each "%"
    with adbc_driver_postgresql.dbapi.connect(uri) as connection, connection.cursor() as cursor:
        cursor.execute(_sql(query, dialect))
        return cursor.fetch_arrow_table()


def _sql(query: sa.Select[Any], dialect: sa.Dialect) -> str:
    return str(query.compile(dialect=dialect, compile_kwargs={"literal_binds": True}))


def _explain(message: str) -> str:
    """ADBC hands over SQLite's text, not its code."""
    known = (cause for text, cause in _CAUSES_OF_SQLITE.items() if text in message)
    return next(known, message.splitlines()[0])
