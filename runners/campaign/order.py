"""The trials of a campaign in the order in which they run, and those of them that a filter keeps."""

import random
from collections.abc import Sequence

from fecbench import designs
from fecbench.designs import Design
from fecbench.hints import nearest
from fecbench.results.store.records import TrialKey
from fecbench.runners.refusal import Refusal


def trial_keys(design: Design, points: int) -> list[TrialKey]:
    """Return every trial of the design, in the order of running.

    The variants of a point, workload and repetition run one after another, so that what drifts on the machine
    meets all of them; the order of these groups, and of the variants within each, is random but seeded.
    """
    order = random.Random(designs.seed(design.seed, "order"))
    groups = [
        (point, workload.label, repetition)
        for point in range(points)
        for workload in design.workloads
        for repetition in range(design.repetitions)
    ]
    order.shuffle(groups)
    if design.topology == "field":  # repetitions follow one another in time: statistics go by that
        groups.sort(key=lambda group: group[2])
    labels = [variant.label for variant in design.variants]
    keys = []
    for point, workload, repetition in groups:
        shuffled = labels.copy()
        order.shuffle(shuffled)
        keys += [TrialKey(label, workload, point, repetition) for label in shuffled]
    return keys


def check_filters(design: Design, filters: Sequence[str]) -> None:
    """Raises Refusal for a filter that keeps a part of what results are decided by."""
    for text in filters:
        if design.until and text.partition("=")[0] in ("variant", "repetition"):
            raise Refusal(
                f"--filter {text}: the design runs until = {design.until!r}, for which all variants and"
                " repetitions of a point are needed; choose by point or workload"
            )


def filtered(keys: Sequence[TrialKey], filters: Sequence[str]) -> list[TrialKey]:
    """Return the trials that meet the filters, each `field=value` of a trial's key.

    Values of one field are alternatives: `point=0` and `point=1` keep both.
    """
    allowed: dict[str, set[str]] = {}
    for text in filters:
        name, equals, value = text.partition("=")
        if name not in TrialKey.__annotations__ or not equals:
            hint = nearest(name, TrialKey.__annotations__)
            raise Refusal(f"--filter {text}: must be FIELD=VALUE with a field of the trial's key; {hint}")
        values = set(map(str, {getattr(key, name) for key in keys}))
        if value not in values:
            raise Refusal(f"--filter {text}: no trial of the design meets it; {nearest(value, values)}")
        allowed.setdefault(name, set()).add(value)
    remaining = list(keys)
    for name, values in allowed.items():
        remaining = [key for key in remaining if str(getattr(key, name)) in values]
    return remaining
