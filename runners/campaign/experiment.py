"""A design resolved: each name that it says is looked up once, and a trial's task is put together from that.

Whatever can be known to be wrong with a design is refused here, before anything runs: names, the values of
all points, and options that do not fit together.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from fecbench import designs
from fecbench.designs import Design
from fecbench.dropper.model import LossModelError
from fecbench.hints import nearest
from fecbench.results.store.records import TrialKey
from fecbench.runners import workloads
from fecbench.runners.campaign import checks, links, processors
from fecbench.runners.implementations import interop
from fecbench.runners.implementations.declaration import PATHS
from fecbench.runners.implementations.finding import Implementations
from fecbench.runners.implementations.implementation import EngineName, Implementation
from fecbench.runners.implementations.interop import Interop
from fecbench.runners.refusal import Refusal
from fecbench.runners.tasks import validity
from fecbench.runners.tasks.task import (
    ROLES,
    VIRTUAL,
    Carrier,
    EndpointTask,
    InteropTask,
    LinkTask,
    PairTask,
    ProcessorTask,
    Role,
    Seeds,
    Task,
)
from fecbench.runners.trial.site import Bundles, Commands
from fecbench.runners.workloads.workload import Surroundings, Transfer, Workload
from fecbench.topologies.layout import Layout
from fecbench.topologies.link import DIRECTIONS, TopologyError
from fecbench.topologies.topology import TOPOLOGIES, check_backend

DEFAULT_TIMEOUT_S = 120.0
FIRST_LINK = "internet"
"""By this name the losses of each topology's first link are drawn, whatever its own is."""
SERVER = "server"
"""The parameter of every workload that has its servers run by another variant, by label."""

Values = Mapping[str, Any]


@dataclass(frozen=True)
class Arm:
    """A variant, with its implementation."""

    label: str
    implementation: Implementation
    chosen: Mapping[str, Any]
    """The options that the variant sets itself."""
    series: tuple[str, ...]
    server: str
    """The label of the variant that runs its servers."""
    where: str
    """Where it is written."""

    @property
    def is_interop(self) -> bool:
        """Whether its implementation is of the interop runner's contract."""
        return self.implementation.declaration.interop is not None

    def has(self, option: str) -> bool:
        """Whether its implementation has this option."""
        return option in self.implementation.declaration.options

    def takes(self, option: str) -> bool:
        """Whether it gets this option from a point."""
        return self.has(option) and option not in self.chosen

    def options_set(self, values: Values) -> dict[str, Any]:
        """The options that are not left to the defaults; the variant's own go before those of a point."""
        of_point = {name: value for name, value in _below(values, checks.OPTION) if self.takes(name)}
        return {**of_point, **self.chosen}

    def options(self, values: Values) -> dict[str, Any]:
        """All options at a point. Raises Refusal for one that is unknown or out of range."""
        return dict(self.implementation.options(self.options_set(values), self.where))


@dataclass(frozen=True)
class Activity:
    """A workload of the design: what endpoints do, with the parameters that it sets itself."""

    label: str
    workload: Workload
    chosen: Mapping[str, Any]
    server: str | None
    """The label of the variant that runs its servers; None: each variant's own."""

    def has(self, parameter: str) -> bool:
        """Whether it knows this parameter."""
        return parameter in self.workload.parameters

    def takes(self, parameter: str) -> bool:
        """Whether it gets this parameter from a point."""
        return self.has(parameter) and parameter not in self.chosen

    def parameters(self, values: Values) -> dict[str, Any]:
        """All parameters at a point; its own go before those of the point."""
        of_point = {name: value for name, value in _below(values, checks.WORKLOAD) if self.takes(name)}
        return {**of_point, **self.chosen}


Documents = Mapping[str, Mapping[str, Any]]
"""What workloads need beside the design: by kind (`pages`, `traces`) and name, as a campaign keeps it."""


