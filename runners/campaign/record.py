"""Records that a campaign stores of judged trials."""

import dataclasses
import logging
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from fecbench.results.store import digest
from fecbench.results.store.records import BY_ENDS, SeriesTable, TrialRecord, VerdictLog
from fecbench.runners.engines.engine import Finished
from fecbench.runners.tasks.outcome import DropperOutcome, Outcome
from fecbench.runners.tasks.task import VIRTUAL, Task
from fecbench.runners.trial import competition
from fecbench.runners.trial.judge import Checks, Judgement, judge
from fecbench.runners.trial.judging import endpoints
from fecbench.runners.trial.plain_text import one_line
from fecbench.topologies.link import Direction
from fecbench.topologies.link_report import EFFECTS, LinkReport

_log = logging.getLogger(__name__)


def judged(finished: Finished) -> tuple[Judgement, TrialRecord]:
    """Judge a trial, and return the judgement and the record.

    A trial that cannot be judged, or of which no record can be made, is invalid: the campaign continues.
    """
    try:
        judgement = judge(finished.task, finished.outcome)
        return judgement, record_of(finished, judgement)
    except Exception as error:
        _log.info("cannot be judged: %s", finished.key, exc_info=True)
        reason = f"it cannot be judged: {type(error).__name__}: {error}"
        return unfit(finished, reason)


def unfit(finished: Finished, reason: str) -> tuple[Judgement, TrialRecord]:
    """Return the trial as an invalid one, without measurements."""
    judgement = Judgement("invalid", reason)
    return judgement, _with_digests(_bare_record_of(finished, judgement))


def _bare_record_of(finished: Finished, judgement: Judgement) -> TrialRecord:
    """Return the record that any trial can have."""
    return TrialRecord(
        key=finished.key,
        state=judgement.state,
        reason=judgement.reason,
        started_at=datetime.fromtimestamp(finished.begun_at, UTC).isoformat(timespec="milliseconds"),
        duration_s=finished.duration_s,
        task=finished.task.document(),
        seeds=finished.task.seeds,
    )


def record_of(finished: Finished, judgement: Judgement) -> TrialRecord:
    """Return the whole record of a trial."""
    outcome, endpoint_outcomes = finished.outcome, finished.outcome.endpoints
    record = dataclasses.replace(
        _bare_record_of(finished, judgement),
        metrics={name: values for name, values in _metrics(finished, judgement).items() if values},
        verdicts=[
            _verdict_log(link, direction, recorded)
            for link, directions in outcome.droppers.items()
            for direction, recorded in directions.items()
        ],
        dropper={
            _of_direction(link, direction): _counted(outcome, recorded)
            for link, directions in outcome.droppers.items()
            for direction, recorded in directions.items()
        },
        links={name: _link_document(report) for name, report in outcome.links.items()},
        exits={name: endpoint.exit_code for name, endpoint in endpoint_outcomes.items()},
        stderr={name: endpoint.stderr for name, endpoint in endpoint_outcomes.items()},
        overhead_s=overhead_of(finished),
        checks={
            **_checks(judgement.checks, finished.trials_at_once),
            **_timer(finished.task),
            **_success(judgement, outcome),
            **_by_ends(finished.task, outcome, judgement),
        },
        series=_series(judgement),
    )
    return _with_digests(record)


def _with_digests(record: TrialRecord) -> TrialRecord:
    record.checks.update(digest=digest.of_trial(record), metrics_digest=digest.of_metrics(record))
    return record


def _link_document(report: LinkReport) -> dict[str, Any]:
    """Return the document of a link. A simulator's link is as its task says, and most events of a real one
    cannot happen."""
    if report.backend != VIRTUAL:
        return report.model_dump()
    directions = {
        direction: {name: getattr(counted, name) for name in (*digest.COUNTERS, "late", "conserved")}
        | {name: count for name in EFFECTS if (count := getattr(counted, name))}
        | ({"times": counted.times} if counted.times else {})
        for direction, counted in report.directions.items()
    }
    return {"backend": report.backend, "directions": directions}


def _counted(outcome: Outcome, recorded: DropperOutcome) -> dict[str, int]:
    """Return the counters of a dropper. A simulator's dropper meets only packets of endpoints."""
    if outcome.backend != VIRTUAL:
        return asdict(recorded.counters)
    return {"seen": recorded.counters.seen, "dropped": recorded.counters.dropped}


def overhead_of(finished: Finished) -> dict[str, float]:
    """The seconds of each phase but the client's, and `total`: all that is not the client's own time."""
    others = {name: seconds for name, seconds in finished.outcome.phases_s.items() if name != "client"}
    return {**others, "total": finished.overhead_s}


def _metrics(finished: Finished, judgement: Judgement) -> dict[str, dict[str, float]]:
    """Return the metrics of each endpoint, of the harness, and of both transfers that share a link."""
    outcome, shared = finished.outcome, finished.outcome.competition
    of_both = {} if shared is None else competition.metrics(finished.task, shared)
    of_endpoints = {name: endpoint.metrics or {} for name, endpoint in outcome.endpoints.items()}
    of_workload = {name: dict(metrics) for name, metrics in judgement.metrics.items()}
    return of_endpoints | {"competition": of_both} | of_workload


def _checks(checks: Checks, trials_at_once: int) -> dict[str, Any]:
    compared = {
        _of_direction(link, direction): dict(vars(check))
        for (link, direction), check in checks.verdicts.items()
    }
    if checks.virtual_s is not None:  # nothing was measured of a machine
        measured: dict[str, Any] = {"virtual_s": checks.virtual_s}
    else:
        measured = asdict(dataclasses.replace(checks, verdicts={}))
        del measured["virtual_s"]
        if checks.path is None:
            del measured["path"]
        measured["lost_elsewhere"] = {
            "packets": sum(count for places in checks.lost_elsewhere.values() for count in places.values()),
            "places": checks.lost_elsewhere,
        }
    return {**measured, "verdicts": compared, "trials_at_once": trials_at_once}


def _timer(task: Task) -> dict[str, str]:
    """Return who timed the transfer, if not the client."""
    return {"timed_by": "harness"} if task.timed_by_harness else {}


def _success(judgement: Judgement, outcome: Outcome) -> dict[str, bool]:
    """Return whether the endpoints of an invalid trial succeeded nevertheless."""
    return {"endpoints_succeeded": endpoints.succeeded(outcome)} if judgement.state == "invalid" else {}


def _by_ends(task: Task, outcome: Outcome, judgement: Judgement) -> dict[str, dict[str, str]]:
    """Return the state by the reports of both ends, if it differs from the trial's."""
    if judgement.state == "ok" or outcome.failure or outcome.no_answer:
        return {}
    state, reason = endpoints.state_by_ends(task, outcome)
    return {} if state == judgement.state else {BY_ENDS: {"state": state, "reason": one_line(reason)}}


def _series(judgement: Judgement) -> list[SeriesTable]:
    if not judgement.series:
        return []
    # Imported here: pyarrow takes longer to load than most commands take to run.
    from fecbench.results.store.stored_series import of_endpoint

    return [of_endpoint(endpoint, name, table) for (endpoint, name), table in judgement.series.items()]


def _verdict_log(link: str, direction: Direction, recorded: DropperOutcome) -> VerdictLog:
    bitmap = recorded.bitmap[: (recorded.packets + 7) // 8]
    return VerdictLog(link, direction, recorded.packets, recorded.counters.dropped, bitmap)


def _of_direction(link: str, direction: Direction) -> str:
    """The name of one direction of one link in the database."""
    return f"{link}/{direction}"
