"""Conversion of records to rows of the tables, and of rows to records.

Each function is a part of a transaction: its caller begins and ends it, and explains its errors.
"""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from fecbench.results.store import schema
from fecbench.results.store.connector import strict_json
from fecbench.results.store.digest import TaskDocument
from fecbench.results.store.error import UnfitRecord
from fecbench.results.store.records import (
    DEFAULT_MARGIN,
    DEFAULT_METRIC,
    CampaignInfo,
    Claimant,
    Group,
    NewCampaign,
    NewStart,
    Place,
    SeriesTable,
    Start,
    State,
    Stop,
    StoredTrial,
    TrialKey,
    TrialRecord,
    TrialSeries,
    Variant,
    VerdictLog,
    Workload,
)

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql, sqlite


def _insertion(connection: sa.Connection, table: sa.Table) -> sqlite.Insert | postgresql.Insert:
    """Return an insertion into the table that may go on where there is such a row already."""
    # Loaded for the database that is open: PostgreSQL's dialect takes a while.
    if connection.dialect.name == "postgresql":
        from sqlalchemy.dialects import postgresql

        return postgresql.insert(table)
    from sqlalchemy.dialects import sqlite

    return sqlite.insert(table)


def write_campaign(connection: sa.Connection, campaign: NewCampaign) -> int | None:
    """Returns the campaign's id; None when its name is taken, also by a transaction that ends meanwhile."""
    row = {
        "name": campaign.name,
        "title": campaign.title,
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "design_text": campaign.design_text,
        "seed": str(campaign.seed),
        "repetitions": campaign.repetitions,
        "statistic": campaign.statistic,
        "provenance": campaign.provenance,
        "kind": campaign.kind,
    }
    insert = _insertion(connection, schema.campaigns).values(row).on_conflict_do_nothing()
    campaign_id: int | None = connection.scalar(insert.returning(schema.campaigns.c.id))
    if campaign_id is None:
        return None
    points = [
        {"campaign_id": campaign_id, "point": i, "factors": factors}
        for i, factors in enumerate(campaign.points)
    ]
    variants = [
        {
            "campaign_id": campaign_id,
            "position": i,
            "variant": variant["label"],
            "implementation": variant["implementation"],
            "options": variant["options"],
            "baseline": variant["baseline"],
            "compared_with": variant.get("compared_with"),
        }
        for i, variant in enumerate(campaign.variants)
    ]
    workloads = [
        {
            "campaign_id": campaign_id,
            "position": i,
            "workload": workload["label"],
            "name": workload["name"],
            "parameters": workload["parameters"],
            "metric": workload.get("metric"),
        }
        for i, workload in enumerate(campaign.workloads)
    ]
    _insert_all(connection, schema.points, points)
    _insert_all(connection, schema.variants, variants)
    _insert_all(connection, schema.workloads, workloads)
    if _is_until_decided(campaign.design_text):
        schema.stops.create(connection, checkfirst=True)  # a database may be older than this table
    return campaign_id


def read_campaign(connection: sa.Connection, campaign_id: int) -> CampaignInfo | None:
    """The campaign of that id, or None."""

    def parts(table: sa.Table, order: str) -> Sequence[sa.Row[Any]]:
        of_campaign = sa.select(table).where(table.c.campaign_id == campaign_id)
        return connection.execute(of_campaign.order_by(table.c[order])).all()

    campaign = connection.execute(
        sa.select(schema.campaigns).where(schema.campaigns.c.id == campaign_id)
    ).one_or_none()
    if campaign is None:
        return None
    return CampaignInfo(
        id=campaign.id,
        name=campaign.name,
        title=campaign.title,
        created_at=campaign.created_at,
        design_text=campaign.design_text,
        seed=int(campaign.seed),
        repetitions=campaign.repetitions,
        statistic=campaign.statistic,
        provenance=campaign.provenance,
        kind=campaign.kind,
        margin=_margin(campaign.design_text),
        until_decided=_is_until_decided(campaign.design_text),
        stops=_read_stops(connection, campaign),
        points=[row.factors for row in parts(schema.points, "point")],
        variants=[
            Variant(
                label=row.variant,
                implementation=row.implementation,
                options=row.options,
                baseline=row.baseline,
                compared_with=row.compared_with,
            )
            for row in parts(schema.variants, "position")
        ],
        workloads=[
            Workload(
                label=row.workload,
                name=row.name,
                parameters=row.parameters,
                metric=row.metric or DEFAULT_METRIC,
            )
            for row in parts(schema.workloads, "position")
        ],
    )


