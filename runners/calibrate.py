"""`fecbench calibrate`: how true the emulated link of this machine is, as a table with bounds."""

import json
import os
from typing import Annotated

import rich.table
import typer
from rich import box

from runners import calibration
from runners.refusal import Refusal
from runners.show import print_table
from topologies.topology import Backend, resolve_backend


def calibrate(
    link: Annotated[Backend, typer.Option(help="The link backend.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
) -> int:
    """Measure the emulated link with known traffic; 0 when every bound holds, 1 when one does not."""
    if os.geteuid() != 0:
        raise Refusal("fecbench calibrate must be root: it makes network namespaces and loads BPF programs")
    table = calibration.measure(resolve_backend(link))
    if as_json:
        rows = [each.model_dump() | {"good": each.good} for each in table.measurements]
        print(json.dumps({"backend": table.backend, "good": table.good, "measurements": rows}, indent=1))
    else:
        print_table(_shown(table))
    return 0 if table.good else 1


def _shown(table: calibration.Table) -> rich.table.Table:
    shown = rich.table.Table(box=box.SIMPLE_HEAD)
    for heading in ("measured", "value", "bound", "unit", ""):
        shown.add_column(heading, justify="right" if heading in ("value", "bound") else "left")
    for each in table.measurements:
        verdict = "good" if each.good else "BAD"
        shown.add_row(each.name, f"{each.value:.4g}", f"{each.bound:.4g}", each.unit, verdict)
    return shown
