"""A worker: takes part in the campaigns that it is asked to, as any harness that goes on with one does.

It runs what the database has of the campaign: a request names nothing but the campaign. A host on which a
trial would not be the same trial takes no group, and says why.
"""

import os
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Literal, Self

from pydantic import ValidationError

from fecbench import __version__, designs
from fecbench.designs import DesignError
from fecbench.dropper.command import DropperError
from fecbench.dropper.draws import LossModelError
from fecbench.quantities import counted
from fecbench.results.store.database import Database, DatabaseError
from fecbench.results.store.postgresql_url import check_url
from fecbench.results.store.records import CampaignInfo, TrialKey
from fecbench.runners.campaign import campaign, provenance
from fecbench.runners.campaign.checks import check
from fecbench.runners.campaign.experiment import Experiment, documents_in
from fecbench.runners.campaign.first_trials import AllAlike
from fecbench.runners.campaign.order import check_filters, filtered, trial_keys
from fecbench.runners.campaign.patience import PatientDatabase
from fecbench.runners.campaign.request import Request, engine_of
from fecbench.runners.campaign.rounds import Due, Rounds
from fecbench.runners.campaign.share import Watcher
from fecbench.runners.cluster.address import Place
from fecbench.runners.cluster.messages import (
    CALLS,
    WHY_CHARACTERS,
    Answer,
    Asked,
    Connected,
    Join,
    Reply,
)
from fecbench.runners.cluster.messenger import Broken, Ended, Messenger, Quarters
from fecbench.runners.engines.admission import Jobs
from fecbench.runners.engines.engine import Engine, EngineError
from fecbench.runners.engines.programs import engine_for
from fecbench.runners.implementations.finding import Implementations
from fecbench.runners.refusal import Refusal
from fecbench.runners.sandbox.isolation import IsolationError
from fecbench.runners.trial import confinement
from fecbench.runners.trial.judge import Judgement
from fecbench.topologies.link import LinkError, TopologyError

PROGRAM = "from fecbench.runners.cluster.dask_side import work; work()"
"""The program of the messenger."""
MOST_REQUESTS = 64
"""A messenger with more at a time is none of ours."""
AGAIN_S = 2.0
"""Time between two attempts to reach a scheduler that is gone."""
LOOK_S = 1.0
UNFIT = (
    *(Refusal, DesignError, LossModelError, TopologyError),
    *(AllAlike, DropperError, EngineError, IsolationError, LinkError, OSError),
)
"""Errors after which a worker takes no group, or none any more."""


class Inbox:
    """The requests to a worker, and the messenger through which they come: kept running by a thread.

    A context manager: at its end the connection to the scheduler is closed.
    """

    def __init__(self, place: Place, host: str, tell: Callable[[str], None]) -> None:
        """`tell` is given a line when the connection comes or goes."""
        self._place, self._host, self._tell = place, host, tell
        self._quarters = Quarters(place, PROGRAM)
        self._changed = threading.Condition()
        self._messenger: Messenger | None = None
        self._open: dict[int, Join] = {}
        """Requests without an answer, of the messenger that runs."""
        self._is_withdrawn = False
        """Whether nobody waits for the campaign that was taken from here last."""
        self._current: Join | None = None
        self._over = threading.Event()

    def __enter__(self) -> Self:
        self._quarters.__enter__()
        self._keeper = threading.Thread(target=self._keep, name="messenger", daemon=True)
        self._keeper.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._keeper.join()
        self._quarters.__exit__(kind, error, trace)

    def take(self) -> Join:
        """Wait for a request, and return it."""
        with self._changed:
            self._changed.wait_for(lambda: self._open)
            self._current, self._is_withdrawn = next(iter(self._open.values())), False
            return self._current

    def is_wanted(self) -> bool:
        """Whether to go on with the campaign that was taken last.

        Without a connection it goes on, as claims need no scheduler; and ends for another campaign then.
        """
        with self._changed:
            return self._current in self._open.values() or not (self._open or self._is_withdrawn)

    def answer(self, answer: Answer) -> None:
        """Answer the request that was taken last. If its connection is gone, it will be asked again."""
        with self._changed:
            for number in [number for number, join in self._open.items() if join == self._current]:
                del self._open[number]
                assert self._messenger
                self._messenger.send(Reply(number=number, answer=answer))
            self._current = None

    def _keep(self) -> None:
        """Run one messenger after another, until the end."""
        was_told = False
        while not self._over.is_set():
            why, was_connected = self._run_one()
            if self._over.is_set():
                return
            if was_connected or not was_told:
                self._tell(f"no connection to {self._place.address}: {why}; trying again until it is there")
                was_told = True
            self._over.wait(AGAIN_S)

    def _run_one(self) -> tuple[str, bool]:
        """Run a messenger; return why it has ended, and whether it had reached the scheduler."""
        messenger = self._quarters.start(f"{self._host}-{os.getpid()}-{time.monotonic_ns()}")
        with self._changed:
            self._messenger = messenger
        was_connected = False
        try:
            while not self._over.is_set():
                for line in messenger.lines(LOOK_S):
                    was_connected |= self._hear(line)
            why = "the worker ends"
            messenger.close()
        except Ended as ended:
            why = str(ended)
        except Broken as problem:
            why = f"the messenger is broken: it {problem}"
            messenger.close()
        finally:
            with self._changed:
                self._messenger = None
                self._open.clear()
        return why, was_connected

    def _hear(self, line: bytes) -> bool:
        """Take a line of the messenger; whether it says that it is connected. Raises Broken."""
        try:
            call = CALLS.validate_json(line)
        except ValidationError as error:
            raise Broken(f"said {line[:80]!r}, which is no request") from error
        if isinstance(call, Connected):
            self._tell(f"connected to {self._place.address}")
            return True
        with self._changed:
            if isinstance(call, Asked):
                self._open[call.number] = call.join
                if len(self._open) > MOST_REQUESTS:
                    raise Broken(f"has more than {MOST_REQUESTS} requests")
                self._changed.notify_all()
            elif self._open.pop(call.number, None) == self._current:
                self._is_withdrawn = self._current not in self._open.values()
        return False


