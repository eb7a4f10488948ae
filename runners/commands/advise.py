"""`fecbench advise`: which FEC to use in a network, from recorded campaigns."""

from typing import Annotated

import typer

from fecbench.results.advice import Advice, CongestionControl, Network
from fecbench.results.advice import advise as advice_for
from fecbench.runners.commands.console import arguments
from fecbench.runners.commands.console.document import print_document
from fecbench.runners.commands.console.terminal import say


def advise(
    rtt_ms: Annotated[float, typer.Option(help="The round-trip time without a queue.")],
    bandwidth_mbps: Annotated[float, typer.Option(help="The rate of the slowest link.")],
    loss: Annotated[float, typer.Option(help="The share of packets that is lost, 0 to 1.")],
    size_bytes: Annotated[float, typer.Option(help="How long the download is.")],
    burst: Annotated[float, typer.Option(help="How many packets are lost in a row, on average.")] = 1,
    congestion_control: Annotated[
        CongestionControl, typer.Option(help="Beside which congestion control.")
    ] = "cubic",
    as_json: arguments.Json = False,
) -> None:
    """Say which FEC of noq-fec to use for a download in a network, and what to expect of it."""
    advice = advice_for(Network(rtt_ms, bandwidth_mbps, loss, size_bytes, burst, congestion_control))
    if as_json:
        print_document(advice.document())
    else:
        say("\n".join(_lines(advice)))


def _lines(advice: Advice) -> list[str]:
    options = ", ".join(f'{name} = "{value}"' for name, value in advice.use.items())
    where = f"the {advice.networks} recorded networks most like this one"
    if advice.use["scheme"] == "none":
        lines = [f"Use {options}: FEC does not surely shorten such downloads in {where}."]
    else:
        low, high = advice.interval
        lines = [
            f"Use {options}: such downloads take {advice.ratio:.3f} of the time without FEC"
            f" ({low:.3f} to {high:.3f}) in {where}."
        ]
    for candidate in advice.candidates:
        low, high = candidate.interval
        lines.append(
            f"  {candidate.controller}: {candidate.ratio:.3f} ({low:.3f} to {high:.3f});"
            f" surely longer by more than 2 % in {candidate.harmed} of them,"
            f" undecided in {candidate.undecided}"
        )
    if advice.outside:
        lines.append("This network is outside of what was measured: believe this less.")
    return lines