def _margin(design_text: str) -> float:
    """The margin in the text of a design; the default where the text is no design, or names none."""
    try:
        return float(_design(design_text).get("margin", DEFAULT_MARGIN))
    except (TypeError, ValueError):
        return DEFAULT_MARGIN


def _is_until_decided(design_text: str) -> bool:
    return _design(design_text).get("until") == "decided"


@lru_cache  # whoever follows a campaign reads its design again and again
def _design(design_text: str) -> Mapping[str, Any]:
    """The tables of a design; none where the text is no design."""
    try:
        return tomllib.loads(design_text)
    except tomllib.TOMLDecodeError:
        return {}


def write_stops(connection: sa.Connection, campaign_id: int, stops: Sequence[Stop]) -> None:
    """Store that these places have been run far enough, each unless that is stored already."""
    insert = _insertion(connection, schema.stops).on_conflict_do_nothing()
    connection.execute(insert, [{"campaign_id": campaign_id, **asdict(stop)} for stop in stops])


def _read_stops(connection: sa.Connection, campaign: sa.Row[Any]) -> dict[Place, Stop]:
    if not _is_until_decided(campaign.design_text):
        return {}
    columns = schema.stops.c
    query = sa.select(*(column for column in columns if column.name != "campaign_id"))
    rows = connection.execute(query.where(columns.campaign_id == campaign.id)).mappings()
    return {(row["workload"], row["point"]): Stop(**row) for row in rows}


def write_start(connection: sa.Connection, campaign_id: int, start: NewStart) -> Start:
    """The start as it is stored, which begins now."""
    values: dict[str, Any] = {
        "campaign_id": campaign_id,
        "started_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "host": start.host,
        "provenance": start.provenance,
        "holder": start.holder,
        "beat": 0,
    }
    return Start(id=_insert(connection, schema.starts, values), **values)


def read_starts(connection: sa.Connection, campaign_id: int) -> list[Start]:
    """The starts of that campaign, oldest first."""
    columns = schema.starts.c
    of_campaign = sa.select(schema.starts).where(columns.campaign_id == campaign_id).order_by(columns.id)
    return [Start(**row) for row in connection.execute(of_campaign).mappings()]


def start_ids(connection: sa.Connection, campaign_id: int) -> set[int]:
    """The ids of the starts of that campaign."""
    columns = schema.starts.c
    return set(connection.scalars(sa.select(columns.id).where(columns.campaign_id == campaign_id)))


def claim(connection: sa.Connection, campaign_id: int, start_id: int, groups: Sequence[Group]) -> None:
    """Claim these groups for the start, each unless one has claimed it."""
    insert = _insertion(connection, schema.claims).on_conflict_do_nothing()
    rows = [{"campaign_id": campaign_id, "start_id": start_id, **_columns_of(group)} for group in groups]
    connection.execute(insert, rows)


def read_owners(connection: sa.Connection, campaign_id: int, groups: Sequence[Group]) -> dict[Group, int]:
    """The start that has claimed each of these groups; none of a group that nobody has."""
    claims = schema.claims.c
    query = sa.select(claims.workload, claims.point, claims.repetition, claims.start_id)
    rows = connection.execute(query.where(*are_claims_on(campaign_id, groups)))
    return {Group(*group): owner for *group, owner in rows}


def are_claims_on(campaign_id: int, groups: Sequence[Group]) -> list[sa.ColumnElement[bool]]:
    """The conditions under which a row of `claims` is on one of these groups."""
    return [schema.claims.c.campaign_id == campaign_id, _is_in(schema.claims, groups)]


