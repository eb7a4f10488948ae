"""Two builds of one implementation as the arms of a design: both meet the same options and losses."""

import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fecbench import designs
from fecbench.designs import Design
from fecbench.hints import nearest
from fecbench.runners import workloads
from fecbench.runners.campaign import provenance
from fecbench.runners.implementations.base import names
from fecbench.runners.implementations.engine_name import EngineName
from fecbench.runners.implementations.finding import Implementations
from fecbench.runners.implementations.implementation import Implementation
from fecbench.runners.implementations.revisions import Build
from fecbench.runners.refusal import Refusal

OLD, NEW = "old", "new"
"""The labels of the arms; the first is the baseline."""


@dataclass(frozen=True)
class TwoBuilds:
    """A design of two arms, and the implementations that they are."""

    design: Design
    folders: Mapping[str, Path]
    """Folders of both builds, by their names in the design."""
    left_out: tuple[str, ...]
    """The workloads of the design, by label, that the implementation lacks."""

    @property
    def implementations(self) -> Implementations:
        return Implementations((), self.folders)

    def arguments(self) -> list[str]:
        """The options by which any command finds both builds."""
        return [
            word
            for name, folder in self.folders.items()
            for word in ("--implementations", f"{name}={folder}")
        ]


def two_builds(
    design: Design, old: Build, new: Build, options: Mapping[str, Any], margin: float | None = None
) -> TwoBuilds:
    """Return the design with these two builds as its variants, and without stops at single points.

    `margin` is the least difference that matters; it replaces the design's.

    Raises Refusal for two different implementations, and if they have none of its workloads.
    """
    name, other = (build.implementation.declaration.name for build in (old, new))
    if name != other:
        raise Refusal(
            f"OLD {old.word} is {name}, NEW {new.word} is {other}: must be two builds of one implementation"
        )
    supported = _workloads_of(old.implementation) & _workloads_of(new.implementation)
    tables, left_out = _workload_tables(design, supported)
    if not tables:
        lacking, hint = ", ".join(left_out), nearest(left_out[0], sorted(supported))
        raise Refusal(f"{design.path}: {name} has none of its workloads, {lacking}; {hint}")
    folders = {f"{name}.{arm}": build.implementation.folder for arm, build in ((OLD, old), (NEW, new))}
    variants = [
        {"label": arm, "implementation": f"{name}.{arm}", "options": dict(options), "baseline": baseline}
        for arm, baseline in ((OLD, True), (NEW, OLD))
    ]
    old_name, new_name = names(old, new)
    question = f"{name}: is {new_name} (new) slower than {old_name} (old)?"
    rewritten = designs.rewritten(
        design,
        title=question,
        question=question,
        workloads=tables,
        variants=variants,
        until=None,
        margin=design.margin if margin is None else margin,
    )
    return TwoBuilds(rewritten, folders, tuple(left_out))


def _workloads_of(implementation: Implementation) -> set[str]:
    return set(implementation.declaration.workloads)


def _workload_tables(design: Design, supported: set[str]) -> tuple[list[dict[str, Any]], list[str]]:
    """The tables of the workloads that are supported, and the names of the others."""
    tables, left_out = [], []
    for table in tomllib.loads(design.text)["workloads"]:
        if workloads.find(table["name"], design.path).asked_for in supported:
            tables.append(table)
        else:
            left_out.append(str(table["name"]))
    return tables, left_out


def engine_of_both(old: Build, new: Build) -> EngineName:
    """Virtual where both have a simulator, else this machine's namespaces."""
    has = [build.implementation.declaration.simulator is not None for build in (old, new)]
    return "virtual" if all(has) else "local"


def campaign_name(builds: TwoBuilds, engine: EngineName) -> str:
    """Return the name of the campaign: the same builds, design and engine have the same name, so it
    continues."""
    made_of = [
        provenance.binaries([builds.implementations.find(name, "compare")], engine) for name in builds.folders
    ]
    text = json.dumps([builds.design.text, engine, [sorted(hashes.items()) for hashes in made_of]])
    name = next(iter(builds.folders)).removesuffix(f".{OLD}")
    return f"compare-{name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
