"""`fecbench advise`: which FEC to use in a network, from recorded campaigns."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from fecbench.results.advice import Advice, Candidate, CongestionControl, Network
from fecbench.results.advice import advise as advice_for
from fecbench.results.advice.prediction import HELD
from fecbench.results.advice.ranges import FAR
from fecbench.results.advice.record import OLDER
from fecbench.results.analysis.margins import percent
from fecbench.results.metrics.units import size as size_of
from fecbench.results.store.export import SUFFIXES, write
from fecbench.runners.commands.console import arguments
from fecbench.runners.commands.console.destination import check_file
from fecbench.runners.commands.console.document import print_document
from fecbench.runners.commands.console.terminal import say

NOTHING = 3
"""The exit status when nothing can be said."""
_SUCH = f"{100 * HELD:g} of 100 such networks"


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
    queue_bdp: Annotated[
        float | None,
        typer.Option(help="The queue's limit, in bandwidth-delay products. By default it may be any."),
    ] = None,
    congestion_control: Annotated[
        CongestionControl, typer.Option(help="Beside which congestion control.")
    ] = "cubic",
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the recorded networks that it rests on: CSV or Parquet."),
    ] = None,
    as_json: arguments.Json = False,
) -> int:
    """Say which FEC of noq-fec to use for a download in a network; 3 when nothing can be said.

    The first of "safe" and "tail" is advised that shortens downloads in the recorded networks near by, and
    lengthens them in next to none, unless the other surely shortens them more. "tail" is RLC (3, 2, 20),
    which repairs the end of all data; "safe" adapts, and harms least where the network changes.
    """
    if output is not None:
        check_file("--output", output, SUFFIXES)
    network = Network(rtt_ms, bandwidth_mbps, loss, size_bytes, burst, congestion_control, queue_bdp)
    advice = advice_for(network)
    if output is not None:
        write(advice.nearest, output)
    if as_json:
        print_document(advice.document())
    else:
        say("\n".join(_lines(network, advice)))
    return NOTHING if advice.answer == "nothing" else 0


def _lines(network: Network, advice: Advice) -> Iterator[str]:
    yield _answer(f"downloads of {size_of(round(network.size_bytes))}", advice)
    for candidate in advice.candidates:
        yield from _prospects(candidate, advice.networks)
    for name, (low, high) in advice.between.items():
        ends = f"{_value(name, low)} and {_value(name, high)}"
        yield f"Believe this less: {name} is between what was measured: {ends}. Both sides were asked."
    believe = "" if advice.far else "Believe this less: "
    for name, (low, high) in advice.beyond.items():
        far = f", by more than a factor of {FAR:g}" if name in advice.far else ""
        ends = f"{_value(name, low)} to {_value(name, high)}"
        yield f"{believe}{name} is outside of what was measured, {ends}{far}."
    if advice.answer == "nothing":
        yield "To know more, run a design of your own network: docs/write-a-design.md, “One network”."


def _answer(downloads: str, advice: Advice) -> str:
    """The first sentence."""
    margin = percent(advice.margin)
    if advice.far:
        return f"Nothing can be said of {downloads}: nothing like this network was measured."
    if advice.use is None or advice.prediction is None:
        low = min(candidate.prediction[0] for candidate in advice.candidates)
        high = max(candidate.prediction[1] for candidate in advice.candidates)
        return (
            f"Nothing can be said of {downloads}: in networks like yours they take {_range(low, high)} of the"
            " time without FEC, and what was measured does not tell which yours is."
        )
    options = ", ".join(f'{name} = "{value}"' for name, value in advice.use.items())
    if advice.answer == "none":
        return (
            f"Use {options}: in a network like yours, FEC does not shorten {downloads} by more than {margin}."
        )
    return (
        f"Use {options}: in a network like yours, {downloads} take {_range(*advice.prediction)} of the time"
        f" without FEC ({_SUCH})."
    )


def _prospects(candidate: Candidate, networks: int) -> Iterator[str]:
    """Yield the effect of a controller in networks like this one: in most, on average, and in how many
    surely."""
    yield f"  {candidate.controller}: {_range(*candidate.prediction)} of the time ({_SUCH})."
    low, high = candidate.interval
    sizes = " and ".join(map(size_of, candidate.sizes_bytes))
    margins = " and ".join(dict.fromkeys(map(percent, candidate.margins)))
    interpolated = f" Interpolated between {sizes}." if len(candidate.sizes_bytes) > 1 else ""
    yield (
        f"    The mean over the {networks} recorded networks most like yours is {candidate.ratio:.3f}"
        f" ({low:.3f} to {high:.3f}).{interpolated}"
    )
    yield (
        f"    At {sizes}, by more than {margins}: surely longer in"
        f" {candidate.harmed} of {candidate.decided} that are decided, {candidate.undecided} open;"
        f" surely shorter in {candidate.helped}."
    )
    if candidate.controller in OLDER:
        yield (
            f"    These are numbers of {candidate.controller} as it was before its repair symbols named"
            " packets: docs/which-fec.md, “Since these numbers”."
        )


def _range(low: float, high: float) -> str:
    """The ends of an interval, rounded outwards, with the digits that its width allows."""
    digits = 2 if high - low >= 0.03 else 3
    scale = 10**digits
    return f"{math.floor(low * scale) / scale:.{digits}f} to {math.ceil(high * scale) / scale:.{digits}f}"


def _value(name: str, value: float) -> str:
    if name == "loss":
        return percent(value)
    return size_of(round(value)) if name == "size_bytes" else f"{value:.4g}"
