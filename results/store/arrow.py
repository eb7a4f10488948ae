"""Ranges of trials and of their metrics as Arrow tables, which the databases' own C libraries fill.

A Python object for each value would cost several times what the database needs for it.

ADBC has an SQLite of its own, beside Python's: `Database.alone` keeps the two apart. Other processes may
write meanwhile.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence
from typing import Any

import adbc_driver_manager
import adbc_driver_sqlite.dbapi
import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa
from pyarrow import json
from sqlalchemy.dialects import sqlite

from fecbench.results.store import connector, schema
from fecbench.results.store.database import Database, DatabaseError
from fecbench.results.store.records import TRIAL_COLUMNS
from fecbench.results.store.sqlite import CAUSES

_TYPES = {
    sa.Integer: pa.int64(),
    sa.Double: pa.float64(),
    sa.Text: pa.string(),
    sa.LargeBinary: pa.large_binary(),
}
_NONE = -math.inf
"""No metric has this value: a record with one is refused."""
_CAUSES_OF_SQLITE = {
    "database disk image is malformed": CAUSES[sqlite3.SQLITE_CORRUPT],
    "database is locked": CAUSES[sqlite3.SQLITE_BUSY],
    "disk I/O error": CAUSES[sqlite3.SQLITE_IOERR],
    "unable to open database file": CAUSES[sqlite3.SQLITE_CANTOPEN],
}


def trials(
    database: Database, campaign_id: int, first_id: int, last_id: int, metrics: Sequence[str] = ()
) -> pa.Table:
    """The campaign's trials with these ids, by id.

    Columns: TRIAL_COLUMNS; `start_id`, 0 where no start is known; and each of these metrics
    ("endpoint.name"), null where a trial has none. A trial has dozens of metrics, so few are looked up by
    their keys. Raises DatabaseError when the database cannot be read, as `harness` and `metrics` do.
    """
    columns = schema.trials.c
    query = sa.select(
        *(columns[name] for name in TRIAL_COLUMNS),
        sa.func.coalesce(columns.start_id, 0, type_=sa.Integer).label("start_id"),
        *(_metric(database, name).label(name) for name in metrics),
    )
    read = _read(database, query.where(*_in_range(campaign_id, first_id, last_id)).order_by(columns.id))
    for name in metrics if database.is_file else ():
        place, values = read.schema.get_field_index(name), read[name]
        column = pc.if_else(pc.equal(values, _NONE), pa.scalar(None, pa.float64()), values)
        read = read.set_column(place, name, column)
    return read


def _metric(database: Database, name: str) -> sa.ColumnElement[float]:
    """The metric of a row of `trials`. In a file, one that is absent is _NONE: ADBC would take a column that
    begins with 1,000 nulls for one of integers."""
    values = schema.metrics.c
    endpoint, _, own = name.partition(".")
    value = (
        sa.select(values.value)
        .where(values.trial_id == schema.trials.c.id, values.endpoint == endpoint, values.name == own)
        .scalar_subquery()
    )
    return (
        sa.func.coalesce(value, sa.literal_column("-9e999"), type_=sa.Double) if database.is_file else value
    )


def harness(database: Database, campaign_id: int, first_id: int, last_id: int) -> pa.Table:
    """Return what the harness kept of the campaign's trials with these ids beside their state, by id.

    Columns: `id`, `started_at`, `host` ("" where no start is known), `reason`, and as texts of JSON `seeds`,
    `dropper`, `links`, `overhead_s` and `checks`.
    """
    columns = schema.trials.c
    documents = (columns.seeds, columns.dropper, columns.links, columns.overhead_s, columns.checks)
    query = sa.select(
        columns.id,
        columns.started_at,
        # No nulls: ADBC would take a column that begins with 1,000 of them for one of numbers.
        sa.func.coalesce(schema.starts.c.host, "", type_=sa.Text).label("host"),
        columns.reason,
        *(sa.cast(document, sa.Text).label(document.name) for document in documents),
    )
    of_campaign = query.join_from(schema.trials, schema.starts, isouter=True).where(
        *_in_range(campaign_id, first_id, last_id)
    )
    return _read(database, of_campaign.order_by(columns.id))


def overheads(database: Database, campaign_id: int, first_id: int, last_id: int) -> pa.Table:
    """The column `overhead_s`, as texts of JSON, of the campaign's trials with these ids, by id."""
    columns = schema.trials.c
    query = sa.select(sa.cast(columns.overhead_s, sa.Text).label("overhead_s"))
    return _read(database, query.where(*_in_range(campaign_id, first_id, last_id)).order_by(columns.id))


