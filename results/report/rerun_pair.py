"""A pair of trials that was run again with everything recorded, to be drawn on the page of two builds."""

from __future__ import annotations

from dataclasses import dataclass

from fecbench.results.analysis.trial_course import Course


@dataclass(frozen=True)
class RerunPair:
    """The courses of a pair."""

    heading: str
    """The network and the ratio, in words."""
    old: Course
    new: Course
    command: str
    """The command that runs the pair again."""
