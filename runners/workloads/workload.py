"""What a workload is: its parameters, the client-server pairs that it needs, and what these are asked for.

A workload is one file or folder of this folder with one subclass, and one line in `WORKLOADS` of the package.
It owns everything about itself: its parameters, the documents that it needs beside the design, what endpoints
are told, what the judge asks of it, its metrics, and the sample that implementations are tried with.
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
    """What one client and its server are asked for."""

    variant: str
    """The label of the client's variant."""
    workload: dict[str, Any]
    """The `workload` of both assignments."""
    demand: Demand = field(default_factory=Demand)
    playout_ms: tuple[float, ...] = ()
    """The playout delays at which its messages are asked for; of other workloads none."""
    session: Mapping[str, Any] | None = None
    """What decides what the harness asks the client for in the course of the trial; None: it asks nothing."""


@dataclass(frozen=True)
class Surroundings:
    """What a workload may depend on besides its own parameters."""

    variant: str
    """The label of the variant that is measured."""
    link: LinkSettings
    """The first link of the topology."""
    timeout_s: float
    documents: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The documents of its kind that the campaign keeps, by name, as `read_document` returns them."""


@dataclass(frozen=True)
class Measured:
    """What the harness measures itself of a workload, from what both endpoints noted."""

    metrics: Mapping[str, float]
    """By name; the database keeps them below the workload's name."""
    series: Mapping[tuple[str, str], "pa.Table"]
    """What the design wants to be kept over time: by endpoint and name."""


class Impossible(ValueError):
    """Says in one line what of the things that endpoints noted cannot be."""


class Workload:
    """What endpoints do. Subclasses say what differs."""

    name: ClassVar[str]
    summary: ClassVar[str]
    parameters: ClassVar[Mapping[str, Option]]
    asked_for: ClassVar[str]
    """The workload that implementations have to support."""
    sample: ClassVar[Mapping[str, Any]] = {}
    """What implementations are tried with: the `workload` of an assignment, small. Empty: that of another."""
    sample_session: ClassVar[Mapping[str, Any] | None] = None
    """The `session` of that."""
    verifier: ClassVar[Role] = "client"
    """The end that receives the content, and so can tell whether it is right."""
    pairs: ClassVar[int] = 1
    """How many client-server pairs take part."""
    completion: ClassVar[str] = COMPLETION
    """The client's metric, in s, whose report ends the trial; the client owes one above 0."""
    compared: ClassVar[str] = f"client.{COMPLETION}"
    """The metric that is compared when none is chosen."""

    documents: ClassVar[str] = ""
    """The folder beside the design of the documents that it needs, such as "pages"; none for most."""
    series: ClassVar[Mapping[str, int]] = {}
    """The series that both ends always leave, for `measure`, and the most bytes that each may have."""

    def reads(self, parameter: str, chosen: Mapping[str, Any]) -> bool:  # noqa: ARG002
        """Whether this parameter changes anything beside these others."""
        return True

    def compared_with(self, chosen: Mapping[str, Any]) -> str:  # noqa: ARG002
        """The metric that is compared when none is chosen, with these parameters."""
        return self.compared

    def check(self, chosen: Mapping[str, Any], labels: Collection[str], where: str) -> None:  # noqa: ARG002
        """Raises Refusal for a parameter that is unknown, missing or out of range.

        `labels` are those of the design's variants.
        """
        self.check_values(chosen, where)
        for name in self.parameters:
            if name not in chosen:
                raise Refusal(f"{where}: workload {self.name}: {name} is missing")

    def check_values(self, chosen: Mapping[str, Any], where: str) -> None:
        """Raises Refusal for a parameter that is unknown or out of range."""
        for name, value in chosen.items():
            if name not in self.parameters:
                hint = nearest(name, self.parameters)
                raise Refusal(f"{where}: workload {self.name} has no parameter {name!r}; {hint}")
            if problem := self.parameters[name].problem_of(value):
                raise Refusal(f"{where}: workload {self.name}: {name} = {value!r} {problem}")

    def transfers(self, chosen: Mapping[str, Any], around: Surroundings) -> list[Transfer]:
        """What each pair is asked for, the measured one first."""
        return [Transfer(around.variant, {"name": self.asked_for, **chosen}, self.demand(chosen))]

    def demand(self, chosen: Mapping[str, Any]) -> Demand:  # noqa: ARG002
        """What the measured transfer cannot do without."""
        return Demand()

    def demand_of(self, told: Mapping[str, Any]) -> Demand:
        """What a transfer cannot do without of which endpoints are told this."""
        return self.demand(told)

    def document(self, chosen: Mapping[str, Any], folders: Sequence[Path]) -> tuple[str, Path] | None:  # noqa: ARG002
        """The name and the file of the document that it needs, if it needs one. Raises Refusal."""
        return None

    def read_document(self, path: Path) -> dict[str, Any]:
        """A document as a campaign keeps it: its `sha256`, and all that is needed to run it again.

        Raises Refusal.
        """
        raise NotImplementedError

    def conversation(self, session: Mapping[str, Any] | None) -> Conversation | None:  # noqa: ARG002
        """What the harness asks the client for in the course of a trial, by the `session` of its pair; None:
        nothing."""
        return None

    def settled(self, task: Task, outcome: Outcome) -> Task:  # noqa: ARG002
        """The task with what is known of its demand when it is over."""
        return task

    def measure(self, task: Task, outcome: Outcome) -> Measured | None:  # noqa: ARG002
        """What the harness measures of a trial whose endpoints succeeded; None: nothing.

        Raises Impossible, and SeriesError for a series that cannot be read.
        """
        return None


def size_bytes() -> Option:
    """The parameter of all workloads that transfer one object."""
    return Option(type="integer", minimum=0, maximum=2**40, default=0, help="Bytes to transfer.")
