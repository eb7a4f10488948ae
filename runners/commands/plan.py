"""`fecbench plan`: the points of a design, how well they fill its space, and what each parameter reaches.

Needs no root.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fecbench.quantities import counted
from fecbench.runners.commands.console import arguments
from fecbench.runners.commands.console.campaign_documents import print_document
from fecbench.runners.commands.console.choice import design_of, implementations_in
from fecbench.runners.commands.console.destination import check_file, writing
from fecbench.runners.commands.console.terminal import note, say, say_next
from fecbench.runners.commands.console.terminal_tables import print_table, table_of
from fecbench.runners.refusal import Refusal

if TYPE_CHECKING:
    from fecbench import designs
    from fecbench.designs import Design, Plan
    from fecbench.runners.campaign.estimate import Estimate
    from fecbench.runners.campaign.experiment import Experiment
    from fecbench.runners.campaign.reach import Reach


def plan(
    design: arguments.DesignFile,
    plot: arguments.Plot = None,
    implementations: arguments.ImplementationFolders = None,
    measure: Annotated[
        bool, typer.Option(help="Run a few trials in virtual time, to say how long the design takes.")
    ] = True,
    as_json: arguments.Json = False,
) -> None:
    """Show the points of a design, the criteria of their quality, what each factor reaches, and how long it
    takes."""
    if plot is not None:
        check_file("--plot", plot, arguments.DRAWN)
    loaded = design_of(design)
    from fecbench.results.analysis import same_losses, uncompared
    from fecbench.runners.campaign.baselines import baselines_in
    from fecbench.runners.campaign.checks import check
    from fecbench.runners.campaign.experiment import Experiment
    from fecbench.runners.campaign.reach import reach
    from fecbench.topologies.field import NAME as FIELD

    if plot is not None and not loaded.factors:
        raise Refusal(f"--plot {plot}: {loaded.path} has no factors, which would be the axes; leave it out")
    planned = loaded.plan()
    experiment = Experiment(loaded, planned.points, implementations_in(implementations))
    for name in sorted(check(experiment)):
        note(f"{name} is not built, so nothing tells whether its options fit together")
    if plot is not None:
        _draw(loaded, planned, plot)
    measured = _measured(experiment) if measure else None
    if as_json:
        print_document(
            {
                "points": planned.points,
                "criteria": planned.criteria,
                "dmin": planned.dmin,
                "reach": {name: _reach_document(entry) for name, entry in reach(experiment).items()},
                "estimate": None if measured is None else asdict(measured),
            }
        )
    else:
        say(_heading(experiment))
        say(_at_most(experiment) if measured is None else _times(measured, loaded))
        if loaded.topology == FIELD:
            from fecbench.runners.campaign import field_traffic
            from fecbench.runners.campaign.order import trial_keys

            say(field_traffic.of_campaign(experiment, trial_keys(loaded, len(planned.points))).words())
        _print_points(planned)
        if planned.criteria:
            _print_criteria(planned)
        _print_reach(experiment)
        labels = [variant.label for variant in loaded.variants]
        compared_with, usual = baselines_in(loaded, experiment.arms)
        for sentence in (
            *same_losses.sentences(loaded.text, loaded.repetitions),
            *uncompared.sentences(labels, compared_with, usual),
        ):
            say(sentence)
        say_next(f"fecbench run {shlex.quote(str(design))} {_engine(loaded)} --db {loaded.name}.sqlite")


def _measured(experiment: Experiment) -> Estimate | None:
    from fecbench.runners.campaign.estimate import estimate
    from fecbench.runners.commands.console.simulators import note_free_simulators

    measured = estimate(experiment)
    if measured is not None:
        note_free_simulators()
    return measured


def _engine(design: Design) -> str:
    """Return the options of the engine that runs a design."""
    from fecbench.topologies.field import NAME as FIELD

    in_the_field = "--engine field --server HOST:PORT --path NAME --certificates DIR"
    return in_the_field if design.topology == FIELD else "--engine virtual"


def _draw(design: Design, plan: Plan, path: Path) -> None:
    from fecbench.designs.pair_plot import draw_pair_plot

    with writing("--plot", path):
        draw_pair_plot(design, plan, path)


def _heading(experiment: Experiment) -> str:
    design = experiment.design
    repetitions, trials = counted(design.repetitions, "repetition"), counted(design.trial_count, "trial")
    if design.until:
        repetitions = f"{design.looks[0]} to {repetitions}"
        trials = f"{design.fewest_trials:,} to {trials}, until {design.until}"
    return (
        f"{design.name}: {design.title}\n"
        f"{counted(design.point_count, 'point')} x {counted(len(design.workloads), 'workload')} x"
        f" {counted(len(design.variants), 'variant')} x {repetitions} = {trials}"
    )


def _at_most(experiment: Experiment) -> str:
    from fecbench.runners.commands.console.time_left import duration

    design, timeout_s = experiment.design, experiment.timeout_s
    return (
        f"at most {duration(design.trial_count * timeout_s)} if one trial runs after another and each takes"
        f" all of its {timeout_s:g} s"
    )


def _times(measured: Estimate, design: Design) -> str:
    """Return the time that the whole design takes, in a sentence."""
    mean, least, most = (time_s * design.trial_count / measured.processors for time_s in measured.virtual_s)
    up_to = "up to " if design.until else ""
    range_of = f" ({rounded(least)} to {rounded(most)})" * (rounded(least) != rounded(most))
    return (
        f"{up_to}about {rounded(mean)} in virtual time{range_of}, about"
        f" {rounded(measured.emulated_s * design.trial_count)} emulated one after another, by"
        f" {counted(measured.trials, 'trial')} that ran now"
    )


def rounded(seconds: float) -> str:
    """Return a time of which two digits are known: `40 s`, `3 h`."""
    if seconds < 1:
        return "1 s"
    if seconds >= 3600:
        return f"{float(f'{seconds / 3600:.2g}'):g} h"
    return f"{float(f'{seconds / 60:.2g}'):g} min" if seconds >= 90 else f"{float(f'{seconds:.2g}'):g} s"


def _print_points(plan: Plan) -> None:
    names = list(plan.points[0])
    rows = [(index, *map(_short, point.values())) for index, point in enumerate(plan.points)]
    print_table(table_of(("point", *names), rows, right=("point", *names)))


def _print_criteria(plan: Plan) -> None:
    rows = [(name, _short(value)) for name, value in plan.criteria.items()]
    if plan.dmin is not None:
        rows += [("dmin", _short(plan.dmin)), ("sets of candidates", str(plan.candidate_set + 1))]
    print_table(table_of(("criterion", "value"), rows, right=("value",)))


def _reach_document(entry: Reach) -> dict[str, object]:
    return {
        "variants": entry.variants,
        "workloads": entry.workloads,
        "links": entry.links,
        "engines": entry.engines,
    }


def _print_reach(experiment: Experiment) -> None:
    from fecbench.runners.campaign.names import parameters
    from fecbench.runners.campaign.reach import reach

    reaches = reach(experiment)
    rows = [
        (name, place, *_reached(experiment, reaches[name])) for name, place in parameters(experiment.design)
    ]
    print_table(table_of(("parameter", "given in", "reaches variants", "workloads", "links"), rows))


def _reached(experiment: Experiment, entry: Reach) -> tuple[str, str, str]:
    """The variants, the workloads, and the directions of links that a parameter reaches, in words."""
    from fecbench.topologies.link import DIRECTIONS

    of_links = [
        link if len(directions) == len(DIRECTIONS) else f"{link} {' '.join(directions)}"
        for link, directions in entry.links.items()
    ]
    if len(entry.engines) == 1:
        of_links.append(f"- (--engine {entry.engines[0]} alone)")
    whole = len(of_links) == len(experiment.links) and not any(" " in link for link in of_links)
    return (
        _all_or(entry.variants, experiment.arms),
        _all_or(entry.workloads, experiment.activities),
        "all" if whole else "; ".join(of_links) or "-",
    )


def _all_or(labels: Sequence[str], all_labels: Mapping[str, object]) -> str:
    return "all" if len(labels) == len(all_labels) else "; ".join(labels)


def _short(value: designs.Value) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
