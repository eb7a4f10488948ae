"""`fecbench losses`: which packets a loss model and a seed drop, as the oracle predicts it. Needs no root."""

import json
import math
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from dropper.model import (
    LossModel,
    Pattern,
    loss_model,
    mean_burst_length,
    parameters_of,
    stationary_loss_rate,
    verdicts,
)

SHOWN_LOSSES = 20

losses = typer.Typer(no_args_is_help=True, help="Predict which packets a loss model and a seed drop.")

GoodToBad = Annotated[float | None, typer.Option("--p", help="probability of good → bad after a packet")]
BadToGood = Annotated[float | None, typer.Option("--r", help="probability of bad → good after a packet")]
DeliveryInGood = Annotated[
    float | None, typer.Option("--k", help="probability of delivery in the good state [1]")
]
DeliveryInBad = Annotated[
    float | None, typer.Option("--h", help="probability of delivery in the bad state [0]")
]
Rate = Annotated[float | None, typer.Option("--rate", help="mean loss rate, in place of p and r")]
Burst = Annotated[
    float | None, typer.Option("--burst", help="mean burst length in packets, in place of p and r")
]
Seed = Annotated[int, typer.Option("--seed", help="64 bits, unsigned")]
Packets = Annotated[int, typer.Option("--packets", help="how many packets to judge")]
AsJson = Annotated[bool, typer.Option("--json", help="print a JSON document")]


@losses.command()
def uniform(
    p: Annotated[float, typer.Option("--p", help="loss probability of each packet")],
    seed: Seed = 0,
    packets: Packets = 1000,
    as_json: AsJson = False,
) -> None:
    """Each packet is lost with probability p, independently of the others."""
    _print_losses(_model_of("uniform", p=p), seed, packets, as_json)


@losses.command()
def ge(
    p: GoodToBad = None,
    r: BadToGood = None,
    k: DeliveryInGood = None,
    h: DeliveryInBad = None,
    rate: Rate = None,
    burst: Burst = None,
    seed: Seed = 0,
    packets: Packets = 1000,
    as_json: AsJson = False,
) -> None:
    """The Gilbert-Elliott model: by p and r, or by the mean loss rate and burst length."""
    _print_losses(_model_of("ge", p=p, r=r, k=k, h=h, rate=rate, burst=burst), seed, packets, as_json)


@losses.command()
def markov(
    p: GoodToBad = None,
    r: BadToGood = None,
    rate: Rate = None,
    burst: Burst = None,
    seed: Seed = 0,
    packets: Packets = 1000,
    as_json: AsJson = False,
) -> None:
    """Gilbert-Elliott with k = 1 and h = 0: all packets pass in the good state, none in the bad."""
    _print_losses(_model_of("markov", p=p, r=r, rate=rate, burst=burst), seed, packets, as_json)


@losses.command()
def pattern(
    drop: Annotated[str, typer.Option("--drop", help="packet indices and ranges: 3,7-9")],
    length: Annotated[int | None, typer.Option("--length", help="packets in the pattern")] = None,
    repeat: Annotated[bool, typer.Option("--repeat", help="start again at its end")] = False,
    seed: Seed = 0,
    packets: Packets = 1000,
    as_json: AsJson = False,
) -> None:
    """Exactly these packets are lost."""
    _print_losses(_model_of("pattern", drop=drop, length=length, repeat=repeat), seed, packets, as_json)


def _model_of(name: str, **parameters: object) -> LossModel:
    given = {key: value for key, value in parameters.items() if value is not None}
    return loss_model({"model": name, **given})


def _burst_lengths(dropped: NDArray[np.bool_]) -> NDArray[np.int64]:
    edges = np.diff(np.concatenate(([0], dropped.astype(np.int64), [0])))
    return np.flatnonzero(edges == -1) - np.flatnonzero(edges == 1)


def _expected_burst_length(model: LossModel) -> float | None:
    return None if isinstance(model, Pattern) else mean_burst_length(model)


def _print_losses(model: LossModel, seed: int, packets: int, as_json: bool) -> None:
    dropped = verdicts(model, seed, packets)
    typer.echo(
        _document(model, seed, dropped) if as_json else _summary(model, seed, dropped),
    )


def _document(model: LossModel, seed: int, dropped: NDArray[np.bool_]) -> str:
    expected = _expected_burst_length(model)
    return json.dumps(
        {
            "model": parameters_of(model),
            "seed": seed,
            "packets": dropped.size,
            "dropped": np.flatnonzero(dropped).tolist(),
            "stationary_loss_rate": stationary_loss_rate(model),
            "mean_burst_length": expected if expected is not None and math.isfinite(expected) else None,
        }
    )


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
            f"loss rate   {rate:.6g} (in the long run {stationary_loss_rate(model):.6g})",
            f"bursts      {bursts.size}, mean length {length:.4g}"
            + (f" (in the long run {expected:.4g})" if expected is not None else ""),
            f"losses      {shown or 'none'}",
        )
    )
