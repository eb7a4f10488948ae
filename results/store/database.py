"""The results database: with `arrow` the only code that knows its tables (`schema`).

SQLite in one file is the default; PostgreSQL by URL serves several machines that write. A trial is committed
in one transaction, so a killed harness loses nothing that `record` has returned for. Values are kept raw:
medians and ratios are made when they are read (`results.analysis.frames`).

Refused, with one line that says why: a file that is missing, no database, of another program or of another
schema version; a database that is locked, read-only or on a full disk; a second result for a trial that has a
valid one.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError

from results.store import schema
from results.store.connector import Connector
from results.store.error import DatabaseError
from results.store.postgresql import PostgreSQL
from results.store.records import (
    STATES,
    CampaignInfo,
    NewCampaign,
    State,
    StoredTrial,
    TrialKey,
    TrialRecord,
    Variant,
    VerdictLog,
    Workload,
)
from results.store.sqlite import SQLite

__all__ = ["Database", "DatabaseError"]

# Trials read per transaction: a slow reader must not hold a lock that keeps a campaign from writing.
PAGE_TRIALS = 500


class Database:
    """An open results database. Threads may share it; a forked process opens its own.

    Every method raises DatabaseError when the database cannot be read or written.
    """

    def __init__(self, connector: Connector) -> None:
        self._connector = connector
        self._readers = connector.engine.execution_options(sqlite_begin="BEGIN")
        # A transaction that reads before it writes takes the write lock first: SQLite fails at once, without
        # waiting, when a read lock is to be upgraded while another writer waits.
        self._writers = connector.engine.execution_options(sqlite_begin="BEGIN IMMEDIATE")
        self._campaigns: dict[int, CampaignInfo] = {}  # read once, since every `record` needs it

    @classmethod
    def open(cls, path_or_url: str, *, create: bool = False) -> Self:
        """Open the SQLite file or PostgreSQL URL; `create` gives an absent or empty one the schema."""
        is_url = "://" in path_or_url
        database = cls(PostgreSQL(path_or_url) if is_url else SQLite(path_or_url, create=create))
        try:
            database._recognise(create)
        except DatabaseError:
            database.close()
            raise
        return database

    @property
    def address(self) -> str:
        """The path or URL, without a password."""
        return self._connector.address

    @property
    def uri(self) -> str:
        """For the databases' own libraries: file:///… or postgresql://…, with the password."""
        return self._connector.uri

    @property
    def is_file(self) -> bool:
        return isinstance(self._connector, SQLite)

    def close(self) -> None:
        self._readers.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Campaigns

    def create_campaign(self, campaign: NewCampaign) -> CampaignInfo:
        """Store a campaign before its first trial. Its name must be new."""
        with self._transaction(self._writers) as connection:
            same_name = sa.select(schema.campaigns.c.id).where(schema.campaigns.c.name == campaign.name)
            if connection.scalar(same_name) is not None:
                raise DatabaseError(
                    f"{self.address}: campaign {campaign.name!r} exists: resume it, or choose another name"
                )
            campaign_id = _write_campaign(connection, campaign)
        return self._campaign(campaign_id)

    def add_calibrations(self, campaign_id: int, calibrations: Sequence[Mapping[str, Any]]) -> CampaignInfo:
        """Append to `calibration` in the campaign's provenance, a list with one entry for each start."""
        chosen = schema.campaigns.c.id == campaign_id
        with self._transaction(self._writers) as connection:
            kept = connection.scalars(
                sa.select(schema.campaigns.c.provenance).where(chosen).with_for_update()
            ).one()
            kept = {**kept, "calibration": [*kept.get("calibration", []), *map(dict, calibrations)]}
            connection.execute(sa.update(schema.campaigns).where(chosen).values(provenance=kept))
        self._campaigns.pop(campaign_id, None)
        return self._campaign(campaign_id)

    def campaign(self, name: str) -> CampaignInfo | None:
        """The campaign of that name, or None."""
        named = sa.select(schema.campaigns.c.id).where(schema.campaigns.c.name == name)
        with self._transaction(self._readers) as connection:
            campaign_id = connection.scalar(named)
        return None if campaign_id is None else self._campaign(campaign_id)

    def campaigns(self) -> list[CampaignInfo]:
        """All campaigns, oldest first."""
        with self._transaction(self._readers) as connection:
            ids = connection.scalars(sa.select(schema.campaigns.c.id).order_by(schema.campaigns.c.id)).all()
        return [self._campaign(campaign_id) for campaign_id in ids]

    def _campaign(self, campaign_id: int) -> CampaignInfo:
        if campaign_id not in self._campaigns:
            with self._transaction(self._readers) as connection:
                self._campaigns[campaign_id] = _read_campaign(connection, campaign_id, self.address)
        return self._campaigns[campaign_id]

    # Trials

    def record(self, campaign_id: int, record: TrialRecord) -> StoredTrial:
        """Commit one finished trial. An invalid run of the same trial is kept as a superseded attempt; any
        other result that it has makes this one refused: a trial is never run twice."""
        self._check_record(campaign_id, record)
        with self._transaction(self._writers) as connection:
            before = connection.execute(
                sa.select(schema.trials.c.id, schema.trials.c.state, schema.trials.c.attempt)
                .where(*_has_key(campaign_id, record.key), schema.counts)
                .with_for_update()
            ).one_or_none()
            if before is not None:
                if before.state != "invalid":
                    raise DatabaseError(
                        f"{self.address}: {record.key}: has a result ({before.state}): it cannot have another"
                    )
                connection.execute(
                    sa.update(schema.trials).where(schema.trials.c.id == before.id).values(superseded=True)
                )
            attempt = 1 if before is None else before.attempt + 1
            trial_id = _write_trial(connection, campaign_id, attempt, record)
        return StoredTrial(trial_id, attempt, record)

    def _check_record(self, campaign_id: int, record: TrialRecord) -> None:
        campaign, key = self._campaign(campaign_id), record.key
        if record.state not in STATES:
            raise DatabaseError(f"{key}: state {record.state!r}: must be one of {', '.join(STATES)}")
        if key.variant not in (variant["label"] for variant in campaign.variants):
            raise DatabaseError(f"{key}: campaign {campaign.name!r} has no variant {key.variant!r}")
        if key.workload not in (workload["label"] for workload in campaign.workloads):
            raise DatabaseError(f"{key}: campaign {campaign.name!r} has no workload {key.workload!r}")
        if not 0 <= key.point < len(campaign.points):
            raise DatabaseError(
                f"{key}: campaign {campaign.name!r} has points 0 to {len(campaign.points) - 1}"
            )
        if not 0 <= key.repetition < campaign.repetitions:
            raise DatabaseError(
                f"{key}: campaign {campaign.name!r} has repetitions 0 to {campaign.repetitions - 1}"
            )
        for endpoint, values in record.metrics.items():
            for name, value in values.items():
                if not math.isfinite(value):
                    raise DatabaseError(
                        f"{key}: metric {endpoint}.{name} is {value}: must be a finite number"
                    )

    def states(self, campaign_id: int) -> dict[TrialKey, tuple[State, int]]:
        """The state of every trial that has been run, and its number of attempts so far."""
        columns = schema.trials.c
        query = sa.select(
            columns.variant,
            columns.workload,
            columns.point,
            columns.repetition,
            columns.state,
            columns.attempt,
        ).where(columns.campaign_id == campaign_id, schema.counts)
        with self._transaction(self._readers) as connection:
            return {
                TrialKey(variant, workload, point, repetition): (state, attempt)
                for variant, workload, point, repetition, state, attempt in connection.execute(query)
            }

    def trial_count(self, campaign_id: int) -> int:
        """The number of trials that have been run, superseded attempts not counted."""
        query = sa.select(sa.func.count()).where(schema.trials.c.campaign_id == campaign_id, schema.counts)
        with self._transaction(self._readers) as connection:
            return connection.scalar(query) or 0

    def trials(self, campaign_id: int, states: Collection[State] | None = None) -> Iterator[StoredTrial]:
        """The trials (in those states) in the order in which they ended, read as they are consumed."""
        condition = [schema.trials.c.campaign_id == campaign_id, schema.counts]
        if states is not None:
            condition.append(schema.trials.c.state.in_(states))
        last = 0
        while True:
            with self._transaction(self._readers) as connection:
                page = _read_trials(connection, schema.trials.c.id > last, *condition, limit=PAGE_TRIALS)
            yield from page
            if len(page) < PAGE_TRIALS:
                return
            last = page[-1].id

    def trial(self, campaign_id: int, key: TrialKey) -> StoredTrial | None:
        """The trial of that key, or None when it has not been run."""
        with self._transaction(self._readers) as connection:
            trials = _read_trials(connection, *_has_key(campaign_id, key), schema.counts)
        return trials[0] if trials else None

    def attempts(self, campaign_id: int, key: TrialKey) -> list[StoredTrial]:
        """Every run of that trial, oldest first: the superseded invalid ones, then the one that counts."""
        with self._transaction(self._readers) as connection:
            return _read_trials(connection, *_has_key(campaign_id, key))

    def id_range(self, campaign_id: int) -> tuple[int, int] | None:
        """The least and the greatest id of the campaign's trials; None when it has none."""
        ids = schema.trials.c.id
        query = sa.select(sa.func.min(ids), sa.func.max(ids)).where(
            schema.trials.c.campaign_id == campaign_id, schema.counts
        )
        with self._transaction(self._readers) as connection:
            first, last = connection.execute(query).one()
        return None if first is None else (first, last)

    def metric_names(self, campaign_id: int) -> list[str]:
        """The metrics ("endpoint.name") that any trial of the campaign measured, sorted."""
        columns = schema.metrics.c
        query = sa.select(columns.endpoint, columns.name).distinct().join(schema.trials)
        of_campaign = query.where(schema.trials.c.campaign_id == campaign_id, schema.counts)
        with self._transaction(self._readers) as connection:
            return sorted(f"{endpoint}.{name}" for endpoint, name in connection.execute(of_campaign))

    # Opening

    def _recognise(self, create: bool) -> None:
        """Check that this is a results database of our schema; with `create`, make an empty one so."""
        with self._transaction(self._readers) as connection:
            version = self._connector.version(connection)
        if version is None and create:
            with self._transaction(self._writers) as connection:
                version = self._create_schema(connection)
        if version is None:
            raise DatabaseError(f"{self.address}: is empty: no campaign was run into it")
        if version != schema.VERSION:
            raise DatabaseError(
                f"{self.address}: has schema version {version}, this fecbench reads version {schema.VERSION}:"
                f" use the fecbench that wrote it: {self._other_revision(version)}"
            )

    def _create_schema(self, connection: sa.Connection) -> int:
        """The version that the database has then, since another process may have been sooner."""
        self._connector.lock(connection)
        version = self._connector.version(connection)
        if version is None:
            schema.tables.create_all(connection)
            version = schema.VERSION
            self._connector.set_version(connection, version)
        return version

    def _other_revision(self, version: int) -> str:
        """The command that gets, or else finds, the revision that wrote a database of another schema."""
        last = sa.select(schema.campaigns.c.provenance).order_by(schema.campaigns.c.id.desc()).limit(1)
        # Nothing is known of that schema: what cannot be read in it as in ours is left out.
        with contextlib.suppress(DatabaseError, ValueError, TypeError, KeyError):
            with self._transaction(self._readers) as connection:
                commit = connection.execute(last).scalar_one()["revision"]["commit"]
            if re.fullmatch("[0-9a-f]{40}", commit):
                return f"git checkout {commit} && make build"
        return f"git log -S 'VERSION = {version}' -- results/store/schema.py finds its revision"

    @contextlib.contextmanager
    def _transaction(self, engine: sa.Engine) -> Iterator[sa.Connection]:
        try:
            with engine.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise DatabaseError(f"{self.address}: {self._explain(error)}") from error

    def _explain(self, error: SQLAlchemyError) -> str:
        if isinstance(error, IntegrityError):  # what one process can see was checked before
            return "another process stored the same campaign or trial at the same time"
        cause = error.orig if isinstance(error, DBAPIError) and error.orig else error
        return self._connector.cause(cause) or str(cause).splitlines()[0]


