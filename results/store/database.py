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
import json
import math
import re
import sqlite3
import tomllib
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypedDict, get_args

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError

from results.store import schema

LOCK_WAIT_S = 10.0
PAGE_TRIALS = (
    500  # trials read per transaction: a slow reader must not hold a lock that keeps a campaign from writing
)

State = Literal["ok", "failed", "timeout", "unsupported", "invalid"]
STATES: tuple[State, ...] = get_args(State)
Value = float | int | str


class DatabaseError(ValueError):
    """Says in one line which database cannot be used, why, and what would be right."""


class Variant(TypedDict):
    label: str
    implementation: str
    options: dict[str, Any]
    baseline: bool


class Workload(TypedDict):
    label: str
    name: str
    parameters: dict[str, Any]


@dataclass(frozen=True, slots=True)
class CampaignInfo:
    """One execution of a design, as it was created. `points[i]` holds the factor values of point i."""

    id: int
    name: str
    title: str
    created_at: str
    design_text: str
    seed: int
    repetitions: int
    statistic: str
    provenance: dict[str, Any]
    points: list[dict[str, Value]]
    variants: list[Variant]
    workloads: list[Workload]

    @property
    def planned_trials(self) -> int:
        return len(self.points) * len(self.variants) * len(self.workloads) * self.repetitions

    @property
    def design_name(self) -> str:
        """The name in the design, not always the campaign's. Raises DatabaseError when it is no TOML."""
        try:
            return str(tomllib.loads(self.design_text).get("name", ""))
        except tomllib.TOMLDecodeError as error:
            raise DatabaseError(f"campaign {self.name!r}: its design cannot be read: {error}") from error


@dataclass(frozen=True, slots=True, order=True)
class TrialKey:
    """Names a trial within its campaign."""

    variant: str
    workload: str
    point: int
    repetition: int

    def __str__(self) -> str:
        return f"{self.variant}, {self.workload}, point {self.point}, repetition {self.repetition}"


@dataclass(frozen=True, slots=True)
class VerdictLog:
    """What the dropper decided on one direction of a link: bit n of `bitmap` (little-endian) is set iff
    packet n was dropped. The bitmap may cover fewer packets than `packets`, the number judged."""

    link: str
    direction: str
    packets: int
    dropped: int
    bitmap: bytes


@dataclass(frozen=True, slots=True)
class TrialRecord:
    """Everything that is kept of one run of one trial. Seeds are unsigned 64-bit; `metrics` is endpoint →
    name → value; `started_at` is UTC in ISO 8601; `reason` is empty when ok; `verdicts` are read back sorted
    by link and direction."""

    key: TrialKey
    state: State
    reason: str
    started_at: str
    duration_s: float
    seeds: dict[str, int] = field(default_factory=dict)
    metrics: dict[str, dict[str, float]] = field(default_factory=dict)
    verdicts: list[VerdictLog] = field(default_factory=list)
    dropper: dict[str, Any] = field(default_factory=dict)
    links: dict[str, Any] = field(default_factory=dict)
    exits: dict[str, int | None] = field(default_factory=dict)
    stderr: dict[str, str] = field(default_factory=dict)
    overhead_s: dict[str, float] = field(default_factory=dict)
    checks: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoredTrial:
    """A record as the database holds it. `attempt` counts from 1: above 1 when invalid runs came before."""

    id: int
    attempt: int
    record: TrialRecord


