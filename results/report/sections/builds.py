"""The verdict on a new build, as its page says it."""

from __future__ import annotations

from typing import Self

from fecbench.results.gate import build_answer
from fecbench.results.gate.build_answer import Answer
from fecbench.results.gate.verdict import shown
from fecbench.results.report.sections.section import Section


class BuildRatio(Section):
    """The ratio of the times of the new build to those of the old one."""

    name: str
    """The subject of the ratio: all networks, a workload, the mean times or the 95th percentiles."""
    ratio: str
    """New divided by old, with its interval of 95 %."""


class Gate(Section):
    """Is the new build slower?"""

    verdict: str
    says: str
    """The verdict, with what it rests on, in a sentence."""
    sentences: list[str]
    """Sentences about pairs that failed, single networks, and the slow ends."""
    ratios: list[BuildRatio]
    failing: list[str]
    """Pairs that fail, and the numbers of their trials."""
    worst: list[str]
    """The networks in which it is slowest, and the numbers of a pair of trials."""

    @classmethod
    def of(cls, result: Answer) -> Self:
        """Return what the gate says of a campaign."""
        return cls(
            verdict=result.verdict,
            says=build_answer.headline(result),
            sentences=[
                text
                for text in (
                    build_answer.failures(result),
                    build_answer.counts(result),
                    build_answer.slow_ends(result),
                )
                if text
            ],
            ratios=[
                BuildRatio(name=name, ratio=shown(ratio))
                for name, ratio in build_answer.ratios(result).items()
            ],
            failing=[
                f"{build_answer.failing(result, one)}: trials {one.old_trial} and {one.new_trial}"
                for one in result.measured.failed.pairs
            ],
            worst=[f"{build_answer.network(one)}: {build_answer.ratio_in(one)}" for one in result.worst],
        )
