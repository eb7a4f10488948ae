"""The figures of campaigns, each a matplotlib Figure for a person who compares.

    from fecbench.results import figures

    figures.ratio_ecdf(trials, campaign)

Drawing the same data twice gives the same bytes. A campaign that lacks what a figure needs raises
NothingToDraw, with a sentence that says what.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fecbench.results.lazy import names_of

if TYPE_CHECKING:
    from fecbench.results.analysis.workload_names import workload_names
    from fecbench.results.figures.choosing import choice_map
    from fecbench.results.figures.course import course_over_time
    from fecbench.results.figures.distributions import (
        boxes,
        dct,
        ecdf_panels,
        points,
        ratio_ecdf,
    )
    from fecbench.results.figures.explanation import benefit_map, effects
    from fecbench.results.figures.gains import gains_map
    from fecbench.results.figures.hunted import hunted_space
    from fecbench.results.figures.kept import kept_map
    from fecbench.results.figures.nothing import NothingToDraw
    from fecbench.results.figures.over_time import trial_over_time
    from fecbench.results.figures.playout import latency_ecdf, on_time
    from fecbench.results.figures.ratios import bars, heat_map, over_factors, pairs, table
    from fecbench.results.figures.saving import Folder, save
    from fecbench.results.figures.two_courses import both_over_time
    from fecbench.results.figures.video import pictures, scores, session_over_time, sessions

__all__ = [
    "Folder",
    "NothingToDraw",
    "bars",
    "benefit_map",
    "both_over_time",
    "boxes",
    "choice_map",
    "course_over_time",
    "dct",
    "ecdf_panels",
    "effects",
    "gains_map",
    "heat_map",
    "hunted_space",
    "kept_map",
    "latency_ecdf",
    "on_time",
    "over_factors",
    "pairs",
    "pictures",
    "points",
    "ratio_ecdf",
    "save",
    "scores",
    "session_over_time",
    "sessions",
    "table",
    "trial_over_time",
    "workload_names",
]

__getattr__ = names_of(
    __name__,
    {
        "choosing": ("choice_map",),
        "course": ("course_over_time",),
        "distributions": ("boxes", "dct", "ecdf_panels", "points", "ratio_ecdf", "workload_names"),
        "explanation": ("benefit_map", "effects"),
        "gains": ("gains_map",),
        "hunted": ("hunted_space",),
        "kept": ("kept_map",),
        "nothing": ("NothingToDraw",),
        "over_time": ("trial_over_time",),
        "playout": ("latency_ecdf", "on_time"),
        "ratios": ("bars", "heat_map", "over_factors", "pairs", "table"),
        "saving": ("Folder", "save"),
        "two_courses": ("both_over_time",),
        "video": ("pictures", "scores", "session_over_time", "sessions"),
    },
)


def __dir__() -> list[str]:
    """Return the names that a notebook offers behind the package's name."""
    return sorted(__all__)