class Experiment:
    """What a campaign runs: for each trial its task.

    `documents` are those that workloads need, by kind and name, as a campaign has stored them; None reads the
    files beside the design.
    """

    def __init__(
        self,
        design: Design,
        points: Sequence[Values],
        implementations: Implementations,
        documents: Documents | None = None,
    ) -> None:
        self.design = design
        self.points = points
        self.topology = _layout(design)
        self.arms = {variant.label: _arm(design, variant, implementations) for variant in design.variants}
        self.activities = {workload.label: _activity(design, workload) for workload in design.workloads}
        self.links = [link.name for link in self.topology.links]
        """By name."""
        checks.check_names(design, self.links, self.implementations.values())
        checks.check_pairs(design, [activity.workload for activity in self.activities.values()])
        self._link_tasks = [self._links_at(index) for index in range(len(points))]
        self._processors = [self._processor_at(index) for index in range(len(points))]
        self._check_points()
        self.documents: Documents = self._documents() if documents is None else documents

    @property
    def implementations(self) -> dict[str, Implementation]:
        """Those of all variants, by name."""
        return {arm.implementation.declaration.name: arm.implementation for arm in self.arms.values()}

    @property
    def commands(self) -> Commands:
        """What starts the endpoints of each implementation here."""
        return commands_of(self.implementations)

    @property
    def simulators(self) -> dict[str, list[str]]:
        """What starts the simulator of each implementation here. Raises Refusal where there is none."""
        return simulators_of(self.implementations)

    @property
    def folders(self) -> dict[str, Path]:
        """Where each implementation is."""
        return folders_of(self.implementations)

    @property
    def timeout_s(self) -> float:
        return self.design.timeout_s or DEFAULT_TIMEOUT_S

    @property
    def bundles(self) -> Bundles:
        """Of those implementations whose programs are in an OCI runtime bundle."""
        return bundles_of(self.implementations)

    def task(self, key: TrialKey, backend: Carrier) -> Task:
        """The task of one trial."""
        activity = self.activities[key.workload]
        return Task(
            topology=self.design.topology,
            backend=backend,
            links=self._link_tasks[key.point],
            seeds=self.seeds(key),
            pairs=[
                self._pair(transfer, activity, self._values(key.point))
                for transfer in self._transfers(key, activity)
            ],
            completion=activity.workload.completion,
            timeout_s=self.timeout_s,
            validity=validity.USUAL,
            processor=self._processors[key.point] if backend == VIRTUAL else ProcessorTask(),
        )

    @property
    def timed_by_harness(self) -> list[str]:
        """The labels of the variants whose clients do not time their transfers."""
        return [label for label, arm in self.arms.items() if arm.is_interop]

    @property
    def processor_times(self) -> dict[str, tuple[float, float]]:
        """The least and the most of each time of a processor that the design gives endpoints."""
        return processors.spans(self._values(index) for index in range(len(self.points)))

    def seeds(self, key: TrialKey) -> Seeds:
        """They do not depend on the variant: all variants and workloads meet the same losses. Nor do those of
        the first link depend on the topology: over one of several paths they are those of a single one."""
        root, path = self.design.seed, ("point", key.point, "repetition", key.repetition)
        return Seeds(
            content=designs.seed(root, *path, "content"),
            losses={
                link: {
                    direction: designs.seed(root, *path, "link", drawn_as, "direction", direction)
                    for direction in DIRECTIONS
                }
                for link, drawn_as in zip(self.links, (FIRST_LINK, *self.links[1:]), strict=True)
            },
        )

    def taking_part(self, variant: str, workload: str) -> list[Arm]:
        """Whose programs run in the trials of a variant with a workload at any point, by these labels."""
        activity = self.activities[workload]
        labels: dict[str, None] = {}
        for point in range(len(self.points)):
            for transfer in self._transfers(TrialKey(variant, workload, point, 0), activity):
                server = self._server_of(transfer, activity)
                labels |= dict.fromkeys((transfer.variant, server.label))
        return [self.arms[label] for label in labels]

    def reads(self, workload: str, parameter: str) -> bool:
        """Whether the workload of this label gets this parameter, and it changes anything, at any point."""
        activity = self.activities[workload]
        return activity.takes(parameter) and any(
            activity.workload.reads(parameter, activity.parameters(self._values(point)))
            for point in range(len(self.points))
        )

    def check_simulated_links(self) -> None:
        """Raises Refusal for links that the simulator of an implementation does not have."""
        lacking = [name for name, known in self.implementations.items() if not known.declaration.multipath]
        if lacking and len(self.links) > 1:
            raise Refusal(
                f"{self.design.path}: topology = {self.design.topology!r}: {lacking[0]} has no multipath, so"
                " its simulator cannot have several links: use --engine local"
            )

    def check_built(self, engine: EngineName) -> None:
        """Raises Refusal when a program of an implementation is missing, or it has none for this engine."""
        for implementation in self.implementations.values():
            if engine == "virtual":
                implementation.simulator_command()
            implementation.check_built(engine)

    def check_alone(self) -> None:
        """Raises Refusal for trials in which two implementations meet: no simulator plays both."""
        for variant, workload in product(self.arms, self.activities):
            taking_part = self.taking_part(variant, workload)
            names = {arm.implementation.declaration.name: arm.label for arm in taking_part}
            if len(names) > 1:
                met = " and ".join(f"{name} ({label!r})" for name, label in names.items())
                raise Refusal(
                    f"{self.design.path}: variant {variant!r}, workload {workload}: {met} take part in one"
                    " trial, and a simulator plays its own implementation alone: use --engine local"
                )

    def check_workloads(self) -> None:
        """Raises Refusal for a workload that an implementation does not support."""
        for arm in self.arms.values():
            for activity in self.activities.values():
                arm.implementation.check_workload(activity.workload.asked_for, arm.where)

    def check_interop(self) -> None:
        """Raises Refusal for trials that an endpoint of the interop contract cannot take part in."""
        for (variant, arm), (workload, activity) in product(self.arms.items(), self.activities.items()):
            if not any(one.is_interop for one in self.taking_part(variant, workload)):
                continue
            where = f"{arm.where}, workload {workload}"
            if activity.workload.pairs > 1:
                raise Refusal(
                    f"{where}: an endpoint of the interop contract takes part, which the harness times by the"
                    " link: no other transfer may share it; it must be a download alone"
                )
            for point in range(len(self.points)):
                size_bytes = activity.parameters(self._values(point)).get("size_bytes", 0)
                if size_bytes > interop.LARGEST_BYTES:
                    raise Refusal(
                        f"{where}: size_bytes = {size_bytes}: what a client of the interop contract receives"
                        f" is held in memory; it must be at most {interop.LARGEST_BYTES}"
                    )

    def check_paths(self) -> None:
        """Raises Refusal for more paths than an implementation can use, or than a client has addresses."""
        client, _ = self.topology.pairs[0]
        addresses = len(self.topology.addresses(client))
        for arm, point in product(self.arms.values(), range(len(self.points))):
            declaration, paths = (
                arm.implementation.declaration,
                arm.options(self._values(point)).get(PATHS, 1),
            )
            if paths > 1 and not declaration.multipath:
                raise Refusal(
                    f"{arm.where}: paths = {paths}: {declaration.name} has no multipath; it must be 1"
                )
            if paths > addresses:
                raise Refusal(
                    f"{arm.where}: paths = {paths}: a client of topology {self.design.topology} has"
                    f" {addresses} address{'es' * (addresses > 1)}; it must be at most {addresses}"
                )

    def check_combinations(self, engine: EngineName = "local") -> set[str]:
        """Raises Refusal for the first options of a variant that its implementation refuses together.

        Each set is asked about once. The names of implementations that are not built, and were not asked.
        """
        unbuilt = set()
        sets: dict[str, list[tuple[dict[str, Any], str]]] = {}
        implementations: dict[str, Implementation] = {}
        for arm in self.arms.values():
            name = arm.implementation.declaration.name
            implementations[name] = arm.implementation
            sets.setdefault(name, []).extend(self._distinct_options(arm))
        for name, implementation in implementations.items():
            if implementation.missing_programs(engine):
                unbuilt.add(name)
            else:
                implementation.check_each_together(sets[name])
        return unbuilt

    def _distinct_options(self, arm: Arm) -> list[tuple[dict[str, Any], str]]:
        """The different sets of options of a variant, each with what a refusal of it begins with."""
        options = (arm.options_set(self._values(index)) for index in range(len(self.points)))
        return [(dict(one), arm.where) for one in dict.fromkeys(tuple(chosen.items()) for chosen in options)]

    def _values(self, point: int) -> Values:
        return {**self.design.constants, **self.points[point]}

    def _transfers(self, key: TrialKey, activity: Activity) -> list[Transfer]:
        first_link, *_ = self._link_tasks[key.point].values()
        of_kind = self.documents.get(activity.workload.documents, {})
        around = Surroundings(key.variant, first_link.settings, self.timeout_s, of_kind)
        try:
            return activity.workload.transfers(activity.parameters(self._values(key.point)), around)
        except Refusal as refusal:
            raise Refusal(f"{self.design.path}: point {key.point}: {refusal}") from None

    def _pair(self, transfer: Transfer, activity: Activity, values: Values) -> PairTask:
        arm, server = self.arms[transfer.variant], self._server_of(transfer, activity)
        return PairTask(
            client=_end("client", arm, arm.series, values),
            server=_end("server", server, arm.series, values),
            workload=transfer.workload,
            demand=transfer.demand,
            playout_ms=list(transfer.playout_ms),
        )

    def _server_of(self, transfer: Transfer, activity: Activity) -> Arm:
        return self.arms[activity.server or self.arms[transfer.variant].server]

    def check_links(self, backend: Carrier) -> None:
        """Raises TopologyError for a point with a link that this backend can't be."""
        for tasks in self._link_tasks:
            for name, link in tasks.items():
                check_backend(backend, name, link.settings)

    def _links_at(self, point: int) -> dict[str, LinkTask]:
        try:
            return links.link_tasks(self._values(point), self.links, validity.USUAL)
        except (TopologyError, LossModelError) as error:
            raise Refusal(f"{self.design.path}: point {point}: {error}") from error

    def _processor_at(self, index: int) -> ProcessorTask:
        try:
            return processors.processor_task(self._values(index))
        except Refusal as refusal:
            raise Refusal(f"{self.design.path}: point {index}: {refusal}") from refusal

    def _documents(self) -> Documents:
        """Those that workloads need at any point, read from the files beside the design."""
        found: dict[str, dict[str, Any]] = {}
        for activity in self.activities.values():
            for point in range(len(self.points)):
                needed = activity.workload.document(
                    activity.parameters(self._values(point)), self.design.path
                )
                if needed is None:
                    break
                of_kind, (name, path) = found.setdefault(activity.workload.documents, {}), needed
                if name not in of_kind:
                    of_kind[name] = activity.workload.read_document(path)
        return {kind: dict(sorted(of_kind.items())) for kind, of_kind in found.items()}

    def _check_points(self) -> None:
        """Raises Refusal for the first value of a point that an option or a workload refuses."""
        for point in range(len(self.points)):
            values = self._values(point)
            for arm in self.arms.values():
                arm.options(values)
            for activity in self.activities.values():
                activity.workload.check(activity.parameters(values), self.arms, self.design.path)


