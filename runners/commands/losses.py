"""`fecbench losses`: which packets a loss model and a seed drop, as the oracle predicts it. Needs no root."""

import math
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from fecbench.dropper.clocked import Timed, mean_loss_rate, verdicts_at
from fecbench.dropper.draws import LONGEST, require_integer, require_time
from fecbench.dropper.model import (
    GilbertElliott,
    Uniform,
    mean_burst_length,
    stationary_loss_rate,
    verdicts,
)
from fecbench.dropper.parameters import MEANINGS, PARAMETERS, LossModel, loss_model, parameters_of
from fecbench.errors import BadInput
from fecbench.runners.commands.console import arguments
from fecbench.runners.commands.console.document import print_document
from fecbench.runners.commands.console.terminal import say

if TYPE_CHECKING:
    from fecbench.dropper.recordings import Recording as RecordedLosses

SHOWN_LOSSES = 20

ByteOrder = StrEnum("ByteOrder", ["big", "little"])
Direction = StrEnum("Direction", ["up", "down"])

losses = typer.Typer(no_args_is_help=True, help="Predict which packets a loss model and a seed drop.")

GoodToBad = Annotated[float | None, typer.Option("--p", help=PARAMETERS["ge"]["p"])]
BadToGood = Annotated[float | None, typer.Option("--r", help=PARAMETERS["ge"]["r"])]
DeliveryInGood = Annotated[float | None, typer.Option("--k", help=PARAMETERS["ge"]["k"])]
DeliveryInBad = Annotated[float | None, typer.Option("--h", help=PARAMETERS["ge"]["h"])]
Rate = Annotated[float | None, typer.Option("--rate", help=PARAMETERS["ge"]["rate"])]
Burst = Annotated[float | None, typer.Option("--burst", help=PARAMETERS["ge"]["burst"])]
Seed = Annotated[int, typer.Option("--seed", help="The seed: 64 bits, unsigned.")]
Recording = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="A 0 for each packet that came and a 1 for each that was lost; a qlog of the sender, or a NetLog"
        " of Chromium; or a packet capture. Each may be packed by gzip.",
    ),
]
Received = Annotated[
    Path | None, typer.Option("--received", help="The receiver's packets, beside the sender's.")
]
SequenceNumbers = Annotated[
    str | None,
    typer.Option(
        "--sequence",
        metavar="OFFSET:BYTES",
        help="FILE has the receiver's packets, and their sequence numbers stand there in UDP: 2:2 for RTP."
        " Read is the flow with most packets, and of RTP the source (SSRC) with most.",
    ),
]
NumbersByteOrder = Annotated[
    ByteOrder | None,
    typer.Option("--byte-order", help="Of the sequence numbers. By default that of networks, big."),
]
TraceNumber = Annotated[
    int | None,
    typer.Option(
        "--trace", min=1, help="Which recording to read, of a qlog or NetLog with several: 1 is the first."
    ),
]
Interval = Annotated[
    float,
    typer.Option("--every-ms", help="One packet arrives after so many ms: losses follow from the time."),
]
Packets = Annotated[int, typer.Option("--packets", help="How many packets to judge.")]


@losses.command(help=MEANINGS["uniform"])
def uniform(
    p: Annotated[float, typer.Option("--p", help=PARAMETERS["uniform"]["p"])],
    seed: Seed = 0,
    packets: Packets = 1000,
    as_json: arguments.Json = False,
) -> None:
    _print_losses(_model_of("uniform", p=p), seed, packets, as_json)


@losses.command(help=MEANINGS["ge"])
def ge(
    p: GoodToBad = None,
    r: BadToGood = None,
    k: DeliveryInGood = None,
    h: DeliveryInBad = None,
    rate: Rate = None,
    burst: Burst = None,
    seed: Seed = 0,
    packets: Packets = 1000,
    as_json: arguments.Json = False,
) -> None:
    _print_losses(_model_of("ge", p=p, r=r, k=k, h=h, rate=rate, burst=burst), seed, packets, as_json)


@losses.command(help=MEANINGS["markov"])
def markov(
    p: GoodToBad = None,
    r: BadToGood = None,
    rate: Rate = None,
    burst: Burst = None,
    seed: Seed = 0,
    packets: Packets = 1000,
    as_json: arguments.Json = False,
) -> None:
    _print_losses(_model_of("markov", p=p, r=r, rate=rate, burst=burst), seed, packets, as_json)