class Attended(Rounds):
    """The rounds of a campaign that somebody wants."""

    def __init__(
        self, request: Request, database: Database, after: int, is_wanted: Callable[[], bool]
    ) -> None:
        super().__init__(request, database, after=after)
        self._is_wanted = is_wanted

    def next(self, campaign: CampaignInfo) -> Due:
        return super().next(campaign) if self._is_wanted() else {}

    def goes_on(self) -> bool:
        return self._is_wanted()


class Worker:
    """The work of this host for campaigns."""

    def __init__(
        self,
        place: Place,
        jobs: Jobs,
        implementations: Implementations,
        database: str,
        lacks: Callable[[], str],
        tell: Callable[[str], None],
    ) -> None:
        """`database` is the URL of the one that it uses, whatever a proposal says; empty: the proposal's.
        `lacks` says what this machine lacks to run emulated trials; empty for nothing."""
        self._place = place
        self._jobs: Jobs = jobs
        self._implementations = implementations
        self._database = database
        self._lacks = lacks
        self._tell = tell
        self._host = provenance.host()

    def run(self) -> None:
        """Serve until a signal ends it."""
        with Inbox(self._place, self._host, self._tell) as inbox:
            while True:
                join = inbox.take()
                inbox.answer(self.take_part(join, inbox.is_wanted))

    def take_part(self, join: Join, is_wanted: Callable[[], bool]) -> Answer:
        """Run what can be claimed of a campaign until nothing is left, or until it is not wanted any more."""
        name = join.campaign
        try:
            if join.fecbench != __version__:
                raise Refusal(f"it has fecbench {__version__}, and was asked by fecbench {join.fecbench}")
            with PatientDatabase.open(self._address(join)) as database:
                database.tell = self._tell
                self._share_in(join, database, is_wanted)
        except DatabaseError as error:
            # Others may reach it, and so may this host later.
            self._tell(f"campaign {name}: left: {error}")
            return self._answered("left", error)
        except UNFIT as error:
            self._tell(f"campaign {name}: takes no group: {error}")
            return self._answered("refused", error)
        self._tell(f"campaign {name}: left{'' if is_wanted() else ', as nobody waits for it'}")
        return self._answered("done" if is_wanted() else "left")

    def _answered(self, state: Literal["done", "left", "refused"], why: object = "") -> Answer:
        return Answer(host=self._host, state=state, why=str(why)[:WHY_CHARACTERS])

    def _address(self, join: Join) -> str:
        url = self._database or join.database
        if "://" not in url:
            raise Refusal(f"{url}: is no server of PostgreSQL")
        check_url(url)
        return url

    def _share_in(self, join: Join, database: Database, is_wanted: Callable[[], bool]) -> None:
        stored = database.campaign(join.campaign)
        if stored is None:
            raise Refusal(f"{database.address}: has no campaign {join.campaign!r}")
        request = self._request(join, stored)
        plan = Attended(request, database, join.after, is_wanted)
        campaign.run(request, self._engine(request), database, _Notes(self._tell), plan)

    def _request(self, join: Join, stored: CampaignInfo) -> Request:
        """The campaign as it is stored, to be run here. Raises Refusal where it cannot be."""
        carrier = stored.provenance["link"]
        engine = engine_of(carrier)
        if engine == "local" and (lack := self._lacks()):
            raise Refusal(lack)
        experiment = _experiment(stored, self._implementations)
        check(experiment, engine, carrier, beside_virtual=stored.checked is not None)
        check_filters(experiment.design, join.filters)
        return Request(
            experiment=experiment,
            keys=filtered(trial_keys(experiment.design, len(experiment.points)), join.filters),
            filters=tuple(join.filters),
            name=stored.name,
            backend=carrier,
            jobs=self._jobs,
            resume=True,
            retry=frozenset(join.retry),
            calibrate=join.calibrate,
            stop_when_alike=join.stop_when_alike,
        )

    def _engine(self, request: Request) -> Engine:
        if request.engine == "virtual" and (why := confinement.why_simulators_are_free()):
            self._tell(why)
        return engine_for(request.engine, request.experiment.implementations, request.jobs)


class _Notes(Watcher):
    """Tells when a worker begins; the database has the rest."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell

    def begun(self, campaign: str, planned: int, done: int) -> None:
        self._tell(
            f"campaign {campaign}: takes part: {planned - done:,} of {counted(planned, 'trial')} to run"
        )

    def ended(self, key: TrialKey, judgement: Judgement, completion_s: float, again: bool) -> None:
        pass

    def more(self, trials: int, why: str) -> None:
        pass

    def elsewhere(self, trials: int) -> None:
        pass

    def waiting(self, trials: int) -> None:
        pass

    def dropped(self, key: TrialKey, why: str) -> None:
        pass


def _experiment(stored: CampaignInfo, implementations: Implementations) -> Experiment:
    design = designs.parse(stored.design_text, f"campaign {stored.name}")
    return Experiment(design, stored.points, implementations, documents_in(stored.provenance))
