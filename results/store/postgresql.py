"""A results database on a PostgreSQL server, for several machines that write.

Its table `schema_version` says whose it is and of which version.
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from results.store import connector, schema
from results.store.connector import Connector
from results.store.error import DatabaseError


class PostgreSQL(Connector):
    """One database of a server. Refused: what is no URL of PostgreSQL, and a missing driver."""

    def __init__(self, url: str) -> None:
        try:
            parsed = sa.make_url(url)
        except (SQLAlchemyError, ValueError) as error:
            raise DatabaseError(
                f"{url}: not a database URL: must be postgresql://USER@HOST/DATABASE"
            ) from error
        address = parsed.render_as_string(hide_password=True) if parsed.password else url
        if parsed.drivername != "postgresql":
            raise DatabaseError(f"{address}: must be a file, or a URL postgresql://USER@HOST/DATABASE")
        try:
            engine = sa.create_engine(
                parsed.set(drivername="postgresql+pg8000"),
                json_serializer=connector.strict_json,
                pool_pre_ping=True,
                connect_args={"startup_params": {"lock_timeout": f"{connector.LOCK_WAIT_S:g}s"}},
            )
        except ModuleNotFoundError as error:
            raise DatabaseError(f"{address}: needs the PostgreSQL driver: pip install pg8000") from error
        super().__init__(engine, address, _libpq_uri(parsed))

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
        """The server's own message: pg8000 hands over the fields of its answer."""
        if error.args and isinstance(fields := error.args[0], dict) and "M" in fields:
            return str(fields["M"])
        return None


def _libpq_uri(url: sa.URL) -> str:
    """The URL as PostgreSQL's own library has it, which knows a UNIX socket by its folder and its port."""
    if isinstance(path := url.query.get("unix_sock"), str):
        folder, _, port = path.partition("/.s.PGSQL.")
        url = url.difference_update_query(["unix_sock"]).update_query_dict({"host": folder, "port": port})
    return url.render_as_string(hide_password=False)