@losses.command(help=MEANINGS["pattern"])
def pattern(
    drop: Annotated[str, typer.Option("--drop", help=PARAMETERS["pattern"]["drop"])],
    length: Annotated[int | None, typer.Option("--length", help=PARAMETERS["pattern"]["length"])] = None,
    repeat: Annotated[bool, typer.Option("--repeat", help=PARAMETERS["pattern"]["repeat"])] = False,
    seed: Seed = 0,
    packets: Packets = 1000,
    as_json: arguments.Json = False,
) -> None:
    _print_losses(_model_of("pattern", drop=drop, length=length, repeat=repeat), seed, packets, as_json)


@losses.command("ge-time", help=MEANINGS["ge-time"])
def ge_time(
    bad_s: Annotated[float, typer.Option("--bad-s", help=PARAMETERS["ge-time"]["bad_s"])],
    good_s: Annotated[float | None, typer.Option("--good-s", help=PARAMETERS["ge-time"]["good_s"])] = None,
    rate: Annotated[float | None, typer.Option("--rate", help=PARAMETERS["ge-time"]["rate"])] = None,
    k: DeliveryInGood = None,
    h: DeliveryInBad = None,
    seed: Seed = 0,
    packets: Packets = 1000,
    every_ms: Interval = 1.0,
    as_json: arguments.Json = False,
) -> None:
    model = _model_of("ge-time", good_s=good_s, bad_s=bad_s, rate=rate, k=k, h=h)
    _print_losses(model, seed, packets, as_json, every_ms)


@losses.command(help=MEANINGS["slots"])
def slots(
    drop: Annotated[str, typer.Option("--drop", help=PARAMETERS["slots"]["drop"])],
    slot_ms: Annotated[float, typer.Option("--slot-ms", help=PARAMETERS["slots"]["slot_ms"])],
    length: Annotated[int | None, typer.Option("--length", help=PARAMETERS["slots"]["length"])] = None,
    repeat: Annotated[bool, typer.Option("--repeat", help=PARAMETERS["slots"]["repeat"])] = False,
    seed: Seed = 0,
    packets: Packets = 1000,
    every_ms: Interval = 1.0,
    as_json: arguments.Json = False,
) -> None:
    model = _model_of("slots", drop=drop, slot_ms=slot_ms, length=length, repeat=repeat)
    _print_losses(model, seed, packets, as_json, every_ms)


@losses.command("import")
def import_losses(
    file: Recording,
    received: Received = None,
    sequence: SequenceNumbers = None,
    byte_order: NumbersByteOrder = None,
    trace: TraceNumber = None,
    direction: Annotated[
        Direction | None,
        typer.Option(
            help="Which way the packets went, where the recording does not say: down is to the client."
        ),
    ] = None,
    as_json: arguments.Json = False,
) -> None:
    """Make a pattern of recorded losses: a list, a qlog, or packet captures of both sides.

    A recording is of one direction, and so is the pattern. Losses that were declared, and whose packets came
    all the same, do not count.
    """
    from fecbench.dropper import recordings

    recording = _recorded(file, received, sequence, byte_order, trace)
    lost, drop = recording.lost, recordings.drop_list(recording.lost)
    way = direction or recording.direction
    if as_json:
        document = {"model": "pattern", "drop": drop, "length": lost.size, "losses": int(lost.sum())}
        document |= {"direction": way and str(way), "source": recording.source, "notes": recording.notes}
        print_document(document, indent=None)
        return
    say(
        f"# {int(lost.sum())} losses of {lost.size} packets"
        + (f": {recording.source}" if recording.source else "")
    )
    for note in recording.notes:
        say(f"# {note}")
    say(f"# {_why_this_way(direction, recording)}")
    say("# Each repetition meets these same losses; fecbench losses fit finds a model that draws others.")
    prefix = f"loss.{way or Direction.down}"
    say(f'{prefix}.model = "pattern"\n{prefix}.drop = "{drop}"\n{prefix}.length = {lost.size}')


def _why_this_way(direction: Direction | None, recording: "RecordedLosses") -> str:
    """Return a sentence: of which direction the recording is, and by what."""
    if direction is not None:
        return f"A recording is of one direction: {direction}, as --direction says."
    if recording.direction is None:
        return (
            "A recording is of one direction. It does not say which: down is assumed, or say --direction up."
        )
    by = "its source" if " to " not in recording.source else "the ports"
    return f"A recording is of one direction: {recording.direction}, by {by}; --direction says otherwise."


