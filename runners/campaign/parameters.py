"""From the names in a design to what a trial needs: link settings, loss models, options and workloads.

Every name that a design may use is known here, and every value of every point is tried before anything runs.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal

import dropper.model
from designs import Design, Variant
from designs.factor import LinkedFactor
from dropper.model import FORMS, LossModelError
from fecbench.hints import nearest
from runners.implementations.finding import Implementations, search_path
from runners.implementations.implementation import Implementation
from runners.refusal import Refusal
from runners.workloads import registry as workloads
from runners.workloads import web_page
from topologies.link import LinkSettings, TopologyError
from topologies.topology import TOPOLOGIES

Direction = Literal["up", "down"]
DIRECTIONS: tuple[Direction, ...] = ("up", "down")
LINK_NAMES = frozenset(field.name for field in fields(LinkSettings))
# A linked factor's name becomes a column beside these.
TRIAL_COLUMNS = frozenset(
    {"id", "variant", "workload", "point", "repetition", "state", "attempt", "duration_s"}
)
LOSS_NAMES = frozenset({"model"}.union(*(form.keys for forms in FORMS.values() for form in forms)))


def known_names(design: Design) -> set[str]:
    """Every name that a factor or a constant of the design may have."""
    losses = {f"loss.{name}" for name in LOSS_NAMES}
    directed = {f"loss.{direction}.{name}" for direction in DIRECTIONS for name in LOSS_NAMES}
    options = {
        f"option.{name}"
        for variant in design.variants
        for name in implementation_of(design, variant.label).declaration.options
    }
    of_workloads = {f"workload.{name}" for known in workloads.PARAMETERS.values() for name in known}
    return set(LINK_NAMES) | losses | directed | options | of_workloads


def check_names(design: Design) -> None:
    """Raises Refusal for a factor, constant, topology or variant that nothing here knows."""
    known = known_names(design)
    for where, name in _given_names(design):
        if name not in known:
            raise Refusal(f"{design.path}: {where}{name}: is not a parameter; {nearest(name, known)}")
    for name in design.linked_factors:
        if name in known | TRIAL_COLUMNS:
            raise Refusal(
                f"{design.path}: factors.{name}: the name is taken; call the linked factor otherwise"
            )
    if design.topology not in TOPOLOGIES:
        hint = nearest(design.topology, TOPOLOGIES)
        raise Refusal(f"{design.path}: topology = {design.topology!r}: there is none of that name; {hint}")
    _check_pairs(design)
    for required in ("bandwidth_mbps", "owd_ms"):
        if required not in design.parameters:
            raise Refusal(f"{design.path}: {required} is missing: give it as a factor or a constant")
    for variant in design.variants:
        options_of(design, variant.label, {})


def _check_pairs(design: Design) -> None:
    """Raises Refusal for a workload that needs more client-server pairs than the topology has."""
    pairs = len(TOPOLOGIES[design.topology].pairs)
    for workload in design.workloads:
        if pairs < (needed := workloads.pairs_of(workload.name)):
            fitting = [name for name, layout in TOPOLOGIES.items() if len(layout.pairs) >= needed]
            raise Refusal(
                f"{design.path}: topology = {design.topology!r}: has {pairs} client-server pair, and workload"
                f" {workload.name} needs {needed}; it must be {' or '.join(fitting)}"
            )


def _given_names(design: Design) -> Iterator[tuple[str, str]]:
    """Where each parameter of the design stands, and its name."""
    for name, factor in design.factors.items():
        if isinstance(factor, LinkedFactor):
            yield from ((f"factors.{name}.linked: ", parameter) for parameter in factor.parameters)
        else:
            yield "factors.", name
    for name in design.constants:
        yield "constants.", name


def options_of(design: Design, label: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """All options of a variant at a point; `option.NAME` of a point goes to every variant that has it."""
    implementation = implementation_of(design, label)
    chosen = _chosen_options(_variant_of(design, label), implementation, values)
    return dict(implementation.options(chosen, place_of(design, label)))


def _chosen_options(
    variant: Variant, implementation: Implementation, values: Mapping[str, Any]
) -> dict[str, Any]:
    """The options that are not left to the defaults; those of the variant go before those of the point."""
    known = implementation.declaration.options
    shared = {name: value for name, value in _below(values, "option.").items() if name in known}
    return {**shared, **variant.options}


def implementation_of(design: Design, label: str) -> Implementation:
    """The implementation of a variant."""
    known = Implementations(search_path())
    return known.find(_variant_of(design, label).implementation, place_of(design, label))


def place_of(design: Design, label: str) -> str:
    """Where a variant is written."""
    return f"{design.path}: variant {label!r}"


def _variant_of(design: Design, label: str) -> Variant:
    return next(variant for variant in design.variants if variant.label == label)


def workload_of(design: Design, label: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """All parameters of a workload at a point; `workload.NAME` of a point goes to every workload that has it
    and does not set it itself."""
    workload = next(workload for workload in design.workloads if workload.label == label)
    known = workloads.parameters_of(workload.name, design.path)
    shared = {name: value for name, value in _below(values, "workload.").items() if name in known}
    parameters = {**shared, **workload.parameters}
    workloads.check(workload.name, parameters, design.path)
    labels = [variant.label for variant in design.variants]
    if workload.name == workloads.COMPETING and parameters["background"] not in labels:
        background = str(parameters["background"])
        raise Refusal(
            f"{design.path}: workload {workload.name}: background = {background!r}: is no label of a variant;"
            f" {nearest(background, labels)}"
        )
    return parameters


def pages(design: Design, points: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Every page that a workload of the design loads, as a campaign keeps it, by its name. Raises Refusal."""
    names = {
        workload_of(design, workload.label, {**design.constants, **point})["graph"]
        for workload in design.workloads
        if workload.name == "page"
        for point in points
    }
    return {name: web_page.stored(web_page.path_of(name, design.path)) for name in sorted(names)}


