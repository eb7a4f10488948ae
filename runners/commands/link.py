"""`fecbench link`: makes, imports and shows traces of links that change. Needs no root."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from fecbench.runners.commands.console import arguments
from fecbench.runners.commands.console.destination import check_file, writing
from fecbench.runners.commands.console.tables import print_table, table_of
from fecbench.runners.commands.console.terminal import say
from fecbench.topologies import link_traces
from fecbench.topologies.trace import Trace
from fecbench.whole_files import write_text

link = typer.Typer(
    no_args_is_help=True,
    help="Make or import the trace of a link that changes: links/NAME.csv beside the designs that name it.",
)

Kind = StrEnum("Kind", {name: name for name in link_traces.KINDS})  # type: ignore[misc]
Form = StrEnum("Form", {name: name for name in link_traces.FORMATS})  # type: ignore[misc]


@link.command()
def make(
    kind: Annotated[Kind, typer.Argument(help="What it is like.")],
    output: arguments.OutputFile,
    seed: Annotated[int, typer.Option(min=0, max=2**64 - 1)] = 2026,
    duration_s: Annotated[float, typer.Option(help="Its length; it loops.", min=1.0, max=36_000.0)] = 60.0,
) -> None:
    """Make a link like LTE, 5G, Starlink or Wi-Fi, from a seed."""
    _write(link_traces.make(str(kind), seed, duration_s), output)


@link.command("import")
def import_trace(
    form: Annotated[Form, typer.Argument(help="The file's form.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What another tool has recorded.")],
    output: arguments.OutputFile,
    column: Annotated[str, typer.Option(help="Of irtt: uplink, downlink or rtt, which is halved.")] = "",
) -> None:
    """Import a trace of mahimahi, TheaterQ, irtt, or of times and rates."""
    _write(link_traces.imported(str(form), file, column), output)


@link.command()
def show(
    trace: Annotated[Path, typer.Argument(metavar="FILE", help="A trace, as CSV or Parquet.")],
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw it there, as PNG, SVG or PDF.")
    ] = None,
) -> None:
    """Show a trace: its rates, delays, and when it carries nothing."""
    shown, _ = link_traces.read(trace)
    if output is not None:
        from fecbench.results.figures import links as drawing
        from fecbench.results.figures.saving import SUFFIXES, save

        check_file("--output", output, list(SUFFIXES))
        with writing("--output", output):
            save(drawing.trace(shown.columns), output)
    say(f"{trace}: {len(shown.keep_us)} steps, {shown.period_ns / 1e9:g} s")
    headings = ("", "least", "5 %", "median", "mean", "95 %", "most")
    print_table(table_of(headings, _rows(shown), right=headings[1:]))
    outages = _outages_s(shown)
    if outages:
        say(f"It carries nothing {len(outages)} times, {max(outages):g} s at the longest.")


def _rows(trace: Trace) -> list[tuple[str, ...]]:
    keep, rows = trace.keep_us.astype(float), []
    columns = {"rate (Mbit/s)": (trace.rate_bps, 1e6), "one-way delay (ms)": (trace.owd_us, 1e3)}
    for name, (column, unit) in columns.items():
        if column is not None:
            values = column / unit
            order = np.argsort(values)
            shares = np.cumsum(keep[order]) / keep.sum()
            at = [values[order[np.searchsorted(shares, share)]] for share in (0.05, 0.5, 0.95)]
            mean = (values * keep).sum() / keep.sum()
            told = (values.min(), at[0], at[1], mean, at[2], values.max())
            rows.append((name, *(f"{value:.3g}" for value in told)))
    if trace.burst_bytes is not None:
        rows.append(("bursts (Mbit/s)", "", "", "", f"{trace.mean_bps / 1e6:.3g}", "", ""))
    return rows


def _outages_s(trace: Trace) -> list[float]:
    """How long it carries nothing, each time."""
    if trace.rate_bps is None or trace.burst_bytes is not None:
        return []
    rates = np.concatenate([[1], trace.rate_bps, [1]])
    begins, ends = (np.flatnonzero(np.diff((rates == 0).astype(int)) == sign) for sign in (1, -1))
    ends_us = np.concatenate([[0], np.cumsum(trace.keep_us)])
    return list((ends_us[ends] - ends_us[begins]) / 1e6)


def _write(made: Trace, output: Path) -> None:
    check_file("--output", output, [".csv"])
    with writing("--output", output):
        write_text(output, link_traces.text_of(made))
    rate = f", {made.mean_bps / 1e6:.3g} Mbit/s on average" if made.changes_rate else ""
    say(f"{output}: {len(made.keep_us)} steps, {made.period_ns / 1e9:g} s{rate}")
