"""`fecbench plan`: the points of a design and how well they fill its space. Needs no root."""

from pathlib import Path

import designs
from designs import Design, Plan
from runners.campaign.experiment import Experiment
from runners.commands import arguments
from runners.commands.choice import design_of, implementations_in
from runners.commands.destination import check_file, writing
from runners.commands.document import print_document
from runners.commands.progress import duration
from runners.commands.tables import print_table, table_of
from runners.commands.terminal import note, say


def plan(
    design: arguments.DesignFile,
    plot: arguments.Plot = None,
    implementations: arguments.ImplementationFolders = None,
    as_json: arguments.Json = False,
) -> None:
    """Show the points of a design, and the criteria of their quality."""
    if plot is not None:
        check_file("--plot", plot, arguments.DRAWN)
    loaded = design_of(design)
    planned = loaded.plan()
    experiment = Experiment(loaded, planned.points, implementations_in(implementations))
    for name in sorted(experiment.check_combinations()):
        note(f"{name} is not built, so nothing tells whether its options fit together")
    if plot is not None:
        _draw(loaded, planned, plot)
    if as_json:
        print_document({"points": planned.points, "criteria": planned.criteria, "dmin": planned.dmin})
    else:
        say(_heading(experiment))
        _print_points(planned)
        _print_criteria(planned)


def _draw(design: Design, plan: Plan, path: Path) -> None:
    from designs.pair_plot import draw_pair_plot

    with writing("--plot", path):
        draw_pair_plot(design, plan, path)


def _heading(experiment: Experiment) -> str:
    design, timeout_s = experiment.design, experiment.timeout_s
    return (
        f"{design.name}: {design.title}\n"
        f"{design.point_count} points x {len(design.workloads)} workloads x {len(design.variants)} variants"
        f" x {design.repetitions} repetitions = {design.trial_count} trials\n"
        f"at most {duration(design.trial_count * timeout_s)} if one trial runs after another and each takes"
        f" all of its {timeout_s:g} s"
    )


def _print_points(plan: Plan) -> None:
    names = list(plan.points[0])
    rows = [(index, *map(_short, point.values())) for index, point in enumerate(plan.points)]
    print_table(table_of(("point", *names), rows, right=("point", *names)))


def _print_criteria(plan: Plan) -> None:
    rows = [(name, _short(value)) for name, value in plan.criteria.items()]
    if plan.dmin is not None:
        rows += [("dmin", _short(plan.dmin)), ("sets of candidates", str(plan.candidate_set + 1))]
    print_table(table_of(("criterion", "value"), rows, right=("value",)))


def _short(value: designs.Value) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
