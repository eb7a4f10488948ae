"""Steps from each earlier version of the schema to the next: only additions, no value is changed.

The steps of a database run in one transaction, which `Database.open` begins.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from fecbench.results.store import schema
from fecbench.results.store.records import Kind


def _from_version_1(connection: sa.Connection) -> None:
    schema.tables.create_all(connection, [schema.starts, schema.tasks, schema.series])
    for addition in (
        "ALTER TABLE workloads ADD COLUMN metric TEXT",
        "ALTER TABLE trials ADD COLUMN start_id INTEGER REFERENCES starts (id)",
        "ALTER TABLE trials ADD COLUMN task_id INTEGER REFERENCES tasks (id)",
    ):
        connection.exec_driver_sql(addition)


def _from_version_2(connection: sa.Connection) -> None:
    additions = [("campaigns", "kind", "TEXT NOT NULL DEFAULT 'comparison'")]
    if "beat" not in {column["name"] for column in sa.inspect(connection).get_columns("starts")}:
        # The step from version 1 makes the table as it is now.
        additions += [("starts", "holder", "JSON"), ("starts", "beat", "INTEGER NOT NULL DEFAULT 0")]
    for table, column, kind in additions:
        connection.exec_driver_sql(f"ALTER TABLE {table} ADD COLUMN {column} {kind}")
    schema.tables.create_all(connection, [schema.claims])
    columns = schema.campaigns.c
    for campaign_id, design_text in connection.execute(sa.select(columns.id, columns.design_text)).all():
        kind = _kind_of(connection, campaign_id, design_text)
        connection.execute(sa.update(schema.campaigns).where(columns.id == campaign_id).values(kind=kind))


def _from_version_3(connection: sa.Connection) -> None:
    connection.exec_driver_sql("ALTER TABLE variants ADD COLUMN compared_with TEXT")


def _kind_of(connection: sa.Connection, campaign_id: int, design_text: str) -> Kind:
    """A campaign whose variants differ in nothing but their labels has one variant against itself."""
    columns = schema.variants.c
    of_campaign = sa.select(columns.variant, columns.implementation, columns.options).where(
        columns.campaign_id == campaign_id
    )
    servers = _servers(design_text)
    arms = [
        (row.implementation, row.options, servers.get(row.variant, "itself"))
        for row in connection.execute(of_campaign)
    ]
    equal = len(arms) > 1 and all(arm == arms[0] for arm in arms)
    return "against-itself" if equal else "comparison"


def _servers(design_text: str) -> dict[Any, Any]:
    """Who runs the servers of the variants that name one: only the design has kept it."""
    try:
        variants = tomllib.loads(design_text).get("variants", [])
    except tomllib.TOMLDecodeError:
        return {}
    return {variant.get("label"): variant["server"] for variant in variants if "server" in variant}


STEPS: dict[int, Callable[[sa.Connection], None]] = {
    1: _from_version_1,
    2: _from_version_2,
    3: _from_version_3,
}
"""By the version that each begins at; each leads to the next version."""


def upgrade(connection: sa.Connection, version: int) -> int:
    """Bring the tables from that version to the newest that steps lead to, and return which it is."""
    while version in STEPS:
        STEPS[version](connection)
        version += 1
    return version
