"""The results database: with `arrow` the only code that knows its tables (`schema`).

SQLite in one file is the default; PostgreSQL by URL serves several machines that write. A trial is committed
in one transaction, so a killed harness loses nothing that `record` has returned for. Values are kept raw:
medians and ratios are made when they are read (`results.analysis.frames`).

Refused, with one line that says why: a file that is missing, no database, of another program or of another
schema version; a database that is locked, read-only or on a full disk; a second result for a trial that has a
valid one, unless it is said to replace that one.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Self

import sqlalchemy as sa
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, SQLAlchemyError, StatementError

from fecbench.results.store import rows, schema
from fecbench.results.store.connector import Connector
from fecbench.results.store.digest import of_metrics, of_trial, of_trials
from fecbench.results.store.error import DatabaseError, HasResult, Replaced, UnfitRecord
from fecbench.results.store.postgresql_url import is_url
from fecbench.results.store.records import (
    STATES,
    AttemptCount,
    CampaignInfo,
    Claimant,
    Group,
    NewCampaign,
    NewStart,
    RepairCount,
    RunsOfStart,
    SeriesTable,
    Start,
    State,
    Stop,
    StoredTask,
    StoredTrial,
    TrialKey,
    TrialRecord,
    TrialSeries,
)
from fecbench.results.store.sqlite import SQLite

__all__ = ["Database", "DatabaseError", "HasResult", "UnfitRecord"]

# Trials read per transaction: a slow reader must not hold a lock that keeps a campaign from writing.
PAGE_TRIALS = 500
# Ids of tasks of a campaign that are remembered: some megabytes.
MOST_TASKS = 1 << 15
# Each may be some megabytes long.
PAGE_SERIES = 20
# Tries of what another process may undo between two statements: each time, that one has got further itself.
_TRIES = 5


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
        self._identity: object = None
        """`Connector.identity`, once it is open."""
        self._campaigns: dict[int, CampaignInfo] = {}
        """Campaigns as they were last read: every `record` needs what no process changes of them."""
        self._task_ids: dict[int, dict[str, int]] = {}
        """Committed tasks of each campaign: their ids by digests."""

    @classmethod
    def open(cls, path_or_url: str, *, create: bool = False, read_only: bool = False) -> Self:
        """Open the SQLite file or PostgreSQL URL; `create` gives an absent or empty one the schema.

        `read_only`: the database itself refuses whatever would write.
        """
        database = cls(_connector(path_or_url, create, read_only))
        try:
            database._recognise(create)
            database._identity = database._connector.identity()
        except DatabaseError:
            database.close()
            raise
        return database

    @property
    def address(self) -> str:
        """The path or URL."""
        return self._connector.address

    @property
    def uri(self) -> str:
        """Address for the databases' own libraries: file:///… or postgresql://…"""
        return self._connector.uri

    @property
    def is_file(self) -> bool:
        return isinstance(self._connector, SQLite)

    def close(self) -> None:
        with self.alone():
            self._readers.dispose()

    def alone(self) -> AbstractContextManager[object]:
        """Held while this process reads or writes, so that libraries of SQLite do not disturb each other."""
        return self._connector.alone()

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
            campaign_id = rows.write_campaign(connection, campaign)
        if campaign_id is None:
            raise DatabaseError(
                f"{self.address}: campaign {campaign.name!r} exists: resume it, or choose another name"
            )
        return self._read_campaign(campaign_id)

    def begin(self, campaign: NewCampaign, start: NewStart) -> Start | None:
        """Store a campaign with its first start; None when another process has stored one of that name."""
        with self._transaction(self._writers) as connection:
            campaign_id = rows.write_campaign(connection, campaign)
            return None if campaign_id is None else rows.write_start(connection, campaign_id, start)

    def add_calibrations(self, campaign_id: int, calibrations: Sequence[Mapping[str, Any]]) -> CampaignInfo:
        """Append to `calibration` in the campaign's provenance, a list with one entry for each start."""
        chosen = schema.campaigns.c.id == campaign_id
        with self._transaction(self._writers) as connection:
            kept = connection.scalars(
                sa.select(schema.campaigns.c.provenance).where(chosen).with_for_update()
            ).one()
            kept = {**kept, "calibration": [*kept.get("calibration", []), *map(dict, calibrations)]}
            connection.execute(sa.update(schema.campaigns).where(chosen).values(provenance=kept))
        return self._read_campaign(campaign_id)

    def stop(self, campaign_id: int, stops: Sequence[Stop]) -> CampaignInfo:
        """Store that these places of the campaign have been run far enough; what was stored sooner stays."""
        with self._transaction(self._writers) as connection:
            rows.write_stops(connection, campaign_id, stops)
        return self._read_campaign(campaign_id)

    def start(
        self,
        campaign_id: int,
        host: str,
        provenance: Mapping[str, Any],
        holder: Mapping[str, Any] | None = None,
    ) -> Start:
        """Store that trials of the campaign will be run on that machine from now on, by that process."""
        self._campaign(campaign_id)  # refused when there is none
        start = NewStart(
            host=host, provenance=dict(provenance), holder=None if holder is None else dict(holder)
        )
        with self._transaction(self._writers) as connection:
            return rows.write_start(connection, campaign_id, start)

    def starts(self, campaign_id: int) -> list[Start]:
        """Every start of the campaign, oldest first; none where version 1 has run it."""
        with self._transaction(self._readers) as connection:
            return rows.read_starts(connection, campaign_id)

    def campaign(self, name: str) -> CampaignInfo | None:
        """The campaign of that name, or None."""
        named = sa.select(schema.campaigns.c.id).where(schema.campaigns.c.name == name)
        with self._transaction(self._readers) as connection:
            campaign_id = connection.scalar(named)
        return None if campaign_id is None else self._read_campaign(campaign_id)

    def campaign_of(self, start: Start) -> CampaignInfo:
        """The campaign that the start has begun or gone on with."""
        return self._read_campaign(start.campaign_id)

    def campaigns(self) -> list[CampaignInfo]:
        """All campaigns, oldest first."""
        with self._transaction(self._readers) as connection:
            ids = connection.scalars(sa.select(schema.campaigns.c.id).order_by(schema.campaigns.c.id)).all()
        return [self._read_campaign(campaign_id) for campaign_id in ids]

    def _campaign(self, campaign_id: int) -> CampaignInfo:
        """The campaign, whose stops and calibrations may be older than the database's."""
        return self._campaigns.get(campaign_id) or self._read_campaign(campaign_id)

    def _read_campaign(self, campaign_id: int) -> CampaignInfo:
        """The campaign as it is now: other processes store stops and calibrations meanwhile."""
        with self._transaction(self._readers) as connection:
            campaign = rows.read_campaign(connection, campaign_id)
        if campaign is None:
            raise DatabaseError(f"{self.address}: has no campaign of id {campaign_id}")
        self._campaigns[campaign_id] = campaign
        return campaign

    # Claims: which start runs the trials of which group

    def claim(self, campaign_id: int, start_id: int, group: Group) -> int:
        """The start that holds the claim on the group now: this one, unless another was sooner."""
        return self.claim_all(campaign_id, start_id, [group])[group]

    def claim_all(self, campaign_id: int, start_id: int, groups: Sequence[Group]) -> dict[Group, int]:
        """The start that holds the claim on each of these groups now: this one, unless another was sooner."""
        for _ in range(_TRIES):
            with self._transaction(self._readers) as connection:
                owners = rows.read_owners(connection, campaign_id, groups)
            if free := [group for group in groups if group not in owners]:
                with self._transaction(self._writers) as connection:
                    rows.claim(connection, campaign_id, start_id, free)
                    owners |= rows.read_owners(connection, campaign_id, free)
            if len(owners) == len(groups):  # one may have been given up between the two statements
                return owners
        raise DatabaseError(f"{self.address}: {groups[0]}: others claim it and give it up all the time")

    def give_up(self, campaign_id: int, start_id: int, groups: Sequence[Group]) -> None:
        """Let go of groups that the start may have claimed."""
        its = schema.claims.c.start_id == start_id
        with self._transaction(self._writers) as connection:
            connection.execute(sa.delete(schema.claims).where(*rows.are_claims_on(campaign_id, groups), its))

    def give_up_all(self, start_id: int, beat: int | None = None) -> None:
        """Let go of all that the start has claimed; with `beat`, only if it has stood still there."""
        starts, claims = schema.starts.c, schema.claims.c
        where = [starts.id == start_id] + ([] if beat is None else [starts.beat == beat])
        of_start = claims.start_id.in_(sa.select(starts.id).where(*where))
        with self._transaction(self._writers) as connection:
            connection.execute(sa.delete(schema.claims).where(of_start))

    def beat(self, start_id: int) -> None:
        """Show others that the start goes on."""
        its = schema.starts.c.id == start_id
        with self._transaction(self._writers) as connection:
            connection.execute(sa.update(schema.starts).where(its).values(beat=schema.starts.c.beat + 1))

    def claims(self, campaign_id: int) -> dict[Group, Claimant]:
        """Every group of the campaign that is claimed, and by whom."""
        with self._transaction(self._readers) as connection:
            return rows.read_claims(connection, campaign_id)

    # Trials

    def record(
        self,
        campaign_id: int,
        record: TrialRecord,
        start_id: int | None = None,
        *,
        replaces: int | None = None,
    ) -> StoredTrial:
        """Commit one finished trial of a start of the campaign (None: it is not known of which).

        An invalid run of the same trial is kept as a superseded attempt, and so is the attempt of number
        `replaces`, whatever its state. Returns the trial as it would be read. Raises UnfitRecord for a record
        that cannot be stored, and HasResult when the trial has any other result: it is never run twice.
        """
        self._check_record(campaign_id, record)
        for _ in range(_TRIES):
            try:
                return self._record(campaign_id, record, start_id, replaces)
            except DatabaseError as error:
                # Another process recorded the same trial meanwhile: its result is looked at anew.
                if not isinstance(error.__cause__, IntegrityError):
                    raise
        raise HasResult(f"{self.address}: {record.key}: others record results of it all the time")

    def record_all(
        self, campaign_id: int, records: Sequence[TrialRecord], start_id: int | None = None
    ) -> list[StoredTrial]:
        """Commit the first runs of these trials, all of them or none, in one transaction.

        Raises UnfitRecord and HasResult as `record` does: then each has to be recorded by itself.
        """
        if not records:
            return []
        for record in records:
            self._check_record(campaign_id, record)
        try:
            with self._transaction(self._writers) as connection:
                if start_id is not None:
                    self._check_start(connection, campaign_id, start_id)
                runs = [(1, record) for record in records]
                ids, tasks = rows.write_trials(
                    connection, campaign_id, start_id, runs, self._task_ids.get(campaign_id, {})
                )
        except DatabaseError as error:
            if isinstance(error.__cause__, IntegrityError):
                raise HasResult(f"{self.address}: one of {len(records)} trials has a result") from error
            raise
        self._note_tasks(campaign_id, tasks)
        return [
            _stored(trial_id, campaign_id, start_id, 1, record)
            for trial_id, record in zip(ids, records, strict=True)
        ]

    def _note_tasks(self, campaign_id: int, tasks: Mapping[str, int]) -> None:
        ids = self._task_ids.setdefault(campaign_id, {})
        if len(ids) > MOST_TASKS:
            ids.clear()
        ids.update(tasks)

    def _check_start(self, connection: sa.Connection, campaign_id: int, start_id: int) -> None:
        if start_id not in rows.start_ids(connection, campaign_id):
            raise DatabaseError(f"{self.address}: campaign {campaign_id} has no start {start_id}")

    def _record(
        self, campaign_id: int, record: TrialRecord, start_id: int | None, replaces: int | None
    ) -> StoredTrial:
        with self._transaction(self._writers) as connection:
            if start_id is not None:
                self._check_start(connection, campaign_id, start_id)
            before = connection.execute(
                sa.select(schema.trials.c.id, schema.trials.c.state, schema.trials.c.attempt)
                .where(*rows.has_key(campaign_id, record.key), schema.counts)
                .with_for_update()
            ).one_or_none()
            if before is not None:
                if before.state != "invalid" and before.attempt != replaces:
                    raise HasResult(
                        f"{self.address}: {record.key}: has a result ({before.state}): it cannot have another"
                    )
                connection.execute(
                    sa.update(schema.trials).where(schema.trials.c.id == before.id).values(superseded=True)
                )
            attempt = 1 if before is None else before.attempt + 1
            (trial_id,), tasks = rows.write_trials(
                connection, campaign_id, start_id, [(attempt, record)], self._task_ids.get(campaign_id, {})
            )
        self._note_tasks(campaign_id, tasks)
        return _stored(trial_id, campaign_id, start_id, attempt, record)

    def _check_record(self, campaign_id: int, record: TrialRecord) -> None:
        campaign, key = self._campaign(campaign_id), record.key
        if record.state not in STATES:
            raise UnfitRecord(f"{key}: state {record.state!r}: must be one of {', '.join(STATES)}")
        if key.variant not in (variant["label"] for variant in campaign.variants):
            raise UnfitRecord(f"{key}: campaign {campaign.name!r} has no variant {key.variant!r}")
        if key.workload not in (workload["label"] for workload in campaign.workloads):
            raise UnfitRecord(f"{key}: campaign {campaign.name!r} has no workload {key.workload!r}")
        if not 0 <= key.point < len(campaign.points):
            raise UnfitRecord(f"{key}: campaign {campaign.name!r} has points 0 to {len(campaign.points) - 1}")
        if not 0 <= key.repetition < campaign.repetitions:
            raise UnfitRecord(
                f"{key}: campaign {campaign.name!r} has repetitions 0 to {campaign.repetitions - 1}"
            )
        for endpoint, values in record.metrics.items():
            for name, value in values.items():
                if not math.isfinite(value):
                    raise UnfitRecord(f"{key}: metric {endpoint}.{name} is {value}: must be a finite number")
        names = [(table.endpoint, table.name) for table in record.series]
        for endpoint, name in names:
            if names.count((endpoint, name)) > 1:
                raise UnfitRecord(f"{key}: series {endpoint}.{name}: is there twice: must be one table")

    def states(self, campaign_id: int, *, up_to: int | None = None) -> dict[TrialKey, tuple[State, int]]:
        """The state of every trial that has been run, and its number of attempts so far.

        `up_to`: as it was when the trial of this id was the last one.
        """
        with self._transaction(self._readers) as connection:
            return rows.read_states(connection, campaign_id, up_to)

    def states_in(self, campaign_id: int, groups: Sequence[Group]) -> dict[TrialKey, tuple[State, int]]:
        """Return what `states` does, of the trials of these groups alone."""
        variants = [variant["label"] for variant in self._campaign(campaign_id).variants]
        with self._transaction(self._readers) as connection:
            return rows.read_states_in(connection, campaign_id, variants, groups)

    def digest(self, campaign_id: int) -> str:
        """One number for what happened on the wire in all trials of the campaign that count
        (`digest.of_trials`).

        Raises DatabaseError for trials whose records have neither their digest nor what it is made of.
        """
        return self._digest(campaign_id, "digest", of_trial)

    def metrics_digest(self, campaign_id: int) -> str:
        """One number for all metrics of all trials of the campaign that count."""
        return self._digest(campaign_id, "metrics_digest", of_metrics)

    def _digest(self, campaign_id: int, name: str, of_record: Callable[[TrialRecord], str]) -> str:
        columns = schema.trials.c
        of_key = columns.variant, columns.workload, columns.point, columns.repetition
        # Trials have both, or an earlier fecbench kept a single one, of all this together, or none.
        both = columns.checks["metrics_digest"].as_string() != sa.null()
        kept = sa.case((both, columns.checks[name].as_string())).label("kept")
        of_campaign = columns.campaign_id == campaign_id, schema.counts
        with self._transaction(self._readers) as connection:
            found = connection.execute(sa.select(columns.id, *of_key, kept).where(*of_campaign)).all()
            lacking = [row.id for row in found if row.kept is None]
            told: dict[int, str] = {}
            for first in range(0, len(lacking), PAGE_TRIALS):
                page = schema.trials.c.id.in_(lacking[first : first + PAGE_TRIALS])
                for run in rows.read_trials(connection, page):
                    self._check_whole(run)
                    told[run.id] = of_record(run.record)
        return of_trials((TrialKey(*key), kept or told[number]) for number, *key, kept in found)

    def _check_whole(self, run: StoredTrial) -> None:
        """Samples of campaigns leave out what digests are made of."""
        if "digest" in run.record.checks and not run.record.task:
            raise DatabaseError(
                f"{self.address}: trial {run.id}: its task was left out, and its digest is an earlier"
                " fecbench's: record the campaign anew"
            )

    def tasks(self, campaign_id: int) -> list[StoredTask]:
        """Return the tasks of trials: an entry for each variant, workload, point and different task."""
        trials, tasks = schema.trials.c, schema.tasks.c
        of_key = trials.variant, trials.workload, trials.point
        query = (
            sa.select(tasks.id, *of_key, sa.func.min(trials.repetition), tasks.digest)
            .join_from(schema.trials, schema.tasks)
            .where(trials.campaign_id == campaign_id)
            .group_by(tasks.id, *of_key, tasks.digest)
            .order_by(sa.func.min(trials.id))
        )
        with self._transaction(self._readers) as connection:
            return [
                StoredTask(task_id, TrialKey(*key), digest)
                for task_id, *key, digest in connection.execute(query)
            ]

    def task(self, task_id: int) -> dict[str, Any]:
        """The document of the task of that id."""
        of_id = sa.select(schema.tasks.c.document).where(schema.tasks.c.id == task_id)
        with self._transaction(self._readers) as connection:
            document: dict[str, Any] = connection.execute(of_id).scalar_one()
        return document

    def trials_by_start(self, campaign_id: int) -> dict[int | None, int]:
        """Return how many of the trials that count each start has run; None: it is not known which."""
        columns = schema.trials.c
        query = sa.select(columns.start_id, sa.func.count().label("trials")).where(
            *rows.count_for(campaign_id)
        )
        with self._transaction(self._readers) as connection:
            return {row.start_id: row.trials for row in connection.execute(query.group_by(columns.start_id))}

    def runs_by_start(self, campaign_id: int) -> list[RunsOfStart]:
        """Return what each start has run of the campaign, superseded attempts included."""
        columns = schema.trials.c
        invalid = columns.state == "invalid"
        done = sa.func.count(sa.case((sa.and_(schema.counts, sa.not_(invalid)), 1)))
        query = (
            sa.select(
                columns.start_id,
                sa.func.count(),
                done,
                sa.func.count(sa.case((invalid, 1))),
                sa.func.min(columns.started_at),
                sa.func.max(columns.started_at),
            )
            .where(columns.campaign_id == campaign_id, columns.start_id.is_not(None))
            .group_by(columns.start_id)
        )
        with self._transaction(self._readers) as connection:
            return [RunsOfStart(*row) for row in connection.execute(query)]

    def attempt_counts(self, campaign_id: int) -> list[AttemptCount]:
        """Return how often trials of each variant were run to each state, superseded attempts apart."""
        columns = schema.trials.c
        kinds = columns.variant, columns.state, columns.superseded
        again = sa.func.count(sa.case((columns.attempt > 1, 1)))
        query = sa.select(*kinds, sa.func.count(), again).where(columns.campaign_id == campaign_id)
        with self._transaction(self._readers) as connection:
            counted = connection.execute(query.group_by(*kinds).order_by(*kinds))
            return [AttemptCount(*row) for row in counted]

    def invalid_reasons(self, campaign_id: int) -> dict[str, int]:
        """Return how many runs were invalid for each reason, superseded ones included."""
        columns = schema.trials.c
        chosen = columns.campaign_id == campaign_id, columns.state == "invalid"
        query = sa.select(columns.reason, sa.func.count()).where(*chosen).group_by(columns.reason)
        with self._transaction(self._readers) as connection:
            counted = connection.execute(query.order_by(columns.reason))
            return {reason: int(count) for reason, count in counted}

    def repair_counts(self, campaign_id: int) -> list[RepairCount]:
        """Return the ok trials of each variant whose FEC was on, and in how many it sent no repair packet.

        By the tasks, which know whether options turn FEC on; trials of which there is no task are not told.
        """
        trials, tasks, values = schema.trials.c, schema.tasks.c, schema.metrics.c
        sent = (
            sa.select(sa.func.sum(values.value))
            .where(
                values.trial_id == trials.id,
                values.endpoint.in_(("client", "server")),
                values.name == "repair_sent",
            )
            .scalar_subquery()
        )
        is_on = [tasks.document["pairs", 0, role, "fec"].as_boolean() for role in ("client", "server")]
        # Many trials have the same task, whose document is long: each is read once.
        with_fec = sa.select(tasks.id).where(tasks.campaign_id == campaign_id, sa.or_(*is_on))
        of_trial = (
            sa.select(trials.variant, sent.label("sent"))
            .where(*rows.count_for(campaign_id), trials.state == "ok", trials.task_id.in_(with_fec))
            .subquery()
        )
        silent = sa.func.count(sa.case((of_trial.c.sent == 0, 1)))
        query = sa.select(of_trial.c.variant, sa.func.count(of_trial.c.sent), silent).group_by(
            of_trial.c.variant
        )
        with self._transaction(self._readers) as connection:
            if connection.execute(with_fec.limit(1)).first() is None:  # all trials would be read in vain
                return []
            return [RepairCount(*row) for row in connection.execute(query)]

    def last_ids(self) -> tuple[int, int, int]:
        """Return the greatest numbers of a campaign, a start and a trial, 0 for none: they rise whenever
        there is something new to show."""
        numbers = [table.c.id for table in (schema.campaigns, schema.starts, schema.trials)]
        with self._transaction(self._readers) as connection:
            campaign, start, trial = (
                connection.scalar(sa.select(sa.func.max(number))) or 0 for number in numbers
            )
        return campaign, start, trial

    def states_of(self, campaign_id: int, *, after: int = 0) -> dict[State, int]:
        """Return how many of the trials that count, and came `after` the one of this id, are in each
        state."""
        state = schema.trials.c.state
        query = sa.select(state, sa.func.count().label("trials")).where(*rows.count_for(campaign_id))
        query = query.where(schema.trials.c.id > after) if after else query
        with self._transaction(self._readers) as connection:
            counted = connection.execute(query.group_by(state))
            return {row.state: row.trials for row in counted}

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
                page = rows.read_trials(connection, schema.trials.c.id > last, *condition, limit=PAGE_TRIALS)
            yield from page
            if len(page) < PAGE_TRIALS:
                return
            last = page[-1].id

    def trial(self, campaign_id: int | None, trial_id: int) -> StoredTrial | None:
        """The run of that id, superseded or not, if it is of that campaign (None: of any); or else None."""
        conditions = [schema.trials.c.id == trial_id]
        if campaign_id is not None:
            conditions.append(schema.trials.c.campaign_id == campaign_id)
        with self._transaction(self._readers) as connection:
            trials = rows.read_trials(connection, *conditions)
        return trials[0] if trials else None

    def trials_with(self, trial_ids: Collection[int]) -> list[StoredTrial]:
        """The runs of these ids, superseded or not, by id: some hundred at a time."""
        with self._transaction(self._readers) as connection:
            return rows.read_trials(connection, schema.trials.c.id.in_(trial_ids))

    def trial_of(self, campaign_id: int, key: TrialKey) -> StoredTrial | None:
        """The run that counts of the trial of that key, or None when it has not been run."""
        return self.trials_of(campaign_id, [key]).get(key)

    def trials_of(self, campaign_id: int, keys: Sequence[TrialKey]) -> dict[TrialKey, StoredTrial]:
        """The runs that count of the trials of these keys, without those that have not been run."""
        trials: dict[TrialKey, StoredTrial] = {}
        for first in range(0, len(keys), PAGE_TRIALS):
            with self._transaction(self._readers) as connection:
                ids = rows.read_ids(connection, campaign_id, keys[first : first + PAGE_TRIALS])
                read = rows.read_trials(connection, schema.trials.c.id.in_(ids))
            trials |= {stored.record.key: stored for stored in read}
        return trials

    def attempts(self, campaign_id: int, key: TrialKey) -> list[StoredTrial]:
        """Every run of that trial, oldest first: the superseded invalid ones, then the one that counts."""
        with self._transaction(self._readers) as connection:
            return rows.read_trials(connection, *rows.has_key(campaign_id, key))

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

    # Series

    def series(self, campaign_id: int, name: str) -> Iterator[TrialSeries]:
        """The series of that name of all trials that count, read as they are consumed, by id and endpoint."""
        columns = schema.series.c
        place = sa.tuple_(columns.trial_id, columns.endpoint)
        of_campaign = schema.trials.c.campaign_id == campaign_id, schema.counts, columns.name == name
        last: tuple[int, str] = (0, "")
        while True:
            with self._transaction(self._readers) as connection:
                page = rows.read_series(connection, place > last, *of_campaign, limit=PAGE_SERIES)
            yield from page
            if len(page) < PAGE_SERIES:
                return
            last = page[-1].trial_id, page[-1].table.endpoint

    def series_of(self, trial_id: int) -> list[SeriesTable]:
        """Every series of one run, by endpoint and name."""
        with self._transaction(self._readers) as connection:
            of_trial = rows.read_series(connection, schema.series.c.trial_id == trial_id)
        return [series.table for series in of_trial]

    def series_columns(self, campaign_id: int) -> dict[str, list[str]]:
        """The names of the series that trials of the campaign left, and which columns they have."""
        name, columns = schema.series.c.name, sa.cast(schema.series.c.columns, sa.Text)
        query = sa.select(name, columns).distinct().join_from(schema.series, schema.trials)
        of_campaign = query.where(schema.trials.c.campaign_id == campaign_id, schema.counts)
        known: dict[str, dict[str, None]] = {}
        with self._transaction(self._readers) as connection:
            for series, text in connection.execute(of_campaign.order_by(name, columns)):
                known.setdefault(series, {}).update(dict.fromkeys(json.loads(text)))
        return {series: list(names) for series, names in known.items()}

    # Opening

    def _recognise(self, create: bool) -> None:
        """Check that this is a results database of our schema; with `create`, make an empty one so."""
        with self._transaction(self._readers) as connection:
            version = self._connector.version(connection)
        if version is None and create:
            with self._transaction(self._writers) as connection:
                version = self._made(connection)
        if version is None:
            raise DatabaseError(f"{self.address}: is empty: no campaign was run into it")
        if version != schema.VERSION:
            raise DatabaseError(
                f"{self.address}: has schema version {version}, this fecbench reads version {schema.VERSION}:"
                f" use the fecbench that wrote it: {self._other_revision(version)}"
            )

    def _made(self, connection: sa.Connection) -> int:
        """Create the tables, and return the version that they have then.

        Another process may have been sooner, so the version is read anew once no other can change it.
        """
        self._connector.lock(connection)
        if (version := self._connector.version(connection)) is not None:
            return version
        self._connector.make_tables(connection)
        self._connector.set_version(connection, schema.VERSION)
        return schema.VERSION

    def _other_revision(self, version: int) -> str:
        """Return the revision that wrote a database of another schema, or the command that finds it."""
        last = sa.select(schema.campaigns.c.provenance).order_by(schema.campaigns.c.id.desc()).limit(1)
        # Nothing is known of that schema: what cannot be read in it as in ours is left out.
        with contextlib.suppress(DatabaseError, ValueError, TypeError, KeyError):
            with self._transaction(self._readers) as connection:
                commit = connection.execute(last).scalar_one()["revision"]["commit"]
            if re.fullmatch("[0-9a-f]{40}", commit):
                return f"its revision is {commit}"
        return f"git log -S 'VERSION = {version}' -- results/store/schema.py finds its revision"

    def _check_identity(self) -> None:
        if self._identity is not None and self._connector.identity() != self._identity:
            raise Replaced(
                f"{self.address}: was deleted, moved or replaced while it was in use: put it back, or open it"
                " anew"
            )

    @contextlib.contextmanager
    def _transaction(self, engine: sa.Engine) -> Iterator[sa.Connection]:
        try:
            with self.alone():
                self._check_identity()
                with engine.begin() as connection:
                    yield connection
        except SQLAlchemyError as error:
            # A value that cannot be written, such as JSON with a NaN: SQLAlchemy or the driver refuses it.
            of_driver = isinstance(error, DBAPIError) and not isinstance(error, DataError)
            unfit = isinstance(error, StatementError) and not of_driver
            kind = UnfitRecord if unfit else DatabaseError
            raise kind(f"{self.address}: {self._explain(error)}") from error

    def _explain(self, error: SQLAlchemyError) -> str:
        if isinstance(error, IntegrityError):  # what one process can see was checked before
            return "another process stored the same campaign or trial at the same time"
        cause = error.orig if isinstance(error, DBAPIError) and error.orig else error
        return self._connector.cause(cause) or str(cause).splitlines()[0]


def _stored(
    trial_id: int, campaign_id: int, start_id: int | None, attempt: int, record: TrialRecord
) -> StoredTrial:
    """A record as it was just written, without its series."""
    return StoredTrial(
        id=trial_id,
        campaign_id=campaign_id,
        start_id=start_id,
        attempt=attempt,
        record=dataclasses.replace(record, series=[]) if record.series else record,
    )


def _connector(path_or_url: str, create: bool, read_only: bool) -> Connector:
    if not is_url(path_or_url):
        return SQLite(path_or_url, create=create, read_only=read_only)
    from fecbench.results.store.postgresql import (
        PostgreSQL,  # takes longer to load than most commands take to run
    )

    return PostgreSQL(path_or_url, read_only=read_only)
