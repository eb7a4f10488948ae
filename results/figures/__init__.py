"""The figures of campaigns, each a matplotlib Figure for a person who compares.

    from results import figures

    figures.ratio_ecdf(trials, campaign)

Drawing the same data twice gives the same bytes. A campaign that lacks what a figure needs raises
NothingToDraw, with a sentence that says what. Names are loaded when they are used: drawing takes longer to
load than most commands take to run.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from results.figures.distributions import dct, ecdf_panels, points, ratio_ecdf, workload_names
    from results.figures.explanation import benefit_map, effects
    from results.figures.nothing import NothingToDraw
    from results.figures.ratios import bars, heat_map, over_factors, pairs, table
    from results.figures.saving import Folder, save

__all__ = [
    "Folder",
    "NothingToDraw",
    "bars",
    "benefit_map",
    "dct",
    "ecdf_panels",
    "effects",
    "heat_map",
    "over_factors",
    "pairs",
    "points",
    "ratio_ecdf",
    "save",
    "table",
    "workload_names",
]

_NAMES_OF_MODULES = {
    "distributions": ("dct", "ecdf_panels", "points", "ratio_ecdf", "workload_names"),
    "explanation": ("benefit_map", "effects"),
    "nothing": ("NothingToDraw",),
    "ratios": ("bars", "heat_map", "over_factors", "pairs", "table"),
    "saving": ("Folder", "save"),
}
_MODULE_OF_NAME = {name: module for module, names in _NAMES_OF_MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF_NAME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF_NAME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
