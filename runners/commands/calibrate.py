"""`fecbench calibrate`: how true the emulated link of this machine is, as a table with bounds."""

import os
from typing import Annotated

import rich.table
import typer
from rich import box

from runners.calibration import experiments as calibration
from runners.calibration.table import Kind, Table
from runners.commands.show import print_table
from runners.refusal import Refusal
from topologies.topology import Backend, resolve_backend


def calibrate(
    link: Annotated[Backend, typer.Option(help="The link backend.")] = "auto",
    under_load: Annotated[
        bool, typer.Option("--under-load", help="Only the delays, beside a CPU hog on each core.")
    ] = False,
    quick: Annotated[bool, typer.Option("--quick", help="The short table that `run` begins with.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
) -> int:
    """Measure the emulated link with known traffic; 0 when every bound holds, 1 when one does not."""
    if os.geteuid() != 0:
        raise Refusal("fecbench calibrate must be root: it makes network namespaces and loads BPF programs")
    if under_load and quick:
        raise Refusal("--under-load and --quick are given together; they are different tables")
    kind: Kind = "under load" if under_load else "brief" if quick else "full"
    table = calibration.measure(resolve_backend(link), kind)
    if as_json:
        print(table.model_dump_json(indent=1))
    else:
        print_table(_shown(table))
    return 0 if table.good else 1


def _shown(table: Table) -> rich.table.Table:
    shown = rich.table.Table(box=box.SIMPLE_HEAD)
    for heading in ("measured", "value", "bound", "unit", ""):
        shown.add_column(heading, justify="right" if heading in ("value", "bound") else "left")
    for line in table.measurements:
        bound = "" if line.bound is None else f"{line.bound:.4g}"
        verdict = "" if line.bound is None else "good" if line.good else "BAD"
        shown.add_row(line.name, f"{line.value:.4g}", bound, line.unit, verdict)
    return shown
