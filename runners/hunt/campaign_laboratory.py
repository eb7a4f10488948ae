"""The laboratory of campaigns: each look is a campaign for each workload, or several where networks are many.

Its design is the hunt's with these networks as its list of points, so that anybody can run it again.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Sequence
from typing import Any

from fecbench import designs
from fecbench.designs import Design, Value
from fecbench.designs.placement import MOST_POINTS
from fecbench.results import metrics
from fecbench.results.analysis import frames
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo
from fecbench.runners.campaign.campaign import Plan
from fecbench.runners.campaign.request import Request, request
from fecbench.runners.campaign.rounds import Rounds
from fecbench.runners.engines.admission import Jobs
from fecbench.runners.hunt.hunt_question import Question
from fecbench.runners.hunt.lookout import Look, TimeIsOver
from fecbench.runners.hunt.measured import Measured, Part
from fecbench.runners.hunt.space import Network
from fecbench.runners.implementations.finding import Implementations
from fecbench.runners.tasks.task import VIRTUAL


class Campaigns:
    """Runs looks as campaigns in virtual time (`lookout.Laboratory`)."""

    def __init__(
        self,
        question: Question,
        name: str,
        database: Database,
        implementations: Implementations,
        run: Callable[[Request, Plan], CampaignInfo],
        jobs: Jobs = "auto",
        *,
        calibrate: bool = True,
        goes_on: Callable[[], bool] = lambda: True,
    ) -> None:
        """`run`: runs what a plan says of a campaign into the database; `goes_on`: whether another trial may
        begin."""
        self._question = question
        self._name = name
        self._database = database
        self._implementations = implementations
        self._run = run
        self._jobs = jobs
        self._calibrate = calibrate
        self._goes_on = goes_on
        self.ran_s = 0.0
        """Time for which trials ran on this machine, now or before, as many at a time as there are jobs."""
        self._at_once = len(os.sched_getaffinity(0)) if jobs == "auto" else jobs

    def __call__(self, look: Look) -> Measured:
        parts = []
        for workload in self._question.space.workloads:
            places = [place for place, network in enumerate(look.networks) if network.workload == workload]
            for first in range(0, len(places), MOST_POINTS):
                parts.append(self._part(look, workload, places[first : first + MOST_POINTS], first))
        return Measured(self._question, len(look.networks), parts)

    def _part(self, look: Look, workload: str, places: Sequence[int], first: int) -> Part:
        """Run these networks of a look; before them are `first` others of the workload."""
        networks = [look.networks[place] for place in places]
        names: list[str | int] = [look.name, workload, *([first] if first else [])]
        seed = self._question.seed("look", look.number, *names)
        tables = {"seed": seed, "repetitions": look.repetitions, **_with_noise(self._question.design, look)}
        wanted = request(
            of_networks(self._question.design, networks, [workload], **tables),
            self._implementations,
            name="-".join([self._name, f"{look.number:02}", *map(str, names)]),
            backend=VIRTUAL,
            jobs=self._jobs,
            calibrate=self._calibrate and look.number == 0,
            part_of_checked=True,
        )
        if not self._goes_on():
            raise TimeIsOver
        campaign = self._run(wanted, _Until(wanted, self._database, self._goes_on))
        trials = frames.trials(self._database, campaign, set(metrics.of_workloads(campaign).values()))
        if len(trials) < len(wanted.keys):
            raise TimeIsOver
        self.ran_s += float(trials["duration_s"].sum()) / self._at_once
        return Part(campaign, trials, places)


class _Until(Rounds):
    """Rounds of all missing trials, while it goes on."""

    def __init__(self, wanted: Request, database: Database, goes_on: Callable[[], bool]) -> None:
        super().__init__(wanted, database)
        self._goes_on = goes_on

    def goes_on(self) -> bool:
        return self._goes_on()


def of_networks(
    design: Design, networks: Sequence[Network], workloads: Sequence[str], **tables: Any
) -> Design:
    """The design with these networks as its points and these of its workloads, by label."""
    return designs.rewritten(
        design,
        plan={"method": "list", "points": points_of(design, networks)},
        workloads=[_table(design, label) for label in workloads],
        **tables,
    )


def _with_noise(design: Design, look: Look) -> dict[str, Any]:
    """Return the constants of the design with the noise of the look; nothing where it has none."""
    if not look.noise_ms:
        return {}
    return {"constants": {**tomllib.loads(design.text).get("constants", {}), "jitter_ms": look.noise_ms}}


def points_of(design: Design, networks: Sequence[Network]) -> list[dict[str, Value]]:
    """The different points that networks lie at, by the design's factors, in their order."""
    of_networks = (point_of(design, network) for network in networks)
    return [dict(point) for point in dict.fromkeys(tuple(point.items()) for point in of_networks)]


def point_of(design: Design, network: Network) -> dict[str, Value]:
    """The values of the design's factors: a space may have more axes than these."""
    return {name: value for name, value in network.values if name in design.factors}


def _table(design: Design, label: str) -> dict[str, Any]:
    workload = next(workload for workload in design.workloads if workload.label == label)
    parameters = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in workload.parameters.items()
    }
    return {"name": workload.name, **parameters}
