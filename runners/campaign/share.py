"""The share of a campaign that one harness runs: beside others, group by group, until nothing is missing.

A group is run by its claimant. A start waits for a group that another holds: it ends, or its holder does.

Where a trial ends the same way each time, groups are claimed many at a time and trials are stored many at a
time: a thousandth of a second each is all that they may take, and what a kill loses is run again.
"""

import contextlib
import logging
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from fecbench.results.store.database import Database, DatabaseError, HasResult, UnfitRecord
from fecbench.results.store.records import BY_ENDS, Group, Start, StoredTrial, TrialKey, TrialRecord
from fecbench.runners.campaign.claims import Claims
from fecbench.runners.campaign.first_trials import AllAlike, FirstTrials
from fecbench.runners.campaign.record import judged, unfit
from fecbench.runners.campaign.request import Keep, Request
from fecbench.runners.campaign.rounds import Due, States
from fecbench.runners.campaign.walk import Walk
from fecbench.runners.engines.engine import Engine, EngineError, Finished
from fecbench.runners.tasks.task import Task
from fecbench.runners.trial.judge import Judgement
from fecbench.runners.trial.judging.endpoints import completion_s

_log = logging.getLogger(__name__)

# An invalid trial is run again this many times, and as often anew when the campaign is resumed.
RETRIES = 3
# How often those who wait for others look.
LOOK_S = 1.0
# So many trials that end the same way each time are stored together, or those of so long; and so many groups
# are claimed together.
BATCH_TRIALS, BATCH_S = 200, 1.0
LOT_GROUPS = 64
# Lots that each of those who share a campaign has at least of what is left. A whole lot of
# more groups than MANY_GROUPS is a small part for each, however many they are.
LOTS_EACH, MANY_GROUPS = 4, 16384


class Watcher(Protocol):
    """Follows the progress of a campaign."""

    def begun(self, campaign: str, planned: int, done: int) -> None: ...

    def ended(self, key: TrialKey, judgement: Judgement, completion_s: float, again: bool) -> None:
        """A trial was committed; `completion_s` is 0 when its client reported none."""

    def more(self, trials: int, why: str) -> None:
        """Report that so many trials more are to be run than at first."""

    def elsewhere(self, trials: int) -> None:
        """Another harness has run so many of the trials."""

    def waiting(self, trials: int) -> None:
        """Nothing is left but so many trials that other harnesses are running."""

    def dropped(self, key: TrialKey, why: str) -> None:
        """A trial was run, and not kept: it has a result already."""


@dataclass(frozen=True)
class _Judged:
    """A trial that has ended, and is to be stored."""

    finished: Finished
    judgement: Judgement
    record: TrialRecord