def times(database: Database, campaign_id: int) -> pa.Table:
    """The columns `started_at` and `duration_s` of all runs of the campaign's trials, superseded ones too."""
    columns = schema.trials.c
    query = sa.select(columns.started_at, columns.duration_s)
    return _read(database, query.where(columns.campaign_id == campaign_id))


def drops(database: Database, first_id: int, last_id: int, packets: int) -> pa.Table:
    """Return which of the first `packets` (a multiple of 8) were dropped, of the runs with these ids.

    One row a direction of a link that dropped any, by run: `trial_id`, `link`, `direction`, and `bitmap`, of
    which bit n (little-endian) is set iff packet n was dropped.
    """
    columns = schema.verdicts.c
    bitmap = sa.func.substr(columns.bitmap, 1, packets // 8, type_=sa.LargeBinary).label("bitmap")
    query = sa.select(columns.trial_id, columns.link, columns.direction, bitmap)
    in_range = query.where(columns.trial_id.between(first_id, last_id), columns.dropped > 0)
    return _read(database, in_range.order_by(columns.trial_id))


def objects(texts: pa.ChunkedArray, fields: pa.Schema) -> pa.Table:
    """One row for each text, which must be a JSON object: its fields of these names, null where it lacks one.

    Raises pa.ArrowInvalid for a text that is no JSON object, and for a field of another type.
    """
    if not len(texts):
        return fields.empty_table()
    lines = pc.binary_join_element_wise(texts.combine_chunks(), "\n", "")
    characters = lines.buffers()[2].slice(0, pc.sum(pc.binary_length(lines)).as_py())
    # One block, since a text that two blocks share would be refused.
    options = json.ReadOptions(use_threads=False, block_size=len(characters) + 1)
    parsing = json.ParseOptions(
        explicit_schema=fields, newlines_in_values=True, unexpected_field_behavior="ignore"
    )
    return json.read_json(pa.BufferReader(characters), options, parsing)


def metrics(database: Database, first_id: int, last_id: int) -> pa.Table:
    """All metrics of the runs with these ids, whatever their campaign.

    One row a metric: `trial_id`, `endpoint`, `name`, `value`.
    """
    in_range = schema.metrics.c.trial_id.between(first_id, last_id)
    return _read(database, sa.select(schema.metrics).where(in_range))


def _in_range(campaign_id: int, first_id: int, last_id: int) -> list[sa.ColumnElement[bool]]:
    """The conditions under which a row of `trials` is one of the campaign's that count, with these ids."""
    columns = schema.trials.c
    return [
        # "+ 0" keeps SQLite from the campaign's index, which it would go through whole for every range of ids
        columns.campaign_id + 0 == campaign_id,
        schema.counts,
        columns.id.between(first_id, last_id),
    ]


def _read(database: Database, query: sa.Select[Any]) -> pa.Table:
    wanted = pa.schema([(column.name, _TYPES[type(column.type)]) for column in query.selected_columns])
    try:
        with database.alone():
            read = _from_sqlite if database.is_file else _from_postgresql
            table = read(database.uri, query)
        # SQLite's columns have the types of what is in them: without rows, none that can be trusted.
        return table.cast(wanted) if len(table) else wanted.empty_table()
    except (adbc_driver_manager.Error, OSError, pa.ArrowInvalid) as error:
        raise DatabaseError(f"{database.address}: {_explain(str(error))}") from error


def _from_sqlite(uri: str, query: sa.Select[Any]) -> pa.Table:
    with adbc_driver_sqlite.dbapi.connect(uri) as connection, connection.cursor() as cursor:
        cursor.execute(f"PRAGMA busy_timeout = {connector.LOCK_WAIT_S * 1000:.0f}")
        cursor.execute(_sql(query, sqlite.dialect()))
        return cursor.fetch_arrow_table()


def _from_postgresql(uri: str, query: sa.Select[Any]) -> pa.Table:
    # Loaded for a database of PostgreSQL alone.
    import adbc_driver_postgresql.dbapi
    from sqlalchemy.dialects import postgresql

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
