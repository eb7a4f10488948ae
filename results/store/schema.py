"""The tables of a results database, the same on SQLite and on PostgreSQL.

Column names are an interface: notebooks and plain SQL read them. Add, do not rename. Another
version is refused: no release has been made yet.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

VERSION = 4
APPLICATION = "fecbench"
APPLICATION_ID = 0x46454342  # "FECB": the application_id in the header of an SQLite file

tables = sa.MetaData()

schema_version = sa.Table(
    "schema_version",
    tables,
    sa.Column("application", sa.Text, primary_key=True, doc="`fecbench`."),
    sa.Column("version", sa.Integer, nullable=False, doc="Of the schema."),
    info={
        "meaning": "Recognises the schema on PostgreSQL, whose databases have no header fields of their own."
    },
)

campaigns = sa.Table(
    "campaigns",
    tables,
    sa.Column("id", sa.Integer, primary_key=True, doc="Unique in the database."),
    sa.Column("name", sa.Text, nullable=False, unique=True, doc="Unique in the database."),
    sa.Column("title", sa.Text, nullable=False, doc="Of the design."),
    sa.Column("created_at", sa.Text, nullable=False, doc="UTC, ISO 8601."),
    sa.Column(
        "design_text", sa.Text, nullable=False, doc="The design file, verbatim; one with a base, resolved."
    ),
    sa.Column(
        "seed",
        sa.Text,
        nullable=False,
        doc="Of the design, in decimal: unsigned 64 bits do not fit SQL's integers.",
    ),
    sa.Column(
        "repetitions",
        sa.Integer,
        nullable=False,
        doc="Of each trial; in a campaign that runs until its results decide, at most.",
    ),
    sa.Column(
        "statistic",
        sa.Text,
        nullable=False,
        doc="Over the repetitions of a point: `median`, `mean` or `p95`.",
    ),
    sa.Column(
        "provenance",
        sa.JSON,
        nullable=False,
        doc=(
            "What the first start was run with: revision, command, host, kernel, CPU, libraries, hashes of "
            "the binaries, implementations with their `impl.toml`, web pages; `calibration` has an entry for"
            " each start."
        ),
    ),
    sa.Column(
        "kind",
        sa.Text,
        nullable=False,
        server_default="comparison",
        doc="`comparison`, or `against-itself` (A/A): all variants are the same under several labels.",
    ),
    info={"meaning": "One row an execution of a design."},
)


def _of_campaign(name: str, meaning: str, *columns: sa.Column[Any]) -> sa.Table:
    campaign_id: sa.Column[int] = sa.Column(
        "campaign_id", sa.ForeignKey("campaigns.id"), primary_key=True, doc="The campaign's `id`."
    )
    info = {"meaning": meaning}
    return sa.Table(name, tables, campaign_id, *columns, sqlite_with_rowid=False, info=info)


points = _of_campaign(
    "points",
    "One row a point of a campaign's design.",
    sa.Column("point", sa.Integer, primary_key=True, autoincrement=False, doc="Counts from 0."),
    sa.Column("factors", sa.JSON, nullable=False, doc="The value of each factor by its name."),
)

variants = _of_campaign(
    "variants",
    "One row a variant of a campaign's design.",
    sa.Column("variant", sa.Text, primary_key=True, doc="Its label."),
    sa.Column("position", sa.Integer, nullable=False, doc="In the design, from 0."),
    sa.Column("implementation", sa.Text, nullable=False, doc="Its name."),
    sa.Column(
        "options",
        sa.JSON,
        nullable=False,
        doc="Those that the design sets; the rest are defaults, which the task has, too.",
    ),
    sa.Column(
        "baseline",
        sa.Boolean,
        nullable=False,
        doc="Whether those are compared with it whose `compared_with` is null.",
    ),
    sa.Column(
        "compared_with",
        sa.Text,
        doc="The label of the variant that it is compared with; null: the one whose `baseline` is true;"
        " empty: none, since that one is of another implementation.",
    ),
)

workloads = _of_campaign(
    "workloads",
    "One row a workload of a campaign's design.",
    sa.Column("workload", sa.Text, primary_key=True, doc="Its label."),
    sa.Column("position", sa.Integer, nullable=False, doc="In the design, from 0."),
    sa.Column("name", sa.Text, nullable=False, doc="What the endpoints do, such as `download`."),
    sa.Column("parameters", sa.JSON, nullable=False, doc="Those that the design sets."),
    sa.Column(
        "metric",
        sa.Text,
        doc=(
            "The metric that is compared when none is chosen; null in what version 1 has recorded: "
            "`client.dct_s`."
        ),
    ),
)

starts = sa.Table(
    "starts",
    tables,
    sa.Column("id", sa.Integer, primary_key=True, doc="Unique in the database."),
    sa.Column("campaign_id", sa.ForeignKey("campaigns.id"), nullable=False, doc="The campaign's `id`."),
    sa.Column("started_at", sa.Text, nullable=False, doc="UTC, ISO 8601."),
    sa.Column("host", sa.Text, nullable=False, doc="The name of the machine."),
    sa.Column(
        "provenance",
        sa.JSON,
        nullable=False,
        doc="As that of the campaign, of this start; `filters`, where it was to run some trials alone.",
    ),
    sa.Column(
        "holder",
        sa.JSON,
        doc=(
            "Which process it is: the machine's `boot`, the `process` by its own namespace, and the `lock` "
            "that it holds: its `path`, and device and inode of the `file` and of the folder that it is "
            "`within`. Of an earlier fecbench, `processes`, its namespace, and `since` when it runs (clock "
            "ticks after boot) in the place of the lock. null where it is not known."
        ),
    ),
    sa.Column(
        "beat",
        sa.Integer,
        nullable=False,
        server_default="0",
        doc="Goes up every 10 s while it runs. What it claimed is free when it stands still for 60 s.",
    ),
    info={"meaning": "One row a start of the harness, on one machine, that has added trials to a campaign."},
)

tasks = sa.Table(
    "tasks",
    tables,
    sa.Column("id", sa.Integer, primary_key=True, doc="Unique in the database."),
    sa.Column("campaign_id", sa.ForeignKey("campaigns.id"), nullable=False, doc="The campaign's `id`."),
    sa.Column(
        "digest", sa.Text, nullable=False, doc="SHA-256 of the document as canonical JSON, in hexadecimal."
    ),
    sa.Column(
        "document",
        sa.JSON,
        nullable=False,
        doc=(
            "Topology, link backend, settings and losses of each link, both ends of each pair with all "
            "options, time limits, bounds of validity."
        ),
    ),
    sa.UniqueConstraint("campaign_id", "digest"),
    info={
        "meaning": (
            "The tasks of trials, without their seeds. Many trials have the same task: it is stored once."
        )
    },
)

trials = sa.Table(
    "trials",
    tables,
    sa.Column("id", sa.Integer, primary_key=True, doc="Unique in the database."),
    sa.Column("campaign_id", sa.ForeignKey("campaigns.id"), nullable=False, doc="The campaign's `id`."),
    sa.Column("variant", sa.Text, nullable=False, doc="The label of its variant."),
    sa.Column("workload", sa.Text, nullable=False, doc="The label of its workload."),
    sa.Column("point", sa.Integer, nullable=False, doc="The index of its point."),
    sa.Column("repetition", sa.Integer, nullable=False, doc="Counts from 0."),
    sa.Column("attempt", sa.Integer, nullable=False, doc="Counts from 1."),
    sa.Column(
        "superseded",
        sa.Boolean,
        nullable=False,
        doc="A later attempt has replaced it: it was invalid, or its state was to be run again.",
    ),
    sa.Column("state", sa.Text, nullable=False, doc="`ok`, `failed`, `timeout`, `unsupported` or `invalid`."),
    sa.Column("reason", sa.Text, nullable=False, doc="Of every state but `ok`."),
    sa.Column("started_at", sa.Text, nullable=False, doc="UTC, ISO 8601."),
    sa.Column("duration_s", sa.Double, nullable=False, doc="From its handing out to its answer."),
    sa.Column(
        "seeds",
        sa.JSON,
        nullable=False,
        doc=(
            "Unsigned 64 bits: `content`, and of each direction of each link, as `internet/down`;"
            " `internet/trace` decides where in its trace a link begins, `internet/down/jitter` the noise of"
            " a delay."
        ),
    ),
    sa.Column(
        "dropper",
        sa.JSON,
        nullable=False,
        doc="The counters of each direction's dropper: packets `seen`, `dropped`, `other`, …",
    ),
    sa.Column(
        "links",
        sa.JSON,
        nullable=False,
        doc=(
            "The report of each link: frames in, out, dropped and in flight by direction, lateness, "
            "configuration."
        ),
    ),
    sa.Column(
        "exits",
        sa.JSON,
        nullable=False,
        doc="The exit code of each endpoint; null for one that had to be killed.",
    ),
    sa.Column("stderr", sa.JSON, nullable=False, doc="The end of each endpoint's standard error."),
    sa.Column(
        "overhead_s", sa.JSON, nullable=False, doc="The seconds of each phase but the client's, and `total`."
    ),
    sa.Column(
        "checks",
        sa.JSON,
        nullable=False,
        doc=(
            "What the judge compared: recorded and predicted verdicts by direction; `late_max_ms`, "
            "`late_sum_ms`, `stalled_s`, `watch_gap_s`, `stolen_s`; `lost_elsewhere` with `packets`, and "
            "with `places` by node; `backlog_drops` of the whole machine; `trials_at_once`. null: not known. "
            "`digest`: SHA-256 of what happened on the wire, that is what was asked of the network, state, "
            "verdicts, counters of links and, in virtual time, times of packets; `metrics_digest`: that of "
            "all metrics. Without `metrics_digest`, `digest` is an earlier fecbench's, which had metrics in "
            "it and neither task nor times. `timed_by`: `harness`, "
            "where the client did not time its transfer. `endpoints_succeeded`, of an invalid trial: "
            "whether the whole content arrived all the same. `by_ends`: `state` and `reason` by what both "
            "ends said alone, whatever the times and the network were, where that is another state. "
            "In virtual time, where nothing is measured of a machine: `virtual_s`, how long it was."
        ),
    ),
    sa.Column(
        "start_id",
        sa.ForeignKey("starts.id"),
        doc="The start that has run it; null in what version 1 has recorded.",
    ),
    sa.Column(
        "task_id",
        sa.ForeignKey("tasks.id"),
        doc="What it was asked for; null in what version 1 has recorded.",
    ),
    sa.ForeignKeyConstraint(["campaign_id", "variant"], ["variants.campaign_id", "variants.variant"]),
    sa.ForeignKeyConstraint(["campaign_id", "workload"], ["workloads.campaign_id", "workloads.workload"]),
    sa.ForeignKeyConstraint(["campaign_id", "point"], ["points.campaign_id", "points.point"]),
    info={"meaning": "One row a run of a trial; one that was run again stays, superseded."},
)

# The database itself keeps a trial from counting twice, whichever machine writes it.
counts = sa.not_(trials.c.superseded)
one_trial_per_key = sa.Index(
    "one_trial_per_key",
    trials.c.campaign_id,
    trials.c.variant,
    trials.c.workload,
    trials.c.point,
    trials.c.repetition,
    unique=True,
    sqlite_where=counts,
)
"""PostgreSQL has the same condition. Its connector adds it: its name loads all that SQLAlchemy has for it."""

claims = sa.Table(
    "claims",
    tables,
    sa.Column("campaign_id", sa.ForeignKey("campaigns.id"), primary_key=True, doc="The campaign's `id`."),
    sa.Column("workload", sa.Text, primary_key=True, doc="The label of the group's workload."),
    sa.Column("point", sa.Integer, primary_key=True, doc="The index of its point."),
    sa.Column("repetition", sa.Integer, primary_key=True, doc="Counts from 0."),
    sa.Column("start_id", sa.ForeignKey("starts.id"), nullable=False, doc="Who runs its trials."),
    info={
        "meaning": (
            "One row a group (all variants of a workload, point and repetition) whose trials a start is "
            "running, so that no other runs them; none when nothing runs."
        )
    },
)


def _of_trial() -> tuple[sa.Column[int], sa.ForeignKeyConstraint]:
    """The trial of rows that are written in one transaction with it, and never without it.

    PostgreSQL does not check that: to look the trial up for each row would be 40 % of all that a trial costs.
    """
    trial_id: sa.Column[int] = sa.Column(
        "trial_id", sa.Integer, primary_key=True, autoincrement=False, doc="The trial's `id`."
    )
    checked = sa.ForeignKeyConstraint(["trial_id"], ["trials.id"]).ddl_if(dialect="sqlite")
    return trial_id, checked


metrics = sa.Table(
    "metrics",
    tables,
    *_of_trial(),
    sa.Column(
        "endpoint",
        sa.Text,
        primary_key=True,
        doc=(
            "`client`, `server`, `relay`, `background_client`, `background_server`, or the harness's own"
            " `competition`, `messages`, `live` and `video`."
        ),
    ),
    sa.Column("name", sa.Text, primary_key=True, doc="Such as `dct_s`; its unit is the end of its name."),
    sa.Column("value", sa.Double, nullable=False, doc="In that unit."),
    sqlite_with_rowid=False,
    info={"meaning": "One row a number that an endpoint or the harness measured in a trial."},
)

verdicts = sa.Table(
    "verdicts",
    tables,
    *_of_trial(),
    sa.Column("link", sa.Text, primary_key=True, doc="The link's name."),
    sa.Column("direction", sa.Text, primary_key=True, doc="`up` or `down`."),
    sa.Column("packets", sa.Integer, nullable=False, doc="How many were judged."),
    sa.Column("dropped", sa.Integer, nullable=False, doc="How many of them were dropped."),
    sa.Column(
        "bitmap",
        sa.LargeBinary,
        nullable=False,
        doc="Bit n (little-endian) is set iff packet n was dropped; it covers the first 2²⁰ packets.",
    ),
    info={"meaning": "One row a direction of a link in a trial: what the dropper decided."},
)

stops = _of_campaign(
    "stops",
    "One row a workload and point that was run far enough, in a campaign that runs until its results decide;"
    " of other campaigns, none.",
    sa.Column("workload", sa.Text, primary_key=True, doc="The label of its workload."),
    sa.Column("point", sa.Integer, primary_key=True, autoincrement=False, doc="The index of its point."),
    sa.Column("repetitions", sa.Integer, nullable=False, doc="How many it has of each variant."),
    sa.Column(
        "why",
        sa.Text,
        nullable=False,
        doc="`decided`, `most repetitions` (all of the design), or `no interval`: a comparison has none, and"
        " more repetitions would give it none.",
    ),
    sa.Column(
        "verdicts",
        sa.JSON,
        nullable=False,
        doc="Of each variant that is compared, as it was found then: `gain`, `harm`, `equivalent` or"
        " `undecided`.",
    ),
)

series = sa.Table(
    "series",
    tables,
    *_of_trial(),
    sa.Column("endpoint", sa.Text, primary_key=True, doc="Who left it."),
    sa.Column("name", sa.Text, primary_key=True, doc="Such as `cwnd`."),
    sa.Column("columns", sa.JSON, nullable=False, doc="Their names, in order."),
    sa.Column("rows", sa.Integer, nullable=False, doc="How many it has."),
    sa.Column("data", sa.LargeBinary, nullable=False, doc="Parquet, compressed by zstd."),
    info={
        "meaning": (
            "One row a table that an endpoint left of a trial, for example its congestion window over time."
        )
    },
)
