"""The trials of a campaign, in the order in which they run, and the task of each."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import designs
from designs import Design
from fecbench.hints import nearest
from results.store.database import TrialKey
from runners.campaign import parameters
from runners.refusal import Refusal
from runners.trial import competition
from runners.trial.judge import late_bound_us
from runners.trial.task import PairTask, Task, loss_name
from runners.workloads import registry as workloads
from topologies.link import DIRECTIONS
from topologies.topology import Backend

DEFAULT_TIMEOUT_S = 120.0


@dataclass(frozen=True)
class Setting:
    """What all trials of a campaign share."""

    design: Design
    points: Sequence[Mapping[str, Any]]
    backend: Backend
    folder: Path  # holds the certificates, and the scratch of each trial
    pages: Mapping[str, Any] = field(default_factory=dict)  # by name, as `parameters.pages` has them


def trial_keys(design: Design, points: int) -> list[TrialKey]:
    """Every trial of the design, in the order of running.

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
    keys = []
    for point, workload, repetition in groups:
        labels = [variant.label for variant in design.variants]
        order.shuffle(labels)
        keys += [TrialKey(label, workload, point, repetition) for label in labels]
    return keys


def filtered(keys: Sequence[TrialKey], filters: Sequence[str]) -> list[TrialKey]:
    """The trials that meet the filters, each `field=value` of a trial's key.

    Values of one field are alternatives: `point=0` and `point=1` keep both.
    """
    wanted: dict[str, set[str]] = {}
    for text in filters:
        name, equals, value = text.partition("=")
        if name not in TrialKey.__annotations__ or not equals:
            hint = nearest(name, TrialKey.__annotations__)
            raise Refusal(f"--filter {text}: must be FIELD=VALUE with a field of the trial's key; {hint}")
        known = {str(getattr(key, name)) for key in keys}
        if value not in known:
            raise Refusal(f"--filter {text}: no trial of the design meets it; {nearest(value, known)}")
        wanted.setdefault(name, set()).add(value)
    return [key for key in keys if all(str(getattr(key, name)) in wanted[name] for name in wanted)]


def seeds_of(design: Design, key: TrialKey) -> dict[str, int]:
    """The seeds of a trial. They do not depend on the variant: all variants meet the same losses."""
    path = ("point", key.point, "repetition", key.repetition)
    seeds = {"content": designs.seed(design.seed, *path, "content")}
    for link in parameters.link_names(design):
        for direction in DIRECTIONS:
            seed = designs.seed(design.seed, *path, "link", link, "direction", direction)
            seeds[loss_name(link, direction)] = seed
    return seeds


def task_of(setting: Setting, key: TrialKey, folder: Path, *, capture: bool = False) -> Task:
    """The task of one trial, to run with `folder` as its scratch."""
    design = setting.design
    values = {**design.constants, **setting.points[key.point]}
    names = parameters.link_names(design)
    links = parameters.link_settings(values, names)
    return Task(
        topology=design.topology,
        backend=setting.backend,
        links=links,
        late_bounds_us={name: late_bound_us(link) for name, link in links.items()},
        losses=parameters.losses(values, names),
        seeds=seeds_of(design, key),
        pairs=_pairs_of(setting, key, values),
        timeout_s=_timeout_s(design),
        certificates=setting.folder,
        folder=folder,
        capture=capture,
    )


def _pairs_of(setting: Setting, key: TrialKey, values: Mapping[str, Any]) -> list[PairTask]:
    told = _workload_of(setting, key, values)
    if told["name"] != workloads.COMPETING:
        return [_pair_of(setting, key.variant, told, values)]
    (link,) = parameters.link_settings(values, parameters.link_names(setting.design)).values()
    endless_bytes = competition.endless_bytes(link, _timeout_s(setting.design))
    return [
        _pair_of(setting, variant, {"name": workloads.of_endpoints(told["name"]), "size_bytes": size}, values)
        for variant, size in ((key.variant, told["size_bytes"]), (told["background"], endless_bytes))
    ]


def _timeout_s(design: Design) -> float:
    return design.timeout_s or DEFAULT_TIMEOUT_S


def _pair_of(setting: Setting, variant: str, workload: dict[str, Any], values: Mapping[str, Any]) -> PairTask:
    implementation = parameters.implementation_of(setting.design, variant)
    return PairTask(
        commands={"server": implementation.command("server"), "client": implementation.command("client")},
        workload=workload,
        options=parameters.options_of(setting.design, variant, values),
    )


def _workload_of(setting: Setting, key: TrialKey, values: Mapping[str, Any]) -> dict[str, Any]:
    """What endpoints are told of the workload: a page's graph stands in place of its name."""
    workload = next(each for each in setting.design.workloads if each.label == key.workload)
    told = {"name": workload.name, **parameters.workload_of(setting.design, key.workload, values)}
    if workload.name == "page":
        told["graph"] = setting.pages[told["graph"]]["graph"]
    return told
