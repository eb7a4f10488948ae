"""`fecbench calibrate`: how true the emulated link of this machine is, as a table with bounds."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from fecbench.runners.commands.console import arguments
from fecbench.runners.commands.console.campaign_documents import print_document
from fecbench.runners.commands.console.terminal_tables import print_table, table_of
from fecbench.runners.refusal import Refusal

if TYPE_CHECKING:
    from fecbench.runners.calibration.table import Kind, Table


def calibrate(
    link: arguments.Link = "auto",
    under_load: Annotated[
        bool, typer.Option("--under-load", help="Only the delays, beside a CPU hog on each core.")
    ] = False,
    quick: Annotated[bool, typer.Option("--quick", help="The short table that `run` begins with.")] = False,
    as_json: arguments.Json = False,
) -> int:
    """Measure the emulated link with known traffic; 0 when every bound holds, 1 when one does not."""
    from fecbench.runners.calibration import experiments as calibration
    from fecbench.topologies.topology import resolve_backend

    if os.geteuid() != 0:
        raise Refusal("fecbench calibrate must be root: it makes network namespaces and loads BPF programs")
    if under_load and quick:
        raise Refusal("--under-load and --quick are given together; they are different tables")
    kind: Kind = "under load" if under_load else "brief" if quick else "full"
    table = calibration.measure(resolve_backend(link), kind)
    if as_json:
        print_document(table.model_dump(mode="json"))
    else:
        _print(table)
    return 0 if table.good else 1


def _print(table: Table) -> None:
    rows = []
    for measurement in table.measurements:
        bound = "" if measurement.bound is None else f"{measurement.bound:.4g}"
        verdict = "" if measurement.bound is None else "good" if measurement.good else "BAD"
        rows.append((measurement.name, f"{measurement.value:.4g}", bound, measurement.unit, verdict))
    print_table(table_of(("measured", "value", "bound", "unit", ""), rows, right=("value", "bound")))
