"""A workload: its parameters, the client-server pairs that it needs, and their tasks.

A workload is a file or folder here with one subclass, and a line in `WORKLOADS` of the package. It owns
everything about itself: its parameters, the documents that it needs beside the design, the `workload` of
assignments, the demands of the judge, its metrics, and the sample by which implementations are tried.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from fecbench.hints import nearest
from fecbench.runners.options import Option
from fecbench.runners.refusal import Refusal
from fecbench.runners.tasks.demand import Demand
from fecbench.runners.tasks.outcome import Outcome
from fecbench.runners.tasks.requests import Conversation
from fecbench.runners.tasks.task import Role, Task
from fecbench.topologies.link import LinkSettings

if TYPE_CHECKING:
    import pyarrow as pa

SAMPLE_BYTES = 10_000
"""The content of a sample."""

COMPLETION = "dct_s"
"""The client's metric that says how long a transfer took, of the workloads that transfer something whole."""


@dataclass(frozen=True)
class Transfer:
    """The task of one client and its server."""

    variant: str
    """The label of the client's variant."""
    workload: dict[str, Any]
    """The `workload` of both assignments."""
    demand: Demand = field(default_factory=Demand)
    playout_ms: tuple[float, ...] = ()
    """Playout delays at which its messages are evaluated; empty for other workloads."""
    session: Mapping[str, Any] | None = None
    """The session by which the harness sends requests to the client during the trial; None: no requests."""
    begins_s: float | None = None
    """The time at which it begins, after the measured one, as `PairTask` has it."""
    lasts_s: float | None = None


@dataclass(frozen=True)
class Surroundings:
    """Values on which a workload may depend, besides its own parameters."""

    variant: str
    """The label of the variant that is measured."""
    link: LinkSettings | None
    """The first link of the topology; None: it has none, in the field."""
    timeout_s: float
    documents: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The documents of its kind that the campaign keeps, by name, as `read_document` returns them."""


@dataclass(frozen=True)
class Measured:
    """Measurements of a workload by the harness itself, from the records of both endpoints."""

    metrics: Mapping[str, float]
    """Metrics by name; the database stores them below the workload's name."""
    series: Mapping[tuple[str, str], "pa.Table"]
    """Series over time that the design wants to keep, by endpoint and name."""


class Impossible(ValueError):
    """The first impossible thing in the records of endpoints, in one line."""


class Workload:
    """A kind of transfer. Each subclass is one workload."""

    name: ClassVar[str]
    summary: ClassVar[str]
    parameters: ClassVar[Mapping[str, Option]]
    asked_for: ClassVar[str]
    """The workload that implementations have to support."""
    sample: ClassVar[Mapping[str, Any]] = {}
    """The `workload` of a small assignment by which implementations are tried. Empty: another workload's is
    used."""
    sample_session: ClassVar[Mapping[str, Any] | None] = None
    """The `session` of the sample."""
    verifier: ClassVar[Role] = "client"
    """The end that receives the content, and so can tell whether it is right."""
    pairs: ClassVar[int] = 1
    """Number of client-server pairs that take part."""
    relayed: ClassVar[bool] = False
    """Whether it may cross a relay, which knows its protocol."""
    completion: ClassVar[str] = COMPLETION
    """The client's metric, in s, whose report ends the trial; the client owes one above 0."""
    compared: ClassVar[str] = f"client.{COMPLETION}"
    """The metric that is compared when none is chosen."""

    documents: ClassVar[str] = ""
    """The folder beside the design of the documents that it needs, such as "pages"; none for most."""
    series: ClassVar[Mapping[str, int]] = {}
    """The series that both ends always leave, for `measure`, and the most bytes that each may have."""

    def reads(self, parameter: str, choices: Mapping[str, Any]) -> bool:  # noqa: ARG002
        """Whether this parameter changes anything beside these others."""
        return True

    def compared_with(self, choices: Mapping[str, Any]) -> str:  # noqa: ARG002
        """The metric that is compared when none is chosen, with these parameters."""
        return self.compared

    def check(self, choices: Mapping[str, Any], labels: Collection[str], where: str) -> None:  # noqa: ARG002
        """Raises Refusal for a parameter that is unknown, missing or out of range.

        `labels` are those of the design's variants.
        """
        self.check_values(choices, where)
        for name in self.parameters:
            if name not in choices:
                raise Refusal(f"{where}: workload {self.name}: {name} is missing")

    def check_values(self, choices: Mapping[str, Any], where: str) -> None:
        """Raises Refusal for a parameter that is unknown or out of range."""
        for name, value in choices.items():
            if name not in self.parameters:
                hint = nearest(name, self.parameters)
                raise Refusal(f"{where}: workload {self.name} has no parameter {name!r}; {hint}")
            if problem := self.parameters[name].problem_of(value):
                raise Refusal(f"{where}: workload {self.name}: {name} = {value!r} {problem}")

    def with_defaults(self, choices: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of all parameters."""
        return {name: option.default for name, option in self.parameters.items()} | dict(choices)

    def transfers(self, choices: Mapping[str, Any], around: Surroundings) -> list[Transfer]:
        """Return the task of each pair, the measured one first."""
        return [Transfer(around.variant, {"name": self.asked_for, **choices}, self.demand(choices))]

    def demand(self, choices: Mapping[str, Any]) -> Demand:  # noqa: ARG002
        """Return the least that the measured transfer needs."""
        return Demand()

    def demand_of(self, workload: Mapping[str, Any]) -> Demand:
        """Return the least that a transfer of this `workload` of an assignment needs."""
        return self.demand(workload)

    def document(self, choices: Mapping[str, Any], folders: Sequence[Path]) -> tuple[str, Path] | None:  # noqa: ARG002
        """The name and the file of the document that it needs, if it needs one. Raises Refusal."""
        return None

    def read_document(self, path: Path) -> dict[str, Any]:
        """A document as a campaign keeps it: its `sha256`, and all that is needed to run it again.

        Raises Refusal.
        """
        raise NotImplementedError

    def conversation(self, session: Mapping[str, Any] | None) -> Conversation | None:  # noqa: ARG002
        """Return the requests of the harness to the client during a trial, by the `session` of its pair;
        None: none."""
        return None

    def settled(self, task: Task, outcome: Outcome) -> Task:  # noqa: ARG002
        """The task with what is known of its demand when it is over."""
        return task

    def measure(self, task: Task, outcome: Outcome) -> Measured | None:  # noqa: ARG002
        """Return the harness's measurements of a trial whose endpoints succeeded; None: none.

        Raises Impossible, and SeriesError for a series that cannot be read.
        """
        return None


def size_bytes() -> Option:
    """The parameter of all workloads that transfer one object."""
    return Option(type="integer", minimum=0, maximum=2**40, default=0, help="Bytes to transfer.")
