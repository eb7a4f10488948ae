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


def sentences(design_text: str, repetitions: int) -> list[str]:
    """What to know of a design whose repetitions meet the same losses; none where seeds draw them, or where
    there is one repetition."""
    if repetitions == 1 or LISTED not in _models(tomllib.loads(design_text)):
        return []
    return [
        f'Where loss.model = "{LISTED}", all {repetitions} repetitions meet the same losses: the list from'
        " its beginning. So intervals and verdicts are of these losses alone, and say nothing of others."
        " fecbench losses fit FILE finds a model that draws others like them in each repetition."
    ]


def _models(table: Mapping[str, Any], path: str = "") -> Iterator[Any]:
    """The values of every `loss.model` of a design, whatever link it is of, constant or factor."""
    for name, value in table.items():
        within = f"{path}.{name}"
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, Mapping):
                yield from _models(part, within)
            elif ".loss.model" in within:
                yield part
