"""The trials that each parameter of a design reaches. A parameter that reaches none is refused: all trials
would be alike, and a user who varies it would conclude that it does not matter.

A variant takes an option that its implementation has and that it does not set itself. Such an option reaches
every trial in which the variant takes part: as the client, as the servers of another variant, or as the
competitor of a transfer. A parameter of workloads reaches those that have it, do not set it themselves, and
read it together with the others. A parameter of links reaches every trial, and time of processors reaches
every trial in virtual time.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import get_args

from fecbench.runners.campaign import links
from fecbench.runners.campaign.arms import Arm
from fecbench.runners.campaign.experiment import Experiment
from fecbench.runners.campaign.names import FAMILY, MTU_ICMP, OPTION, WORKLOAD, parameters, shown
from fecbench.runners.campaign.processors import NAMES as PROCESSORS
from fecbench.runners.implementations.engine_name import EngineName
from fecbench.runners.refusal import Refusal
from fecbench.topologies.link import DIRECTIONS, Direction

ENGINES: tuple[EngineName, ...] = get_args(EngineName)
WITH_LINKS: tuple[EngineName, ...] = ("local", "virtual")
"""Engines whose links are ours."""
Trials = list[tuple[str, str]]
"""The trials of variants with workloads, by their labels."""


@dataclass(frozen=True)
class Reach:
    """The trials, links and engines that a parameter may change."""

    trials: Trials
    """The trials in the order of the design."""
    links: dict[str, list[Direction]]
    """The directions of links that get it; empty for what is no parameter of links."""
    engines: tuple[EngineName, ...] = ENGINES
    """The engines whose trials it reaches."""

    @property
    def variants(self) -> list[str]:
        return list(dict.fromkeys(variant for variant, _ in self.trials))

    @property
    def workloads(self) -> list[str]:
        return list(dict.fromkeys(workload for _, workload in self.trials))


def check_reach(experiment: Experiment) -> None:
    """Raises Refusal for a factor, a constant or a parameter of a linked factor that reaches nobody."""
    design, reaches = experiment.design, reach(experiment)
    for name, place in parameters(design):
        if not reaches[name].trials:
            raise Refusal(f"{design.path}: {shown(name, place)}: reaches nobody: {_why(experiment, name)}")


def check_engine(experiment: Experiment, engine: EngineName) -> None:
    """Raises Refusal for a parameter that reaches no trial of this engine."""
    for name, place in parameters(experiment.design):
        if engine == "local" and name in PROCESSORS:
            raise Refusal(
                f"{experiment.design.path}: {shown(name, place)}: reaches nobody with --engine"
                f" {engine}: emulated endpoints take what they take; use --engine virtual, or leave it out"
            )
        if engine == "virtual" and f".{name}".endswith(f".{MTU_ICMP}"):
            raise Refusal(
                f"{experiment.design.path}: {shown(name, place)}: reaches nobody with --engine"
                f" {engine}: no kernel hears an ICMP there; use --engine local, or leave it out"
            )


def reach(experiment: Experiment) -> dict[str, Reach]:
    """Return the reach of each factor, of each constant, and of each parameter of a linked factor."""
    parts = {
        (variant, workload): experiment.taking_part(variant, workload)
        for variant in experiment.arms
        for workload in experiment.activities
    }
    reaches = {name: _reach(experiment, name, parts) for name, _ in parameters(experiment.design)}
    for name, factor in experiment.design.linked_factors.items():
        reaches[name] = _together([reaches[parameter] for parameter in factor.parameters], list(parts))
    return reaches


def _reach(experiment: Experiment, name: str, parts: Mapping[tuple[str, str], Collection[Arm]]) -> Reach:
    if name.startswith(OPTION):
        option = name.removeprefix(OPTION)
        getting = {
            arm.label
            for arm in experiment.arms.values()
            if any(arm.gets(option, experiment.values(point)) for point in range(len(experiment.points)))
        }
        return Reach(
            [trials for trials, arms in parts.items() if any(arm.label in getting for arm in arms)], {}
        )
    if name.startswith(WORKLOAD):
        taking = _taking(experiment, name.removeprefix(WORKLOAD))
        return Reach([trials for trials in parts if trials[1] in taking], {})
    if name in PROCESSORS:
        return Reach(list(parts), {}, ("virtual",))
    if name == FAMILY:
        return Reach(list(parts), {}, ("local",))
    parameters_of_design = experiment.design.parameters
    directions = {
        link: [
            direction
            for direction in DIRECTIONS
            if name in links.reached(parameters_of_design, link, direction)
        ]
        for link in experiment.links
    }
    reached = {
        link: reached_directions for link, reached_directions in directions.items() if reached_directions
    }
    return Reach(list(parts) if reached else [], reached, WITH_LINKS)


def _taking(experiment: Experiment, parameter: str) -> set[str]:
    return {label for label in experiment.activities if experiment.reads(label, parameter)}


def _together(reaches: Collection[Reach], every: Trials) -> Reach:
    trials = {trials for one in reaches for trials in one.trials}
    directions: dict[str, list[Direction]] = {}
    for one in reaches:
        for link, reached_directions in one.links.items():
            pair = directions.get(link, [])
            directions[link] = [
                direction for direction in DIRECTIONS if direction in {*pair, *reached_directions}
            ]
    engines = tuple(engine for engine in ENGINES if any(engine in one.engines for one in reaches))
    return Reach([pair for pair in every if pair in trials], directions, engines)


def _why(experiment: Experiment, name: str) -> str:
    """Return why a parameter reaches nobody, and what would be right."""
    if name.startswith(OPTION):
        option = name.removeprefix(OPTION)
        if arm := next((arm for arm in experiment.arms.values() if arm.takes(option)), None):
            choices = {**arm.options_set(experiment.values(0)), option: None}
            declared = arm.implementation.declaration.options[option]
            why = declared.unread_because(arm.implementation.with_defaults(choices))
            return f"it {why}, in variant {arm.label!r}"
        having = {arm.label: arm.has(option) for arm in experiment.arms.values()}
        return _why_not_taken("variant", "option", having)
    if name.startswith(WORKLOAD):
        parameter = name.removeprefix(WORKLOAD)
        idle = [label for label, activity in experiment.activities.items() if activity.takes(parameter)]
        if idle:
            verb = "does" if len(idle) == 1 else "do"
            listing = _listed(map(repr, idle))
            return f"workload {listing} {verb} not read it beside its other parameters; leave it out"
        having = {label: activity.has(parameter) for label, activity in experiment.activities.items()}
        return _why_not_taken("workload", "parameter", having)
    instead = links.instead_of(name, experiment.design.parameters, experiment.links)
    takes = "takes its place" if len(instead) == 1 else "take its place"
    return f"{_listed(instead)} {takes} in each direction of each link; leave out one or the other"


def _why_not_taken(whose: str, what: str, having: Mapping[str, bool]) -> str:
    """`having`: whether each variant or workload has the option or the parameter at all."""
    setting = [repr(label) for label, has in having.items() if has]
    lacking = [repr(label) for label, has in having.items() if not has]
    reasons = []
    if setting:
        reasons.append(f"{whose} {_listed(setting)} set{'s' * (len(setting) == 1)} it already")
    if lacking:
        reasons.append(f"{whose} {_listed(lacking)} {'has' if len(lacking) == 1 else 'have'} no such {what}")
    right = f"leave it out, or leave it to a {whose} that has it" if setting else "leave it out"
    return f"{', and '.join(reasons)}; {right}"


def _listed(names: Iterable[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last
