"""SQLite that does not wait for the disk, in this process: no test ends the machine."""

import sqlite3

import sqlalchemy as sa


def wait_for_none() -> None:
    """Let every connection that is taken from a pool leave its data to the kernel."""
    sa.event.listen(sa.Pool, "checkout", _hurry)


def _hurry(connection: object, *_: object) -> None:
    if isinstance(connection, sqlite3.Connection):
        connection.execute("PRAGMA synchronous = OFF")