class Share:
    """The trials that this start runs of those that are due."""

    def __init__(
        self,
        request: Request,
        engine: Engine,
        database: Database,
        start: Start,
        watcher: Watcher,
        goes_on: Callable[[], bool] = lambda: True,
    ) -> None:
        self._request = request
        self._engine = engine
        self._database = database
        self._start = start
        self._watcher = watcher
        self._goes_on = goes_on
        """Whether another group may begin; once it may not, what is left of a round is dropped."""
        together = engine.deterministic
        self._batch_trials, self._lot_groups = (BATCH_TRIALS, LOT_GROUPS) if together else (1, 1)
        # In the field, another attempt would not be beside the others of its block.
        self._retries = 0 if together or request.engine == "field" else RETRIES
        self._first = FirstTrials(request.name, of_endpoints=request.stop_when_alike)
        self._judged: list[_Judged] = []
        """Not stored yet."""
        self._judged_since = 0.0
        """Moment of the first of these; seconds of the monotonic clock."""
        self._before: Due = {}
        self._attempts_left: dict[TrialKey, int] = {}
        self._unfinished: dict[Group, set[TrialKey]] = {}
        """Trials of each group that we hold that still run, or are to be run."""

    def run(self, trials: Due, more: Callable[[], Due] = dict) -> None:
        """Run what others do not, and return when every trial has been run, and there are no `more` then."""
        with Claims(self._database, self._start) as claims, self._engine, self._settling(claims):
            while trials:
                self._run_round(claims, trials)
                trials = more()

    def _run_round(self, claims: Claims, trials: Due) -> None:
        self._before = trials
        groups: dict[Group, list[TrialKey]] = {}
        for key in trials:
            groups.setdefault(key.group, []).append(key)
        while groups and self._goes_on():
            others: dict[Group, list[TrialKey]] = {}
            for finished in self._engine.run(self._tasks(claims, groups, others)):
                self._judge(claims, finished)
            self._settle(claims)
            groups = self._wait_for_one(claims, others)

    @contextlib.contextmanager
    def _settling(self, claims: Claims) -> Iterator[None]:
        """Keeps what has ended when it is told to end, or when nothing is to go on."""
        try:
            yield
        except BaseException as error:
            is_told_to_end = not isinstance(error, Exception)
            if is_told_to_end or isinstance(error, EngineError | AllAlike):
                try:
                    self._settle(claims)
                except DatabaseError as problem:
                    if not is_told_to_end:
                        raise
                    _log.info("what has ended last could not be kept: %s", problem)
            raise

    def _tasks(
        self,
        claims: Claims,
        groups: Mapping[Group, list[TrialKey]],
        others: dict[Group, list[TrialKey]],
    ) -> Iterator[tuple[TrialKey, Task]]:
        """The tasks of the groups that can be claimed, made as they are taken; the rest goes to `others`."""
        walk = Walk(groups, self._start.id)
        while lot := walk.next(self._lot_size(claims, len(walk))):
            held = claims.take_all(lot)
            others |= {group: groups[group] for group in lot if group not in held}
            states = self._database.states_in(self._start.campaign_id, list(held)) if held else {}
            missing = {group: self._still_due(groups[group], states) for group in lot if group in held}
            done = [group for group, keys in missing.items() if not keys]
            if done:
                claims.give_up(done)
            if walk.has_strayed(len(held) - len(done), len(lot)):
                self._leave_out(claims, walk, groups, others)
            for place, (group, keys) in enumerate(missing.items()):
                if not self._goes_on():
                    claims.give_up([group for group in list(missing)[place:] if missing[group]])
                    return
                yield from self._tasks_of(claims, group, keys, states, others)

    def _tasks_of(
        self,
        claims: Claims,
        group: Group,
        keys: Sequence[TrialKey],
        states: States,
        others: dict[Group, list[TrialKey]],
    ) -> Iterator[tuple[TrialKey, Task]]:
        """The tasks of a group that was claimed; what another has claimed meanwhile goes to `others`."""
        self._unfinished[group] = set(keys)
        for place, key in enumerate(keys):
            # A start that was paused for long has lost its claims.
            if place and not self._engine.deterministic and not claims.take(group):
                others[group] = list(keys[place:])
                self._unfinished[group].difference_update(others[group])
                break
            _log.info("next: %s", key)
            self._attempts_left[key] = self._may_be_run(key, states)
            yield key, self._request.experiment.task(key, self._request.backend)

    def _lot_size(self, claims: Claims, left: int) -> int:
        """Return how many groups to claim together: fewer when few are left for all who share them, so that
        all end together."""
        if self._lot_groups == 1 or left > MANY_GROUPS:
            return self._lot_groups
        sharing = 1 + claims.others()
        return self._lot_groups if sharing == 1 else min(self._lot_groups, -(-left // (LOTS_EACH * sharing)))

    def _leave_out(
        self,
        claims: Claims,
        walk: Walk,
        groups: Mapping[Group, list[TrialKey]],
        others: dict[Group, list[TrialKey]],
    ) -> None:
        """Leave out what others have done or hold now, before it is tried to be claimed."""
        held = set(claims.bury_the_dead())
        states = self._database.states(self._start.campaign_id)
        taken = [group for group in walk if group in held or not self._still_due(groups[group], states)]
        walk.leave_out(taken)
        others |= {group: groups[group] for group in taken if group in held}

    def _still_due(self, keys: Sequence[TrialKey], states: States) -> list[TrialKey]:
        """Return the trials that nobody has run since we began, or that another left invalid too soon."""
        missing = [key for key in keys if self._may_be_run(key, states) > 0]
        if len(missing) < len(keys):
            self._watcher.elsewhere(len(keys) - len(missing))
        return missing

    def _may_be_run(self, key: TrialKey, states: States) -> int:
        """Return how often the trial may be run now: attempts of others since we began count, too."""
        state, attempts = states.get(key, ("invalid", 0))
        since = attempts - self._before[key]
        return 1 + self._retries - since if state == "invalid" or since == 0 else 0

    def _judge(self, claims: Claims, finished: Finished) -> None:
        """Judge a trial that has ended, and settle those that were judged when they are enough."""
        now = time.monotonic()
        if not self._judged:
            self._judged_since = now
        self._judged.append(_Judged(finished, *judged(finished)))
        self._first.add(self._judged[-1].judgement, finished.outcome)
        if len(self._judged) >= self._batch_trials or now - self._judged_since >= BATCH_S:
            self._settle(claims)

    def _settle(self, claims: Claims) -> None:
        """Store the trials that were judged, and have those that are invalid run again."""
        done: list[Group] = []
        for trial, stored in self._stored():
            key, finished, judgement = trial.finished.key, trial.finished, trial.judgement
            if stored is not None:
                _keep(self._request.keep, finished, judgement, stored.id)
            self._engine.judged(finished, valid=judgement.state != "invalid")
            self._attempts_left[key] -= 1
            again = (
                self._is_open(trial)
                and stored is not None
                and self._attempts_left[key] > 0
                and claims.take(key.group)
            )
            if again:
                _log.info("again, later: %s", key)
                self._engine.again(key, finished.task)
            else:
                del self._attempts_left[key]
                self._unfinished[key.group].discard(key)
                if not self._unfinished[key.group]:
                    del self._unfinished[key.group]
                    done.append(key.group)
            if stored is not None:
                self._watcher.ended(key, judgement, completion_s(finished.task, finished.outcome), again)
        if done:
            claims.give_up(done)

    def _is_open(self, trial: _Judged) -> bool:
        """Whether another attempt may tell more.

        Whether two ends can talk to each other is known from an invalid trial, too, unless they were too
        slow, or it never began.
        """
        if trial.judgement.state != "invalid" or self._request.interop is None:
            return trial.judgement.state == "invalid"
        said = trial.record.checks.get(BY_ENDS)
        return said is None or said["state"] == "timeout"

    def _stored(self) -> list[tuple[_Judged, StoredTrial | None]]:
        """The trials that were judged, now committed; None in the place of one that has a result already."""
        trials = self._judged
        first_runs = len(trials) > 1 and not any(self._before[trial.finished.key] for trial in trials)
        stored: list[tuple[_Judged, StoredTrial | None]] | None = None
        if first_runs:
            with contextlib.suppress(UnfitRecord, HasResult):  # of one of them: it is found out below
                records = [trial.record for trial in trials]
                kept = self._database.record_all(self._start.campaign_id, records, self._start.id)
                stored = list(zip(trials, kept, strict=True))
        if stored is None:
            stored = [self._recorded(trial) for trial in trials]
        self._judged = []
        return stored

    def _recorded(self, trial: _Judged) -> tuple[_Judged, StoredTrial | None]:
        """One trial, now committed."""
        try:
            try:
                return trial, self._record(trial.record)
            except UnfitRecord as error:
                trial = _Judged(trial.finished, *unfit(trial.finished, f"it cannot be kept: {error}"))
                return trial, self._record(trial.record)
        except HasResult as error:
            self._watcher.dropped(trial.finished.key, str(error))
            return trial, None

    def _record(self, record: TrialRecord) -> StoredTrial:
        before = self._before[record.key] or None
        return self._database.record(self._start.campaign_id, record, self._start.id, replaces=before)

    def _wait_for_one(
        self, claims: Claims, others: dict[Group, list[TrialKey]]
    ) -> dict[Group, list[TrialKey]]:
        """Wait until one of the groups that others hold is free; those that are not done then."""
        told = False
        while others and self._goes_on():
            held = claims.bury_the_dead()
            states = self._database.states(self._start.campaign_id)
            left = {group: self._still_due(keys, states) for group, keys in others.items()}
            others = {group: keys for group, keys in left.items() if keys}
            if any(group not in held for group in others):
                break
            if others and not told:
                self._watcher.waiting(sum(map(len, others.values())))
                told = True
            if others:
                time.sleep(LOOK_S)
        return others


def _keep(keep: Keep | None, finished: Finished, judgement: Judgement, trial_id: int) -> None:
    """Move the trial's files to where the user wants them, as `trial-ID`."""
    if keep is not None and finished.folder is not None and (keep.which == "all" or judgement.state != "ok"):
        target = keep.folder / f"trial-{trial_id}"
        shutil.rmtree(target, ignore_errors=True)  # of another database, whose trials have the same numbers
        shutil.move(finished.folder, target)