def documents_in(provenance: Mapping[str, Any]) -> Documents:
    """The documents that a campaign has kept; older campaigns have none."""
    return {kind: provenance[kind] for kind in workloads.KINDS if kind in provenance}


def commands_of(implementations: Mapping[str, Implementation]) -> Commands:
    """What starts the endpoints of these implementations here."""
    return {
        name: {role: implementation.command(role) for role in ROLES}
        for name, implementation in implementations.items()
    }


def simulators_of(implementations: Mapping[str, Implementation]) -> dict[str, list[str]]:
    """What starts their simulators here. Raises Refusal for an implementation that has none."""
    return {name: implementation.simulator_command() for name, implementation in implementations.items()}


def folders_of(implementations: Mapping[str, Implementation]) -> dict[str, Path]:
    """Where each of these implementations is."""
    return {name: implementation.folder for name, implementation in implementations.items()}


def bundles_of(implementations: Mapping[str, Implementation]) -> Bundles:
    """Of those whose programs are in an OCI runtime bundle."""
    found = {name: implementation.bundle for name, implementation in implementations.items()}
    return {name: bundle for name, bundle in found.items() if bundle is not None}


def _layout(design: Design) -> Layout:
    if design.topology not in TOPOLOGIES:
        hint = nearest(design.topology, TOPOLOGIES)
        raise Refusal(f"{design.path}: topology = {design.topology!r}: there is none of that name; {hint}")
    return TOPOLOGIES[design.topology]


