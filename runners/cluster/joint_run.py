"""Runs a campaign on the workers of a scheduler: asks them to take part, and looks at what the database has.

Workers claim groups and commit trials themselves, as all who share a campaign do, so that it is over when the
database says so, whatever a worker or a scheduler says.

This process may hold the database's password, so it unpickles nothing: what a scheduler or a worker sends is
unpickled in the messenger, and here come lines of JSON of bounded length.
"""

import time
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Protocol, Self

from pydantic import ValidationError

from fecbench import __version__
from fecbench.results.store.database import Database
from fecbench.results.store.postgresql_url import SCHEMES
from fecbench.results.store.records import CampaignInfo, State
from fecbench.runners.campaign import campaign
from fecbench.runners.campaign.claims import Watch, free_of_dead
from fecbench.runners.campaign.request import Request
from fecbench.runners.campaign.rounds import Due, Rounds
from fecbench.runners.cluster import address
from fecbench.runners.cluster.address import Place
from fecbench.runners.cluster.messages import NEWS, Join, News, Outcome
from fecbench.runners.cluster.messenger import Broken, Ended, Messenger, Quarters
from fecbench.runners.engines.engine import EngineError
from fecbench.runners.refusal import Refusal

PROGRAM = "from fecbench.runners.cluster.dask_side import invite; invite()"
"""The program of the messenger."""
READY_S = 60.0
"""Longest time of a messenger to connect: it loads Dask, which takes long on a busy machine."""
SILENT_S = 60.0
"""A messenger says who is there all the time. One that is silent for so long is no use."""
RECONNECT_S = 120.0
AGAIN_S = 1.0
LOOK_S = 1.0
PAUSE = 9
"""A look at the database is followed by a pause of so many times its own length, at least."""


class SchedulerGone(Exception):
    """The connection to the scheduler has ended; says why."""


class RunWatcher(Protocol):
    """Follows a campaign that others run."""

    def begun(self, campaign: str, planned: int, done: int) -> None: ...

    def more(self, trials: int, why: str) -> None: ...

    def counted(self, states: Mapping[State, int]) -> None:
        """Take the number of trials that have been run of those to be run, by state."""

    def note(self, line: str) -> None: ...


def check(request: Request, db: str) -> None:
    """Raises Refusal for a database or options that do not serve several hosts."""
    if db.partition("://")[0] not in SCHEMES:
        raise Refusal(f"--db {db}: several hosts write: must be postgresql://USER@HOST:PORT/DATABASE")
    if request.keep is not None:
        raise Refusal(f"--keep {request.keep.which}: files of trials stay on workers' hosts: leave it out")
    if request.jobs != 1:
        raise Refusal(f"--jobs {request.jobs}: is of each worker: fecbench worker --jobs {request.jobs}")


def run(
    request: Request, place: Place, database: Database, db: str, watcher: RunWatcher, program: str = PROGRAM
) -> CampaignInfo:
    """Have workers run what is missing of a campaign. `db` is how they reach the database.

    Raises EngineError when no worker takes groups, and OSError when the scheduler is gone for long.
    """
    stored = campaign.begun(request, database)
    after = (database.id_range(stored.id) or (0, 0))[1]
    rounds = Rounds(request, database)
    trials = rounds.first(stored)
    watcher.begun(stored.name, rounds.planned, rounds.planned - len(trials))
    if trials:
        join = Join(
            fecbench=__version__,
            database=db,
            campaign=request.name,
            filters=list(request.filters),
            retry=sorted(request.retry),
            after=after,
            calibrate=request.calibrate,
            stop_when_alike=request.stop_when_alike,
        )
        with Invitation(place, join, program) as invitation:
            follow = Following(invitation, database, stored, after, watcher)
            while trials:
                follow.until_run(trials)
                if trials := rounds.next(stored):
                    watcher.more(len(trials), rounds.state)
    return database.campaign(stored.name) or stored


