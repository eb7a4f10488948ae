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
    rule: str
    """The networks in which it helps and harms, in a sentence built of what is decided alone; "" for too few
    points for a rule."""
    effect: str
    """The ratio, that of the slow trials, the time saved and the bytes, with intervals; "" for none."""
    sentence: str
    """All this in words, with the counts."""


class Axis(Section):
    """A factor over which a map is drawn."""

    label: str
    """The name with the unit."""
    name: str
    """The name in words: "bandwidth"."""
    low: float
    high: float
    log: bool
    ticks: list[tuple[float, str]]
    """Places, 0 to 100, and their labels."""


class Mark(Section):
    """A network on a map."""

    point: int
    across: float
    """The place on the axis, 0 to 100 (`up` as well)."""
    up: float
    verdict: str
    """The verdict: "gain", "harm", "equivalent" or "undecided"."""


class VerdictMap(Section):
    """The verdicts of a variant on a workload, over the two factors that matter most."""

    variant: str
    baseline: str
    workload: str
    title: str
    """The workload in words."""
    metric: str
    across: Axis
    up: Axis
    marks: list[Mark]
    helps: int
    harms: int
    equivalent: int
    undecided: int


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
