"""Whether an implementation's simulator meets the contract: it runs small trials with default options, which
must be ok, and have the same result each time."""

from collections.abc import Iterator

from fecbench.results.store.records import TrialKey
from fecbench.runners.campaign.self_check import play
from fecbench.runners.conformance.part import Part
from fecbench.runners.engines.engine import EngineError
from fecbench.runners.implementations.implementation import Implementation
from fecbench.runners.tasks.outcome import Outcome
from fecbench.runners.tasks.task import CONTENT, VIRTUAL, LinkTask, PairTask, Task
from fecbench.runners.tasks.validity import USUAL
from fecbench.runners.trial import ends
from fecbench.runners.trial.judge import judge
from fecbench.runners.workloads import TOLD
from fecbench.runners.workloads.workload import COMPLETION
from fecbench.topologies.link import LinkSettings

LINK = LinkSettings.symmetric(bandwidth_mbps=10, owd_ms=25)
LOSSES = {"model": "uniform", "p": 0.02}
TIMEOUT_S = 60.0
SEEDS = (2**64 - 1, 1)


def check(implementation: Implementation) -> Iterator[Part]:
    """A part for each of the samples that it supports; none of an implementation without a simulator."""
    declared = implementation.declaration
    if declared.simulator is None:
        return
    if lack := implementation.lack("virtual"):
        yield Part("simulator", False, f"{lack.problem}; mend: {lack.mend}")
        return
    for transfer in TOLD:
        if transfer in declared.workloads:
            problem = problem_of(implementation, transfer)
            yield Part(f"simulator: {transfer}", not problem, problem or "was ok, and the same each time")


def problem_of(implementation: Implementation, transfer: str) -> str:
    """Return the fault in how its simulator runs one of the samples; "" if none."""
    tasks = {
        TrialKey("default", transfer, 0, number): _task(implementation, transfer, seed)
        for number, seed in enumerate(SEEDS)
    }
    outcomes: dict[TrialKey, list[Outcome]] = {key: [] for key in tasks}
    try:
        for finished in play(tasks, {implementation.declaration.name: implementation}):
            judgement = judge(finished.task, finished.outcome)
            if judgement.state != "ok":
                return f"{judgement.state}: {judgement.reason}"
            outcomes[finished.key].append(finished.outcome)
    except EngineError as error:
        return str(error)
    if any(outcome != played[0] for played in outcomes.values() for outcome in played):
        return "the same task was answered in two ways: it must be answered in the same way each time"
    return ""


def _task(implementation: Implementation, transfer: str, seed: int) -> Task:
    workload = TOLD[transfer]
    end = ends.end_of(implementation, implementation.options({}, "the defaults"))
    return Task(
        topology="single-path",
        backend=VIRTUAL,
        links={
            "internet": LinkTask(
                settings=LINK,
                late_bound_us=USUAL.late_bound_us(LINK),
                losses={"up": LOSSES, "down": LOSSES},
            )
        },
        seeds={CONTENT: seed, "internet/up": seed, "internet/down": seed ^ 1},
        pairs=[
            PairTask(
                client=end,
                server=end,
                workload=dict(workload.sample),
                demand=workload.demand_of(workload.sample),
                session=None if workload.sample_session is None else dict(workload.sample_session),
            )
        ],
        completion=COMPLETION,
        timeout_s=TIMEOUT_S,
    )