@losses.command("fit")
def fit_losses(
    file: Recording,
    received: Received = None,
    sequence: SequenceNumbers = None,
    byte_order: NumbersByteOrder = None,
    trace: TraceNumber = None,
    as_json: arguments.Json = False,
) -> None:
    """Say which model recorded losses fit best, and whether a difference is found between it and them."""
    from fecbench.dropper import fit  # scipy's optimizer takes long to load

    recording = _recorded(file, received, sequence, byte_order, trace)
    found = fit.fit(recording.lost)
    if as_json:
        told = {
            "model": found.name,
            "parameters": found.parameters,
            "usable": found.usable,
            "why": found.why,
            "packets": found.packets,
            "losses": found.losses,
            "bursts": found.bursts,
            "bic": found.bic,
            "seen_from": found.seen_from,
            "notes": recording.notes,
        }
        print_document(told, indent=None)
        return
    parameters = ", ".join(f"{name} = {value:.4g}" for name, value in found.parameters.items())
    said = f"No difference found, with {found.bursts} bursts" if found.usable else "Do not use this model"
    say(f"{said}: {found.why}.")
    say(f"{found.name} ({parameters}), of {found.losses} losses of {found.packets} packets")
    for note in recording.notes:
        say(note)


def _recorded(
    file: Path, received: Path | None, sequence: str | None, byte_order: ByteOrder | None, trace: int | None
) -> "RecordedLosses":
    from fecbench.dropper import recordings

    if byte_order and not sequence:
        raise BadInput(f"--byte-order {byte_order}: is of sequence numbers, and there is no --sequence")
    order = byte_order.value if byte_order else "big"
    place = recordings.Sequence.of(sequence, order) if sequence else None  # type: ignore[arg-type]
    return recordings.recorded(file, received, place, trace)


def _model_of(name: str, **parameters: object) -> LossModel:
    given = {key: value for key, value in parameters.items() if value is not None}
    return loss_model({"model": name, **given})


def _burst_lengths(dropped: NDArray[np.bool_]) -> NDArray[np.int64]:
    edges = np.diff(np.concatenate(([0], dropped.astype(np.int64), [0])))
    return np.flatnonzero(edges == -1) - np.flatnonzero(edges == 1)


def _expected_burst_length(model: LossModel) -> float | None:
    return mean_burst_length(model) if isinstance(model, Uniform | GilbertElliott) else None


def _expected_loss_rate(model: LossModel) -> float:
    return mean_loss_rate(model) if isinstance(model, Timed) else stationary_loss_rate(model)


def _print_losses(
    model: LossModel, seed: int, packets: int, as_json: bool, every_ms: float | None = None
) -> None:
    if isinstance(model, Timed):
        require_integer("packets", packets, 0, LONGEST)
        require_time("every-ms", every_ms or 0.0, 1e-3, 1e6, "ms")
        arrivals_ns = np.arange(packets, dtype=np.int64) * round(1e6 * (every_ms or 0.0))
        dropped = verdicts_at(model, seed, arrivals_ns)
    else:
        dropped = verdicts(model, seed, packets)
    if as_json:
        print_document(_document(model, seed, dropped), indent=None)
    else:
        say(_summary(model, seed, dropped))


def _document(model: LossModel, seed: int, dropped: NDArray[np.bool_]) -> dict[str, Any]:
    expected = _expected_burst_length(model)
    return {
        "model": parameters_of(model),
        "seed": seed,
        "packets": dropped.size,
        "dropped": np.flatnonzero(dropped).tolist(),
        "stationary_loss_rate": _expected_loss_rate(model),
        "mean_burst_length": expected if expected is not None and math.isfinite(expected) else None,
    }


def _summary(model: LossModel, seed: int, dropped: NDArray[np.bool_]) -> str:
    indices, bursts = np.flatnonzero(dropped), _burst_lengths(dropped)
    expected = _expected_burst_length(model)
    rate = dropped.mean() if dropped.size else 0.0
    length = bursts.mean() if bursts.size else 0.0
    shown = ", ".join(map(str, indices[:SHOWN_LOSSES])) + (", …" if indices.size > SHOWN_LOSSES else "")
    return "\n".join(
        (
            f"{model}, seed {seed}",
            f"dropped     {indices.size} of {dropped.size} packets",
            f"loss rate   {rate:.6g} (in the long run {_expected_loss_rate(model):.6g})",
            f"bursts      {bursts.size}, mean length {length:.4g}"
            + (f" (in the long run {expected:.4g})" if expected is not None else ""),
            f"losses      {shown or 'none'}",
        )
    )
