"""The emulated sample beside a campaign in virtual time: which groups it has, and as what it is run.

The sample follows from the design alone. It has groups of every workload, of as many points as it can, and
that of a greater share contains that of a smaller one, so that a sample can be extended.
"""

from __future__ import annotations

import dataclasses
import math
import random
import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from fecbench.hints import nearest
from fecbench.quantities import counted
from fecbench.results.store.records import CampaignInfo, Group
from fecbench.runners.refusal import Refusal

if TYPE_CHECKING:
    from fecbench.designs import Design
    from fecbench.results.store.database import Database
    from fecbench.runners.campaign.request import Request

USUAL_SHARE = 0.02
FEWEST_GROUPS = 16
"""Fewest groups of a workload, however small the share is: twelve show that at most a quarter of trials is
far off, if none of them is, and some trials may be invalid."""
SUFFIX = "-crosscheck"
"""Suffix of the name of the checked campaign."""


def sample(design: Design, points: int, share: float) -> list[Group]:
    """The groups of the design that are emulated: of each workload that share, and FEWEST_GROUPS at least."""
    of_workload = points * design.looks[0]
    count = min(of_workload, max(FEWEST_GROUPS, math.ceil(share * of_workload)))
    return [
        group
        for workload in design.workloads
        for group, _ in zip(_shuffled(design, points, workload.label), range(count), strict=False)
    ]


def _shuffled(design: Design, points: int, workload: str) -> Iterator[Group]:
    """Yield all groups of a workload: one of every point before the second of any."""
    from fecbench import designs

    order = random.Random(designs.seed(design.seed, "crosscheck", workload))
    order_of_points = order.sample(range(points), points)
    certain = design.looks[0]  # which every point has
    repetitions = {point: order.sample(range(certain), certain) for point in order_of_points}
    for place in range(certain):
        for point in order_of_points:
            yield Group(workload, point, repetitions[point][place])


def emulated(virtual: Request, emulation: Request, share: float, arms: Sequence[str] = ()) -> Request:
    """The request to emulate a sample of what was requested in virtual time: its name, and its trials.

    `emulation` asks for all trials of the same design; `arms`: the labels of the variants that are emulated,
    beside what each is compared with; none: all. Raises Refusal for a label that no variant has.
    """
    from fecbench.runners.campaign.request import Sample

    groups = set(sample(virtual.design, len(virtual.experiment.points), share))
    chosen = _with_baselines(virtual.design, arms)
    keys = [key for key in emulation.keys if key.group in groups and key.variant in chosen]
    limited = tuple(chosen) if len(chosen) < len(virtual.design.variants) else ()
    return dataclasses.replace(
        emulation,
        name=f"{virtual.name}{SUFFIX}",
        keys=keys,
        crosscheck=Sample(virtual.name, share, len(keys), limited),
    )


def _with_baselines(design: Design, arms: Sequence[str]) -> list[str]:
    """Return the labels of these variants and of what they are compared with, in the order of the design; of
    all variants where none is named."""
    labels = [variant.label for variant in design.variants]
    if not arms:
        return labels
    for arm in arms:
        if arm not in labels:
            raise Refusal(f"{design.path}: --arms {arm}: has no such variant; {nearest(arm, labels)}")
    usual = next((variant.label for variant in design.variants if variant.is_baseline), "")
    compared_with = {variant.label: variant.compared_with or usual for variant in design.variants}
    chosen = {*arms, *(compared_with[arm] for arm in arms)}
    return [label for label in labels if label in chosen]


def checked_campaign(virtual: Request, emulation: Request, database: Database) -> CampaignInfo:
    """Return the campaign in virtual time of the sample. Raises Refusal if there is none, if it would be run
    otherwise now, or if it lacks trials of the sample."""
    from fecbench.runners.campaign.campaign import stored_campaign

    stored = database.campaign(virtual.name)
    command = run_command(virtual, database)
    if stored is None:
        raise Refusal(
            f"{database.address}: has no campaign {virtual.name!r} in virtual time; make it: {command}"
        )
    if stored.engine != "virtual":
        other = dataclasses.replace(virtual, name=f"{virtual.name}-virtual")
        raise Refusal(
            f"{database.address}: campaign {virtual.name!r} was emulated, and a crosscheck is of one in"
            f" virtual time: make one: {run_command(other, database)}, and check --campaign {other.name}"
        )
    stored_campaign(virtual, database)
    sample_there = database.campaign(emulation.name)
    if sample_there is not None and sample_there.checked != virtual.name:
        raise Refusal(f"{database.address}: campaign {emulation.name!r} is there, and is no crosscheck")
    lacking = set(emulation.keys) - database.states(stored.id).keys()
    if lacking:
        raise Refusal(
            f"{database.address}: campaign {virtual.name!r} lacks {counted(len(lacking), 'trial')}"
            " of the sample, such"
            f" as {min(lacking)}: go on with it: {command}"
        )
    return stored


def run_command(virtual: Request, database: Database) -> str:
    """Return the command that runs the campaign in virtual time."""
    from fecbench import designs

    path = virtual.design.path
    design = next((name for name, file in designs.catalogue().items() if str(file) == path), path)
    words = ["fecbench", "run", design, "--engine", "virtual", "--db", database.address]
    name_option = ["--campaign", virtual.name] if virtual.name != virtual.design.name else []
    return shlex.join([*words, *name_option])
