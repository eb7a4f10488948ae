"""What a workload is: its parameters, the client-server pairs that it needs, and what these are asked for.

A workload is one file of this folder with one subclass, and one line in `WORKLOADS` of the package.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from fecbench.hints import nearest
from fecbench.runners.options import Option
from fecbench.runners.refusal import Refusal
from fecbench.topologies.link import Direction, LinkSettings

COMPLETION = "dct_s"
"""The client's metric that says how long a transfer took, of the workloads that transfer something whole."""


@dataclass(frozen=True)
class Demand:
    """What no implementation can do a transfer without, however good it is: less is impossible.

    Nothing is known of a workload that demands nothing.
    """

    up_bytes: int = 0
    """Of the content, from the client to the server. It cannot be compressed: it is pseudo-random."""
    down_bytes: int = 0
    round_trips: int = 0
    """How often something has to go up and be answered, one after another."""
    pauses_s: float = 0.0
    """What the endpoints wait between these round trips of their own will."""
    may_be_lost: bool = False
    """Whether any of the content may fail to arrive."""

    def arriving_bytes(self, direction: Direction) -> int:
        """Of the content that goes in this direction, what arrives in any case."""
        sent = self.up_bytes if direction == "up" else self.down_bytes
        return 0 if self.may_be_lost else sent


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


@dataclass(frozen=True)
class Surroundings:
    """What a workload may depend on besides its own parameters."""

    variant: str
    """The label of the variant that is measured."""
    link: LinkSettings
    """The first link of the topology."""
    timeout_s: float
    graphs: Mapping[str, Any]
    """The graph of each web page of the campaign, by the page's name."""
    traces: Mapping[str, Any] = field(default_factory=dict)
    """The timetable of each trace of the campaign, by the trace's name."""


class Workload:
    """What endpoints do. Subclasses say what differs."""

    name: ClassVar[str]
    summary: ClassVar[str]
    parameters: ClassVar[Mapping[str, Option]]
    asked_for: ClassVar[str]
    """The workload that implementations have to support."""
    pairs: ClassVar[int] = 1
    """How many client-server pairs take part."""
    completion: ClassVar[str] = COMPLETION
    """The client's metric, in s, whose report ends the trial; the client owes one above 0."""
    compared: ClassVar[str] = f"client.{COMPLETION}"
    """The metric that is compared when none is chosen."""

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

    def page(self, chosen: Mapping[str, Any], design_path: str) -> tuple[str, Path] | None:  # noqa: ARG002
        """The name and the file of the web page that it loads, if it loads one. Raises Refusal."""
        return None

    def trace(self, chosen: Mapping[str, Any], design_path: str) -> tuple[str, Path] | None:  # noqa: ARG002
        """The name and the file of the trace that it sends, if it sends one. Raises Refusal."""
        return None


def size_bytes() -> Option:
    """The parameter of all workloads that transfer one object."""
    return Option(type="integer", minimum=0, maximum=2**40, default=0, help="Bytes to transfer.")
