"""Whether the repetitions of a campaign meet the same losses: those of a recorded list do.

A list of losses (`loss.model = "pattern"`) begins with each trial anew, and no seed decides anything of it.
So intervals over repetitions, and verdicts, are of this one sequence of losses, however narrow they are.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

LISTED = "pattern"
"""The model of losses in which each repetition has the same."""

_DIRECTIONS = ("up", "down")


def sentences(design_text: str, repetitions: int) -> list[str]:
    """Return a caution about a design whose repetitions meet the same losses; nothing where seeds draw
    them, or where there is one repetition."""
    of_losses = _losses(tomllib.loads(design_text))
    if repetitions == 1 or ("model", LISTED) not in of_losses:
        return []
    return [
        f'Where loss.model = "{LISTED}", all {repetitions} repetitions meet the same losses: the list from'
        " its beginning. So intervals and verdicts are of these losses alone, and say nothing of others."
        " fecbench losses fit FILE finds a model that draws others like them in each repetition."
    ]


def may_lose(design_text: str) -> bool:
    """Whether a link of a design has a model of losses."""
    of_losses = _losses(tomllib.loads(design_text))
    return any(name == "model" and value != "none" for name, value in of_losses)


def parameters(design_text: str) -> set[str]:
    """Return the names of all parameters of losses in a design, whatever link they are of."""
    return {name for name, _ in _losses(tomllib.loads(design_text))}


def _losses(table: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Names and values of the parameters of losses in a design, of any link, constant or factor."""
    for name, value in table.items():
        within = f"{path}.{name}"
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, Mapping):
                yield from _losses(part, within)
            elif ".loss." in within:
                below = within.rpartition(".loss.")[2].split(".")
                yield next(name for name in below if name not in _DIRECTIONS), part
