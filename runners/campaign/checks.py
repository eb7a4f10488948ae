"""Whether a resolved design can be run: one set of checks for `plan`, `run` and the workers of a cluster.

Its names are checked when it is resolved (`names`), and parameters that reach nobody in `reach`.
"""

from collections.abc import Mapping
from itertools import product
from typing import Any

from fecbench.results.store.records import TrialKey
from fecbench.runners.campaign import baselines
from fecbench.runners.campaign.arms import Activity, Arm
from fecbench.runners.campaign.experiment import Experiment
from fecbench.runners.campaign.reach import check_engine, check_reach
from fecbench.runners.implementations import interop
from fecbench.runners.implementations.declaration import PATHS
from fecbench.runners.implementations.engine_name import EngineName
from fecbench.runners.implementations.implementation import Implementation
from fecbench.runners.refusal import Refusal
from fecbench.runners.tasks.task import Carrier
from fecbench.topologies.field import NAME as FIELD
from fecbench.topologies.topology import TOPOLOGIES, check_backend, resolve_backend


def check(
    experiment: Experiment,
    engine: EngineName | None = None,
    carrier: Carrier = "auto",
    *,
    beside_virtual: bool = False,
    part_of_checked: bool = False,
) -> set[str]:
    """Raises Refusal, or TopologyError for a link, for the first thing that keeps its trials from being run.

    Returns the names of implementations that are not built, so that nobody asked them whether their options
    fit together. Without an engine, the design is only planned and nothing need be built. The design of an
    emulation beside a campaign in virtual time may say what endpoints take of a processor there.
    `part_of_checked`: its points are a few of a checked design, whose parameters all reach a trial.
    """
    if not part_of_checked:
        check_reach(experiment)
    check_workloads(experiment)
    check_pairs(experiment, engine)
    check_paths(experiment)
    if engine is not None:
        if not beside_virtual:
            check_engine(experiment, engine)
        if engine == "virtual":
            check_alone(experiment)
            check_simulated_links(experiment)
        check_topology(experiment, engine)
        check_built(experiment, engine)
    unbuilt = check_combinations(experiment, engine or "local")
    if engine is not None:
        check_links(experiment, resolve_backend(carrier) if engine == "local" else carrier)
    check_interop(experiment)
    check_until(experiment)
    return unbuilt


def check_topology(experiment: Experiment, engine: EngineName) -> None:
    """Raises Refusal for an emulated network in the field, and for the field elsewhere; and for endpoints
    that a path with one port for UDP cannot serve."""
    design = experiment.design
    if (design.topology == FIELD) != (engine == "field"):
        right = (
            f'the path is not ours: topology = "{FIELD}", without links'
            if engine == "field"
            else "has no link to emulate: use --engine field --server HOST:PORT"
        )
        raise Refusal(f"{design.path}: topology = {design.topology!r}: {right}")
    for arm in experiment.arms.values() if engine == "field" else ():
        if arm.is_interop:
            raise Refusal(f"{arm.where}: endpoints of the interop contract run with --engine local only")
        if arm.implementation.declaration.transport != "udp":
            raise Refusal(f"{arm.where}: --engine field has one port for UDP, and none for TCP")


def check_until(experiment: Experiment) -> None:
    """Raises Refusal for a design that runs until its results decide, and has nothing to be decided."""
    design = experiment.design
    if design.until and not baselines.compared(design, experiment.arms):
        raise Refusal(
            f"{design.path}: until = {design.until!r}: no variant is compared with another, so nothing can be"
            " decided: give one baseline = true"
        )


def check_simulated_links(experiment: Experiment) -> None:
    """Raises Refusal for links that the simulator of an implementation does not have."""
    lacking = [
        name
        for name, implementation in experiment.implementations.items()
        if not implementation.declaration.multipath
    ]
    if lacking and len(experiment.links) > 1 and experiment.topology.relay is None:
        design = experiment.design
        raise Refusal(
            f"{design.path}: topology = {design.topology!r}: {lacking[0]} has no multipath, so"
            " its simulator cannot have several links: use --engine local"
        )


def check_built(experiment: Experiment, engine: EngineName) -> None:
    """Raises Refusal when a program of an implementation is missing, or it has none for this engine."""
    for implementation in experiment.implementations.values():
        if engine == "virtual":
            implementation.simulator_command()
        implementation.check_built(engine)


def check_alone(experiment: Experiment) -> None:
    """Raises Refusal for trials in which two implementations meet: no simulator plays both."""
    for variant, workload in product(experiment.arms, experiment.activities):
        taking_part = experiment.taking_part(variant, workload)
        names = {arm.implementation.declaration.name: arm.label for arm in taking_part}
        if len(names) > 1:
            ends = " and ".join(f"{name} ({label!r})" for name, label in names.items())
            raise Refusal(
                f"{experiment.design.path}: variant {variant!r}, workload {workload}: {ends} take part in one"
                " trial, and a simulator plays its own implementation alone: use --engine local"
            )


def check_workloads(experiment: Experiment) -> None:
    """Raises Refusal for a workload that an implementation does not support."""
    for arm in experiment.arms.values():
        for activity in experiment.activities.values():
            arm.implementation.check_workload(activity.workload.asked_for, arm.where)
    for activity in experiment.activities.values():
        if "delivery" in activity.workload.parameters:
            for point in range(len(experiment.points)):
                _check_delivery(experiment, activity, activity.parameters(experiment.values(point)))


