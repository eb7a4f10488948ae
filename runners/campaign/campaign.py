"""Runs a design into a results database: each trial is judged and committed as soon as it has ended."""

import logging
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from fecbench.designs import Design
from fecbench.hints import nearest
from fecbench.results.store.database import Database
from fecbench.results.store.records import (
    CampaignInfo,
    Kind,
    NewCampaign,
    NewStart,
    Start,
    TrialKey,
    Variant,
    Workload,
)
from fecbench.runners.calibration import experiments as calibration
from fecbench.runners.campaign import baselines, provenance, self_check
from fecbench.runners.campaign.arms import Activity
from fecbench.runners.campaign.claims import Holder, Watch, free_of_dead, present
from fecbench.runners.campaign.differences import check_same
from fecbench.runners.campaign.request import Request
from fecbench.runners.campaign.rounds import Due, Rounds
from fecbench.runners.campaign.share import Share, Watcher
from fecbench.runners.engines.engine import Engine
from fecbench.runners.refusal import Refusal
from fecbench.runners.tasks.task import FIELD, VIRTUAL

_log = logging.getLogger(__name__)


class Plan(Protocol):
    """The trials to run, round by round (`rounds.Rounds`)."""

    planned: int

    @property
    def state(self) -> str: ...

    def first(self, campaign: CampaignInfo | None) -> Due: ...

    def next(self, campaign: CampaignInfo) -> Due: ...

    def goes_on(self) -> bool: ...


def run(
    request: Request, engine: Engine, database: Database, watcher: Watcher, plan: Plan | None = None
) -> CampaignInfo:
    """Run what a campaign lacks. A campaign that does not exist begins, unless it is to be resumed.

    Without a plan, all that is missing is run. Raises Refusal before anything is changed.
    """
    now = _provenance_of(request)
    stored = stored_campaign(request, database, now)
    if stored is not None:
        free_of_dead(database, stored.id, Watch())  # where all of a group is done, nobody looks for its claim
    rounds = plan or Rounds(request, database)
    trials = rounds.first(stored)
    _log.info("%d of %d trials are to be run", len(trials), rounds.planned)
    if stored is not None and not trials:
        watcher.begun(stored.name, rounds.planned, rounds.planned)
        return database.campaign(stored.name) or stored  # the last look may have been missing alone
    now["calibration"] = [_calibration(request, trials)]
    with present() as holder:
        campaign, start = _started(request, database, stored, now, holder)
        watcher.begun(campaign.name, rounds.planned, rounds.planned - len(trials))
        if request.keep is not None:
            request.keep.folder.mkdir(parents=True, exist_ok=True)
        share = Share(request, engine, database, start, watcher, rounds.goes_on)
        share.run(trials, lambda: after(rounds, campaign, watcher))
    return database.campaign_of(start)


def after(rounds: Plan, campaign: CampaignInfo, watcher: Watcher) -> Due:
    """Return the trials to run after a round, and tell the watcher of them."""
    if trials := rounds.next(campaign):
        watcher.more(len(trials), rounds.state)
    return trials


def begun(request: Request, database: Database) -> CampaignInfo:
    """A campaign whose trials others run: begun, if it is not there yet.

    Raises Refusal before anything is changed.
    """
    now = _provenance_of(request)
    stored = stored_campaign(request, database, now)
    if stored is None:
        stored = database.create_campaign(_new_campaign(request, {**now, "calibration": []}))
    return stored


def _calibration(request: Request, trials: Iterable[TrialKey]) -> dict[str, Any]:
    """Return the record of how accurate this machine's link or simulators are at the beginning.

    Raises Refusal if they are not accurate enough.
    """
    if request.backend == FIELD:
        return calibration.in_the_field()
    if request.backend != VIRTUAL:
        return calibration.of_campaign(request.backend, request.calibrate)
    return self_check.of_campaign(request.experiment, trials) if request.calibrate else calibration.skipped()


def _provenance_of(request: Request) -> dict[str, Any]:
    """Return the provenance that the campaign would have now."""
    experiment = request.experiment
    collected = provenance.collect(experiment.implementations.values(), request.backend, request.engine)
    of_sample = {} if request.crosscheck is None else {"crosscheck": request.crosscheck.document()}
    of_path = {} if request.field is None else {"field": dict(request.field)}
    of_ends = {} if request.interop is None else {"interop": dict(request.interop)}
    times = experiment.processor_times if request.engine == "virtual" else {}
    of_processors = {"processor": times} if times else {}
    of_filters = {"filters": list(request.filters)} if request.filters else {}
    of_timers = {"timed_by_harness": labels} if (labels := experiment.timed_by_harness) else {}
    return (
        collected
        | {"jobs": request.jobs, **experiment.documents}
        | {**of_path, **of_filters, **of_processors, **of_timers, **of_sample, **of_ends}
    )


def _started(
    request: Request,
    database: Database,
    stored: CampaignInfo | None,
    now: Mapping[str, Any],
    holder: Holder,
) -> tuple[CampaignInfo, Start]:
    """The campaign, and this start of it, which is its first when it is not stored yet."""
    host = provenance.host()
    if stored is None:
        new = NewStart(host=host, provenance=dict(now), holder=holder)
        if start := database.begin(_new_campaign(request, now), new):
            return database.campaign_of(start), start
        stored = stored_campaign(request, database, now)  # another process has begun it just now
        assert stored is not None
    campaign = database.add_calibrations(stored.id, now["calibration"])
    return campaign, database.start(campaign.id, host, now, holder)


def _new_campaign(request: Request, collected: Mapping[str, Any]) -> NewCampaign:
    design = request.design
    compared_with = baselines.compared_with(design, request.experiment.arms)
    return NewCampaign(
        name=request.name,
        title=design.title,
        kind=_kind_of(design),
        design_text=design.text,
        seed=design.seed,
        repetitions=design.repetitions,
        statistic=design.statistic,
        provenance=dict(collected),
        points=[dict(point) for point in request.experiment.points],
        variants=[
            Variant(
                label=variant.label,
                implementation=variant.implementation,
                options=variant.options,
                baseline=variant.is_baseline,
                compared_with=compared_with[variant.label],
            )
            for variant in design.variants
        ],
        workloads=[
            Workload(
                label=workload.label,
                name=workload.name,
                parameters=workload.of_trials,
                metric=_compared_by(request.experiment.activities[workload.label]),
            )
            for workload in design.workloads
        ],
    )


def _compared_by(activity: Activity) -> str:
    return activity.workload.compared_with(activity.chosen)


def _kind_of(design: Design) -> Kind:
    """Whether all variants are one, under several labels."""
    arms = [(variant.implementation, variant.options, variant.server) for variant in design.variants]
    return "against-itself" if len(arms) > 1 and all(arm == arms[0] for arm in arms) else "comparison"


def stored_campaign(
    request: Request, database: Database, now: Mapping[str, Any] | None = None
) -> CampaignInfo | None:
    """Return the campaign to continue, if there is one. Raises Refusal if this request must not continue it.

    `now` is the provenance that it would have; None: it is collected.
    """
    stored = database.campaign(request.name)
    if stored is not None:
        check_same(database, stored, request.experiment, now or _provenance_of(request))
    elif request.resume:
        names = [campaign.name for campaign in database.campaigns()]
        raise Refusal(
            f"nothing to resume: {database.address} has no campaign {request.name!r};"
            f" {nearest(request.name, names)}"
        )
    return stored