def _is_in(table: sa.Table, groups: Sequence[Group]) -> sa.ColumnElement[bool]:
    """Whether a row is of one of these groups."""
    of_group = sa.tuple_(*(table.c[name] for name in _columns_of(groups[0])))
    return of_group.in_([tuple(_columns_of(group).values()) for group in groups])


def _columns_of(group: Group) -> dict[str, str | int]:
    return {"workload": group.workload, "point": group.point, "repetition": group.repetition}


def read_claims(connection: sa.Connection, campaign_id: int) -> dict[Group, Claimant]:
    """Return the claimant of each group of the campaign that is claimed."""
    claims, starts = schema.claims.c, schema.starts.c
    query = sa.select(
        *(claims.workload, claims.point, claims.repetition),
        *(starts.id, starts.host, starts.holder, starts.beat),
    ).join_from(schema.claims, schema.starts)
    rows = connection.execute(query.where(claims.campaign_id == campaign_id))
    return {
        Group(workload, point, repetition): Claimant(*claimant)
        for workload, point, repetition, *claimant in rows
    }


def read_states(
    connection: sa.Connection, campaign_id: int, up_to: int | None = None
) -> dict[TrialKey, tuple[State, int]]:
    """The state and the attempt of the campaign's trials that count, or that counted once, when there was
    none beyond the id `up_to`."""
    columns = schema.trials.c
    of_key = columns.variant, columns.workload, columns.point, columns.repetition
    query = sa.select(*of_key, columns.state, columns.attempt).where(columns.campaign_id == campaign_id)
    query = query.where(schema.counts) if up_to is None else query.where(columns.id <= up_to)
    # The last attempt of a trial is kept: it counted then.
    found = connection.execute(query.order_by(columns.attempt) if up_to is not None else query)
    return {TrialKey(*key): (state, attempt) for *key, state, attempt in found}


def read_states_in(
    connection: sa.Connection, campaign_id: int, variants: Sequence[str], groups: Sequence[Group]
) -> dict[TrialKey, tuple[State, int]]:
    """Return what `read_states` does, of the trials of these groups; `variants` are all there are."""
    columns = schema.trials.c
    of_group = [columns[name] for name in _columns_of(groups[0])]
    of_groups = [tuple(_columns_of(group).values()) for group in groups]
    wanted = _wanted(connection, "wanted", of_group, of_groups)
    of_each = _wanted(connection, "of_each", [columns.variant], [(variant,) for variant in variants])
    is_wanted = [columns.campaign_id == campaign_id, schema.counts, columns.variant == of_each.c.variant]
    is_wanted += [column == wanted.c[column.name] for column in of_group]
    state, attempt = (
        sa.select(column).where(*is_wanted).scalar_subquery() for column in (columns.state, columns.attempt)
    )
    query = sa.select(of_each.c.variant, *wanted.c, state, attempt).join_from(wanted, of_each, sa.true())
    found = connection.execute(query)
    return {TrialKey(*key): (state, attempt) for *key, state, attempt in found if state is not None}


def _wanted(
    connection: sa.Connection,
    name: str,
    columns: Sequence[sa.Column[Any]],
    values: Sequence[tuple[Any, ...]],
) -> sa.CTE:
    """A table of what is looked for in these columns. Look each row up by a scalar subquery.

    It uses an index whatever the server believes of a table that it has not analysed since it was empty. A
    join, or `in`, would read the whole table then, each time. SQLite gets it as one parameter: SQLAlchemy
    would compile a statement for each number of rows.
    """
    if connection.dialect.name == "postgresql":
        named = (sa.column(column.name, column.type) for column in columns)
        return sa.values(*named, name=name).data(list(values)).cte()
    row = sa.func.json_each(strict_json(values)).table_valued("value", name=f"{name}_row").c.value
    return sa.select(
        *(
            sa.func.json_extract(row, f"$[{place}]", type_=column.type).label(column.name)
            for place, column in enumerate(columns)
        )
    ).cte(name)


