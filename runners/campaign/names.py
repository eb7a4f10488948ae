"""Names that a design may not have: parameters that nothing knows, links without a rate, and a topology with
too few pairs. A known parameter that reaches nobody is refused in `reach`."""

from collections.abc import Collection, Iterator

from fecbench.designs import Design
from fecbench.designs.factor import LinkedFactor
from fecbench.hints import nearest
from fecbench.results.store.records import TRIAL_COLUMNS
from fecbench.runners import workloads
from fecbench.runners.campaign import links, processors
from fecbench.runners.implementations.implementation import Implementation
from fecbench.runners.refusal import Refusal
from fecbench.runners.workloads.workload import Workload
from fecbench.topologies.field import NAME as FIELD
from fecbench.topologies.topology import TOPOLOGIES, has_relay

FAMILY = "family"
"""The family of addresses of all hosts."""
MTU_ICMP = "mtu.icmp"
"""Whether a link tells senders of packets that are too long."""
OPTION, WORKLOAD = "option.", "workload."
"""Prefixes of the names of options and of parameters of workloads."""


def parameters(design: Design) -> Iterator[tuple[str, str]]:
    """Yield each parameter that the design gives a value, and where it is written."""
    for name, factor in design.factors.items():
        if isinstance(factor, LinkedFactor):
            yield from ((parameter, f"factors.{name}.linked") for parameter in factor.parameters)
        else:
            yield name, "factors"
    for name in design.constants:
        yield name, "constants"


def check_names(design: Design, of_links: Collection[str], used: Collection[Implementation]) -> None:
    """Raises Refusal for a factor or a constant that nothing knows, and for a link without its rate.

    `of_links` are the links of its topology, `used` the implementations of its variants.
    """
    parameter_names = (
        links.names(of_links) | processors.NAMES | {FAMILY} | _names_of_options(used) | _names_of_workloads()
    )
    of_any_link = links.names({part for name in design.parameters for part in name.split(".")[:1]})
    for name, place in parameters(design):
        if design.topology == FIELD and name in of_any_link | processors.NAMES | {FAMILY}:
            raise Refusal(
                f"{design.path}: {shown(name, place)}: the path is not ours, so nothing of it can be set:"
                " leave it out"
            )
        if name not in parameter_names:
            unknown = _unknown(design, name, of_links, used, parameter_names)
            raise Refusal(f"{design.path}: {shown(name, place)}: {unknown}")
    for name in design.linked_factors:
        if name in parameter_names | set(TRIAL_COLUMNS):
            raise Refusal(
                f"{design.path}: factors.{name}: the name is taken; call the linked factor otherwise"
            )
    if lacking := links.missing(design.parameters, of_links):
        raise Refusal(f"{design.path}: {lacking} is missing: give it as a factor or a constant")


def check_pairs(design: Design, asked_for: Collection[Workload]) -> None:
    """Raises Refusal for a workload that needs more client-server pairs than the topology has."""
    pairs = 1 if design.topology == FIELD else len(TOPOLOGIES[design.topology].pairs)
    for workload in asked_for:
        if pairs < workload.pairs:
            fitting = [name for name, layout in TOPOLOGIES.items() if len(layout.pairs) >= workload.pairs]
            where = f"{design.path}: topology = {design.topology!r}"
            raise Refusal(
                f"{where}: has {pairs} client-server pair,"
                f" and workload {workload.name} needs {workload.pairs}; it must be {' or '.join(fitting)}"
            )


def check_relay(design: Design, asked_for: Collection[Workload], used: Collection[Implementation]) -> None:
    """Raises Refusal for a topology with a relay where a workload crosses none, or an implementation has
    none."""
    if not has_relay(design.topology):
        return
    where = f"{design.path}: topology = {design.topology!r}: "
    for workload in asked_for:
        if not workload.relayed:
            fitting = " or ".join(name for name, other in workloads.WORKLOADS.items() if other.relayed)
            raise Refusal(f"{where}workload {workload.name} crosses no relay; it must be {fitting}")
    names = sorted(implementation.declaration.name for implementation in used)
    for implementation in used:
        if not implementation.declaration.relay:
            raise Refusal(f"{where}{implementation.declaration.name} has no relay (relay in its impl.toml)")
    if len(names) > 1:
        raise Refusal(f"{where}a relay has one implementation, and variants have {', '.join(names)}")


def _names_of_options(used: Collection[Implementation]) -> set[str]:
    return {OPTION + name for implementation in used for name in implementation.declaration.options}


def _names_of_workloads() -> set[str]:
    return {WORKLOAD + name for workload in workloads.WORKLOADS.values() for name in workload.parameters}


def _unknown(
    design: Design,
    name: str,
    of_links: Collection[str],
    used: Collection[Implementation],
    parameter_names: set[str],
) -> str:
    """Return the fault of a name that is unknown."""
    first, _, rest = name.partition(".")
    if f"{first}." == OPTION:
        which = " and ".join(implementation.declaration.name for implementation in used)
        hint = nearest(name, _names_of_options(used))
        return f"is not a parameter: no variant has such an option ({which}), so it reaches nobody; {hint}"
    if rest in links.names(of_links) and f"{first}." != WORKLOAD:
        return f"topology {design.topology} has no link {first!r}; {nearest(first, of_links)}"
    return f"is not a parameter; {nearest(name, parameter_names)}"


def shown(name: str, place: str) -> str:
    """A parameter with its place, as an error names it."""
    return f"{place}: {name}" if place.endswith(".linked") else f"{place}.{name}"
