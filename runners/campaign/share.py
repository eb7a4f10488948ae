"""The share of a campaign that one harness runs: beside others, group by group, until nothing is missing.

A group is run by whoever has claimed it. One that another holds is waited for: it ends, or its holder does.
"""

import logging
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from results.store.database import Database, HasResult, UnfitRecord
from results.store.records import Group, Start, State, StoredTrial, TrialKey, TrialRecord
from runners.campaign.claims import Claims
from runners.campaign.record import judged, unfit
from runners.campaign.request import Keep, Request
from runners.engines.engine import Engine, Finished
from runners.trial.judge import Judgement
from runners.trial.judging.endpoints import completion_s
from runners.trial.task import Task

_log = logging.getLogger(__name__)

# An invalid trial is run again this many times, and as often anew when the campaign is resumed.
RETRIES = 3
# How often those who wait for others look.
LOOK_S = 1.0

States = Mapping[TrialKey, tuple[State, int]]
Due = dict[TrialKey, int]
"""The trials that are to be run, and how many attempts each has had before."""


class Watcher(Protocol):
    """Follows the progress of a campaign."""

    def begun(self, campaign: str, planned: int, done: int) -> None: ...

    def ended(self, key: TrialKey, judgement: Judgement, completion_s: float, again: bool) -> None:
        """A trial was committed; `completion_s` is 0 when its client reported none."""

    def elsewhere(self, trials: int) -> None:
        """Another harness has run so many of the trials."""

    def waiting(self, trials: int) -> None:
        """Nothing is left but so many trials that other harnesses are running."""

    def dropped(self, key: TrialKey, why: str) -> None:
        """A trial was run, and not kept: it has a result already."""


def due(request: Request, states: States) -> Due:
    """The wanted trials that have no result, an invalid one, or one in a state that is to be run again."""
    again = {"invalid", *request.retry}
    return {
        key: states[key][1] if key in states else 0
        for key in request.keys
        if key not in states or states[key][0] in again
    }


class Share:
    """What this start runs of the trials that are due."""

    def __init__(
        self, request: Request, engine: Engine, database: Database, start: Start, watcher: Watcher
    ) -> None:
        self._request = request
        self._engine = engine
        self._database = database
        self._start = start
        self._watcher = watcher
        self._before: Due = {}
        self._attempts_left: dict[TrialKey, int] = {}
        self._unfinished: dict[Group, set[TrialKey]] = {}
        """Of each group that we hold: the trials that still run, or are to be run."""

    def run(self, trials: Due) -> None:
        """Run what others do not, and return when every trial has been run."""
        self._before = trials
        groups: dict[Group, list[TrialKey]] = {}
        for key in trials:
            groups.setdefault(key.group, []).append(key)
        with Claims(self._database, self._start) as claims, self._engine:
            while groups:
                others: dict[Group, list[TrialKey]] = {}
                for finished in self._engine.run(self._tasks(claims, groups, others)):
                    self._settle(claims, finished)
                groups = self._wait_for_one(claims, others)

    def _tasks(
        self,
        claims: Claims,
        groups: Mapping[Group, list[TrialKey]],
        others: dict[Group, list[TrialKey]],
    ) -> Iterator[tuple[TrialKey, Task]]:
        """The tasks of the groups that can be claimed, made as they are taken; the rest goes to `others`."""
        for group, keys in groups.items():
            if not claims.take(group):
                others[group] = keys
                continue
            states = self._database.states_in(self._start.campaign_id, group)
            missing = self._still_due(keys, states)
            if not missing:
                claims.give_up(group)
                continue
            self._unfinished[group] = set(missing)
            for key in missing:
                # Whoever was paused for long has lost its claims.
                if key != missing[0] and not claims.take(group):
                    others[group] = missing[missing.index(key) :]
                    self._unfinished[group].difference_update(others[group])
                    break
                _log.info("next: %s", key)
                self._attempts_left[key] = self._may_be_run(key, states)
                yield key, self._request.experiment.task(key, self._request.backend)

    def _still_due(self, keys: Sequence[TrialKey], states: States) -> list[TrialKey]:
        """Those that nobody has run since we began, or that whoever did has left invalid too soon."""
        missing = [key for key in keys if self._may_be_run(key, states) > 0]
        if len(missing) < len(keys):
            self._watcher.elsewhere(len(keys) - len(missing))
        return missing

    def _may_be_run(self, key: TrialKey, states: States) -> int:
        """How often the trial may be run now: attempts of others since we began count, too."""
        state, attempts = states.get(key, ("invalid", 0))
        since = attempts - self._before[key]
        return 1 + RETRIES - since if state == "invalid" or since == 0 else 0

    def _settle(self, claims: Claims, finished: Finished) -> None:
        """Judge a trial that has ended, keep it, and have it run again when it is invalid."""
        key = finished.key
        judgement, stored = self._recorded(finished)
        if stored is not None:
            _keep(self._request.keep, finished, judgement, stored.id)
        self._engine.judged(finished, valid=judgement.state != "invalid")
        self._attempts_left[key] -= 1
        again = (
            judgement.state == "invalid"
            and stored is not None
            and self._attempts_left[key] > 0
            and claims.take(key.group)
        )
        if again:
            _log.info("again, later: %s", key)
            self._engine.again(key, finished.task)
        else:
            self._unfinished[key.group].discard(key)
            if not self._unfinished[key.group]:
                claims.give_up(key.group)
        if stored is not None:
            self._watcher.ended(key, judgement, completion_s(finished.task, finished.outcome), again)

    def _recorded(self, finished: Finished) -> tuple[Judgement, StoredTrial | None]:
        """The trial judged and committed; None in its place when it has a result already."""
        judgement, record = judged(finished)
        try:
            try:
                return judgement, self._record(record)
            except UnfitRecord as error:
                judgement, record = unfit(finished, f"it cannot be kept: {error}")
                return judgement, self._record(record)
        except HasResult as error:
            self._watcher.dropped(finished.key, str(error))
            return judgement, None

    def _record(self, record: TrialRecord) -> StoredTrial:
        before = self._before[record.key] or None
        return self._database.record(self._start.campaign_id, record, self._start.id, replaces=before)

    def _wait_for_one(
        self, claims: Claims, others: dict[Group, list[TrialKey]]
    ) -> dict[Group, list[TrialKey]]:
        """Wait until one of the groups that others hold is free; those that are not done then."""
        told = False
        while others:
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