def count_for(campaign_id: int) -> list[sa.ColumnElement[bool]]:
    """The conditions under which a row of `trials` is one of the campaign that counts.

    They are for queries that read most of these rows, and follow the order of ids, in which rows are stored.
    """
    trials = schema.trials.c
    of_campaign = trials.campaign_id == campaign_id, schema.counts
    first, last = (
        sa.select(end(trials.id)).where(*of_campaign).scalar_subquery() for end in (sa.func.min, sa.func.max)
    )
    # "+ 0" keeps SQLite from the campaign's index, whose order is another one.
    return [trials.campaign_id + 0 == campaign_id, schema.counts, trials.id.between(first, last)]


def has_key(campaign_id: int, key: TrialKey) -> list[sa.ColumnElement[bool]]:
    """The conditions under which a row of `trials` is a run of that trial."""
    columns = schema.trials.c
    return [
        columns.campaign_id == campaign_id,
        columns.variant == key.variant,
        columns.workload == key.workload,
        columns.point == key.point,
        columns.repetition == key.repetition,
    ]


def read_ids(connection: sa.Connection, campaign_id: int, keys: Sequence[TrialKey]) -> list[int]:
    """Return the ids of the runs that count of these trials, without those that have not been run."""
    columns = schema.trials.c
    of_key = (columns.variant, columns.workload, columns.point, columns.repetition)
    trials = _wanted(connection, "wanted", of_key, list(map(astuple, keys)))
    has_key_of = (column == trials.c[column.name] for column in of_key)
    own = sa.select(columns.id).where(columns.campaign_id == campaign_id, schema.counts, *has_key_of)
    ids = connection.scalars(sa.select(own.scalar_subquery()).select_from(trials))
    return [trial_id for trial_id in ids if trial_id is not None]


def write_trials(
    connection: sa.Connection,
    campaign_id: int,
    start_id: int | None,
    runs: Sequence[tuple[int, TrialRecord]],
    task_ids: Mapping[str, int],
) -> tuple[list[int], Mapping[str, int]]:
    """Returns the id of each of these runs, which are attempts of that number, and the ids of their tasks by
    digests. `task_ids` are those of tasks that need not be looked up."""
    records = [record for _, record in runs]
    documents = [TaskDocument.of(record.task) if record.task else None for record in records]
    task_ids = _write_tasks(connection, campaign_id, documents, task_ids)
    rows = [
        {
            "campaign_id": campaign_id,
            "variant": record.key.variant,
            "workload": record.key.workload,
            "point": record.key.point,
            "repetition": record.key.repetition,
            "attempt": attempt,
            "superseded": False,
            "state": record.state,
            "reason": _storable(record.reason),
            "started_at": record.started_at,
            "duration_s": record.duration_s,
            "seeds": record.seeds,
            "dropper": record.dropper,
            "links": record.links,
            "exits": record.exits,
            "stderr": record.stderr,
            "overhead_s": record.overhead_s,
            "checks": record.checks,
            "start_id": start_id,
            "task_id": None if document is None else task_ids[document.digest],
        }
        for (attempt, record), document in zip(runs, documents, strict=True)
    ]
    ids = _insert_trials(connection, rows)
    written = list(zip(ids, records, strict=True))
    _insert_many(
        connection,
        schema.metrics,
        ("trial_id", "endpoint", "name", "value"),
        [
            (trial_id, endpoint, name, float(value))
            for trial_id, record in written
            for endpoint, values in record.metrics.items()
            for name, value in values.items()
        ],
    )
    _insert_many(
        connection,
        schema.verdicts,
        ("trial_id", "link", "direction", "packets", "dropped", "bitmap"),
        [
            (trial_id, log.link, log.direction, log.packets, log.dropped, log.bitmap)
            for trial_id, record in written
            for log in record.verdicts
        ],
    )
    _insert_all(
        connection,
        schema.series,
        [
            {
                "trial_id": trial_id,
                "endpoint": table.endpoint,
                "name": table.name,
                "columns": table.columns,
                "rows": table.rows,
                "data": table.data,
            }
            for trial_id, record in written
            for table in record.series
        ],
    )
    return ids, task_ids