def _arm(design: Design, variant: designs.Variant, implementations: Implementations) -> Arm:
    where = f"{design.path}: variant {variant.label!r}"
    implementation = implementations.find(variant.implementation, where)
    for name in variant.series:
        if name not in (known := implementation.declaration.series):
            raise Refusal(
                f"{where}: {variant.implementation} leaves no series {name!r}; {nearest(name, known)}"
            )
    server = _label(design, f"{where}: server", variant.server or variant.label)
    arm = Arm(variant.label, implementation, variant.options, tuple(variant.series), server, where)
    arm.options({})
    return arm


def _activity(design: Design, workload: designs.Workload) -> Activity:
    kind = workloads.find(workload.name, design.path)
    chosen = dict(workload.parameters)
    server = chosen.pop(SERVER, None)
    if server is not None:
        where = f"{design.path}: workload {workload.name}: server"
        server = _label(design, where, server)
        if own := next((variant.label for variant in design.variants if variant.server), None):
            raise Refusal(
                f"{where} = {server!r}: variant {own!r} names a server, too; it must be one of both"
            )
    return Activity(workload.label, kind, chosen, server)


def _label(design: Design, where: str, label: object) -> str:
    """The label of a variant. Raises Refusal when the design has none of that label."""
    labels = [variant.label for variant in design.variants]
    if label not in labels:
        raise Refusal(f"{where} = {label!r}: is no label of a variant; {nearest(str(label), labels)}")
    return str(label)


def _end(role: Role, arm: Arm, wanted: Iterable[str], values: Values) -> EndpointTask:
    """One end of a pair: of the series that the client's variant wants, it is asked for its own."""
    declaration, options = arm.implementation.declaration, arm.options(values)
    return EndpointTask(
        implementation=declaration.name,
        options=options,
        series=[name for name in declaration.series if name in wanted],
        local_addresses=declaration.local_addresses,
        transport=declaration.transport,
        content_seed_hex=declaration.content_seed_hex,
        fec=None if declaration.fec is None else declaration.fec.is_on(options),
        owes_repair=declaration.fec is None or declaration.fec.owes_repair(options),
        interop=_interop(role, declaration.interop),
    )


def _interop(role: Role, declared: Interop | None) -> InteropTask | None:
    if declared is None:
        return None
    return InteropTask(testcase=declared.testcase, env=declared.env, params=declared.params_of(role))


def _below(values: Values, prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if name.startswith(prefix):
            yield name.removeprefix(prefix), value
