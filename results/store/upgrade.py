"""Steps from each earlier version of the schema to the next: only additions, no row is changed.

The steps of a database run in one transaction, which `Database.open` begins.
"""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa

from results.store import schema


def _from_version_1(connection: sa.Connection) -> None:
    schema.tables.create_all(connection, [schema.starts, schema.tasks, schema.series])
    for addition in (
        "ALTER TABLE workloads ADD COLUMN metric TEXT",
        "ALTER TABLE trials ADD COLUMN start_id INTEGER REFERENCES starts (id)",
        "ALTER TABLE trials ADD COLUMN task_id INTEGER REFERENCES tasks (id)",
    ):
        connection.exec_driver_sql(addition)


STEPS: dict[int, Callable[[sa.Connection], None]] = {1: _from_version_1}
"""By the version that each begins at; each leads to the next version."""


def upgrade(connection: sa.Connection, version: int) -> int:
    """Bring the tables from that version to the newest that steps lead to, and return which it is."""
    while version in STEPS:
        STEPS[version](connection)
        version += 1
    return version