def _has_key(campaign_id: int, key: TrialKey) -> list[sa.ColumnElement[bool]]:
    columns = schema.trials.c
    return [
        columns.campaign_id == campaign_id,
        columns.variant == key.variant,
        columns.workload == key.workload,
        columns.point == key.point,
        columns.repetition == key.repetition,
    ]


def _insert(connection: sa.Connection, table: sa.Table, row: Mapping[str, Any]) -> int:
    return int(connection.scalar(sa.insert(table).values(row).returning(table.c.id)) or 0)


def _insert_all(connection: sa.Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
    if rows:  # an empty list would insert one row of defaults
        connection.execute(sa.insert(table), rows)


def _write_campaign(connection: sa.Connection, campaign: NewCampaign) -> int:
    campaign_id = _insert(
        connection,
        schema.campaigns,
        {
            "name": campaign.name,
            "title": campaign.title,
            "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "design_text": campaign.design_text,
            "seed": str(campaign.seed),
            "repetitions": campaign.repetitions,
            "statistic": campaign.statistic,
            "provenance": campaign.provenance,
        },
    )
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
        }
        for i, workload in enumerate(campaign.workloads)
    ]
    _insert_all(connection, schema.points, points)
    _insert_all(connection, schema.variants, variants)
    _insert_all(connection, schema.workloads, workloads)
    return campaign_id


