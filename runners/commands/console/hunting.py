"""Hunts on this machine, in virtual time: with so many trials, or for so long."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path

from fecbench.results.store.database import Database
from fecbench.runners.campaign import provenance
from fecbench.runners.campaign.request import request
from fecbench.runners.commands.console.running import run_here
from fecbench.runners.commands.console.terminal import note
from fecbench.runners.engines.admission import Jobs
from fecbench.runners.hunt.budget import Budget, budget, fewest_trials
from fecbench.runners.hunt.hunt import Answer
from fecbench.runners.hunt.hunt import hunt as carry_out
from fecbench.runners.hunt.laboratory import Campaigns
from fecbench.runners.hunt.question import Question
from fecbench.runners.implementations.finding import Implementations
from fecbench.runners.tasks.task import VIRTUAL

SPACE = Path("hunt-fec")
"""The design that is searched where none is named."""
GROWTH = 2
"""With --minutes, the trials of a hunt are those of the smallest one times a power of this."""
SHORT_S = 0.1
"""Trials that took no longer together tell no more than that."""
SHARE_OF_TIME = 0.7
"""Of what is left, for which a hunt is planned: it takes longer than its trials."""


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
        note(f"{trials} trials fit into the time")
        more, _ = self.within(database, budget(trials, self.question.repetitions), ends_at)
        return answer if more.verdict == "no answer" else more