def link_settings(values: Mapping[str, Any], links: Iterable[str]) -> dict[str, LinkSettings]:
    """The settings of each link. Raises TopologyError for a value out of range."""
    settings = LinkSettings(**{name: values[name] for name in LINK_NAMES if name in values})
    return dict.fromkeys(links, settings)


def losses(values: Mapping[str, Any], links: Iterable[str]) -> dict[str, dict[str, dict[str, Any]]]:
    """Parameters of the loss model of each direction of each link.

    Those of a direction go before the common ones. No `loss.model` means no loss.
    Raises LossModelError for a wrong name or value.
    """
    directed: dict[str, dict[str, Any]] = {direction: _loss(values, direction) for direction in DIRECTIONS}
    for parameters in directed.values():
        dropper.model.loss_model(parameters)
    return dict.fromkeys(links, directed)


def _loss(values: Mapping[str, Any], direction: Direction) -> dict[str, Any]:
    own = _below(values, f"loss.{direction}.")
    if "model" in own:  # a model of its own: the common parameters are those of another one
        return own
    return {"model": "none"} | _below(values, "loss.") | own


def _below(values: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    names = {name.removeprefix(prefix): value for name, value in values.items() if name.startswith(prefix)}
    return {name: value for name, value in names.items() if "." not in name}


def link_names(design: Design) -> list[str]:
    """The names of the emulated links of the design's topology."""
    return [link.name for link in TOPOLOGIES[design.topology].links]


def check_values(design: Design, points: Sequence[Mapping[str, Any]]) -> None:
    """Raises Refusal for the first point with a value that the link, the dropper or an option refuses."""
    links = link_names(design)
    for index, point in enumerate(points):
        values = {**design.constants, **point}
        try:
            link_settings(values, links)
            losses(values, links)
        except (TopologyError, LossModelError) as error:
            raise Refusal(f"{design.path}: point {index}: {error}") from error
        for variant in design.variants:
            options_of(design, variant.label, values)
        for workload in design.workloads:
            workload_of(design, workload.label, values)
    pages(design, points)


def check_combinations(design: Design, points: Sequence[Mapping[str, Any]]) -> set[str]:
    """Raises Refusal for the first options of a variant that its implementation refuses together.

    Each set is asked about once. Returns the names of implementations that are not built, and were not asked.
    """
    unbuilt = set()
    for variant in design.variants:
        implementation = implementation_of(design, variant.label)
        if implementation.missing_programs():
            unbuilt.add(variant.implementation)
            continue
        chosen = (_chosen_options(variant, implementation, {**design.constants, **point}) for point in points)
        for distinct in dict.fromkeys(tuple(options.items()) for options in chosen):
            implementation.check_together(dict(distinct), place_of(design, variant.label))
    return unbuilt