class Database:
    """An open results database. Threads may share it; a forked process opens its own.

    Every method raises DatabaseError when the database cannot be read or written.
    """

    def __init__(self, engine: sa.Engine, address: str, uri: str) -> None:
        self.address = address
        self.uri = uri  # for the databases' own libraries: file:///… or postgresql://…, with the password
        self._readers = engine.execution_options(sqlite_begin="BEGIN")
        # A transaction that reads before it writes takes the write lock first: SQLite fails at once, without
        # waiting, when a read lock is to be upgraded while another writer waits.
        self._writers = engine.execution_options(sqlite_begin="BEGIN IMMEDIATE")
        self._campaigns: dict[int, CampaignInfo] = {}  # read once, since every `record` needs it

    @classmethod
    def open(cls, path_or_url: str, *, create: bool = False) -> Self:
        """Open the SQLite file or PostgreSQL URL; `create` gives an absent or empty one the schema."""
        if "://" in path_or_url:
            database = cls(*_postgresql_engine(path_or_url))
        else:
            database = cls(*_sqlite_engine(path_or_url, create))
        try:
            database._recognise(create)
        except DatabaseError:
            database.close()
            raise
        return database

    @property
    def is_file(self) -> bool:
        return self.uri.startswith("file:")

    def close(self) -> None:
        self._readers.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Campaigns

    def create_campaign(
        self,
        name: str,
        design_text: str,
        seed: int,
        provenance: Mapping[str, Any],
        points: Sequence[Mapping[str, Value]],
        variants: Sequence[Variant],
        workloads: Sequence[Workload],
        repetitions: int,
        statistic: str,
        title: str,
    ) -> CampaignInfo:
        """Store a campaign before its first trial. Its name must be new."""
        campaign = {
            "name": name,
            "title": title,
            "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "design_text": design_text,
            "seed": str(seed),
            "repetitions": repetitions,
            "statistic": statistic,
            "provenance": dict(provenance),
        }
        with self._transaction(self._writers) as connection:
            if connection.scalar(sa.select(schema.campaigns.c.id).where(schema.campaigns.c.name == name)):
                raise DatabaseError(
                    f"{self.address}: campaign {name!r} exists: resume it, or choose another name"
                )
            campaign_id = _insert(connection, schema.campaigns, campaign)
            _insert_all(
                connection,
                schema.points,
                [
                    {"campaign_id": campaign_id, "point": i, "factors": dict(point)}
                    for i, point in enumerate(points)
                ],
            )
            _insert_all(
                connection,
                schema.variants,
                [
                    {
                        "campaign_id": campaign_id,
                        "position": i,
                        "variant": variant["label"],
                        "implementation": variant["implementation"],
                        "options": variant["options"],
                        "baseline": variant["baseline"],
                    }
                    for i, variant in enumerate(variants)
                ],
            )
            _insert_all(
                connection,
                schema.workloads,
                [
                    {
                        "campaign_id": campaign_id,
                        "position": i,
                        "workload": workload["label"],
                        "name": workload["name"],
                        "parameters": workload["parameters"],
                    }
                    for i, workload in enumerate(workloads)
                ],
            )
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
            found = _read_trials(connection, *_has_key(campaign_id, key), schema.counts)
        return found[0] if found else None

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
            version = _schema_version(connection, self.address)
        if version is None and create:
            with self._transaction(self._writers) as connection:
                _create_schema(connection, self.address)
        elif version is None:
            raise DatabaseError(f"{self.address}: is empty: no campaign was run into it")
        elif version != schema.VERSION:
            raise DatabaseError(
                f"{self.address}: has schema version {version}, this fecbench reads version {schema.VERSION}:"
                f" use the fecbench that wrote it: {self._other_revision(version)}"
            )

    def _other_revision(self, version: int) -> str:
        """The command that gets, or else finds, the revision that wrote a database of another schema."""
        last = sa.select(schema.campaigns.c.provenance).order_by(schema.campaigns.c.id.desc()).limit(1)
        # Nothing is known of that schema: what is not found or read in it as in ours is not said.
        with contextlib.suppress(DatabaseError, ValueError, TypeError, KeyError):
            with self._transaction(self._readers) as connection:
                commit = connection.execute(last).scalar_one()["revision"]["commit"]
            if re.fullmatch("[0-9a-f]{40}", commit):
                return f"git checkout {commit} && make build"
        return f"git log -S 'VERSION = {version}' -- results/schema.py finds its revision"

    @contextlib.contextmanager
    def _transaction(self, engine: sa.Engine) -> Iterator[sa.Connection]:
        try:
            with engine.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise DatabaseError(f"{self.address}: {_explain(error)}") from error


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