def _insert_trials(connection: sa.Connection, rows: Sequence[Mapping[str, Any]]) -> list[int]:
    """Returns the ids of these rows, in their order.

    SQLite's driver gets them as they are. Nobody else writes before the transaction ends, so that their ids
    are known.
    """
    table = schema.trials
    if connection.dialect.name == "postgresql":
        insert = sa.insert(table).returning(table.c.id, sort_by_parameter_order=True)
        return [int(trial_id) for trial_id in connection.scalars(insert, rows)]
    first = 1 + (connection.scalar(sa.select(sa.func.max(table.c.id))) or 0)
    ids = list(range(first, first + len(rows)))
    documents = [isinstance(table.c[name].type, sa.JSON) for name in rows[0]]
    values = [
        (
            trial_id,
            *(
                _json(value) if is_document else value
                for value, is_document in zip(row.values(), documents, strict=True)
            ),
        )
        for trial_id, row in zip(ids, rows, strict=True)
    ]
    _insert_many(connection, table, ("id", *rows[0]), values)
    return ids


def _write_tasks(
    connection: sa.Connection,
    campaign_id: int,
    documents: Sequence[TaskDocument | None],
    task_ids: Mapping[str, int],
) -> dict[str, int]:
    """Return the id of the row that has each document, by digests. It may have been there before."""
    by_digest = {document.digest: document for document in documents if document is not None}
    ids = {digest: task_ids[digest] for digest in by_digest if digest in task_ids}
    others = [digest for digest in by_digest if digest not in ids]
    if not others:
        return ids
    there = _read_task_ids(connection, campaign_id, others)
    if new := [digest for digest in others if digest not in there]:
        rows = [
            {"campaign_id": campaign_id, "digest": digest, "document": by_digest[digest]}
            for digest in sorted(new)
        ]
        insert = _insertion(connection, schema.tasks).on_conflict_do_nothing()
        connection.execute(insert, rows)  # another machine may have been sooner
        there = _read_task_ids(connection, campaign_id, others)
    return ids | there


def _read_task_ids(connection: sa.Connection, campaign_id: int, digests: Sequence[str]) -> dict[str, int]:
    """Return the ids of the campaign's tasks that have these digests, as far as they are there.

    SQLite gets them as one parameter: SQLAlchemy would compile a statement for each number of them.
    """
    if connection.dialect.name == "postgresql":
        columns = schema.tasks.c
        wanted = _wanted(connection, "wanted", [columns.digest], [(digest,) for digest in digests])
        is_wanted = columns.campaign_id == campaign_id, columns.digest == wanted.c.digest
        rows = connection.execute(
            sa.select(wanted.c.digest, sa.select(columns.id).where(*is_wanted).label("id"))
        )
    else:
        one = "SELECT id FROM tasks WHERE campaign_id = ? AND digest = value"
        query = f"SELECT value, ({one}) FROM json_each(?)"
        rows = connection.exec_driver_sql(query, (campaign_id, strict_json(digests)))
    return {digest: task_id for digest, task_id in rows if task_id is not None}


