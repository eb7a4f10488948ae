"""Runs a design into a results database: each trial is judged and committed as soon as it has ended."""

import logging
import shutil
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from results.store.database import Database
from results.store.records import CampaignInfo, NewCampaign, State, TrialKey, Variant, Workload
from runners.calibration import experiments as calibration
from runners.campaign import provenance
from runners.campaign.record import record_of
from runners.campaign.request import Keep, Request
from runners.engines.engine import Engine, Finished
from runners.refusal import Refusal
from runners.trial.judge import Judgement, judge
from runners.trial.judging.endpoints import completion_s
from runners.trial.task import Task

_log = logging.getLogger(__name__)

# An invalid trial is run again this many times, and as often anew when the campaign is resumed.
RETRIES = 3


class Watcher(Protocol):
    """Follows the progress of a campaign."""

    def begun(self, campaign: str, planned: int, done: int) -> None: ...

    def ended(self, key: TrialKey, judgement: Judgement, completion_s: float, again: bool) -> None:
        """A trial was committed; `completion_s` is 0 when its client reported none."""


def run(request: Request, engine: Engine, database: Database, watcher: Watcher) -> CampaignInfo:
    """Run what is missing of a campaign. Raises Refusal before anything is changed."""
    experiment = request.experiment
    collected = provenance.collect(experiment.implementations.values(), request.backend)
    collected |= {"jobs": request.jobs, "pages": experiment.pages}
    stored = _stored_campaign(request, database, collected)
    attempts = _attempts_left({} if stored is None else database.states(stored.id), request)
    _log.info("%d of %d trials are to be run", len(attempts), len(request.keys))
    calibrations = [calibration.of_campaign(request.backend, request.calibrate)] if attempts else []
    if stored is None:
        campaign = database.create_campaign(_new_campaign(request, collected | {"calibration": calibrations}))
    else:
        campaign = database.add_calibrations(stored.id, calibrations)
    watcher.begun(campaign.name, len(request.keys), len(request.keys) - len(attempts))
    if attempts:
        start = database.start(campaign.id, provenance.host(), collected | {"calibration": calibrations})
        if request.keep is not None:
            request.keep.folder.mkdir(parents=True, exist_ok=True)
        with engine:
            _run_trials(request, attempts, engine, database, campaign.id, start.id, watcher)
    return campaign


def _new_campaign(request: Request, collected: Mapping[str, Any]) -> NewCampaign:
    design = request.design
    return NewCampaign(
        name=request.name,
        title=design.title,
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
                baseline=variant.baseline,
            )
            for variant in design.variants
        ],
        workloads=[
            Workload(
                label=workload.label,
                name=workload.name,
                parameters=workload.parameters,
                metric=request.experiment.activities[workload.label].workload.compared,
            )
            for workload in design.workloads
        ],
    )


def _stored_campaign(
    request: Request, database: Database, collected: Mapping[str, Any]
) -> CampaignInfo | None:
    """The campaign to go on with, if there is one; raises Refusal when this request must not."""
    stored = database.campaign(request.name)
    if stored is None:
        return None
    other = f"campaign {stored.name!r} in {database.address} was run with"
    if stored.design_text != request.design.text:
        raise Refusal(
            f"{other} another design than {request.design.path}: give this one a name with --campaign"
        )
    ran_with = {"pages": {}} | stored.provenance  # older campaigns have no pages
    for kind in ("binaries", "link", "pages"):
        if ran_with[kind] != collected[kind]:
            raise Refusal(
                f"{other} other {kind} than are here now: give a new campaign a name with --campaign"
            )
    if not request.resume and database.trial_count(stored.id) < stored.planned_trials:
        raise Refusal(
            f"campaign {stored.name!r} in {database.address} is not complete:"
            " go on with --resume, or give a new campaign a name with --campaign"
        )
    return stored


def _attempts_left(states: Mapping[TrialKey, tuple[State, int]], request: Request) -> dict[TrialKey, int]:
    """How often each trial that is missing or invalid may be run now, in order of running."""
    return {key: 1 + RETRIES for key in request.keys if key not in states or states[key][0] == "invalid"}


def _run_trials(
    request: Request,
    attempts: dict[TrialKey, int],
    engine: Engine,
    database: Database,
    campaign_id: int,
    start_id: int,
    watcher: Watcher,
) -> None:
    for finished in engine.run(_tasks(request, attempts)):
        judgement = judge(finished.task, finished.outcome)
        stored = database.record(campaign_id, record_of(finished, judgement), start_id)
        _keep(request.keep, finished, judgement, stored.id)
        engine.judged(finished, valid=judgement.state != "invalid")
        attempts[finished.key] -= 1
        again = judgement.state == "invalid" and attempts[finished.key] > 0
        if again:
            _log.info("again, later: %s", finished.key)
            engine.again(finished.key, finished.task)
        watcher.ended(finished.key, judgement, completion_s(finished.task, finished.outcome), again)


def _tasks(request: Request, attempts: Mapping[TrialKey, int]) -> Iterator[tuple[TrialKey, Task]]:
    for key in list(attempts):
        _log.info("next: %s", key)
        yield key, request.experiment.task(key, request.backend)


def _keep(keep: Keep | None, finished: Finished, judgement: Judgement, trial_id: int) -> None:
    """Move the trial's files to where the user wants them, as `trial-ID`."""
    if keep is not None and finished.folder is not None and (keep.which == "all" or judgement.state != "ok"):
        target = keep.folder / f"trial-{trial_id}"
        shutil.rmtree(target, ignore_errors=True)  # of another database, whose trials have the same numbers
        shutil.move(finished.folder, target)
