"""Variants that are in no ratio, though their design has a baseline: nothing says whether they are faster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def sentences(labels: Sequence[str], baselines: Mapping[str, str], usual: str | None) -> list[str]:
    """Return a sentence on the variants that neither have a baseline nor are one; none where all are
    compared, or where a design asks for no ratio.

    `labels`: all variants; `baselines`: the baseline's label of each variant that is compared; `usual`: the
    variant with `baseline = true`.
    """
    compared = {*baselines, *baselines.values(), usual}
    alone = [f"“{label}”" for label in labels if label not in compared]
    if usual is None or not alone:
        return []
    return [
        f"In no ratio: {', '.join(alone)}. The baseline is of another implementation. To compare"
        f' with it all the same, write baseline = "{usual}".'
    ]
