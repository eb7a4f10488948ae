"""Hunts on this machine, in virtual time, or beside it emulated: with so many trials, or for so long."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from fecbench.quantities import counted
from fecbench.results.store.database import Database
from fecbench.runners.campaign import provenance
from fecbench.runners.campaign.request import request
from fecbench.runners.commands.console.running import run_here
from fecbench.runners.commands.console.terminal import note
from fecbench.runners.engines.admission import Jobs
from fecbench.runners.hunt import engine_hunt
from fecbench.runners.hunt.both_engines import BothEngines
from fecbench.runners.hunt.budget import Budget, budget, fewest_trials
from fecbench.runners.hunt.campaign_laboratory import Campaigns
from fecbench.runners.hunt.engine_hunt import hunt_engines, screen
from fecbench.runners.hunt.engine_question import EngineQuestion
from fecbench.runners.hunt.hunt import Answer
from fecbench.runners.hunt.hunt import hunt as carry_out
from fecbench.runners.hunt.hunt_question import Question
from fecbench.runners.hunt.lookout import TimeIsOver
from fecbench.runners.implementations.engine_name import EngineName
from fecbench.runners.implementations.finding import Implementations
from fecbench.runners.sandbox import isolation
from fecbench.runners.tasks.task import VIRTUAL, Carrier

GROWTH = 2
"""Growth of a hunt with --minutes: its trials are those of the smallest one times a power of this."""
SHORT_S = 0.1
"""Trials that took no longer together tell no more than that."""
SHARE_EMULATED = 0.5
"""Share of the time for which emulated trials are planned: networks that are looked at again last longer than
most, and on a busy machine trials are invalid and run again."""
AROUND_TRIAL_S = 0.6
"""An emulated trial takes so much longer than the transfer in it, about."""
SHARE_OF_TIME = 0.7
"""Share of what is left for which a hunt is planned: it takes longer than its trials."""


@dataclass(frozen=True)
class Hunter:
    """A question that is hunted on this machine, in virtual time."""

    question: Question
    implementations: Implementations
    jobs: Jobs
    calibrate: bool

    def within(self, database: Database, allowed: Budget, ends_at: float = math.inf) -> tuple[Answer, float]:
        """Return the answer of a hunt with so many trials, and for how many seconds they ran.

        `ends_at`: when it has to end, by the monotonic clock.
        """
        whole = request(self.question.design, self.implementations, backend=VIRTUAL)
        hashes = provenance.binaries(whole.experiment.implementations.values(), "virtual")
        programs = [f"{program} {digest}" for program, digest in sorted(hashes.items())]
        laboratory = Campaigns(
            self.question,
            self.question.name(allowed.trials, *programs),
            database,
            self.implementations,
            lambda wanted, plan: run_here(wanted, database, plan),
            self.jobs,
            calibrate=self.calibrate,
            goes_on=lambda: time.monotonic() < ends_at,
        )
        return carry_out(self.question, allowed, laboratory, note), laboratory.ran_s

    def for_so_long(self, database: Database, limit_s: float) -> Answer:
        """Hunt with few trials, then with as many as will fit into what is left of so many seconds.

        How many fit is found from how long trials took when they were run, so that the same command goes on
        with the same hunt.
        """
        ends_at = time.monotonic() + limit_s
        trials = first = fewest_trials(self.question.repetitions)
        answer, ran_s = self.within(database, budget(first, self.question.repetitions), ends_at)
        left_s = SHARE_OF_TIME * limit_s - ran_s
        if answer.verdict == "no answer" or ran_s * GROWTH > left_s:
            return answer
        trials *= GROWTH ** int(math.log(left_s / max(ran_s, SHORT_S), GROWTH))
        note(f"{counted(trials, 'trial')} fit into the time")
        more, _ = self.within(database, budget(trials, self.question.repetitions), ends_at)
        return answer if more.verdict == "no answer" else more


@dataclass(frozen=True)
class EngineHunter:
    """A question about both engines that is hunted on this machine."""

    question: EngineQuestion
    implementations: Implementations
    link: Carrier
    jobs: Jobs
    """Jobs of trials in virtual time; "auto" emulates one at a time."""
    calibrate: bool

    def check(self) -> None:
        """Raises Refusal where one of the two engines cannot carry the design out here."""
        request(self.question.design, self.implementations, backend=VIRTUAL)
        isolation.require("fecbench hunt --engines")
        request(self.question.design, self.implementations, backend=self.link, beside_virtual=True)

    def within(self, database: Database, trials: int) -> Answer:
        """Return the answer of a hunt with so many emulated trials."""
        laboratory = self._laboratory(database, self._name(trials))
        return hunt_engines(
            *(self.question, trials, screen(self.question, trials, laboratory, note), laboratory, note)
        )

    def for_so_long(self, database: Database, limit_s: float) -> Answer:
        """Hunt with as many emulated trials as fit into so many seconds, by how long they last in virtual
        time.

        So the same command goes on with the same hunt.
        """
        ends_at = time.monotonic() + limit_s
        laboratory = self._laboratory(
            database, self._name(int(limit_s), "seconds"), lambda: time.monotonic() < ends_at
        )
        try:
            screened = screen(self.question, int(limit_s), laboratory, note)
        except TimeIsOver:
            return Answer(self.question, 0, None, False, 0, [], [])
        trials = int(SHARE_EMULATED * limit_s / (screened.mean_s + AROUND_TRIAL_S))
        trials = max(trials, engine_hunt.fewest_trials())
        note(f"{trials} emulated trials fit into the time")
        return hunt_engines(self.question, trials, screened, laboratory, note)

    def _name(self, number: int, *unit: str) -> str:
        programs = [
            f"{engine} {program} {digest}"
            for engine in ("virtual", "local")
            for program, digest in sorted(self._hashes(engine).items())
        ]
        return self.question.name(number, *unit, *programs)

    def _hashes(self, engine: EngineName) -> dict[str, str | None]:
        whole = request(self.question.design, self.implementations, backend=VIRTUAL)
        return dict(provenance.binaries(whole.experiment.implementations.values(), engine))

    def _laboratory(
        self, database: Database, name: str, goes_on: Callable[[], bool] = lambda: True
    ) -> BothEngines:
        return BothEngines(
            self.question,
            name,
            database,
            self.implementations,
            lambda wanted, plan: run_here(wanted, database, plan),
            link=self.link,
            virtual_jobs=self.jobs,
            jobs=1 if self.jobs == "auto" else self.jobs,
            calibrate=self.calibrate,
            goes_on=goes_on,
        )
