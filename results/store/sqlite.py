"""A results database that is one SQLite file: the default.

The header of the file says whose it is and of which version: `application_id` and `user_version`.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from fecbench.results.store import connector, schema
from fecbench.results.store.connector import Connector
from fecbench.results.store.error import DatabaseError
from fecbench.results.store.sqlite_file import check_file

CAUSES = {
    sqlite3.SQLITE_BUSY: (
        f"is locked for more than {connector.LOCK_WAIT_S:g} s: let the process that holds it end"
    ),
    sqlite3.SQLITE_CANTOPEN: "cannot be opened: check the permissions of the file and of its folder",
    sqlite3.SQLITE_CORRUPT: "is damaged (truncated or overwritten): restore it from a copy",
    sqlite3.SQLITE_FULL: "cannot be written: the disk is full",
    sqlite3.SQLITE_IOERR: "cannot be read or written: input/output error",
    sqlite3.SQLITE_NOTADB: "is not an SQLite database",
    sqlite3.SQLITE_READONLY: "is read-only: make it writable, or use a copy that is",
}


# Python's library of SQLite writes in this process, and ADBC's own reads tables. To the system the locks on a
# file are the process's: the library that closes a file gives up the locks of the other ("How To Corrupt An
# SQLite Database File", 2.2.1). So one of them is at work at a time. A thread may hold it more than once.
_at_work = threading.RLock()


def _begin_anew() -> None:
    global _at_work
    _at_work = threading.RLock()


# In a forked process, the thread that held it is not there to give it back.
os.register_at_fork(after_in_child=_begin_anew)


class SQLite(Connector):
    """One file. Refused: a missing one, unless it is to be created, and a directory."""

    def __init__(self, path: str, *, create: bool, read_only: bool = False) -> None:
        check_file(path, create=create)
        uri = f"{Path(path).absolute().as_uri()}?mode={'rwc' if create else 'ro' if read_only else 'rw'}"
        super().__init__(_engine(uri), path, uri)
        self._path = Path(path).absolute()

    def version(self, connection: sa.Connection) -> int | None:
        application = connection.exec_driver_sql("PRAGMA application_id").scalar_one()
        if application == schema.APPLICATION_ID:
            return int(connection.exec_driver_sql("PRAGMA user_version").scalar_one())
        if sa.inspect(connection).get_table_names():
            raise DatabaseError(f"{self.address}: is a database of another program: give a file of its own")
        return None

    def set_version(self, connection: sa.Connection, version: int) -> None:
        super().set_version(connection, version)
        connection.exec_driver_sql(f"PRAGMA application_id = {schema.APPLICATION_ID}")
        connection.exec_driver_sql(f"PRAGMA user_version = {version}")

    def make_tables(self, connection: sa.Connection) -> None:
        for statement in _statements():
            connection.exec_driver_sql(statement)

    def lock(self, connection: sa.Connection) -> None:
        """Nothing is left to do: every transaction that writes takes the lock as it begins."""

    def identity(self) -> object:
        """Return the device and the inode of the file: to a process that has it open, a file that was deleted
        is still there."""
        try:
            status = self._path.stat()
        except OSError:
            return "no file"
        return status.st_dev, status.st_ino

    def alone(self) -> AbstractContextManager[object]:
        return _at_work

    def cause(self, error: BaseException) -> str | None:
        return CAUSES.get(error.sqlite_errorcode & 0xFF) if isinstance(error, sqlite3.Error) else None


_COMPILED: Any = sa.util.LRUCache(500)
"""Statements that SQLAlchemy has compiled, for all files: it keeps them by the dialect."""


@cache
def _dialect() -> sa.Dialect:
    """Return the dialect of all files, which learns the library's version by a connection."""
    engine = sa.create_engine("sqlite://", json_serializer=connector.strict_json)
    with engine.connect():
        return engine.dialect


@cache
def _statements() -> Sequence[str]:
    """Return the statements that make the tables of an empty file."""
    statements: list[str] = []

    def note(statement: sa.schema.ExecutableDDLElement, *_: object) -> None:
        statements.append(str(statement.compile(dialect=_dialect())))

    schema.tables.create_all(sa.create_mock_engine("sqlite://", note), checkfirst=False)
    return statements


def _engine(uri: str) -> sa.Engine:
    def connect() -> Any:
        # isolation_level None: transactions begin where we say, not where the driver guesses
        connection = sqlite3.connect(
            uri, uri=True, timeout=connector.LOCK_WAIT_S, isolation_level=None, check_same_thread=False
        )
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        return connection

    engine = sa.Engine(sa.QueuePool(connect), _dialect(), sa.make_url("sqlite://"))
    engine.update_execution_options(compiled_cache=_COMPILED)

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        connection.exec_driver_sql(connection.get_execution_options()["sqlite_begin"])

    return engine
