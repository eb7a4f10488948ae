"""What a design may not say, as far as its names tell: parameters that nothing knows, links without a rate,
and a topology with too few pairs. A parameter that is known and reaches nobody is refused in `reach`."""

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
from fecbench.topologies.topology import TOPOLOGIES

OPTION, WORKLOAD = "option.", "workload."
"""What stands before the name of an option, and before that of a parameter of workloads."""


def parameters(design: Design) -> Iterator[tuple[str, str]]:
    """Each parameter that the design gives a value, and where it is written."""
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
    known = links.names(of_links) | processors.NAMES | _names_of_options(used) | _names_of_workloads()
    for name, place in parameters(design):
        if name not in known:
            unknown = _unknown(design, name, of_links, used, known)
            raise Refusal(f"{design.path}: {shown(name, place)}: {unknown}")
    for name in design.linked_factors:
        if name in known | set(TRIAL_COLUMNS):
            raise Refusal(
                f"{design.path}: factors.{name}: the name is taken; call the linked factor otherwise"
            )
    if lacking := links.missing(design.parameters, of_links):
        raise Refusal(f"{design.path}: {lacking} is missing: give it as a factor or a constant")


def check_pairs(design: Design, asked_for: Collection[Workload]) -> None:
    """Raises Refusal for a workload that needs more client-server pairs than the topology has."""
    pairs = len(TOPOLOGIES[design.topology].pairs)
    for workload in asked_for:
        if pairs < workload.pairs:
            fitting = [name for name, layout in TOPOLOGIES.items() if len(layout.pairs) >= workload.pairs]
            where = f"{design.path}: topology = {design.topology!r}"
            raise Refusal(
                f"{where}: has {pairs} client-server pair,"
                f" and workload {workload.name} needs {workload.pairs}; it must be {' or '.join(fitting)}"
            )


def _names_of_options(used: Collection[Implementation]) -> set[str]:
    return {OPTION + name for implementation in used for name in implementation.declaration.options}


def _names_of_workloads() -> set[str]:
    return {WORKLOAD + name for workload in workloads.WORKLOADS.values() for name in workload.parameters}


def _unknown(
    design: Design, name: str, of_links: Collection[str], used: Collection[Implementation], known: set[str]
) -> str:
    """What is wrong with a name that is not known."""
    first, _, rest = name.partition(".")
    if f"{first}." == OPTION:
        which = " and ".join(implementation.declaration.name for implementation in used)
        hint = nearest(name, _names_of_options(used))
        return f"is not a parameter: no variant has such an option ({which}), so it reaches nobody; {hint}"
    if rest in links.names(of_links) and f"{first}." != WORKLOAD:
        return f"topology {design.topology} has no link {first!r}; {nearest(first, of_links)}"
    return f"is not a parameter; {nearest(name, known)}"


def shown(name: str, place: str) -> str:
    """A parameter with its place, as an error names it."""
    return f"{place}: {name}" if place.endswith(".linked") else f"{place}.{name}"
