"""Options whose values have units, and may be ranges: `--rtt 80ms`, `--loss 0.5..5%`."""

from collections.abc import Callable
from typing import TypeVar

import typer

from fecbench.errors import BadInput
from fecbench.quantities import Kind, quantities, quantity

Value = TypeVar("Value")
Range = tuple[float, float]


def parser(read: Callable[[str, Kind], Value], kind: Kind) -> Callable[[str], Value]:
    """Return what typer calls with the text of an option; its refusal is one of the option."""

    def parsed(text: str) -> Value:
        try:
            return read(text, kind)
        except BadInput as error:
            raise typer.BadParameter(str(error)) from None

    return parsed


def one(kind: Kind) -> Callable[[str], float]:
    """Return the parser of one quantity."""
    return parser(quantity, kind)


def share(least: float, most: float) -> Callable[[str], float]:
    """Return the parser of a share with bounds, both of which are allowed: 0.02 or 2%."""

    def read(text: str, kind: Kind) -> float:
        value = quantity(text, kind)
        if not least <= value <= most:
            raise BadInput(f"{text!r}: must be a share from {least:g} to {most:g}, such as 2% or 0.02")
        return value

    return parser(read, "share")


def ends(kind: Kind) -> Callable[[str], Range]:
    """Return the parser of a range; of a single value, it is both ends."""
    return parser(quantities, kind)
