"""`fecbench plan`: the points of a design and how well they fill its space. Needs no root."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table

import designs
from designs import Design, Plan
from runners.campaign.experiment import Experiment
from runners.commands.show import print_table
from runners.implementations.finding import Implementations, search_path
from runners.refusal import Refusal


def plan(
    design: Annotated[Path, typer.Argument(help="The design, a TOML file.")],
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE.png", help="Draw the points, each pair of factors.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print points and criteria as JSON.")] = False,
) -> None:
    """Show the points of a design, and the criteria of their quality."""
    loaded = designs.load(design)
    made = loaded.plan()
    for name in sorted(Experiment(loaded, made.points, Implementations(search_path())).check_combinations()):
        print(
            f"note: {name} is not built, so nothing tells whether its options fit together", file=sys.stderr
        )
    if plot is not None:
        _draw(loaded, made, plot)
    if as_json:
        print(json.dumps({"points": made.points, "criteria": made.criteria, "dmin": made.dmin}, indent=1))
    else:
        print(_heading(loaded, made))
        print_table(_points_table(made))
        print_table(_criteria_table(made))


def _draw(design: Design, made: Plan, path: Path) -> None:
    # Loaded when it is asked for: Matplotlib takes longer to load than most commands take to run.
    from designs.pair_plot import draw_pair_plot

    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise Refusal(f"--plot {path}: must end with .png, .svg or .pdf")
    try:
        draw_pair_plot(design, made, path)
    except OSError as error:
        raise Refusal(f"--plot {path}: cannot be written: {error.strerror}") from error


def _heading(design: Design, made: Plan) -> str:
    trials = len(made.points) * len(design.workloads) * len(design.variants) * design.repetitions
    return (
        f"{design.name}: {design.title}\n"
        f"{len(made.points)} points x {len(design.workloads)} workloads x {len(design.variants)} variants"
        f" x {design.repetitions} repetitions = {trials} trials"
    )


def _points_table(made: Plan) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("point", justify="right")
    for name in made.points[0]:
        table.add_column(name, justify="right")
    for index, point in enumerate(made.points):
        table.add_row(str(index), *(_short(value) for value in point.values()))
    return table


def _criteria_table(made: Plan) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("criterion")
    table.add_column("value", justify="right")
    for name, value in made.criteria.items():
        table.add_row(name, _short(value))
    if made.dmin is not None:
        table.add_row("dmin", _short(made.dmin))
        table.add_row("sets of candidates", str(made.candidate_set + 1))
    return table


def _short(value: designs.Value) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
