"""The share of a campaign that a worker runs: the groups that are proposed to it, if it can claim them."""

import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Self

from fecbench.results.store.database import Database
from fecbench.results.store.records import Group, Start, TrialKey
from fecbench.runners.campaign.claims import Claims
from fecbench.runners.campaign.request import Request
from fecbench.runners.campaign.share import Share, Watcher
from fecbench.runners.cluster.inbox import Asked, Inbox
from fecbench.runners.cluster.messages import Answer, Join, Leave, Lot, RunTrial, name_of
from fecbench.runners.engines.engine import Engine
from fecbench.runners.tasks.task import Task
from fecbench.runners.trial.judge import Judgement

IDLE_S = 60.0
"""Time without a proposal after which a run has gone."""
LINGER_S = 0.05
"""Time after which all of several proposals that come at once are there."""


class Told(Watcher):
    """Keeps what was committed, for the answers."""

    def __init__(self) -> None:
        self._of_groups: defaultdict[Group, list[RunTrial]] = defaultdict(list)

    def take(self, group: Group) -> list[RunTrial]:
        return self._of_groups.pop(group, [])

    def ended(self, key: TrialKey, judgement: Judgement, completion_s: float, again: bool) -> None:
        self._of_groups[key.group].append(
            RunTrial(
                variant=key.variant,
                workload=key.workload,
                point=key.point,
                repetition=key.repetition,
                state=judgement.state,
                reason=judgement.reason,
                completion_s=completion_s,
                again=again,
            )
        )

    def begun(self, campaign: str, planned: int, done: int) -> None:
        pass

    def more(self, trials: int, why: str) -> None:
        pass

    def elsewhere(self, trials: int) -> None:
        pass

    def waiting(self, trials: int) -> None:
        pass

    def dropped(self, key: TrialKey, why: str) -> None:
        pass


@dataclass
class OpenLot:
    """A lot that is not answered yet."""

    asked: Asked
    groups: dict[Group, list[TrialKey]]
    """Groups without those of other open lots."""
    held: dict[Group, list[TrialKey]] = field(default_factory=dict)
    """Groups of the lot that others have claimed."""
    attached: list[Group] = field(default_factory=list)
    """Groups that another open lot has, too."""
    is_handed_out: bool = False


class ProposedShare(Share):
    """Runs what is proposed until it is told to leave, or until nothing is proposed any more."""

    def __init__(
        self,
        request: Request,
        engine: Engine,
        database: Database,
        start: Start,
        inbox: Inbox,
        joined: Answer,
        join: Join,
    ) -> None:
        """`joined` answers whoever asks to join once more as in `join`."""
        self._told = Told()
        super().__init__(request, engine, database, start, self._told)
        self._inbox = inbox
        self._joined = joined
        self._join = join
        self._lots: list[OpenLot] = []
        self._is_over = False

    def serve(self) -> None:
        """Raises what the engine and the database raise; lots that were not answered are given back then."""
        with Claims(self._database, self._start) as claims, self._engine, self._settling(claims):
            while self._wait():
                for finished in self._engine.run(_Stream(self, claims)):
                    self._judge(claims, finished)
                    self._answer()
                self._settle(claims)
                self._answer()

    def give_back(self, refused: str = "") -> None:
        """Answer all open lots: what is left is to be proposed again, to others if this host refuses."""
        for lot in self._lots:
            left = {group for group in lot.groups if group in lot.held or not self._is_done(lot, group)}
            self._close(lot, left, refused)
        self._lots.clear()

    def next_tasks(self, claims: Claims) -> Iterator[tuple[TrialKey, Task]] | None:
        """The tasks of the next lot that has been proposed; None when there is none now."""
        while not self._is_over and (asked := self._inbox.get()):
            if lot := self._opened(asked):
                return self._tasks_of_lot(claims, lot)
        return None

    def _wait(self) -> bool:
        """Wait for a proposal; False when the campaign is over."""
        until = time.monotonic() + IDLE_S
        while not self._is_over:
            asked = self._inbox.get(max(0.01, until - time.monotonic()))
            if asked is None:
                return False
            if isinstance(asked.proposal, Lot) and self._is_of_it(asked.proposal):
                self._inbox.put_back(asked)
                time.sleep(LINGER_S)
                return True
            self._opened(asked)
        return False

    def _opened(self, asked: Asked) -> OpenLot | None:
        """The lot of a proposal; what is none is answered, or left for another campaign."""
        match asked.proposal:
            case Lot(groups=proposed) as proposal if self._is_of_it(proposal):
                lot = OpenLot(asked, {})
                taken = {group for other in self._lots for group in other.groups}
                for group in proposed:
                    if group.group in taken:
                        lot.attached.append(group.group)
                    else:
                        lot.groups[group.group] = list(group.due)
                        self._before |= group.due
                self._lots.append(lot)
                return lot
            case Join() as join if join == self._join:
                self._inbox.answer(asked, self._joined)
            case Leave() as other if not self._is_of_it(other):
                self._inbox.answer(asked, Answer(host=self._joined.host))
            case _:
                self._inbox.put_back(asked)
                self._is_over = True
        return None

    def _is_of_it(self, proposal: Lot | Leave) -> bool:
        """Whether it is of this campaign: another database may have one of the same name."""
        return (proposal.database, proposal.campaign) == (self._join.database, self._join.campaign)

    def _tasks_of_lot(self, claims: Claims, lot: OpenLot) -> Iterator[tuple[TrialKey, Task]]:
        yield from self._tasks(claims, lot.groups, lot.held)
        lot.is_handed_out = True

    def _answer(self) -> None:
        """Answer each lot of which nothing runs any more."""
        if whole := [lot for lot in self._lots if lot.is_handed_out and self._has_ended(lot)]:
            for lot in whole:
                self._close(lot, set(lot.held))
            self._lots = [lot for lot in self._lots if lot not in whole]

    def _has_ended(self, lot: OpenLot) -> bool:
        return not any(self._unfinished.get(group) for group in lot.groups)

    def _is_done(self, lot: OpenLot, group: Group) -> bool:
        return lot.is_handed_out and not self._unfinished.get(group)

    def _close(self, lot: OpenLot, held: set[Group], refused: str = "") -> None:
        answer = Answer(
            host=self._joined.host,
            refused=refused,
            joined=True,
            room=self._joined.room,
            done=[name_of(group) for group in lot.groups if group not in held],
            held=[name_of(group) for group in (*held, *lot.attached)],
            trials=[trial for group in lot.groups for trial in self._told.take(group)],
        )
        for key in (key for keys in lot.groups.values() for key in keys):
            self._before.pop(key, None)
        self._inbox.answer(lot.asked, answer)


class _Stream:
    """The tasks of lots as they are proposed: it has none now and then, and may have some later."""

    def __init__(self, share: ProposedShare, claims: Claims) -> None:
        self._share = share
        self._claims = claims
        self._tasks: Iterator[tuple[TrialKey, Task]] | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> tuple[TrialKey, Task]:
        while True:
            if self._tasks is None:
                self._tasks = self._share.next_tasks(self._claims)
                if self._tasks is None:
                    raise StopIteration
            upcoming = next(self._tasks, None)
            if upcoming is not None:
                return upcoming
            self._tasks = None