def _read_campaign(connection: sa.Connection, campaign_id: int, address: str) -> CampaignInfo:
    def rows(table: sa.Table, order: str) -> Sequence[sa.Row[Any]]:
        of_campaign = sa.select(table).where(table.c.campaign_id == campaign_id)
        return connection.execute(of_campaign.order_by(table.c[order])).all()

    campaign = connection.execute(
        sa.select(schema.campaigns).where(schema.campaigns.c.id == campaign_id)
    ).one_or_none()
    if campaign is None:
        raise DatabaseError(f"{address}: has no campaign of id {campaign_id}")
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
        points=[row.factors for row in rows(schema.points, "point")],
        variants=[
            Variant(
                label=row.variant,
                implementation=row.implementation,
                options=row.options,
                baseline=row.baseline,
            )
            for row in rows(schema.variants, "position")
        ],
        workloads=[
            Workload(label=row.workload, name=row.name, parameters=row.parameters)
            for row in rows(schema.workloads, "position")
        ],
    )


def _write_trial(connection: sa.Connection, campaign_id: int, attempt: int, record: TrialRecord) -> int:
    trial_id = _insert(
        connection,
        schema.trials,
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
        },
    )
    _insert_all(
        connection,
        schema.metrics,
        [
            {"trial_id": trial_id, "endpoint": endpoint, "name": name, "value": float(value)}
            for endpoint, values in record.metrics.items()
            for name, value in values.items()
        ],
    )
    _insert_all(
        connection,
        schema.verdicts,
        [
            {
                "trial_id": trial_id,
                "link": log.link,
                "direction": log.direction,
                "packets": log.packets,
                "dropped": log.dropped,
                "bitmap": log.bitmap,
            }
            for log in record.verdicts
        ],
    )
    return trial_id


def _storable(text: str) -> str:
    """A reason may quote an endpoint's bytes; SQL text holds neither NUL nor lone surrogates."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "\N{REPLACEMENT CHARACTER}")


def _read_trials(
    connection: sa.Connection, *condition: sa.ColumnElement[bool], limit: int | None = None
) -> list[StoredTrial]:
    chosen = sa.select(schema.trials).where(*condition).order_by(schema.trials.c.id).limit(limit)
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
    return [
        StoredTrial(row.id, row.attempt, _trial_record(row, dict(values[row.id]), logs[row.id]))
        for row in rows
    ]


def _trial_record(
    row: sa.Row[Any], metrics: dict[str, dict[str, float]], verdicts: list[VerdictLog]
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
    )
