"""The design of an A/A campaign: one variant twice, under two labels, in place of a design's variants."""

from typing import Any

from fecbench import designs
from fecbench.designs import Design, Variant
from fecbench.hints import nearest
from fecbench.runners.refusal import Refusal

ARMS = ("A", "B")
"""Suffixes of the labels; the first is the baseline's."""


def against_itself(design: Design, label: str) -> Design:
    """Return a design of the variant of this label against itself; all else is as in the given design.

    Raises Refusal when there is no such variant, or none that can be run alone.
    """
    labels = [variant.label for variant in design.variants]
    if label not in labels:
        raise Refusal(f"{design.path}: --variant {label}: has no such variant; {nearest(label, labels)}")
    if any("background" in workload.parameters for workload in design.workloads):
        raise Refusal(
            f"{design.path}: its transfers compete with other variants of the design, so none can be run "
            "against itself; use fecbench aa jobs"
        )
    base_variant = design.variants[labels.index(label)]
    by_workloads = any("server" in workload.parameters for workload in design.workloads)
    if by_workloads or base_variant.server not in (None, label):
        raise Refusal(
            f"{design.path}: --variant {label}: its servers are another variant's, so it cannot be run"
            " against itself; use fecbench aa jobs"
        )
    # Results that are to be equal decide nothing: each point has as many repetitions as it surely has else.
    arms = [_arm(base_variant, arm) for arm in ARMS]
    return designs.rewritten(design, variants=arms, repetitions=design.looks[0], until=None)


def _arm(variant: Variant, arm: str) -> dict[str, Any]:
    """The table of the variant as one of the two."""
    table = variant.model_dump(exclude_unset=True, exclude={"server"})
    return {**table, "label": f"{variant.label} ({arm})", "baseline": arm == ARMS[0]}
