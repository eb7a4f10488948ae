"""Check at the beginning of a campaign in virtual time: do its simulators answer the same each time?

For each implementation, a new simulator runs one trial, then another one, then the first again. A second
simulator runs the same two the other way around. A trial must have the same result each time, whatever was
run before it and whichever process runs it.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from fecbench.results.store import digest
from fecbench.results.store.records import TrialKey
from fecbench.runners.campaign.experiment import Experiment
from fecbench.runners.campaign.record import judged
from fecbench.runners.engines.engine import Finished
from fecbench.runners.engines.programs import engine_for
from fecbench.runners.implementations.implementation import Implementation
from fecbench.runners.refusal import Refusal
from fecbench.runners.tasks.task import VIRTUAL, Task

KIND = "virtual"


def of_campaign(experiment: Experiment, due: Iterable[TrialKey]) -> dict[str, Any]:
    """Return the record of this check for a campaign, with trials that are due.

    Raises Refusal for a simulator whose answers differ, that answers nothing, or that cannot be started.
    """
    checked = {name: _check(experiment, name, keys) for name, keys in _chosen(experiment, due).items()}
    return {
        "kind": KIND,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "backend": VIRTUAL,
        "good": True,
        "implementations": checked,
    }


def play(tasks: Mapping[TrialKey, Task], implementations: Mapping[str, Implementation]) -> Iterator[Finished]:
    """Two tasks, or one, in two orders, each by a new process of the implementations' simulators."""
    first, last = next(iter(tasks)), list(tasks)[-1]
    for order in ([first, last, first], [last, first]):
        # One trial at a time: the order is that of the simulator.
        with engine_for("virtual", implementations) as engine:
            for finished in engine.run((key, tasks[key]) for key in order):
                yield finished
                engine.judged(finished, valid=True)


def _chosen(experiment: Experiment, due: Iterable[TrialKey]) -> dict[str, list[TrialKey]]:
    """Two trials of each implementation: the first, and the first of another variant, or else the last."""
    keys_of: dict[str, list[TrialKey]] = {}
    for key in due:
        keys = keys_of.setdefault(experiment.arms[key.variant].implementation.declaration.name, [])
        if len(keys) < 2:
            keys.append(key)
        elif keys[0].variant == keys[1].variant:
            keys[1] = key
    return keys_of


def _check(experiment: Experiment, name: str, keys: list[TrialKey]) -> dict[str, Any]:
    tasks = {key: experiment.task(key, VIRTUAL) for key in keys}
    digests: dict[TrialKey, list[tuple[str, str]]] = {key: [] for key in keys}
    unanswered = []
    for finished in play(tasks, experiment.implementations):
        record = judged(finished)[1]
        digests[finished.key].append((digest.of_trial(record), digest.of_metrics(record)))
        outcome = finished.outcome
        unanswered += [problem] if (problem := outcome.failure or outcome.no_answer) else []
    if len(unanswered) == sum(map(len, digests.values())):
        raise Refusal(f"{unanswered[0]} ({keys[0]}); --no-calibrate begins all the same")
    for key, pairs in digests.items():
        if len(set(pairs)) > 1:
            raise Refusal(
                f"{name}: its simulator answered one trial in {len(set(pairs))} ways ({key}): it must answer"
                " in the same way each time; --no-calibrate begins all the same"
            )
    return {str(key): pairs[0][0] for key, pairs in digests.items()}
