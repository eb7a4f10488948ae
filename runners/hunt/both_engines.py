"""The laboratory of both engines: each look is a campaign in virtual time, and its crosscheck by emulation.

So `fecbench show` and `report` tell of each look how the two agree, as of every crosscheck.
"""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fecbench.designs import Design
from fecbench.results import metrics
from fecbench.results.analysis.twins import Twins
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, StoredTrial, TrialKey
from fecbench.runners.campaign.campaign import Plan
from fecbench.runners.campaign.crosscheck import SUFFIX
from fecbench.runners.campaign.processors import PREFIX
from fecbench.runners.campaign.request import Request, Sample, request
from fecbench.runners.campaign.rounds import Due, Rounds
from fecbench.runners.engines.admission import Jobs
from fecbench.runners.hunt.campaign_laboratory import of_networks, point_of, points_of
from fecbench.runners.hunt.disagreement import Disagreements, pairs_of, row
from fecbench.runners.hunt.engine_question import LONGEST_S, EngineQuestion
from fecbench.runners.hunt.lookout import Look, TimeIsOver
from fecbench.runners.hunt.measured import Floats
from fecbench.runners.hunt.space import Network
from fecbench.runners.implementations.finding import Implementations
from fecbench.runners.refusal import Refusal
from fecbench.runners.tasks.task import VIRTUAL, Carrier

Dose = Mapping[str, float]
"""Time of processors, by the names of constants."""


@dataclass(frozen=True)
class Screened:
    """A trial of each network in virtual time; arrays by its place, NaN for a trial without a result."""

    values: Floats
    """Metric of its workload, infinite for a timeout."""
    lasted_s: Floats
    round_trips_s: Floats


