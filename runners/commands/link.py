"""`fecbench link`: makes, imports and shows traces of links that change. Needs no root."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fecbench.errors import BadInput
from fecbench.quantities import counted
from fecbench.runners.commands.console import arguments
from fecbench.runners.commands.console.campaign_documents import print_document
from fecbench.runners.commands.console.destination import check_file, writing
from fecbench.runners.commands.console.terminal import say
from fecbench.runners.commands.console.terminal_tables import print_table, table_of
from fecbench.topologies import link_traces
from fecbench.whole_files import write_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fecbench.topologies.trace import Trace
    from fecbench.topologies.trace_course import Outage, Windows

link = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Make or import the trace of a link that changes: links/NAME.csv beside the designs that name it.",
)

Kind = StrEnum("Kind", {name: name for name in link_traces.KINDS})  # type: ignore[misc]
Form = StrEnum("Form", {name: name for name in link_traces.FORMATS})  # type: ignore[misc]
Holds = StrEnum("Holds", ["after", "before"])

SHOWN_OUTAGES = 10
SHARES = (0.05, 0.5, 0.95)


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
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="What another tool has recorded; gzip is unpacked.")
    ],
    output: arguments.OutputFile,
    column: Annotated[str, typer.Option(help="Of irtt: uplink, downlink or rtt, which is halved.")] = "",
    holds: Annotated[
        Holds | None,
        typer.Option(
            help="Of rates: whether each holds after its time, until the next one, or before it, as in traces"
            " of Pensieve. By default after."
        ),
    ] = None,
) -> None:
    """Import a trace of mahimahi, TheaterQ, irtt (its JSON or a CSV), or of times (s) and rates (Mbit/s)."""
    if column and form != "irtt":
        raise BadInput(f"--column {column}: only irtt has columns to choose from, and {form} has not")
    if holds and form != "rates":
        raise BadInput(f"--holds {holds}: only rates hold before or after their time, and {form} says itself")
    imported = link_traces.read_other(str(form), file, column, holds.value if holds else "after")  # type: ignore[arg-type]
    _write(imported.trace, output)
    for note in imported.notes:
        say(note)


@link.command()
def show(
    trace: Annotated[Path, typer.Argument(metavar="FILE", help="A trace, as CSV or Parquet.")],
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw it there, as PNG, SVG or PDF.")
    ] = None,
    as_json: arguments.Json = False,
) -> None:
    """Show a trace: its rates over 500 ms, its delays, and when it carries nothing."""
    from fecbench.topologies.trace_course import outages, windows

    link_trace, _ = link_traces.read(trace)
    rates, idle = windows(link_trace), outages(link_trace)
    if output is not None:
        _draw(link_trace, rates, idle, output)
    quantities = _quantities(link_trace, rates)
    if as_json:
        print_document(_document(link_trace, quantities, idle))
        return
    say(f"{trace}: {counted(len(link_trace.keep_us), 'step')}, {link_trace.period_ns / 1e9:g} s")
    headings = ("", "least", "5 %", "median", "mean", "95 %", "most")
    rows = [(name, *(f"{value:.3g}" for value in values)) for name, values in quantities.items()]
    print_table(table_of(headings, rows, right=headings[1:]))
    if rates is not None:
        say(f"Rates are of {len(rates.rates_mbps)} windows of {1e3 * rates.window_s:g} ms.")
    if idle:
        say(_of_outages(idle, link_trace.period_ns / 1e9))


def _draw(link_trace: Trace, rates: Windows | None, idle: Sequence[Outage], output: Path) -> None:
    from fecbench.results.figures import links as drawing
    from fecbench.results.figures.saving import SUFFIXES, save

    check_file("--output", output, list(SUFFIXES))
    spans = [(outage.begin_s, outage.lasts_s) for outage in idle]
    with writing("--output", output):
        if rates is None:
            save(drawing.trace(link_trace.columns), output)
        else:
            series = rates.edges_s, rates.rates_mbps
            save(drawing.trace(link_trace.columns, series, spans, rates.window_s), output)


def _quantities(link_trace: Trace, rates: Windows | None) -> dict[str, tuple[float, ...]]:
    """The least, three quantiles with the mean among them, and the most, of what changes."""
    import numpy as np

    quantities = {}
    if rates is not None:
        quantities["rate (Mbit/s)"] = _spread(rates.rates_mbps, np.diff(rates.edges_s))
    if link_trace.owd_us is not None:
        quantities["one-way delay (ms)"] = _spread(link_trace.owd_us / 1e3, link_trace.keep_us.astype(float))
    return quantities


def _spread(values: NDArray[np.float64], weights: NDArray[np.float64]) -> tuple[float, ...]:
    import numpy as np

    order = np.argsort(values)
    shares = np.cumsum(weights[order]) / weights.sum()
    places = np.minimum(np.searchsorted(shares, SHARES), len(values) - 1)
    low, median, high = (float(values[order[place]]) for place in places)
    mean = float((values * weights).sum() / weights.sum())
    return float(values.min()), low, median, mean, high, float(values.max())


def _of_outages(idle: Sequence[Outage], period_s: float) -> str:
    longest, total = max(outage.lasts_s for outage in idle), sum(outage.lasts_s for outage in idle)
    first, last = idle[0], idle[-1]
    around_s = first.lasts_s + last.lasts_s
    meets = len(idle) > 1 and first.begin_s == 0 and math.isclose(last.begin_s + last.lasts_s, period_s)
    looped = f" Where it loops, the last and the first are one of {around_s:g} s." if meets else ""
    link_trace = [f"at {outage.begin_s:g} s for {outage.lasts_s:g} s" for outage in idle[:SHOWN_OUTAGES]]
    if more := len(idle) - len(link_trace):
        link_trace.append(f"and {more} more")
    times = "once" if len(idle) == 1 else f"{len(idle)} times"
    return (
        f"It carries nothing {times}, {longest:g} s at the longest and {total:g} s in all:"
        f" {', '.join(link_trace)}.{looped}"
    )


def _document(
    link_trace: Trace, quantities: dict[str, tuple[float, ...]], idle: Sequence[Outage]
) -> dict[str, Any]:
    names = ("least", "p05", "median", "mean", "p95", "most")
    keys = {"rate (Mbit/s)": "rate_mbps", "one-way delay (ms)": "owd_ms"}
    return {
        "steps": len(link_trace.keep_us),
        "period_s": link_trace.period_ns / 1e9,
        **{keys[name]: dict(zip(names, values, strict=True)) for name, values in quantities.items()},
        "outages": [{"begin_s": outage.begin_s, "lasts_s": outage.lasts_s} for outage in idle],
    }


def _write(trace: Trace, output: Path) -> None:
    check_file("--output", output, [".csv"])
    with writing("--output", output):
        write_text(output, link_traces.text_of(trace))
    mean_mbps = float(f"{trace.mean_bps / 1e6:.3g}")  # three digits, and no exponent
    rate = f", {mean_mbps:g} Mbit/s on average" if trace.changes_rate else ""
    span = trace.owd_span_us
    delay = "" if span is None else f", one way in {span[0] / 1e3:g} to {span[1] / 1e3:g} ms"
    say(f"{output}: {counted(len(trace.keep_us), 'step')}, {trace.period_ns / 1e9:g} s{rate}{delay}")
