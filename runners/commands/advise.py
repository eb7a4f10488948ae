"""`fecbench advise`: which FEC to use in a network, from recorded campaigns."""

from pathlib import Path
from typing import Annotated

import typer

from fecbench.results.advice import Advice, CongestionControl, Network
from fecbench.results.advice import advise as advice_for
from fecbench.results.analysis.margins import percent
from fecbench.results.analysis.units import size as size_of
from fecbench.results.store.export import SUFFIXES, write
from fecbench.runners.commands.console import arguments
from fecbench.runners.commands.console.destination import check_file
from fecbench.runners.commands.console.document import print_document
from fecbench.runners.commands.console.terminal import say


def _share(text: str) -> float:
    """A share, as a number or as a percentage."""
    try:
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} must be a share such as 0.02, or a percentage such as 2%"
        ) from None


def advise(
    rtt_ms: Annotated[float, typer.Option(help="The round-trip time without a queue.")],
    bandwidth_mbps: Annotated[float, typer.Option(help="The rate of the slowest link.")],
    loss: Annotated[
        float,
        typer.Option(metavar="0.02|2%", parser=_share, help="The share of packets that is lost, below 1."),
    ],
    size_bytes: Annotated[float, typer.Option(help="How long the download is.")],
    burst: Annotated[float, typer.Option(help="How many packets are lost in a row, on average.")] = 1,
    congestion_control: Annotated[
        CongestionControl, typer.Option(help="Beside which congestion control.")
    ] = "cubic",
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the recorded networks that it rests on: CSV or Parquet."),
    ] = None,
    as_json: arguments.Json = False,
) -> None:
    """Say which FEC of noq-fec to use for a download in a network, and what to expect of it.

    The first of "safe" and "tail" is advised that surely shortens downloads in the recorded networks near by,
    unless the other surely shortens them more. "tail" is RLC (3, 2, 20), which repairs the end of all data;
    "safe" adapts, and harms least where the network changes.
    """
    if output is not None:
        check_file("--output", output, SUFFIXES)
    advice = advice_for(Network(rtt_ms, bandwidth_mbps, loss, size_bytes, burst, congestion_control))
    if output is not None:
        write(advice.nearest, output)
    if as_json:
        print_document(advice.document())
    else:
        say("\n".join(_lines(advice)))


def _lines(advice: Advice) -> list[str]:
    options = ", ".join(f'{name} = "{value}"' for name, value in advice.use.items())
    where = f"the {advice.networks} recorded networks most like this one"
    size, margin = size_of(advice.size_bytes), percent(advice.margin)
    if advice.use["scheme"] == "none":
        lines = [f"Use {options}: FEC does not surely shorten downloads of {size} in {where}."]
    else:
        low, high = advice.interval
        lines = [
            f"Use {options}: downloads of {size} take {advice.ratio:.3f} of the time without FEC"
            f" ({low:.3f} to {high:.3f}) in {where}."
        ]
    for candidate in advice.candidates:
        low, high = candidate.interval
        within = advice.networks - candidate.helped - candidate.harmed - candidate.undecided
        lines.append(
            f"  {candidate.controller}: {candidate.ratio:.3f} ({low:.3f} to {high:.3f});"
            f" by more than {margin} surely shorter in {candidate.helped} of them,"
            f" surely longer in {candidate.harmed}, within {margin} in {within},"
            f" undecided in {candidate.undecided}"
        )
    for name, (least, most) in advice.beyond.items():
        lines.append(f"Believe this less: {name} is outside of what was measured, {least:.4g} to {most:.4g}.")
    return lines
