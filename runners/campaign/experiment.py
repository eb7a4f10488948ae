"""A design resolved: each of its names is looked up once, and tasks of trials are assembled from that.

Whatever can be known to be wrong with a design is refused here, before anything runs: names, the values of
all points, and options that do not fit together.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from fecbench import designs
from fecbench.designs import Design
from fecbench.dropper.draws import LossModelError
from fecbench.hints import nearest
from fecbench.results.store.digest import TaskDocument
from fecbench.results.store.records import TrialKey
from fecbench.runners import workloads
from fecbench.runners.campaign import links, names, processors
from fecbench.runners.campaign.arms import Activity, Arm, Values, activity_of, arm_of, options_in
from fecbench.runners.implementations.finding import Implementations
from fecbench.runners.implementations.implementation import Implementation
from fecbench.runners.refusal import Refusal
from fecbench.runners.tasks import validity
from fecbench.runners.tasks.task import (
    CONTENT,
    VIRTUAL,
    Carrier,
    EndpointTask,
    LinkTask,
    PairTask,
    ProcessorTask,
    Task,
    seed_name,
)
from fecbench.runners.trial import ends
from fecbench.runners.workloads.workload import Surroundings, Transfer
from fecbench.topologies import field
from fecbench.topologies.family import Family, check_family
from fecbench.topologies.layout import Layout
from fecbench.topologies.link import DIRECTIONS, TopologyError
from fecbench.topologies.topology import TOPOLOGIES

DEFAULT_TIMEOUT_S = 120.0
FIRST_LINK = "internet"
"""Name by which the losses of each topology's first link are drawn, whatever the link's own name is."""
TASKS_KEPT, SEEDS_KEPT, ENDS_KEPT = 2304, 64, 256
"""Most tasks without their seeds that are kept at a time, for all repetitions of a trial; most seeds of
repetitions, for all variants of a group; and most pairs of ends, for all points."""
Documents = Mapping[str, Mapping[str, Any]]
"""Documents that workloads and links need beside the design: by kind (`pages`) and name, as a campaign stores
them."""


class Experiment:
    """The tasks of a campaign's trials.

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
        self.arms = {variant.label: arm_of(design, variant, implementations) for variant in design.variants}
        self.activities = {workload.label: activity_of(design, workload) for workload in design.workloads}
        self.accepted_options: dict[str, set[tuple[Any, ...]]] = {}
        """Sets of options that fit together by the answer of an implementation, by its name."""
        self.links = [link.name for link in self.topology.links]
        """Names of the links."""
        names.check_names(design, self.links, self.implementations.values())
        asked_for = [activity.workload for activity in self.activities.values()]
        names.check_pairs(design, asked_for)
        names.check_relay(design, asked_for, self.implementations.values())
        self._traces = self._read_traces() if documents is None else documents.get(links.KIND, {})
        self.link_tasks = [self._links_at(index) for index in range(len(points))]
        self._processors = [self._processor_at(index) for index in range(len(points))]
        self._families = [self._family_at(index) for index in range(len(points))]
        self._check_points()
        self._tasks = lru_cache(maxsize=TASKS_KEPT)(self._new_task)
        self._seeds = lru_cache(maxsize=SEEDS_KEPT)(self._new_seeds)
        self._ends = lru_cache(maxsize=ENDS_KEPT)(self._new_ends)
        self.documents: Documents = self._documents() if documents is None else documents

    @property
    def implementations(self) -> dict[str, Implementation]:
        """The implementations of all variants, by name."""
        return {arm.implementation.declaration.name: arm.implementation for arm in self.arms.values()}

    @property
    def timeout_s(self) -> float:
        return self.design.timeout_s or DEFAULT_TIMEOUT_S

    def task(self, key: TrialKey, backend: Carrier) -> Task:
        """The task of one trial."""
        task = self._tasks(key.variant, key.workload, key.point, backend)
        return task.model_copy(update={"seeds": self.seeds(key)})

    @property
    def timed_by_harness(self) -> list[str]:
        """The labels of the variants whose clients do not time their transfers."""
        return [label for label, arm in self.arms.items() if arm.is_interop]

    @property
    def processor_times(self) -> dict[str, tuple[float, float]]:
        """The least and the most of each processor time in the design."""
        return processors.spans(self.values(index) for index in range(len(self.points)))

    def seeds(self, key: TrialKey) -> dict[str, int]:
        """Return the seeds of a trial. They do not depend on the variant: all variants and workloads meet the
        same losses.

        The seeds of the first link do not depend on the topology either: one of several paths has the same
        losses as a single path.
        """
        return dict(self._seeds(key.point, key.repetition))

    def _new_seeds(self, point: int, repetition: int) -> dict[str, int]:
        root, path = self.design.seed, ("point", point, "repetition", repetition)
        drawn_as = {**dict.fromkeys(self.links[:1], FIRST_LINK), **{name: name for name in self.links[1:]}}

        def drawn(link: str, what: str) -> int:
            parts = what.split("/")
            kind = ("direction",) if parts[0] in DIRECTIONS else ()
            return designs.seed(root, *path, "link", drawn_as[link], *kind, *parts)

        names: list[tuple[str, str]] = [(link, direction) for link in self.links for direction in DIRECTIONS]
        names += [
            (link, what) for link, task in self.link_tasks[point].items() for what in task.settings.drawn
        ]
        of_links = {seed_name(link, what): drawn(link, what) for link, what in names}
        return {CONTENT: designs.seed(root, *path, "content"), **of_links}

    def taking_part(self, variant: str, workload: str) -> list[Arm]:
        """Return the arms whose programs run in the trials of a variant with a workload, by these labels."""
        labels: dict[str, None] = {}
        for asking in self._asking[workload]:
            label = asking or variant
            labels |= dict.fromkeys((label, self._server_of(label, self.activities[workload]).label))
        return [self.arms[label] for label in labels]

    @cached_property
    def _asking(self) -> dict[str, list[str]]:
        """The variants of each workload's transfers at any point; "" is that of the trial itself."""
        return {
            workload: list(
                dict.fromkeys(
                    transfer.variant
                    for point in range(len(self.points))
                    for transfer in self._transfers(TrialKey("", workload, point, 0), activity)
                )
            )
            for workload, activity in self.activities.items()
        }

    def reads(self, workload: str, parameter: str) -> bool:
        """Whether the workload of this label gets this parameter, and it changes anything, at any point."""
        activity = self.activities[workload]
        return activity.takes(parameter) and any(
            activity.workload.reads(parameter, activity.parameters(self.values(point)))
            for point in range(len(self.points))
        )

    def values(self, point: int) -> Values:
        """Return the values of all factors and constants at a point."""
        return {**self.design.constants, **self.points[point]}

    def _transfers(self, key: TrialKey, activity: Activity) -> list[Transfer]:
        first_link = next(iter(self.link_tasks[key.point].values()), None)
        of_kind = self.documents.get(activity.workload.documents, {})
        settings = None if first_link is None else first_link.settings
        around = Surroundings(key.variant, settings, self.timeout_s, of_kind)
        try:
            return activity.workload.transfers(activity.parameters(self.values(key.point)), around)
        except Refusal as refusal:
            raise Refusal(f"{self.design.path}: point {key.point}: {refusal}") from None

    def _new_task(self, variant: str, workload: str, point: int, backend: Carrier) -> Task:
        """Return the task of a trial's first repetition."""
        task = Task(
            topology=self.design.topology,
            family=self._families[point],
            backend=backend,
            links=self.link_tasks[point],
            seeds=self._seeds(point, 0),
            pairs=self._new_pairs(variant, workload, point),
            completion=self.activities[workload].workload.completion,
            timeout_s=self.timeout_s,
            validity=validity.USUAL,
            processor=self._processors[point] if backend == VIRTUAL else ProcessorTask(),
        )
        task.share(TaskDocument(task.document()))
        return task

    def _new_pairs(self, variant: str, workload: str, point: int) -> list[PairTask]:
        activity = self.activities[workload]
        return [
            self._pair(transfer, activity, self.values(point))
            for transfer in self._transfers(TrialKey(variant, workload, point, 0), activity)
        ]

    def _pair(self, transfer: Transfer, activity: Activity, values: Values) -> PairTask:
        server = self._server_of(transfer.variant, activity)
        # 1 and 1.0 are equal, and no such options are one.
        options = tuple((name, value, type(value)) for name, value in options_in(values).items())
        asking, serving = self._ends(transfer.variant, server.label, options)
        return PairTask(
            client=asking,
            server=serving,
            workload=transfer.workload,
            demand=transfer.demand,
            playout_ms=list(transfer.playout_ms),
            session=None if transfer.session is None else dict(transfer.session),
            begins_s=transfer.begins_s,
            lasts_s=transfer.lasts_s,
        )

    def _new_ends(
        self, variant: str, server: str, options: tuple[tuple[str, Any, type], ...]
    ) -> tuple[EndpointTask, EndpointTask]:
        """Return both ends of a pair of variants, by the options of a point."""
        arms, values = (self.arms[variant], self.arms[server]), {name: value for name, value, _ in options}
        client_end, server_end = ((arm.implementation, arm.options(values)) for arm in arms)
        return ends.pair_of(client_end, server_end, arms[0].series)

    def _server_of(self, variant: str, activity: Activity) -> Arm:
        return self.arms[activity.server or self.arms[variant].server]

    def _links_at(self, point: int) -> dict[str, LinkTask]:
        try:
            return links.link_tasks(self.values(point), self.links, validity.USUAL, self._traces)
        except (TopologyError, LossModelError) as error:
            raise Refusal(f"{self.design.path}: point {point}: {error}") from error

    def _processor_at(self, index: int) -> ProcessorTask:
        try:
            return processors.processor_task(self.values(index))
        except Refusal as refusal:
            raise Refusal(f"{self.design.path}: point {index}: {refusal}") from refusal

    def _family_at(self, point: int) -> Family:
        try:
            return check_family(self.values(point).get(names.FAMILY, "ipv4"))
        except TopologyError as error:
            raise Refusal(f"{self.design.path}: point {point}: {error}") from error

    def _read_traces(self) -> dict[str, Any]:
        """Read the traces that links follow at any point, from the files beside the design."""
        trace_names = {
            name
            for index in range(len(self.points))
            for name in links.traces_in(self.values(index), self.links)
        }
        try:
            return {name: links.read_trace(name, self.design.folders) for name in sorted(trace_names)}
        except (Refusal, TopologyError) as error:
            raise Refusal(f"{self.design.path}: {error}") from error

    def _documents(self) -> Documents:
        """Read the documents that workloads need at any point from the files beside the design, and the
        traces."""
        documents: dict[str, dict[str, Any]] = {links.KIND: dict(self._traces)} if self._traces else {}
        for activity in self.activities.values():
            for point in range(len(self.points)):
                needed = self._document(activity, point)
                if needed is None:
                    break
                of_kind, (name, path) = documents.setdefault(activity.workload.documents, {}), needed
                if name not in of_kind:
                    of_kind[name] = activity.workload.read_document(path)
        return {kind: dict(sorted(of_kind.items())) for kind, of_kind in documents.items()}

    def _document(self, activity: Activity, point: int) -> tuple[str, Path] | None:
        try:
            return activity.workload.document(activity.parameters(self.values(point)), self.design.folders)
        except Refusal as refusal:
            raise Refusal(f"{self.design.path}: {refusal}") from refusal

    def _check_points(self) -> None:
        """Raises Refusal for the first value of a point that an option or a workload refuses."""
        for point in range(len(self.points)):
            values = self.values(point)
            for arm in self.arms.values():
                arm.options(values)
            for activity in self.activities.values():
                activity.workload.check(activity.parameters(values), self.arms, self.design.path)


def documents_in(provenance: Mapping[str, Any]) -> Documents:
    """The documents that a campaign has kept; older campaigns have none."""
    return {kind: provenance[kind] for kind in (*workloads.KINDS, links.KIND) if kind in provenance}


def _layout(design: Design) -> Layout:
    if design.topology == field.NAME:
        return field.FIELD
    if design.topology not in TOPOLOGIES:
        hint = nearest(design.topology, [*TOPOLOGIES, field.NAME])
        raise Refusal(f"{design.path}: topology = {design.topology!r}: there is none of that name; {hint}")
    return TOPOLOGIES[design.topology]
