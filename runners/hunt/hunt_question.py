"""The question of a hunt: a variant of a design, another one, and whether harm or gain is looked for."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fecbench.hints import nearest
from fecbench.results.store.records import P95
from fecbench.runners.refusal import Refusal

if TYPE_CHECKING:
    from fecbench.designs import Design
    from fecbench.runners.hunt.space import Space

Sought = Literal["harm", "gain"]
SPACE = Path("hunt-fec")
"""The design that is searched where none is named."""

FEWEST_REPETITIONS = 20
"""Least repetitions of a confirmation: an interval of fewer holds the truth too seldom."""


@dataclass(frozen=True)
class Question:
    """A checked question."""

    design: Design
    """A design of the two variants alone; the second is the baseline."""
    arm: str
    against: str
    sought: Sought

    @property
    def claim(self) -> str:
        """The claim that holds in a network that is sought, in words."""
        verb = "does worse than" if self.sought == "harm" else "does better than"
        return f"“{self.arm}” {verb} “{self.against}”"

    @property
    def effect(self) -> str:
        """A label for the factor by which there is what is sought."""
        return f"{'worse' if self.sought == 'harm' else 'better'} by a factor of"

    @property
    def space(self) -> Space:
        from fecbench.runners.hunt.space import Space

        return Space(self.design)

    @property
    def repetitions(self) -> int:
        """Repetitions of each network that is to be confirmed."""
        return max(FEWEST_REPETITIONS, self.design.repetitions)

    def seed(self, *path: str | int) -> int:
        """The seed of a part of the hunt."""
        from fecbench import designs

        return designs.seed(self.design.seed, "hunt", self.arm, self.against, self.sought, *path)

    def name(self, trials: int, *programs: str) -> str:
        """Return the prefix of its campaigns' names: the same for the same question, budget and programs."""
        text = json.dumps([self.design.text, self.arm, self.against, self.sought, trials, *programs])
        return f"hunt-{self.design.name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def question(design: Design, arm: str, against: str, sought: Sought) -> Question:
    """Return the question about these two variants, by label; "" for `against`: what `arm` is compared with.

    Raises Refusal for a label that the design lacks, for a variant against itself, and for a space without
    ranges.
    """
    from fecbench import designs
    from fecbench.runners.hunt.space import Space

    labels = [variant.label for variant in design.variants]
    _check("--arm", arm, labels, design)
    against = against or _compared_with(design, arm)
    _check("--against", against, labels, design)
    if arm == against:
        raise Refusal(f"{design.path}: --arm and --against are both {arm!r}: must be two variants")
    if design.statistic == P95:
        raise Refusal(
            f"{design.path}: statistic = {P95!r}: a hunt looks at few repetitions at a time, which have no"
            " 95th percentile: must be 'mean' or 'median'"
        )
    Space(design)
    variants = [_table(design, against, True), _table(design, arm, against)]
    title = f"Where does “{arm}” {'harm' if sought == 'harm' else 'help'}, compared with “{against}”?"
    asked = designs.rewritten(design, variants=variants, title=title, question=title, until=None)
    return Question(asked, arm, against, sought)


def _check(option: str, label: str, labels: list[str], design: Design) -> None:
    if label not in labels:
        raise Refusal(f"{design.path}: {option} {label}: has no such variant; {nearest(label, labels)}")


def _compared_with(design: Design, arm: str) -> str:
    """The label of the variant that one is compared with."""
    chosen = next(variant for variant in design.variants if variant.label == arm)
    usual = next((variant.label for variant in design.variants if variant.is_baseline), "")
    compared_with = chosen.compared_with or usual
    if not compared_with:
        raise Refusal(
            f"{design.path}: names no baseline: say with --against which variant {arm!r} is compared with"
        )
    return compared_with


def _table(design: Design, label: str, baseline: bool | str) -> dict[str, Any]:
    variant = next(variant for variant in design.variants if variant.label == label)
    if variant.server not in (None, label):
        raise Refusal(
            f"{design.path}: variant {label!r}: its servers are another variant's, and a hunt has two alone"
        )
    return {**variant.model_dump(exclude_unset=True, exclude={"server"}), "baseline": baseline}
