"""`fecbench losses`: which packets a loss model and a seed drop, as the oracle predicts it. Needs no root."""

from __future__ import annotations

import inspect
import math
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fecbench.dropper.parameters import MODELS
from fecbench.errors import BadInput
from fecbench.quantities import counted
from fecbench.runners.commands.console import arguments
from fecbench.runners.commands.console.campaign_documents import print_document
from fecbench.runners.commands.console.terminal import say

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fecbench.dropper.loss_model import LossModel, Parameter
    from fecbench.dropper.recordings import Recording as RecordedLosses

SHOWN_LOSSES = 20

ByteOrder = StrEnum("ByteOrder", ["big", "little"])
Direction = StrEnum("Direction", ["up", "down"])

losses = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Predict which packets a loss model and a seed drop."
)

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
EVERY_MS = 1.0
Interval = Annotated[
    float,
    typer.Option("--every-ms", help="One packet arrives after so many ms: losses follow from the time."),
]
Packets = Annotated[int, typer.Option("--packets", help="How many packets to judge.")]


def _add_command(model: type[LossModel]) -> None:
    """Make a command of a model, with an option for each parameter."""
    from fecbench.dropper.parameters import loss_model

    def predict(seed: int, packets: int, as_json: bool, every_ms: float = EVERY_MS, **given: object) -> None:
        choices = {key: value for key, value in given.items() if value is not None and value is not False}
        _print_losses(loss_model({"model": model.name, **choices}), seed, packets, as_json, every_ms)

    always = set(model.forms[0].needed).intersection(*(form.needed for form in model.forms))
    shared: dict[str, tuple[object, object]] = {"seed": (Seed, 0), "packets": (Packets, 1000)}
    if model.is_clocked:
        shared["every_ms"] = (Interval, EVERY_MS)
    shared["as_json"] = (arguments.Json, False)
    signature = [_parameter(key, own, key in always) for key, own in model.parameters.items()]
    signature += [_keyword(name, kind, default) for name, (kind, default) in shared.items()]
    predict.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
    predict.__annotations__ = {parameter.name: parameter.annotation for parameter in signature}
    losses.command(model.name, help=model.meaning)(predict)


def _parameter(key: str, own: Parameter, is_needed: bool) -> inspect.Parameter:
    kind = own.kind if is_needed or own.kind is bool else own.kind | None
    option = typer.Option(f"--{key.replace('_', '-')}", help=own.meaning)
    absent = inspect.Parameter.empty if is_needed else False if own.kind is bool else None
    return _keyword(key, Annotated[kind, option], absent)


def _keyword(name: str, kind: object, default: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


for _model in MODELS.values():
    if _model.parameters:
        _add_command(_model)


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
        f"# {counted(int(lost.sum()), 'loss')} of {counted(lost.size, 'packet')}"
        + (f": {recording.source}" if recording.source else "")
    )
    for note in recording.notes:
        say(f"# {note}")
    say(f"# {_why_this_way(direction, recording)}")
    say("# Each repetition meets these same losses; fecbench losses fit finds a model that draws others.")
    prefix = f"loss.{way or Direction.down}"
    say(f'{prefix}.model = "pattern"\n{prefix}.drop = "{drop}"\n{prefix}.length = {lost.size}')


def _why_this_way(direction: Direction | None, recording: RecordedLosses) -> str:
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
    best = fit.fit(recording.lost)
    if as_json:
        document = {
            "model": best.name,
            "parameters": best.parameters,
            "usable": best.usable,
            "why": best.why,
            "packets": best.packets,
            "losses": best.losses,
            "bursts": best.bursts,
            "bic": best.bic,
            "seen_from": best.seen_from,
            "notes": recording.notes,
        }
        print_document(document, indent=None)
        return
    parameters = ", ".join(f"{name} = {value:.4g}" for name, value in best.parameters.items())
    conclusion = (
        f"No difference found, with {counted(best.bursts, 'burst')}"
        if best.usable
        else "Do not use this model"
    )
    say(f"{conclusion}: {best.why}.")
    say(f"{best.name} ({parameters}), of {counted(best.losses, 'loss')} of {counted(best.packets, 'packet')}")
    for note in recording.notes:
        say(note)


def _recorded(
    file: Path, received: Path | None, sequence: str | None, byte_order: ByteOrder | None, trace: int | None
) -> RecordedLosses:
    from fecbench.dropper import recordings

    if byte_order and not sequence:
        raise BadInput(f"--byte-order {byte_order}: is of sequence numbers, and there is no --sequence")
    order = byte_order.value if byte_order else "big"
    place = recordings.Sequence.of(sequence, order) if sequence else None  # type: ignore[arg-type]
    return recordings.recorded(file, received, place, trace)


def _burst_lengths(dropped: NDArray[np.bool_]) -> NDArray[np.int64]:
    import numpy as np

    edges = np.diff(np.concatenate(([0], dropped.astype(np.int64), [0])))
    return np.flatnonzero(edges == -1) - np.flatnonzero(edges == 1)


def _print_losses(model: LossModel, seed: int, packets: int, as_json: bool, every_ms: float) -> None:
    import numpy as np

    from fecbench.dropper.clocked import Timed, verdicts_at
    from fecbench.dropper.draws import LONGEST, require_integer, require_time
    from fecbench.dropper.model import Counted, verdicts

    if isinstance(model, Timed):
        require_integer("packets", packets, 0, LONGEST)
        require_time("every-ms", every_ms, 1e-3, 1e6, "ms")
        arrivals_ns = np.arange(packets, dtype=np.int64) * round(1e6 * every_ms)
        dropped = verdicts_at(model, seed, arrivals_ns)
    else:
        assert isinstance(model, Counted)
        dropped = verdicts(model, seed, packets)
    if as_json:
        print_document(_document(model, seed, dropped), indent=None)
    else:
        say(_summary(model, seed, dropped))


def _document(model: LossModel, seed: int, dropped: NDArray[np.bool_]) -> dict[str, Any]:
    import numpy as np

    expected = model.mean_burst
    return {
        "model": model.plain,
        "seed": seed,
        "packets": dropped.size,
        "dropped": np.flatnonzero(dropped).tolist(),
        "stationary_loss_rate": model.mean_rate,
        "mean_burst_length": expected if expected is not None and math.isfinite(expected) else None,
    }


def _summary(model: LossModel, seed: int, dropped: NDArray[np.bool_]) -> str:
    import numpy as np

    indices, bursts = np.flatnonzero(dropped), _burst_lengths(dropped)
    expected = model.mean_burst
    rate = dropped.mean() if dropped.size else 0.0
    length = bursts.mean() if bursts.size else 0.0
    listing = ", ".join(map(str, indices[:SHOWN_LOSSES])) + (", …" if indices.size > SHOWN_LOSSES else "")
    return "\n".join(
        (
            f"{model}, seed {seed}",
            f"dropped     {indices.size:,} of {counted(dropped.size, 'packet')}",
            f"loss rate   {rate:.6g} (in the long run {model.mean_rate:.6g})",
            f"bursts      {bursts.size}, mean length {length:.4g}"
            + (f" (in the long run {expected:.4g})" if expected is not None else ""),
            f"losses      {listing or 'none'}",
        )
    )
