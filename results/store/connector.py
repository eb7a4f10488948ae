"""One interface for what SQLite and PostgreSQL do not have in common."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext

import sqlalchemy as sa

from fecbench.results.store import schema

LOCK_WAIT_S = 10.0
"""Longest wait for a database that another process has locked."""


class Connector(ABC):
    """Access to one database."""

    def __init__(self, engine: sa.Engine, address: str, uri: str) -> None:
        self.engine = engine
        self.address = address
        """Name of the database in messages."""
        self.uri = uri
        """Address for the database's own libraries: file:///… or postgresql://…"""

    @abstractmethod
    def version(self, connection: sa.Connection) -> int | None:
        """The version of our schema that the database has; None when it is empty.

        Raises DatabaseError when it is another program's.
        """

    def set_version(self, connection: sa.Connection, version: int) -> None:
        """Make the database known as ours, with this version of the schema."""
        connection.execute(sa.delete(schema.schema_version))
        connection.execute(
            sa.insert(schema.schema_version).values(application=schema.APPLICATION, version=version)
        )

    def make_tables(self, connection: sa.Connection) -> None:
        """Make the tables of an empty database."""
        schema.tables.create_all(connection)

    @abstractmethod
    def lock(self, connection: sa.Connection) -> None:
        """Keep other processes from making or upgrading the schema until the transaction ends."""

    def identity(self) -> object:
        """Return what tells a database from another one that takes its place at the address; None where that
        ends all connections anyway."""
        return None

    def alone(self) -> AbstractContextManager[object]:
        """Held while this process reads or writes: nothing else in it may use the database then."""
        return nullcontext()

    @abstractmethod
    def cause(self, error: BaseException) -> str | None:
        """The end of a sentence that begins with the address, for an error of the driver; None if unknown."""


strict_json = json.JSONEncoder(allow_nan=False).encode
"""Writes JSON that PostgreSQL takes too: it refuses NaN."""
