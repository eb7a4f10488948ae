"""Runs a stored trial again, with the same seeds, and records packets, qlog, TLS secrets and series."""

import dataclasses
import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fecbench import designs
from fecbench.complaint import complaint
from fecbench.designs import DesignError
from fecbench.results.store import digest
from fecbench.results.store.records import CampaignInfo, StoredTrial, TrialRecord
from fecbench.runners.campaign import provenance
from fecbench.runners.campaign.differences import compare, of_programs
from fecbench.runners.campaign.experiment import Experiment, documents_in
from fecbench.runners.campaign.record import judged
from fecbench.runners.campaign.request import engine_of
from fecbench.runners.engines.programs import engine_for
from fecbench.runners.implementations.finding import Implementations
from fecbench.runners.implementations.implementation import Implementation
from fecbench.runners.refusal import Refusal
from fecbench.runners.tasks.task import ROLES, VIRTUAL, EndpointTask, Task, of_today
from fecbench.runners.workloads import asked_series


@dataclass(frozen=True)
class Replay:
    """A trial as it was recorded, and as it went again."""

    recorded: StoredTrial
    replayed: StoredTrial
    differences: list[str]
    """Changes since the trial was recorded that may explain why the two differ: a line each."""
    task: Task | None = None
    """The task that was run again."""
    defaults: dict[str, Any] | None = field(default_factory=dict)
    """Today's defaults that were taken for fields that the recorded task lacks, by their dotted names; None:
    no task was recorded, and all of it is of today."""

    @property
    def is_virtual(self) -> bool:
        """Whether it was a trial in virtual time, which must have the same result."""
        task: Mapping[str, Any] = self.replayed.record.task
        return task.get("backend") == VIRTUAL

    @property
    def digests(self) -> tuple[str, str]:
        """The digests of the events on the wire, recorded and replayed, over everything that was recorded.

        Both have the recorded task: the additional recordings of a replay change nothing on the network. A
        sample that has no task has the digest alone, which is compared as it is.
        """
        recorded = self.recorded.record
        if not recorded.task and "metrics_digest" in recorded.checks:
            return str(recorded.checks["digest"]), digest.of_trial(self.replayed.record)
        again = dataclasses.replace(self.replayed.record, task=recorded.task)
        return digest.of_trial(recorded), digest.of_trial(digest.as_far_as(again, recorded))

    @property
    def other_metrics(self) -> dict[str, tuple[float, float]]:
        """The metrics with another value than was recorded, of those that both have."""
        return digest.other_metrics(self.recorded.record, self.replayed.record)

    @property
    def is_comparable(self) -> bool:
        """Whether it was recorded what the trial can be compared by: a sample has no verdicts of packets."""
        return self.is_virtual or bool(self.recorded.record.verdicts)

    @property
    def same(self) -> bool:
        """Whether state and verdicts of all packets that both runs sent are the same. In virtual time,
        whether the events on the wire and all recorded metrics that still exist are the same."""
        recorded, replayed = self.recorded.record, self.replayed.record
        if self.is_virtual:
            return len(set(self.digests)) == 1 and not self.other_metrics
        met_any = bool(replayed.verdicts)
        met_the_same = met_any and self.is_comparable and recorded.met_the_losses_of(replayed)
        return recorded.state == replayed.state and met_the_same


def replay(
    campaign: CampaignInfo, stored: StoredTrial, implementations: Implementations, folder: Path
) -> Replay:
    """Run the trial again, and leave its files in `folder`, which must not exist. Needs root, except in
    virtual time.

    Its task and its seeds are those that were recorded. Where they were not, they are made of the design and
    the documents that were, with the defaults of today.
    """
    recorded, defaults = _recorded_task(stored.record, implementations)
    try:
        experiment = _experiment(campaign, implementations)
    except Refusal as refusal:
        if recorded is None:
            raise Refusal(
                f"{stored.record.key}: its task was not recorded, and its design cannot be run today"
                f" ({refusal}): replay it with the revision that its start names"
            ) from refusal
        task, differences = recorded, [f"the design could not be run today: {refusal}"]
    else:
        today = experiment.task(stored.record.key, campaign.provenance["link"])
        task = recorded or today
        differences = list(_differences_of_tasks(recorded, today))
    used, name = _used(task, implementations), engine_of(task.backend)
    for implementation in used.values():
        implementation.check_built(name)
    now = provenance.of_programs(used.values(), name)
    programs = [str(other) for _, others in of_programs(campaign.provenance, now) for other in others]
    with engine_for(name, used) as engine:
        (finished,) = engine.run([(stored.record.key, _captured(task, used))])
        if finished.folder is not None:
            shutil.move(finished.folder, folder)
    _, record = judged(finished)
    replayed = dataclasses.replace(stored, attempt=stored.attempt + 1, record=record)
    changed_defaults = [_default_fields(defaults)] if defaults else []
    return Replay(stored, replayed, programs + changed_defaults + differences, task, defaults)


