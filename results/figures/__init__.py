"""The figures of campaigns, each a matplotlib Figure for a person who compares.

    from fecbench.results import figures

    figures.ratio_ecdf(trials, campaign)

Drawing the same data twice gives the same bytes. A campaign that lacks what a figure needs raises
NothingToDraw, with a sentence that says what.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fecbench.lazy import names_of

if TYPE_CHECKING:
    from fecbench.results.analysis.workload_names import workload_names as workload_names
    from fecbench.results.figures.choices import choice_map as choice_map
    from fecbench.results.figures.course import course_over_time as course_over_time
    from fecbench.results.figures.distributions import boxes as boxes
    from fecbench.results.figures.distributions import dct as dct
    from fecbench.results.figures.distributions import ecdf_panels as ecdf_panels
    from fecbench.results.figures.distributions import points as points
    from fecbench.results.figures.distributions import ratio_ecdf as ratio_ecdf
    from fecbench.results.figures.explanation import benefit_map as benefit_map
    from fecbench.results.figures.explanation import effects as effects
    from fecbench.results.figures.gains import gains_map as gains_map
    from fecbench.results.figures.hunted import hunted_space as hunted_space
    from fecbench.results.figures.kept import kept_map as kept_map
    from fecbench.results.figures.nothing import NothingToDraw as NothingToDraw
    from fecbench.results.figures.over_time import trial_over_time as trial_over_time
    from fecbench.results.figures.playout import latency_ecdf as latency_ecdf
    from fecbench.results.figures.playout import on_time as on_time
    from fecbench.results.figures.ratios import bars as bars
    from fecbench.results.figures.ratios import heat_map as heat_map
    from fecbench.results.figures.ratios import over_factors as over_factors
    from fecbench.results.figures.ratios import pairs as pairs
    from fecbench.results.figures.ratios import table as table
    from fecbench.results.figures.saving import Folder as Folder
    from fecbench.results.figures.saving import save as save
    from fecbench.results.figures.two_courses import both_over_time as both_over_time
    from fecbench.results.figures.usable import usable_over_targets as usable_over_targets
    from fecbench.results.figures.video import pictures as pictures
    from fecbench.results.figures.video import scores as scores
    from fecbench.results.figures.video import session_over_time as session_over_time
    from fecbench.results.figures.video import sessions as sessions

__all__, __getattr__ = names_of(__name__, __file__)


def __dir__() -> list[str]:
    """Return the names that a notebook offers behind the package's name."""
    return __all__
