"""The first part that a reader sees: the answer of each arm in a sentence, and how far to trust it."""

from __future__ import annotations

from typing import Literal

from fecbench.results.report.sections.section import Section


class Answer(Section):
    """The result of a variant against its baseline, over all workloads that compare one metric."""

    variant: str
    baseline: str
    metric: str
    networks: int
    """Points of the design."""
    cases: int
    """A case is a workload at a point: so many have a ratio."""
    planned_cases: int
    helps: int
    """Cases in which the variant is better by more than the margin."""
    harms: int
    """Cases in which it is worse by more than the margin."""
    neither: int
    """The other cases."""
    undecided: int
    """Cases of `neither` that the repetitions cannot tell from a difference that matters."""
    margins: tuple[float, float]
    """The least margin of its workloads, and the greatest."""
    sentence: str
    """All this in words, with the median ratio and the tail."""


class Trust(Section):
    """A reason to trust the answer, or not to."""

    about: Literal[
        "trials",
        "missing",
        "invalid",
        "engine",
        "cross-check",
        "link",
        "losses",
        "margin",
        "chance",
        "between",
    ]
    text: str
    """A sentence or two."""
    warns: bool
    """Whether a reader has to know it before using the answer."""