def _read_campaign(connection: sa.Connection, campaign_id: int, address: str) -> CampaignInfo:
    def rows(table: sa.Table, order: str) -> Sequence[sa.Row[Any]]:
        of_campaign = sa.select(table).where(table.c.campaign_id == campaign_id)
        return connection.execute(of_campaign.order_by(table.c[order])).all()

    found = connection.execute(
        sa.select(schema.campaigns).where(schema.campaigns.c.id == campaign_id)
    ).one_or_none()
    if found is None:
        raise DatabaseError(f"{address}: has no campaign of id {campaign_id}")
    return CampaignInfo(
        id=found.id,
        name=found.name,
        title=found.title,
        created_at=found.created_at,
        design_text=found.design_text,
        seed=int(found.seed),
        repetitions=found.repetitions,
        statistic=found.statistic,
        provenance=found.provenance,
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


# Engines, recognition and errors of the two kinds of database


def _strict_json(value: Any) -> str:
    return json.dumps(value, allow_nan=False)  # PostgreSQL refuses NaN, which JSON does not know


def _sqlite_engine(path: str, create: bool) -> tuple[sa.Engine, str, str]:
    file = Path(path)
    if file.is_dir():
        raise DatabaseError(f"{path}: is a directory: give the path of a database file")
    if create and not file.absolute().parent.is_dir():
        raise DatabaseError(f"{path}: its folder does not exist: make it first")
    if not create and not file.exists():
        raise DatabaseError(f"{path}: no such database: give a file that `fecbench run` has made")
    uri = f"{file.absolute().as_uri()}?mode={'rwc' if create else 'rw'}"

    def connect() -> sqlite3.Connection:
        # isolation_level None: transactions begin where we say, not where the driver guesses
        connection = sqlite3.connect(
            uri, uri=True, timeout=LOCK_WAIT_S, isolation_level=None, check_same_thread=False
        )
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        return connection

    engine = sa.create_engine(
        "sqlite://", creator=connect, poolclass=sa.QueuePool, json_serializer=_strict_json
    )

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        connection.exec_driver_sql(connection.get_execution_options()["sqlite_begin"])

    return engine, path, uri


def _postgresql_engine(url: str) -> tuple[sa.Engine, str, str]:
    try:
        parsed = sa.make_url(url)
    except (SQLAlchemyError, ValueError) as error:
        raise DatabaseError(f"{url}: not a database URL: must be postgresql://USER@HOST/DATABASE") from error
    address = parsed.render_as_string(hide_password=True) if parsed.password else url
    if parsed.drivername != "postgresql":
        raise DatabaseError(f"{address}: must be a file, or a URL postgresql://USER@HOST/DATABASE")
    try:
        engine = sa.create_engine(
            parsed.set(drivername="postgresql+pg8000"),
            json_serializer=_strict_json,
            pool_pre_ping=True,
            connect_args={"startup_params": {"lock_timeout": f"{LOCK_WAIT_S:g}s"}},
        )
    except ModuleNotFoundError as error:
        raise DatabaseError(f"{address}: needs the PostgreSQL driver: pip install pg8000") from error
    return engine, address, _libpq_uri(parsed)


def _libpq_uri(url: sa.URL) -> str:
    """The URL as PostgreSQL's own library has it, which knows a UNIX socket by its folder and its port."""
    if isinstance(path := url.query.get("unix_sock"), str):
        folder, _, port = path.partition("/.s.PGSQL.")
        url = url.difference_update_query(["unix_sock"]).update_query_dict({"host": folder, "port": port})
    return url.render_as_string(hide_password=False)


def _schema_version(connection: sa.Connection, address: str) -> int | None:
    """The version of our schema that the database has; None when it is empty."""
    names = set(sa.inspect(connection).get_table_names())
    if connection.dialect.name == "sqlite":
        application = connection.exec_driver_sql("PRAGMA application_id").scalar_one()
        if application == schema.APPLICATION_ID:
            return int(connection.exec_driver_sql("PRAGMA user_version").scalar_one())
    elif "schema_version" in names:
        ours = schema.schema_version.c.application == schema.APPLICATION
        version = connection.scalar(sa.select(schema.schema_version.c.version).where(ours))
        if version is not None:
            return int(version)
    if names:
        raise DatabaseError(f"{address}: is a database of another program: give a file of its own")
    return None


def _create_schema(connection: sa.Connection, address: str) -> None:
    sqlite = connection.dialect.name == "sqlite"
    if not sqlite:  # two machines may start at once; the lock ends with the transaction
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(schema.APPLICATION_ID)))
    if _schema_version(connection, address) is not None:
        return  # another process made it meanwhile
    schema.tables.create_all(connection)
    version = {"application": schema.APPLICATION, "version": schema.VERSION}
    connection.execute(sa.insert(schema.schema_version).values(version))
    if sqlite:
        connection.exec_driver_sql(f"PRAGMA application_id = {schema.APPLICATION_ID}")
        connection.exec_driver_sql(f"PRAGMA user_version = {schema.VERSION}")


SQLITE_CAUSES = {
    sqlite3.SQLITE_BUSY: f"is locked for more than {LOCK_WAIT_S:g} s: let the process that holds it end",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened: check the permissions of the file and of its folder",
    sqlite3.SQLITE_CORRUPT: "is damaged (truncated or overwritten): restore it from a copy",
    sqlite3.SQLITE_FULL: "cannot be written: the disk is full",
    sqlite3.SQLITE_IOERR: "cannot be read or written: input/output error",
    sqlite3.SQLITE_NOTADB: "is not an SQLite database",
    sqlite3.SQLITE_READONLY: "is read-only: trials need a file that can be written",
}


def _explain(error: SQLAlchemyError) -> str:
    if isinstance(error, IntegrityError):  # what one process can see was checked before
        return "another process stored the same campaign or trial at the same time"
    cause = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(cause, sqlite3.Error) and (code := cause.sqlite_errorcode & 0xFF) in SQLITE_CAUSES:
        return SQLITE_CAUSES[code]
    if isinstance(cause, Exception) and cause.args and isinstance(cause.args[0], dict):
        return str(cause.args[0].get("M", cause))  # pg8000 hands over the server's fields; M is its message
    return str(cause).splitlines()[0]
