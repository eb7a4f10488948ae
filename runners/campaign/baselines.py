"""The baseline of each variant: the variant that it names, else the design's baseline if that is of the same
implementation, else its twin: the most similar variant of its own implementation with FEC off.

A ratio of two stacks says little about FEC, so there is none but where a variant names one of another stack.
"""

from collections.abc import Mapping
from typing import Any

from fecbench.designs.design import Design, Variant
from fecbench.runners.campaign.arms import Arm

WITH_NONE = ""
"""A variant that is in no ratio, though the design has a baseline."""


def compared_with(design: Design, arms: Mapping[str, Arm]) -> dict[str, str | None]:
    """Return the label of each variant's baseline by its own label; None for the design's baseline, and
    `WITH_NONE`."""
    return {variant.label: _of(variant, design, arms) for variant in design.variants}


def baselines_in(design: Design, arms: Mapping[str, Arm]) -> tuple[dict[str, str], str | None]:
    """Return the label of the baseline of each variant that is in a ratio, and that of the design's."""
    usual = next((variant.label for variant in design.variants if variant.is_baseline), None)
    of_each = {
        variant.label: usual if (own := _of(variant, design, arms)) is None else own
        for variant in design.variants
        if not variant.is_baseline
    }
    return {label: baseline for label, baseline in of_each.items() if baseline}, usual


def compared(design: Design, arms: Mapping[str, Arm]) -> list[str]:
    """The labels of the variants that are in a ratio to another."""
    return [*baselines_in(design, arms)[0]]


def _of(variant: Variant, design: Design, arms: Mapping[str, Arm]) -> str | None:
    usual = next((other for other in design.variants if other.is_baseline), None)
    if variant.is_baseline or variant.compared_with is not None:
        return variant.compared_with
    if usual is not None and usual.implementation == variant.implementation:
        return None
    return _twin(variant, design, arms)


def _twin(variant: Variant, design: Design, arms: Mapping[str, Arm]) -> str:
    """Return the label of the most similar variant of the same implementation with FEC off; `WITH_NONE` if
    there is none, or if several are as similar."""
    fec, own = arms[variant.label].implementation.declaration.fec, _options(arms[variant.label])
    if fec is None or not fec.is_on(own):
        return WITH_NONE
    different: dict[int, list[str]] = {}
    for other in design.variants:
        if other.implementation == variant.implementation and other.compared_with is None:
            options = _options(arms[other.label])
            if not fec.is_on(options):
                count = sum(options[name] != value for name, value in own.items())
                different.setdefault(count, []).append(other.label)
    nearest = different[min(different)] if different else []
    return nearest[0] if len(nearest) == 1 else WITH_NONE


def _options(arm: Arm) -> dict[str, Any]:
    """Return all options of a variant, without those of points."""
    return dict(arm.implementation.with_defaults(arm.chosen))
