"""The question in which networks virtual time and emulation disagree, for all variants of a design or one."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Literal

from fecbench import designs
from fecbench.designs import Design
from fecbench.designs.factor import ChoiceFactor
from fecbench.hints import nearest
from fecbench.runners.hunt.space import Network, Space
from fecbench.runners.refusal import Refusal

REPETITIONS = 12
"""Repetitions of each confirmed network: one pair of it may be far off by chance."""
LONGEST_S = 5.0
"""Networks in which a trial takes longer are not emulated: one would take the time of ten others."""
TIMEOUT_S = 60.0
"""No trial takes longer, in either engine."""
VARIANT = "variant"
"""The axis of a space with several variants."""


@dataclass(frozen=True)
class EngineQuestion:
    """A checked question."""

    design: Design
    """Design with the variants of the question."""

    arm = "emulation"
    against = "virtual time"
    sought: Literal["harm"] = "harm"
    repetitions = REPETITIONS
    effect = "beyond the tolerance by a factor of"

    @property
    def claim(self) -> str:
        """The claim that holds in a network that is sought, in words."""
        return "emulation and virtual time disagree"

    @property
    def variants(self) -> list[str]:
        return [variant.label for variant in self.design.variants]

    @property
    def space(self) -> Space:
        """Space of the design's factors, its workloads, and its variants where there are several."""
        variants = self.variants
        more = {VARIANT: ChoiceFactor(choices=list(variants))} if len(variants) > 1 else {}
        return Space(self.design, more)

    def variant(self, network: Network) -> str:
        """The label of the variant that a network is asked about."""
        return str(network.point.get(VARIANT, self.variants[0]))

    def seed(self, *path: str | int) -> int:
        """The seed of a part of the hunt."""
        return designs.seed(self.design.seed, "hunt", "engines", *path)

    def name(self, trials: int, *programs: str) -> str:
        """Return the prefix of its campaigns' names: the same for the same question, budget and programs."""
        text = json.dumps([self.design.text, "engines", trials, *programs])
        return f"hunt-{self.design.name}-engines-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def engine_question(design: Design, arm: str = "") -> EngineQuestion:
    """Return the question about all variants of a design, or about the one with this label.

    Raises Refusal for a label that the design lacks, for servers of another variant, and for a space without
    ranges.
    """
    labels = [variant.label for variant in design.variants]
    if arm and arm not in labels:
        raise Refusal(f"{design.path}: --arm {arm}: has no such variant; {nearest(arm, labels)}")
    chosen = [variant for variant in design.variants if arm in ("", variant.label)]
    if other := next((variant for variant in chosen if variant.server not in (None, variant.label)), None):
        raise Refusal(
            f"{design.path}: variant {other.label!r}: its servers are another variant's, and no simulator"
            " plays two implementations: leave it out, or choose another one with --arm"
        )
    Space(design)
    title = "Where do emulation and virtual time disagree?"
    asked = designs.rewritten(
        design,
        variants=[
            variant.model_dump(exclude_unset=True, exclude={"server", "baseline"}) for variant in chosen
        ],
        title=title,
        question=title,
        until=None,
        statistic="median",
        timeout_s=min(design.timeout_s or TIMEOUT_S, TIMEOUT_S),
    )
    return EngineQuestion(asked)