def _check_delivery(experiment: Experiment, activity: Activity, choices: Mapping[str, Any]) -> None:
    """Raises Refusal for a way to send messages that no implementation has.

    Trials of one that lacks it beside others that have it are unsupported.
    """
    delivery = choices.get("delivery", activity.workload.parameters["delivery"].default)
    deliveries_of = {
        arm.implementation.declaration.name: arm.implementation.declaration.deliveries
        for arm in experiment.arms.values()
    }
    if not any(delivery in deliveries for deliveries in deliveries_of.values()):
        have = "; ".join(f"{name} has {', '.join(deliveries)}" for name, deliveries in deliveries_of.items())
        raise Refusal(
            f"{experiment.design.path}: workload {activity.label}: delivery = {delivery!r}: no implementation"
            f" sends messages so: {have}"
        )


def check_pairs(experiment: Experiment, engine: EngineName | None) -> None:
    """Raises Refusal for more neighbours than the topology has pairs for, or than a simulator plays."""
    design, room = experiment.design, len(experiment.topology.pairs)
    for label, activity in experiment.activities.items():
        if activity.workload.pairs == 1:
            continue
        for point in range(len(experiment.points)):
            variant = next(iter(experiment.arms))
            pairs = experiment.task(TrialKey(variant, label, point, 0), "auto").pairs
            if len(pairs) > room:
                fitting = [name for name, layout in TOPOLOGIES.items() if len(layout.pairs) >= len(pairs)]
                raise Refusal(
                    f"{design.path}: workload {label}: needs {len(pairs)} client-server pairs, and topology ="
                    f" {design.topology!r} has {room}; it must be {' or '.join(fitting)}"
                )
            if engine == "virtual" and (len(pairs) > 2 or any(pair.lasts_s for pair in pairs)):
                raise Refusal(
                    f"{design.path}: workload {label}: a simulator plays one neighbour, from before the"
                    " measured transfer until its end: use --engine local"
                )


def check_interop(experiment: Experiment) -> None:
    """Raises Refusal for trials that an endpoint of the interop contract cannot take part in."""
    for (variant, arm), (workload, activity) in product(
        experiment.arms.items(), experiment.activities.items()
    ):
        if not any(one.is_interop for one in experiment.taking_part(variant, workload)):
            continue
        where = f"{arm.where}, workload {workload}"
        if activity.workload.pairs > 1:
            raise Refusal(
                f"{where}: an endpoint of the interop contract takes part, which the harness times by the"
                " link: no other transfer may share it; it must be a download alone"
            )
        for point in range(len(experiment.points)):
            size_bytes = activity.parameters(experiment.values(point)).get("size_bytes", 0)
            if size_bytes > interop.LARGEST_BYTES:
                raise Refusal(
                    f"{where}: size_bytes = {size_bytes}: what a client of the interop contract receives"
                    f" is held in memory; it must be at most {interop.LARGEST_BYTES}"
                )


def check_paths(experiment: Experiment) -> None:
    """Raises Refusal for more paths than an implementation can use, or than a client has addresses."""
    client, _ = experiment.topology.pairs[0]
    addresses = len(experiment.topology.addresses(client)) or 1  # in the field, the one that it has
    arms = [arm for arm in experiment.arms.values() if arm.has(PATHS)]
    for arm, point in product(arms, range(len(experiment.points))):
        declaration, paths = arm.implementation.declaration, arm.options(experiment.values(point))[PATHS]
        if paths > 1 and not declaration.multipath:
            raise Refusal(f"{arm.where}: paths = {paths}: {declaration.name} has no multipath; it must be 1")
        if paths > addresses:
            raise Refusal(
                f"{arm.where}: paths = {paths}: a client of topology {experiment.design.topology} has"
                f" {addresses} address{'es' * (addresses > 1)}; it must be at most {addresses}"
            )


def check_combinations(experiment: Experiment, engine: EngineName = "local") -> set[str]:
    """Raises Refusal for the first options of a variant that its implementation refuses together.

    Each set is asked about once, however often the experiment is checked. The names of implementations that
    are not built, and were not asked.
    """
    unbuilt = set()
    sets: dict[str, list[tuple[dict[str, Any], str]]] = {}
    implementations: dict[str, Implementation] = {}
    for arm in experiment.arms.values():
        name = arm.implementation.declaration.name
        implementations[name] = arm.implementation
        sets.setdefault(name, []).extend(_distinct_options(experiment, arm))
    for name, implementation in implementations.items():
        if implementation.missing_programs(engine):
            unbuilt.add(name)
        else:
            accepted = experiment.accepted_options.setdefault(name, set())
            new = [one for one in sets[name] if tuple(one[0].items()) not in accepted]
            implementation.check_each_together(new)
            accepted |= {tuple(options.items()) for options, _ in new}
    return unbuilt


def _distinct_options(experiment: Experiment, arm: Arm) -> list[tuple[dict[str, Any], str]]:
    """The different sets of options of a variant, each with what a refusal of it begins with."""
    options = (arm.options_set(experiment.values(index)) for index in range(len(experiment.points)))
    return [(dict(one), arm.where) for one in dict.fromkeys(tuple(choices.items()) for choices in options)]


def check_links(experiment: Experiment, backend: str) -> None:
    """Raises TopologyError for a point with a link that this backend can't be."""
    for tasks in experiment.link_tasks:
        for name, link in tasks.items():
            check_backend(backend, name, link.settings)
