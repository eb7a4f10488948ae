"""The arms and the activities of a design: its variants with their implementations, its workloads with their
parameters, and what each takes from a point."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fecbench import designs
from fecbench.designs import Design
from fecbench.hints import nearest
from fecbench.runners import workloads
from fecbench.runners.campaign.names import OPTION, WORKLOAD
from fecbench.runners.implementations.finding import Implementations
from fecbench.runners.implementations.implementation import Implementation
from fecbench.runners.refusal import Refusal
from fecbench.runners.workloads.workload import Workload

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
    """The place where it is written."""

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
        """Return the options that are set. The variant's own replace those of a point, of which it gets those
        that it reads."""
        of_point = {name: value for name, value in _below(values, OPTION) if self.takes(name)}
        choices = {**of_point, **self.chosen}
        if not of_point:
            return choices
        declared, options = (
            self.implementation.declaration.options,
            self.implementation.with_defaults(choices),
        )
        return {
            name: value
            for name, value in choices.items()
            if name not in of_point or not declared[name].unread_because(options)
        }

    def gets(self, option: str, values: Values) -> bool:
        """Whether it gets this option at a point."""
        return self.takes(option) and option in self.options_set(values)

    def options(self, values: Values) -> dict[str, Any]:
        """Return all options at a point. Raises Refusal for one that is unknown or out of range."""
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
        """Return all parameters at a point; its own replace those of the point."""
        of_point = {name: value for name, value in _below(values, WORKLOAD) if self.takes(name)}
        return {**of_point, **self.chosen}


def arm_of(design: Design, variant: designs.Variant, implementations: Implementations) -> Arm:
    where = f"{design.path}: variant {variant.label!r}"
    implementation = implementations.find(variant.implementation, where)
    for name in variant.series:
        if name not in (series := implementation.declaration.series):
            raise Refusal(
                f"{where}: {variant.implementation} leaves no series {name!r}; {nearest(name, series)}"
            )
    server = _label(design, f"{where}: server", variant.server or variant.label)
    arm = Arm(variant.label, implementation, variant.options, tuple(variant.series), server, where)
    implementation.check_options(arm.chosen, where)
    return arm


def activity_of(design: Design, workload: designs.Workload) -> Activity:
    kind = workloads.find(workload.name, design.path)
    choices = dict(workload.parameters)
    server = choices.pop(SERVER, None)
    if server is not None:
        where = f"{design.path}: workload {workload.name}: server"
        server = _label(design, where, server)
        if own := next((variant.label for variant in design.variants if variant.server), None):
            raise Refusal(
                f"{where} = {server!r}: variant {own!r} names a server, too; it must be one of both"
            )
    return Activity(workload.label, kind, choices, server)


def _label(design: Design, where: str, label: object) -> str:
    """The label of a variant. Raises Refusal when the design has none of that label."""
    labels = [variant.label for variant in design.variants]
    if label not in labels:
        raise Refusal(f"{where} = {label!r}: is no label of a variant; {nearest(str(label), labels)}")
    return str(label)


def options_in(values: Values) -> dict[str, Any]:
    """Return what a point says of options, by its own names."""
    return {name: value for name, value in values.items() if name.startswith(OPTION)}


def _below(values: Values, prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if name.startswith(prefix):
            yield name.removeprefix(prefix), value
