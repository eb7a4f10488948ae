"""The tables of a results database, the same on SQLite and on PostgreSQL.

Column names are an interface: notebooks and plain SQL read them. Add, do not rename. What is added also
becomes a step in `upgrade`, so that databases of earlier versions are still read.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

VERSION = 2
APPLICATION = "fecbench"
APPLICATION_ID = 0x46454342  # "FECB": the application_id in the header of an SQLite file

tables = sa.MetaData()

# Recognises the schema on PostgreSQL, whose databases have no header fields of their own.
schema_version = sa.Table(
    "schema_version",
    tables,
    sa.Column("application", sa.Text, primary_key=True),
    sa.Column("version", sa.Integer, nullable=False),
)

campaigns = sa.Table(
    "campaigns",
    tables,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("created_at", sa.Text, nullable=False),  # UTC, ISO 8601
    sa.Column("design_text", sa.Text, nullable=False),
    sa.Column("seed", sa.Text, nullable=False),  # decimal: unsigned 64 bits do not fit SQL's integers
    sa.Column("repetitions", sa.Integer, nullable=False),
    sa.Column("statistic", sa.Text, nullable=False),
    sa.Column("provenance", sa.JSON, nullable=False),
)


def _of_campaign(name: str, *columns: sa.Column[Any]) -> sa.Table:
    campaign_id: sa.Column[int] = sa.Column("campaign_id", sa.ForeignKey("campaigns.id"), primary_key=True)
    return sa.Table(name, tables, campaign_id, *columns, sqlite_with_rowid=False)


points = _of_campaign(
    "points",
    sa.Column("point", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("factors", sa.JSON, nullable=False),
)

variants = _of_campaign(
    "variants",
    sa.Column("variant", sa.Text, primary_key=True),
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("implementation", sa.Text, nullable=False),
    sa.Column("options", sa.JSON, nullable=False),
    sa.Column("baseline", sa.Boolean, nullable=False),
)

workloads = _of_campaign(
    "workloads",
    sa.Column("workload", sa.Text, primary_key=True),
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("parameters", sa.JSON, nullable=False),
    # The metric that is compared; null in what version 1 has recorded.
    sa.Column("metric", sa.Text),
)

# One run of the harness for a campaign, on one machine.
starts = sa.Table(
    "starts",
    tables,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("campaign_id", sa.ForeignKey("campaigns.id"), nullable=False),
    sa.Column("started_at", sa.Text, nullable=False),  # UTC, ISO 8601
    sa.Column("host", sa.Text, nullable=False),
    sa.Column("provenance", sa.JSON, nullable=False),
)

# What trials were asked for, but their seeds. Many trials have the same task: it is stored once.
tasks = sa.Table(
    "tasks",
    tables,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("campaign_id", sa.ForeignKey("campaigns.id"), nullable=False),
    sa.Column("digest", sa.Text, nullable=False),  # SHA-256 of the document as canonical JSON, in hexadecimal
    sa.Column("document", sa.JSON, nullable=False),
    sa.UniqueConstraint("campaign_id", "digest"),
)

trials = sa.Table(
    "trials",
    tables,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("campaign_id", sa.ForeignKey("campaigns.id"), nullable=False),
    sa.Column("variant", sa.Text, nullable=False),
    sa.Column("workload", sa.Text, nullable=False),
    sa.Column("point", sa.Integer, nullable=False),
    sa.Column("repetition", sa.Integer, nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),  # from 1
    sa.Column("superseded", sa.Boolean, nullable=False),  # an invalid run that a later attempt replaced
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("started_at", sa.Text, nullable=False),  # UTC, ISO 8601
    sa.Column("duration_s", sa.Double, nullable=False),
    sa.Column("seeds", sa.JSON, nullable=False),
    sa.Column("dropper", sa.JSON, nullable=False),
    sa.Column("links", sa.JSON, nullable=False),
    sa.Column("exits", sa.JSON, nullable=False),
    sa.Column("stderr", sa.JSON, nullable=False),
    sa.Column("overhead_s", sa.JSON, nullable=False),
    sa.Column("checks", sa.JSON, nullable=False),
    # Both are null in what version 1 has recorded.
    sa.Column("start_id", sa.ForeignKey("starts.id")),
    sa.Column("task_id", sa.ForeignKey("tasks.id")),
    sa.ForeignKeyConstraint(["campaign_id", "variant"], ["variants.campaign_id", "variants.variant"]),
    sa.ForeignKeyConstraint(["campaign_id", "workload"], ["workloads.campaign_id", "workloads.workload"]),
    sa.ForeignKeyConstraint(["campaign_id", "point"], ["points.campaign_id", "points.point"]),
)

# The database itself keeps a trial from counting twice, whichever machine writes it.
counts = sa.not_(trials.c.superseded)
sa.Index(
    "one_trial_per_key",
    trials.c.campaign_id,
    trials.c.variant,
    trials.c.workload,
    trials.c.point,
    trials.c.repetition,
    unique=True,
    sqlite_where=counts,
    postgresql_where=counts,
)

metrics = sa.Table(
    "metrics",
    tables,
    sa.Column("trial_id", sa.ForeignKey("trials.id"), primary_key=True),
    sa.Column("endpoint", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("value", sa.Double, nullable=False),
    sqlite_with_rowid=False,
)

verdicts = sa.Table(
    "verdicts",
    tables,
    sa.Column("trial_id", sa.ForeignKey("trials.id"), primary_key=True),
    sa.Column("link", sa.Text, primary_key=True),
    sa.Column("direction", sa.Text, primary_key=True),
    sa.Column("packets", sa.Integer, nullable=False),
    sa.Column("dropped", sa.Integer, nullable=False),
    sa.Column("bitmap", sa.LargeBinary, nullable=False),
)

# Tables that an endpoint left of a trial, for example its congestion window over time.
series = sa.Table(
    "series",
    tables,
    sa.Column("trial_id", sa.ForeignKey("trials.id"), primary_key=True),
    sa.Column("endpoint", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("columns", sa.JSON, nullable=False),  # their names, in order
    sa.Column("rows", sa.Integer, nullable=False),
    sa.Column("data", sa.LargeBinary, nullable=False),  # Parquet, compressed by zstd
)
