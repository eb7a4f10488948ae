"""A worker: takes part in the campaigns that it is asked to, and runs what it can claim of the groups that
are proposed to it.

It is nearly a harness that goes on with a campaign. It runs what the database has of the campaign: a
proposal only names groups. A host on which a trial would not be the same trial takes none, and says why.
"""

import itertools
import os
from collections.abc import Callable, Iterator

from fecbench import __version__, designs
from fecbench.designs import DesignError
from fecbench.dropper.command import DropperError
from fecbench.dropper.draws import LossModelError
from fecbench.results.store.database import Database, DatabaseError
from fecbench.results.store.postgresql_url import check_url
from fecbench.results.store.records import CampaignInfo, Start, TrialKey
from fecbench.runners.campaign import campaign, claims, provenance
from fecbench.runners.campaign.checks import check
from fecbench.runners.campaign.experiment import Experiment, documents_in
from fecbench.runners.campaign.first_trials import AllAlike
from fecbench.runners.campaign.request import Request, engine_of
from fecbench.runners.cluster.address import Place
from fecbench.runners.cluster.inbox import Asked, Inbox
from fecbench.runners.cluster.messages import Answer, Join
from fecbench.runners.cluster.patience import PatientDatabase
from fecbench.runners.cluster.proposed_share import ProposedShare
from fecbench.runners.engines.admission import Jobs
from fecbench.runners.engines.engine import Engine, EngineError
from fecbench.runners.engines.programs import engine_for
from fecbench.runners.implementations.finding import Implementations
from fecbench.runners.refusal import Refusal
from fecbench.runners.sandbox.isolation import IsolationError
from fecbench.runners.trial import confinement
from fecbench.topologies.link import LinkError, TopologyError

ROOM, MOST_ROOM = 2, 48
"""Lots at a time: one that runs and one that is ready; and the most of them."""
GROUPS_PER_CORE = 2
"""Emulated groups at a time with --jobs auto, which has up to TRIALS_PER_CORE trials on each core."""
UNFIT = (
    *(Refusal, DesignError, LossModelError, TopologyError),
    *(AllAlike, DropperError, EngineError, IsolationError, LinkError, OSError),
)
"""Errors after which a worker takes no group, or none any more."""


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
                asked = inbox.get(None)
                assert asked is not None
                if isinstance(asked.proposal, Join):
                    self._take_part(inbox, asked, asked.proposal)
                else:
                    inbox.answer(asked, Answer(host=self._host))

    def _take_part(self, inbox: Inbox, asked: Asked, join: Join) -> None:
        try:
            if join.fecbench != __version__:
                raise Refusal(f"it has fecbench {__version__}, and was asked by fecbench {join.fecbench}")
            with PatientDatabase.open(self._address(join)) as database:
                database.tell = self._tell
                self._share_in(inbox, asked, join, database)
        except DatabaseError as error:
            # Others may reach it, and so may this host later.
            self._tell(f"campaign {join.campaign}: not taken part in: {error}")
            inbox.answer(asked, Answer(host=self._host, refused=str(error)))
        except UNFIT as error:
            self._tell(f"campaign {join.campaign}: takes no group: {error}")
            inbox.answer(asked, Answer(host=self._host, refused=str(error)))

    def _address(self, join: Join) -> str:
        url = self._database or join.database
        if "://" not in url:
            raise Refusal(f"{url}: is no server of PostgreSQL")
        check_url(url)
        return url

    def _share_in(self, inbox: Inbox, asked: Asked, join: Join, database: Database) -> None:
        stored = database.campaign(join.campaign)
        if stored is None:
            raise Refusal(f"{database.address}: has no campaign {join.campaign!r}")
        request = self._request(join, stored)
        with claims.present() as holder:
            start = campaign.started(request, database, stored, _samples(request.experiment), holder)
            self._serve(inbox, asked, join, database, request, start)

    def _serve(
        self,
        inbox: Inbox,
        asked: Asked,
        join: Join,
        database: Database,
        request: Request,
        start: Start,
    ) -> None:
        """Run what is proposed of a campaign that this host takes part in."""
        name = request.name
        answer = Answer(host=self._host, joined=True, room=self._room(request))

        share = ProposedShare(request, self._engine(request), database, start, inbox, answer, join)
        self._tell(f"campaign {name}: takes part as start {start.id}")
        inbox.answer(asked, answer)
        try:
            share.serve()
        except DatabaseError as error:
            self._tell(f"campaign {name}: left: {error}")
            share.give_back()
        except UNFIT as error:
            self._tell(f"campaign {name}: takes no group any more: {error}")
            share.give_back(refused=str(error))
        else:
            self._tell(f"campaign {name}: left")
            share.give_back()

    def _request(self, join: Join, stored: CampaignInfo) -> Request:
        """The campaign as it is stored, to be run here. Raises Refusal where it cannot be."""
        carrier = stored.provenance["link"]
        engine = engine_of(carrier)
        if engine == "local" and (lack := self._lacks()):
            raise Refusal(lack)
        experiment = _experiment(stored, self._implementations)
        check(experiment, engine, carrier, beside_virtual=stored.checked is not None)
        return Request(
            experiment=experiment,
            keys=[],
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

    def _room(self, request: Request) -> int:
        """Return the number of lots that it likes to have: of emulated trials, several may be at work."""
        if request.engine == "virtual":
            return ROOM
        at_once = GROUPS_PER_CORE * len(os.sched_getaffinity(0)) if request.jobs == "auto" else request.jobs
        return min(MOST_ROOM, 1 + at_once)


def _experiment(stored: CampaignInfo, implementations: Implementations) -> Experiment:
    design = designs.parse(stored.design_text, f"campaign {stored.name}")
    return Experiment(design, stored.points, implementations, documents_in(stored.provenance))


def _samples(experiment: Experiment) -> Iterator[TrialKey]:
    """Trials of every variant, for the self-check: those of the first and the last point."""
    points = dict.fromkeys((0, len(experiment.points) - 1))
    for point, workload, variant in itertools.product(points, experiment.activities, experiment.arms):
        yield TrialKey(variant, workload, point, 0)