class Following:
    """Follows a campaign in the database, and who takes part in it at the scheduler."""

    def __init__(
        self,
        invitation: "Invitation",
        database: Database,
        stored: CampaignInfo,
        after: int,
        watcher: RunWatcher,
    ) -> None:
        """The trials that are followed come `after` the one of this id."""
        self._invitation = invitation
        self._database = database
        self._campaign = stored
        self._after = after
        self._watcher = watcher
        self._watch = Watch()
        self._refused: dict[str, str] = {}
        """Reason of each worker that takes no group."""
        self._there: set[str] | None = None
        self._starts = {start.id for start in database.starts(stored.id)}
        self._due = 0

    def until_run(self, trials: Due) -> None:
        """Return when all of these have been run, and nobody holds a claim any more."""
        self._due += len(trials)
        while True:
            begun_s = time.monotonic()
            if self._look(trials):
                return
            now_s = time.monotonic()
            self._hear(now_s + max(LOOK_S, PAUSE * (now_s - begun_s)))

    def _hear(self, until: float) -> None:
        """Hear what the messenger says up to this moment."""
        try:
            while (left_s := until - time.monotonic()) > 0:
                for news in self._invitation.news(left_s):
                    self._take(news)
        except SchedulerGone as gone:
            self._watcher.note(f"the scheduler is gone ({gone}): trying to reach it again")
            self._refused.clear()
            self._invitation.connect_again()
            self._watcher.note("the scheduler is there again")

    def _take(self, news: News) -> None:
        if isinstance(news, Outcome):
            answer = news.answer
            if answer.state == "refused":
                self._watcher.note(f"worker on {answer.host} takes no group: {answer.why}")
                self._refused[news.worker] = answer.why
            elif answer.why:
                self._watcher.note(f"worker on {answer.host} has left: {answer.why}")
            return
        there = set(news.addresses)
        if self._there is None or len(there) != len(self._there):
            self._watcher.note(
                f"workers at the scheduler: {len(there)}{'' if there else ', waiting for one'}"
            )
        self._there = there
        if there and there <= self._refused.keys():
            raise EngineError(f"no worker takes groups of campaign {self._campaign.name}")

    def _look(self, trials: Due) -> bool:
        """Look at the database, and tell; whether all of these trials have been run."""
        for start in self._database.starts(self._campaign.id):
            if start.id not in self._starts:
                self._starts.add(start.id)
                self._watcher.note(f"{start.host} takes part")
        counts = self._database.states_of(self._campaign.id, after=self._after)
        self._watcher.counted(counts)
        return sum(counts.values()) >= self._due and self._are_run(trials)

    def _are_run(self, trials: Due) -> bool:
        """Whether each has been run once more than before, and nobody may run one again."""
        states = self._database.states(self._campaign.id)
        if any(key not in states or states[key][1] <= attempts for key, attempts in trials.items()):
            return False
        return not free_of_dead(self._database, self._campaign.id, self._watch)


class Invitation:
    """A request to all workers at a scheduler, made by a messenger. A context manager: at its end it is
    withdrawn.

    A messenger that does what none of ours does ends the campaign: EngineError says in one line what it did.
    """

    def __init__(self, place: Place, join: Join, program: str = PROGRAM) -> None:
        self._place = place
        self._join = join.model_dump_json()
        self._quarters = Quarters(place, program)
        self._messenger: Messenger | None = None
        self._unheard: list[News] = []
        """News that came while the messenger connected."""

    def __enter__(self) -> Self:
        self._quarters.__enter__()
        try:
            self.connect()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()
        self._quarters.__exit__(kind, error, trace)

    def connect(self) -> None:
        """Raises OSError that says in one line why nobody answers."""
        address.call(self._place)
        self._messenger = self._quarters.start(join=self._join)
        until = time.monotonic() + READY_S
        try:
            while not (news := list(self.news(until - time.monotonic()))):
                if time.monotonic() >= until:
                    self._close()
                    raise SchedulerGone(f"the messenger is not connected within {READY_S:g} s")
            self._unheard = news
        except SchedulerGone as gone:
            raise OSError(f"{self._place.address}: {gone}") from gone

    def connect_again(self) -> None:
        """Try for RECONNECT_S. Raises OSError."""
        self._close()
        until = time.monotonic() + RECONNECT_S
        while True:
            try:
                self.connect()
            except OSError:
                if time.monotonic() >= until:
                    raise
                time.sleep(AGAIN_S)
            else:
                return

    def news(self, wait_s: float) -> Iterator[News]:
        """Yield what the messenger says within that time, up to the end of one read. Raises SchedulerGone."""
        unheard, self._unheard = self._unheard, []
        yield from unheard
        messenger = self._messenger
        if messenger is None:
            raise SchedulerGone("the connection ended")
        try:
            for line in messenger.lines(wait_s):
                try:
                    yield NEWS.validate_json(line)
                except ValidationError as error:
                    raise Broken(f"said {line[:80]!r}, which is no news of a scheduler") from error
        except Ended as ended:
            self._messenger = None
            raise SchedulerGone(str(ended)) from ended
        except Broken as problem:
            self._close()
            raise EngineError(f"the messenger to {self._place.address} is broken: it {problem}") from problem
        if messenger.silent_s > SILENT_S:
            self._close()
            raise SchedulerGone(f"the messenger has been silent for {SILENT_S:g} s")

    def _close(self) -> None:
        if self._messenger is not None:
            self._messenger.close()
            self._messenger = None