@dataclass
class BothEngines:
    """Runs looks in virtual time and emulated (`engine_hunt.Laboratory`)."""

    question: EngineQuestion
    name: str
    database: Database
    implementations: Implementations
    run: Callable[[Request, Plan], CampaignInfo]
    """Runs what a plan says of a campaign into the database."""
    link: Carrier = "auto"
    virtual_jobs: Jobs = "auto"
    jobs: Jobs = 1
    """Emulated trials at a time."""
    calibrate: bool = True
    goes_on: Callable[[], bool] = lambda: True
    """Whether another trial may begin."""

    def screen(self, number: int, networks: Sequence[Network], dose: Dose) -> Screened:
        """Run each network once in virtual time, with so much more time of a processor for endpoints."""
        design = self._design(networks, "screen", 1, dose)
        wanted = self._only(networks, self._request(design, f"{number}-screen", VIRTUAL))
        campaign = self._carried_out(wanted)
        values, lasted_s, round_trips_s = (np.full(len(networks), np.nan) for _ in range(3))
        for place, stored in self._placed(campaign, design, networks):
            round_trips_s[place] = Twins(stored.record, stored.record).round_trip_s
            if stored.record.state == "timeout":
                values[place] = np.inf
            elif stored.record.state == "ok":
                name = metrics.of_workloads(campaign)[stored.record.key.workload]
                values[place] = _metric(stored, name)
                lasted_s[place] = _metric(stored, metrics.DEFAULT)
        return Screened(values, lasted_s, round_trips_s)

    def __call__(self, look: Look) -> Disagreements:
        design = self._design(look.networks, look.name, look.repetitions, {}, look.number)
        of_look = f"{look.number:02}-{look.name}"
        virtual = self._only(look.networks, self._request(design, of_look, VIRTUAL))
        checked = self._carried_out(virtual)
        runs = list(self._placed(checked, design, look.networks))
        short = {stored.record.key for _, stored in runs if not _is_long(stored)}
        emulation = self._request(design, of_look, self.link, calibrate=self.calibrate and look.number == 0)
        keys = [key for key in emulation.keys if key in short]
        if not keys:
            return Disagreements(len(look.networks), pairs_of([]), 0)
        sample = self._carried_out(
            dataclasses.replace(
                emulation,
                name=virtual.name + SUFFIX,
                keys=keys,
                crosscheck=Sample(virtual.name, 1.0, len(keys)),
            )
        )
        twins = {stored.record.key: stored for stored in self.database.trials(sample.id)}
        if look.number == 0:
            self._check_some_end(list(twins.values()))
        of_workloads = metrics.of_workloads(checked)
        rows = [
            (place, *compared)
            for place, stored in runs
            if (emulated := twins.get(stored.record.key)) is not None
            and (
                compared := row(
                    Twins(stored.record, emulated.record),
                    of_workloads[stored.record.key.workload],
                    (stored.id, emulated.id),
                )
            )
        ]
        return Disagreements(len(look.networks), pairs_of(rows), len(keys))

    def _check_some_end(self, emulated: Sequence[StoredTrial]) -> None:
        """Raises Refusal where all emulated trials failed: that is no matter of networks."""
        if all(stored.record.state in ("failed", "unsupported") for stored in emulated):
            first = emulated[0].record
            raise Refusal(
                f"{self.question.design.path}: all of the first {len(emulated)} emulated trials failed, so"
                f" nothing can be compared: {first.key}: {first.reason}"
            )

    def _design(
        self, networks: Sequence[Network], look: str, repetitions: int, dose: Dose, number: int = 0
    ) -> Design:
        design = self.question.design
        workloads = [
            label
            for label in self.question.space.workloads
            if any(network.workload == label for network in networks)
        ]
        return of_networks(
            design,
            networks,
            workloads,
            seed=self.question.seed("look", number, look),
            repetitions=repetitions,
            **({"constants": _with_dose(design, dose)} if dose else {}),
        )

    def _request(self, design: Design, of_look: str, backend: Carrier, *, calibrate: bool = False) -> Request:
        return request(
            design,
            self.implementations,
            name=f"{self.name}-{of_look}",
            backend=backend,
            jobs=self.virtual_jobs if backend == VIRTUAL else self.jobs,
            calibrate=calibrate,
            beside_virtual=True,
            part_of_checked=True,
        )

    def _only(self, networks: Sequence[Network], wanted: Request) -> Request:
        """The trials of these networks alone, of all workloads and variants at their points."""
        chosen = set(self._places(wanted.design, networks))
        keys = [key for key in wanted.keys if (key.variant, key.workload, key.point) in chosen]
        return dataclasses.replace(wanted, keys=keys)

    def _places(self, design: Design, networks: Sequence[Network]) -> dict[tuple[str, str, int], int]:
        """The place of each network, by its variant, its workload and its point."""
        points = [tuple(point.items()) for point in points_of(design, networks)]
        indices = {point: index for index, point in enumerate(points)}
        return {
            (
                self.question.variant(network),
                network.workload,
                indices[tuple(point_of(design, network).items())],
            ): place
            for place, network in enumerate(networks)
        }

    def _placed(
        self, campaign: CampaignInfo, design: Design, networks: Sequence[Network]
    ) -> list[tuple[int, StoredTrial]]:
        """The trials of a look, each with the place of its network."""
        places = self._places(design, networks)
        stored = self.database.trials(campaign.id)
        return [(places[_of_network(each.record.key)], each) for each in stored]

    def _carried_out(self, wanted: Request) -> CampaignInfo:
        """The campaign, with all of its trials. Raises TimeIsOver."""
        if not self.goes_on():
            raise TimeIsOver
        campaign = self.run(wanted, _Missing(wanted, self.database, self.goes_on))
        if set(wanted.keys) - self.database.states(campaign.id).keys():
            raise TimeIsOver
        return campaign


def _with_dose(design: Design, dose: Dose) -> dict[str, Any]:
    """The constants of a design's file, with so much more time of processors than it has."""
    constants = tomllib.loads(design.text).get("constants", {})
    own = {
        name.removeprefix(PREFIX): float(str(design.constants.get(name, 0))) + more
        for name, more in dose.items()
    }
    given = {name: value for name, value in constants.items() if name not in dose}
    return {**given, PREFIX[:-1]: {**given.get(PREFIX[:-1], {}), **own}}


class _Missing(Rounds):
    """All trials that never had a result, while it goes on. An invalid one is not run again by a later start:
    whatever was looked at after it rests on that it was left out."""

    def __init__(self, wanted: Request, database: Database, goes_on: Callable[[], bool]) -> None:
        super().__init__(wanted, database)
        self._goes_on = goes_on

    def goes_on(self) -> bool:
        return self._goes_on()

    def first(self, campaign: CampaignInfo | None) -> Due:
        return {key: attempts for key, attempts in super().first(campaign).items() if not attempts}


def _of_network(key: TrialKey) -> tuple[str, str, int]:
    return key.variant, key.workload, key.point


def _is_long(stored: StoredTrial) -> bool:
    return stored.record.state == "timeout" or _metric(stored, metrics.DEFAULT) > LONGEST_S


def _metric(stored: StoredTrial, name: str) -> float:
    endpoint, _, of_endpoint = name.partition(".")
    return float(stored.record.metrics.get(endpoint, {}).get(of_endpoint, np.nan))
