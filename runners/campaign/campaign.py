"""Runs a design into a results database: each trial is judged and committed as soon as it has ended."""

import base64
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from designs import Design
from results.store.database import (
    CampaignInfo,
    Database,
    TrialKey,
    TrialRecord,
    Variant,
    VerdictLog,
    Workload,
)
from runners.calibration import experiments as calibration
from runners.campaign import parameters, provenance, schedule
from runners.campaign.schedule import Setting
from runners.engines import scratch
from runners.engines.admission import Jobs
from runners.engines.crew import Crew, Finished
from runners.implementations.finding import Implementation
from runners.refusal import Refusal
from runners.trial import certificates
from runners.trial import judge as verification
from runners.trial.judge import Judgement
from runners.trial.task import DropperOutcome, Outcome
from runners.trial.trial import SERVER_NAME
from runners.workloads import registry as workloads
from topologies.topology import Backend, resolve_backend

# An invalid trial is run again this many times, and as often anew when the campaign is resumed.
RETRIES = 3


class Watcher(Protocol):
    """Is told of the progress of a campaign."""

    def begun(self, campaign: str, planned: int, done: int) -> None: ...

    def ended(self, key: TrialKey, judgement: Judgement, dct_s: float | None, again: bool) -> None: ...


@dataclass(frozen=True)
class Request:
    """What a user asked to be run, made and checked by `request`."""

    design: Design
    points: Sequence[Mapping[str, Any]]
    keys: Sequence[TrialKey]
    implementations: Sequence[Implementation]
    pages: Mapping[str, Any]  # the web pages that workloads load, as `parameters.pages` has them
    backend: Backend
    name: str
    jobs: Jobs
    resume: bool
    calibrate: bool


def request(
    design: Design,
    *,
    name: str,
    backend: Backend,
    jobs: Jobs,
    resume: bool,
    filters: Sequence[str],
    calibrate: bool,
) -> Request:
    """Everything about a campaign that can be known before a database is opened; raises on any bad input."""
    parameters.check_names(design)
    points = design.plan().points
    parameters.check_values(design, points)
    keys = schedule.filtered(schedule.trial_keys(design, len(points)), filters)
    used = implementations_of(design)
    parameters.check_combinations(design, points)
    return Request(
        design,
        points,
        keys,
        used,
        parameters.pages(design, points),
        resolve_backend(backend),
        name or design.name,
        jobs,
        resume,
        calibrate,
    )


def implementations_of(design: Design) -> list[Implementation]:
    """The implementations of all variants, each once, checked to be built and to support every workload."""
    found = {}
    for variant in design.variants:
        implementation = parameters.implementation_of(design, variant.label)
        where = parameters.place_of(design, variant.label)
        for workload in design.workloads:
            implementation.check_workload(workloads.of_endpoints(workload.name), where)
        implementation.check_built()
        found[variant.implementation] = implementation
    return list(found.values())


def run(request: Request, database: Database, watcher: Watcher) -> CampaignInfo:
    """Run what is missing of a campaign. Raises Refusal before anything is changed."""
    collected = provenance.collect(request.implementations, request.backend)
    collected |= {"jobs": request.jobs, "pages": request.pages}
    stored = _stored_campaign(request, database, collected)
    attempts = _attempts_left({} if stored is None else database.states(stored.id), request.keys)
    calibrations = [calibration.of_campaign(request.backend, request.calibrate)] if attempts else []
    if stored is None:
        campaign = _create_campaign(request, database, collected | {"calibration": calibrations})
    else:
        campaign = database.add_calibrations(stored.id, calibrations)
    watcher.begun(campaign.name, len(request.keys), len(request.keys) - len(attempts))
    if attempts:
        with scratch.folder() as folder:
            certificates.write(folder, SERVER_NAME)
            setting = Setting(request.design, request.points, request.backend, folder, request.pages)
            _run_trials(setting, attempts, request.jobs, database, campaign, watcher)
    return campaign


