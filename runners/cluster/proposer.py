"""Runs a campaign on the workers of a scheduler: proposes groups, and counts what they answer.

Workers claim groups and commit trials themselves. A group that is proposed twice is run once, and the groups
of a worker that does not answer any more are proposed to others.
"""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from fecbench import __version__
from fecbench.results.store.database import Database
from fecbench.results.store.postgresql_url import SCHEMES
from fecbench.results.store.records import CampaignInfo, Group
from fecbench.runners.campaign import campaign
from fecbench.runners.campaign.request import Request
from fecbench.runners.campaign.rounds import Due, Rounds
from fecbench.runners.campaign.share import LOT_GROUPS, Watcher
from fecbench.runners.cluster.dask_client import WHY_CHARACTERS
from fecbench.runners.cluster.messages import Answer, GroupTrials, Join, Leave, Lot
from fecbench.runners.cluster.worker_pool import Reply, SchedulerGone, WorkerPool
from fecbench.runners.engines.engine import EngineError
from fecbench.runners.refusal import Refusal
from fecbench.runners.trial.judge import Judgement

HELD_S = 3.0
"""Time after which a group that another had claimed is proposed again."""
SLOW_S = 20.0
"""Age of a proposal after which its groups are also offered to an idle worker."""
LEAVE_S = 3.0
LOTS_PER_WORKER = 4
"""A lot is at most this part of a worker's share of what is left, so that all end together."""


class ClusterWatcher(Watcher, Protocol):
    """Follows a campaign, and who runs it."""

    def note(self, line: str) -> None: ...


@dataclass
class Member:
    """A worker."""

    host: str = ""
    state: str = "asked"
    """asked, joined or refused."""
    room: int = 0
    lots: dict[int, list[Group]] = field(default_factory=dict)
    """Groups that were proposed to it, by the number of the reply."""
    since: dict[int, float] = field(default_factory=dict)


def check(request: Request, db: str) -> None:
    """Raises Refusal for a database or options that do not serve several hosts."""
    if db.partition("://")[0] not in SCHEMES:
        raise Refusal(f"--db {db}: several hosts write: must be postgresql://USER@HOST:PORT/DATABASE")
    if request.keep is not None:
        raise Refusal(f"--keep {request.keep.which}: files of trials stay on workers' hosts: leave it out")
    if request.jobs != 1:
        raise Refusal(f"--jobs {request.jobs}: is of each worker: fecbench worker --jobs {request.jobs}")


def run(
    request: Request, pool: WorkerPool, database: Database, db: str, watcher: ClusterWatcher
) -> CampaignInfo:
    """Run what is missing of a campaign. `db` is how workers reach the database."""
    stored, rounds = campaign.begun(request, database), Rounds(request, database)
    trials = rounds.first(stored)
    watcher.begun(stored.name, rounds.planned, rounds.planned - len(trials))
    if trials:
        more = partial(campaign.after, rounds, stored, watcher)
        Proposer(request, pool, db, watcher, trials, more).run()
    return database.campaign(stored.name) or stored