def _recorded_task(
    record: TrialRecord, implementations: Implementations
) -> tuple[Task | None, dict[str, Any] | None]:
    """Return the trial's recorded task, and the defaults of today in it; None if the task is unknown."""
    if not record.task:
        return None, None
    written = of_today(record.task)
    try:
        task = Task.model_validate({**written, "seeds": record.seeds})
        whole = _with_all_options(task, implementations)
        return whole, dict(_lacking("", written, whole.document()))
    except (KeyError, ValidationError) as error:
        problem = complaint(error) if isinstance(error, ValidationError) else f"{error} is missing"
        raise Refusal(
            f"{record.key}: the task that was recorded is not one of this fecbench ({problem}): replay it"
            " with the revision that its start names"
        ) from error


def _with_all_options(task: Task, implementations: Implementations) -> Task:
    """The task with the defaults of today for the options that its implementations did not have then."""

    def whole(end: EndpointTask) -> EndpointTask:
        declared = implementations.find(end.implementation, "the trial's task").declaration.options
        defaults = {name: option.default for name, option in declared.items()}
        return end.model_copy(update={"options": {**defaults, **end.options}})

    pairs = [pair.model_copy(update={role: whole(pair.end(role)) for role in ROLES}) for pair in task.pairs]
    return task.model_copy(update={"pairs": pairs})


def _lacking(name: str, written: Any, whole: Any) -> Iterator[tuple[str, Any]]:
    """The fields of a document that a written one lacks, by their dotted names, with their values."""
    if isinstance(written, Mapping) and isinstance(whole, Mapping):
        for key, value in whole.items():
            below = f"{name}.{key}" if name else str(key)
            if key in written:
                yield from _lacking(below, written[key], value)
            else:
                yield from _leaves(below, value)
    elif isinstance(written, list) and isinstance(whole, list):
        for index, (before, after) in enumerate(zip(written, whole, strict=False)):
            yield from _lacking(f"{name}.{index}", before, after)


def _leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, Mapping) or not value:
        yield name, value
        return
    for key, part in value.items():
        yield from _leaves(f"{name}.{key}", part)


def _default_fields(defaults: Mapping[str, Any]) -> str:
    fields = ", ".join(f"{name} = {json.dumps(value)}" for name, value in defaults.items())
    return (
        f"the trial's task was recorded without {len(defaults)} fields; today's defaults are taken: {fields}"
    )


def _experiment(campaign: CampaignInfo, implementations: Implementations) -> Experiment:
    """The campaign's design with the declarations of today."""
    try:
        design = designs.parse(campaign.design_text, f"campaign {campaign.name}")
    except DesignError as error:
        raise Refusal(str(error)) from error
    return Experiment(design, campaign.points, implementations, documents_in(campaign.provenance))


def _differences_of_tasks(recorded: Task | None, today: Task) -> Iterator[str]:
    if recorded is None:
        yield "the trial's task was not recorded: it is run with the defaults of today"
        return
    for difference in compare("the trial's task:", recorded.document(), today.document()):
        yield f"{difference} today; it is run as it was"
    if recorded.seeds != today.seeds:
        yield "the trial's seeds would be others today; it is run with those that were recorded"


def _used(task: Task, implementations: Implementations) -> dict[str, Implementation]:
    names = {end.implementation for pair in task.pairs for end in (pair.client, pair.server)}
    return {name: implementations.find(name, "the trial's task") for name in sorted(names)}


def _captured(task: Task, used: Mapping[str, Implementation]) -> Task:
    """The task with everything recorded: packets, qlog, and every series that the implementations leave."""

    def all_series(end: EndpointTask, workload: Mapping[str, Any]) -> EndpointTask:
        every = end.model_copy(update={"series": list(used[end.implementation].declaration.series)})
        return every.model_copy(update={"series": list(asked_series(every, workload))})

    pairs = [
        pair.model_copy(update={role: all_series(pair.end(role), pair.workload) for role in ROLES})
        for pair in task.pairs
    ]
    return task.model_copy(update={"capture": True, "pairs": pairs})