def _create_campaign(request: Request, database: Database, collected: Mapping[str, Any]) -> CampaignInfo:
    design = request.design
    return database.create_campaign(
        name=request.name,
        design_text=design.text,
        seed=design.seed,
        provenance=collected,
        points=[dict(point) for point in request.points],
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
            Workload(label=workload.label, name=workload.name, parameters=workload.parameters)
            for workload in design.workloads
        ],
        repetitions=design.repetitions,
        statistic=design.statistic,
        title=design.title,
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


def _attempts_left(
    states: Mapping[TrialKey, tuple[str, int]], keys: Sequence[TrialKey]
) -> dict[TrialKey, int]:
    """How often each trial that is missing or invalid may be run now, in order of running."""
    return {key: 1 + RETRIES for key in keys if key not in states or states[key][0] == "invalid"}


def _run_trials(
    setting: Setting,
    attempts: dict[TrialKey, int],
    jobs: Jobs,
    database: Database,
    campaign: CampaignInfo,
    watcher: Watcher,
) -> None:
    with Crew(jobs) as crew:
        for number, key in enumerate(attempts):
            crew.add(key, schedule.task_of(setting, key, setting.folder / f"trial-{number}"))
        for finished in crew.results():
            shutil.rmtree(finished.task.folder, ignore_errors=True)  # absent when the trial did not begin
            judgement = verification.judge(finished.task, finished.outcome)
            crew.judged(finished, valid=judgement.state != "invalid")
            database.record(campaign.id, record_of(finished, judgement))
            attempts[finished.key] -= 1
            again = judgement.state == "invalid" and attempts[finished.key] > 0
            if again:
                crew.add_soon(finished.key, finished.task)
            watcher.ended(finished.key, judgement, _dct_s(finished), again)


def _dct_s(finished: Finished) -> float | None:
    client = finished.outcome.endpoints.get("client")
    return (client.metrics or {}).get("dct_s") if client else None


def record_of(finished: Finished, judgement: Judgement) -> TrialRecord:
    """Everything that is kept of a trial."""
    outcome, endpoints = finished.outcome, finished.outcome.endpoints
    return TrialRecord(
        key=finished.key,
        state=judgement.state,
        reason=judgement.reason,
        started_at=datetime.fromtimestamp(finished.begun_at, UTC).isoformat(timespec="milliseconds"),
        duration_s=finished.duration_s,
        seeds=finished.task.seeds,
        metrics={name: values for name, values in _metrics(outcome).items() if values},
        verdicts=[_verdict_log(name, recorded) for name, recorded in outcome.droppers.items()],
        dropper={name: recorded.counters for name, recorded in outcome.droppers.items()},
        links=outcome.links,
        exits={role: endpoint.exit_code for role, endpoint in endpoints.items()},
        stderr={role: endpoint.stderr for role, endpoint in endpoints.items()},
        overhead_s=overhead_of(finished),
        checks={**judgement.checks, "trials_at_once": finished.trials_at_once},
    )


def _metrics(outcome: Outcome) -> dict[str, dict[str, float]]:
    """What each endpoint measured, and what the harness did itself of two transfers that competed."""
    of_endpoints = {name: endpoint.metrics or {} for name, endpoint in outcome.endpoints.items()}
    return of_endpoints | {"competition": outcome.competition}


def overhead_of(finished: Finished) -> dict[str, float]:
    """The seconds of each phase but the client's, and `total`: all that is not the client's own time."""
    phases = finished.outcome.phases_s
    others = {name: seconds for name, seconds in phases.items() if name != "client"}
    return {**others, "total": finished.duration_s - phases.get("client", 0.0)}


def _verdict_log(name: str, recorded: DropperOutcome) -> VerdictLog:
    link, direction = name.split("/")
    bitmap = base64.b64decode(recorded.bitmap_base64)[: (recorded.packets + 7) // 8]
    return VerdictLog(link, direction, recorded.packets, recorded.counters["dropped"], bitmap)
