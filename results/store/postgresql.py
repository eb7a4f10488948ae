"""A results database on a PostgreSQL server, for several machines that write.

PostgreSQL's own library (libpq) connects, by psycopg here and by ADBC where tables are read: both take the
same URLs, service files and password files. The table `schema_version` says whose a database is and of which
version.
"""

from __future__ import annotations

import logging
from typing import Any

import psycopg
import sqlalchemy as sa
from psycopg.conninfo import conninfo_to_dict

from fecbench.results.store import connector, schema
from fecbench.results.store.connector import Connector
from fecbench.results.store.error import DatabaseError
from fecbench.results.store.postgresql_url import check_url

_LIMITS_OF_SILENCE = {
    "connect_timeout": 10,
    "tcp_user_timeout": 30_000,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 4,
}
"""A server that is gone without a word is found out within half a minute: seconds, and one in ms."""

schema.one_trial_per_key.dialect_options["postgresql"]["where"] = schema.counts

# Its warnings at the end of a connection are raised, too: without a log of ours, they go to standard error.
logging.getLogger("psycopg").addHandler(logging.NullHandler())


class PostgreSQL(Connector):
    """One database of a server. Refused: what is no URL of PostgreSQL."""

    def __init__(self, url: str, *, read_only: bool = False) -> None:
        check_url(url)
        super().__init__(_engine(url, read_only), url, url)

    def version(self, connection: sa.Connection) -> int | None:
        names = sa.inspect(connection).get_table_names()
        if "schema_version" in names:
            ours = schema.schema_version.c.application == schema.APPLICATION
            version = connection.scalar(sa.select(schema.schema_version.c.version).where(ours))
            if version is not None:
                return int(version)
        if names:
            raise DatabaseError(
                f"{self.address}: is a database of another program: give a database of its own"
            )
        return None

    def lock(self, connection: sa.Connection) -> None:
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(schema.APPLICATION_ID)))

    def cause(self, error: BaseException) -> str | None:
        """The server's own message, where it has answered."""
        return error.diag.message_primary if isinstance(error, psycopg.Error) else None


def _engine(url: str, read_only: bool) -> sa.Engine:
    try:
        given = conninfo_to_dict(url)
    except psycopg.Error as error:
        raise DatabaseError(f"{url}: {str(error).strip()}") from None
    limits = {name: limit for name, limit in _LIMITS_OF_SILENCE.items() if name not in given}
    engine = sa.create_engine("postgresql+psycopg://", json_serializer=_strict_json, pool_pre_ping=True)

    @sa.event.listens_for(engine, "do_connect")
    def connect(
        _dialect: object, _record: object, _words: object, options: dict[str, Any]
    ) -> psycopg.Connection:
        # SQLAlchemy would take the URL apart; libpq is given all of it.
        connection = psycopg.connect(url, autocommit=True, **{**limits, **options})
        connection.execute(f"SET lock_timeout = '{connector.LOCK_WAIT_S:g}s'")
        connection.autocommit = False
        connection.read_only = read_only
        return connection

    return engine


def _strict_json(value: Any) -> str:
    """The driver calls this while it sends, where SQLAlchemy expects errors of the driver alone."""
    try:
        return connector.strict_json(value)
    except ValueError as error:
        raise psycopg.DataError(str(error)) from error