def read_trials(
    connection: sa.Connection, *conditions: sa.ColumnElement[bool], limit: int | None = None
) -> list[StoredTrial]:
    """The runs that meet the conditions, by id."""
    chosen = sa.select(schema.trials).where(*conditions).order_by(schema.trials.c.id).limit(limit)
    rows = connection.execute(chosen).all()
    ids = [row.id for row in rows]
    values: defaultdict[int, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    of_trials = sa.select(schema.metrics).where(schema.metrics.c.trial_id.in_(ids))
    for trial_id, endpoint, name, value in connection.execute(of_trials):
        values[trial_id][endpoint][name] = value
    logs: defaultdict[int, list[VerdictLog]] = defaultdict(list)
    verdicts = sa.select(schema.verdicts).where(schema.verdicts.c.trial_id.in_(ids))
    order = schema.verdicts.c.link, schema.verdicts.c.direction
    for trial_id, *log in connection.execute(verdicts.order_by(*order)):
        logs[trial_id].append(VerdictLog(*log))
    asked = {row.task_id for row in rows} - {None}
    of_tasks = sa.select(schema.tasks.c.id, schema.tasks.c.document).where(schema.tasks.c.id.in_(asked))
    tasks = {row.id: row.document for row in connection.execute(of_tasks)}
    return [
        StoredTrial(
            id=row.id,
            campaign_id=row.campaign_id,
            start_id=row.start_id,
            attempt=row.attempt,
            record=_trial_record(row, dict(values[row.id]), logs[row.id], tasks.get(row.task_id, {})),
        )
        for row in rows
    ]


def read_series(
    connection: sa.Connection, *conditions: sa.ColumnElement[bool], limit: int | None = None
) -> list[TrialSeries]:
    """The series that meet the conditions, which may be of their trials, by trial, endpoint and name."""
    trials, series = schema.trials.c, schema.series.c
    columns = trials.variant, trials.workload, trials.point, trials.repetition, *schema.series.c
    query = sa.select(*columns).join_from(schema.series, schema.trials).where(*conditions)
    order = series.trial_id, series.endpoint, series.name
    return [
        TrialSeries(
            trial_id=row.trial_id,
            key=TrialKey(row.variant, row.workload, row.point, row.repetition),
            table=SeriesTable(row.endpoint, row.name, row.columns, row.rows, row.data),
        )
        for row in connection.execute(query.order_by(*order).limit(limit))
    ]


def _trial_record(
    row: sa.Row[Any],
    metrics: dict[str, dict[str, float]],
    verdicts: list[VerdictLog],
    task: dict[str, Any],
) -> TrialRecord:
    return TrialRecord(
        key=TrialKey(row.variant, row.workload, row.point, row.repetition),
        state=row.state,
        reason=row.reason,
        started_at=row.started_at,
        duration_s=row.duration_s,
        seeds=row.seeds,
        metrics=metrics,
        verdicts=verdicts,
        dropper=row.dropper,
        links=row.links,
        exits=row.exits,
        stderr=row.stderr,
        overhead_s=row.overhead_s,
        checks=row.checks,
        task=task,
    )


def _insert(connection: sa.Connection, table: sa.Table, row: Mapping[str, Any]) -> int:
    return int(connection.scalar(sa.insert(table).values(row).returning(table.c.id)) or 0)


def _insert_all(connection: sa.Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
    if rows:  # an empty list would insert one row of defaults
        connection.execute(sa.insert(table), rows)


def _insert_many(
    connection: sa.Connection, table: sa.Table, names: Sequence[str], rows: Sequence[tuple[Any, ...]]
) -> None:
    """Rows of these columns, none of which is JSON: SQLite's driver gets them as they are, and PostgreSQL one
    statement, with an array a column.

    A statement a row costs PostgreSQL twice as much, and a mapping a row costs whoever sends it as much.
    """
    if not rows:
        return
    if connection.dialect.name != "postgresql":
        into = f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
        connection.exec_driver_sql(into, list(rows))
        return
    from sqlalchemy.dialects import postgresql

    arrays = [
        sa.cast(sa.bindparam(name), postgresql.ARRAY(table.c[name].type))  # the type is the parameter's, too
        for name in names
    ]
    together = sa.func.unnest(*arrays).table_valued(*names).render_derived()
    insert = sa.insert(table).from_select(list(names), sa.select(*together.c))
    connection.execute(insert, dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


def _json(document: Any) -> str:
    try:
        return strict_json(document)
    except (TypeError, ValueError) as error:
        raise UnfitRecord(f"a trial cannot be written as JSON: {error}") from error


def _storable(text: str) -> str:
    """A reason may quote an endpoint's bytes; SQL text holds neither NUL nor lone surrogates."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "\N{REPLACEMENT CHARACTER}")