class Proposer:
    """Proposes the groups of a campaign until nothing is missing."""

    def __init__(
        self,
        request: Request,
        pool: WorkerPool,
        db: str,
        watcher: ClusterWatcher,
        trials: Due,
        more: Callable[[], Due] = dict,
    ) -> None:
        self._name = request.name
        self._pool = pool
        self._watcher = watcher
        self._join = Join(
            fecbench=__version__,
            database=db,
            campaign=request.name,
            retry=sorted(request.retry),
            calibrate=request.calibrate,
            stop_when_alike=request.stop_when_alike,
        )
        self._leave = Leave(database=db, campaign=request.name)
        self._most_groups = LOT_GROUPS if request.engine == "virtual" else 1
        self._open: dict[Group, dict[str, int]] = {}
        """Trials of each group that is not done, by variant."""
        self._ended: dict[Group, set[str]] = {}
        """Variants of these groups whose trials have ended."""
        self._todo: deque[Group] = deque()
        self._more = more
        self._add(trials)
        self._later: deque[tuple[float, Group]] = deque()
        self._members: dict[str, Member] = {}
        self._waits = False

    def run(self) -> None:
        """Raises EngineError when no worker takes groups, and OSError when the scheduler is gone for long."""
        try:
            while self._open or self._add(self._more()):
                try:
                    self._meet()
                    self._propose()
                    if reply := self._pool.reply(0.5):
                        self._hear(reply)
                except SchedulerGone as gone:
                    self._watcher.note(f"the scheduler is gone ({gone}): trying to reach it again")
                    self._lose_all()
                    self._pool.connect_again()
                    self._watcher.note("the scheduler is there again")
        finally:
            joined = [worker for worker, member in self._members.items() if member.state == "joined"]
            self._pool.dismiss(dict.fromkeys(joined, self._leave), LEAVE_S)

    def _add(self, trials: Due) -> bool:
        """Take up trials, whether there are any; nothing is open."""
        for key, attempts in trials.items():
            self._open.setdefault(key.group, {})[key.variant] = attempts
        self._todo = deque(self._open)
        return bool(trials)

    def _meet(self) -> None:
        """Ask newcomers, and give what those had who are gone to others."""
        there = self._pool.workers()
        for worker in there - self._members.keys():
            self._ask(worker, Member())
        for worker in self._members.keys() - there:
            member = self._members.pop(worker)
            for number in list(member.lots):
                self._pool.forget(number)
                self._take_back(member, number)
            if member.state == "joined":
                self._watcher.note(f"worker on {member.host} is gone")
        states = {member.state for member in self._members.values()}
        if states == {"refused"}:
            raise EngineError(f"no worker takes groups of campaign {self._name}")
        if not self._members and not self._waits:
            self._watcher.note("there is no worker: waiting for one")
        self._waits = not self._members

    def _ask(self, worker: str, member: Member) -> None:
        member.state = "asked"
        self._members[worker] = member
        member.lots[self._pool.propose(worker, self._join)] = []

    def _propose(self) -> None:
        self._offer_what_was_held()
        joined = {worker: each for worker, each in self._members.items() if each.state == "joined"}
        # The worker with the fewest lots is first.
        for worker, member in sorted(joined.items(), key=lambda item: len(item[1].lots)):
            while len(member.lots) < member.room and (groups := self._next_groups(member, len(joined))):
                lot = Lot(
                    database=self._join.database,
                    campaign=self._name,
                    groups=[self._proposed(group) for group in groups],
                )
                number = self._pool.propose(worker, lot)
                member.lots[number], member.since[number] = groups, time.monotonic()

    def _offer_what_was_held(self) -> None:
        while self._later and self._later[0][0] <= time.monotonic():
            _, group = self._later.popleft()
            if group in self._open:
                self._todo.append(group)

    def _next_groups(self, member: Member, workers: int) -> list[Group]:
        most = min(self._most_groups, -(-len(self._todo) // (LOTS_PER_WORKER * workers)))
        groups: list[Group] = []
        while self._todo and len(groups) < most:
            group = self._todo.popleft()
            if group in self._open:
                groups.append(group)
        return groups or ([] if member.lots else self._slow_groups())

    def _slow_groups(self) -> list[Group]:
        """Groups that another one has had for long."""
        long_ago = time.monotonic() - SLOW_S
        for other in self._members.values():
            for number, since in other.since.items():
                left = [group for group in other.lots[number] if group in self._open]
                if since < long_ago and left:
                    other.since[number] = time.monotonic()  # is not offered again at once
                    return left
        return []

    def _proposed(self, group: Group) -> GroupTrials:
        return GroupTrials(
            workload=group.workload,
            point=group.point,
            repetition=group.repetition,
            attempts=self._open[group],
        )

    def _hear(self, reply: Reply) -> None:
        member = self._members.get(reply.worker)
        if member is None:
            return
        was_asked_to_join = member.lots.get(reply.number) == []
        if reply.answer is None:
            self._take_back(member, reply.number)
            if was_asked_to_join and reply.is_lost:
                del self._members[reply.worker]  # is asked again
            elif was_asked_to_join:
                self._refuse(member, reply.worker, reply.why)
            return
        answer = reply.answer
        self._count(answer)
        self._take_back(member, reply.number, {name.group for name in answer.held})
        if answer.refused:
            self._refuse(member, answer.host, answer.refused)
        elif was_asked_to_join and answer.joined:
            member.host, member.state, member.room = answer.host, "joined", answer.room
            self._watcher.note(f"worker on {answer.host} takes part")
        elif not answer.joined and member.state != "asked":
            self._ask(reply.worker, member)

    def _refuse(self, member: Member, host: str, why: str) -> None:
        if member.state != "refused":
            self._watcher.note(f"worker on {host[:WHY_CHARACTERS]} takes no group: {why[:WHY_CHARACTERS]}")
        member.state = "refused"
        for number in list(member.lots):
            self._take_back(member, number)

    def _count(self, answer: Answer) -> None:
        """Tell what was committed of the groups that are not done yet, and which are done by that."""
        for trial in answer.trials:
            ended = self._ended.setdefault(trial.key.group, set())
            if trial.key.group in self._open and trial.variant not in ended:
                if not trial.again:
                    ended.add(trial.variant)
                judgement = Judgement(trial.state, trial.reason)
                self._watcher.ended(trial.key, judgement, trial.completion_s, trial.again)
        for name in answer.done:
            if (trials := self._open.pop(name.group, None)) is not None:
                elsewhere = trials.keys() - self._ended.pop(name.group, set())
                if elsewhere:
                    self._watcher.elsewhere(len(elsewhere))

    def _take_back(self, member: Member, number: int, held: set[Group] | None = None) -> None:
        """Take back what is left of a lot that was answered, or never will be."""
        member.since.pop(number, None)
        for group in reversed(member.lots.pop(number, [])):
            if group in self._open:
                if held is not None and group in held:
                    self._later.append((time.monotonic() + HELD_S, group))
                else:
                    self._todo.appendleft(group)

    def _lose_all(self) -> None:
        """Have all that is not done proposed anew, also what was just being proposed."""
        self._members.clear()
        self._later.clear()
        self._todo = deque(self._open)
