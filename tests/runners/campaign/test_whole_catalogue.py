"""Every design of the catalogue can be run, and has its old meaning: points, order, seeds and tasks.

catalogue.json has a digest of each design. Whoever changes a design on purpose changes its line.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from fecbench import designs
from fecbench.designs import Design
from fecbench.results.store.records import TrialKey
from fecbench.runners.campaign.against_itself import against_itself
from fecbench.runners.campaign.checks import check
from fecbench.runners.campaign.experiment import Experiment
from fecbench.runners.campaign.order import trial_keys
from fecbench.runners.implementations.finding import ours
from fecbench.runners.tasks.task import VIRTUAL

DESIGNS = Path(designs.__file__).parent
DIGESTS: dict[str, str] = json.loads(Path(__file__).with_name("catalogue.json").read_text())
YOUNGER = [("ecn", False), ("source_symbols", "auto")]
TASKS = 60
"""Number of tasks of each design, evenly spread over its order, with their seeds."""


def meaning(experiment: Experiment) -> Iterator[str]:
    """Yield everything that decides what a campaign of the design runs, in JSON."""
    keys = trial_keys(experiment.design, len(experiment.points))
    yield json.dumps(experiment.points, sort_keys=True)
    yield json_of(keys)
    for key in keys[:: -(-len(keys) // TASKS)]:
        task = of_age(experiment.task(key, VIRTUAL).document())
        yield json.dumps((by_kind(experiment.seeds(key)), task), sort_keys=True)


def json_of(keys: Sequence[TrialKey]) -> str:
    """Return the keys in JSON. There may be hundreds of thousands, with few labels."""
    labels = {key.variant for key in keys} | {key.workload for key in keys}
    text = {label: json.dumps(label) for label in labels}
    rows = (f"[{text[key.variant]}, {text[key.workload]}, {key.point}, {key.repetition}]" for key in keys)
    return f"[{', '.join(rows)}]"


def of_age(document: Any) -> Any:
    """A document without options that are younger than the digests and off, so that it means what it did."""
    if isinstance(document, dict):
        return {name: of_age(value) for name, value in document.items() if (name, value) not in YOUNGER}
    if isinstance(document, list) and any(isinstance(part, dict | list) for part in document[:1]):
        return [of_age(part) for part in document]
    return document  # a timetable has thousands of numbers


def by_kind(seeds: dict[str, int]) -> dict[str, Any]:
    """Seeds in the form of the digests, which are older than their names."""
    kinds: dict[str, Any] = {"content": seeds["content"], "losses": {}}
    for name, seed in seeds.items():
        match name.split("/"):
            case [link, "trace"]:
                kinds.setdefault("traces", {})[link] = seed
            case [link, direction]:
                kinds["losses"].setdefault(link, {})[direction] = seed
            case [link, direction, kind]:
                kinds.setdefault(kind, {}).setdefault(link, {})[direction] = seed
    return kinds


def digest(experiment: Experiment) -> str:
    text = hashlib.sha256()
    for part in meaning(experiment):
        text.update(part.encode())
    return text.hexdigest()


def listed() -> dict[str, int]:
    """Trials of each design, as the table of the README has them."""
    _, _, catalogue = (DESIGNS / "README.md").read_text().partition("\n## Catalogue\n")
    trials: dict[str, int] = {}
    for row in re.findall(r"^\| (`.*?) \| (.*?) \|", catalogue.partition("\n## ")[0], re.MULTILINE):
        names = re.findall("`(.+?)`", row[0])
        family = names[0].partition("-")[0]
        whole = [family + name if name.startswith("-") else name for name in names]
        trials |= zip(whole, (int(count.replace(",", "")) for count in row[1].split(", ")), strict=True)
    return trials


def test_every_design_has_its_digest_and_its_row_in_the_readme() -> None:
    files = {path.stem: path for path in (DESIGNS / "catalog").glob("*.toml")}
    assert designs.catalogue() == files
    assert DIGESTS.keys() == listed().keys() == files.keys()


@pytest.mark.parametrize("name", sorted(DIGESTS))
def test_a_design_of_the_catalogue(name: str) -> None:
    """The design can be run, has its old meaning, and loses nothing when it is written again."""
    design = designs.load(designs.catalogue()[name])
    again = designs.rewritten(design, repetitions=47)
    plan = again.plan()  # the digest below has the points
    assert design.name == name
    compared = name != "interop"  # of which `fecbench interop` takes all but the variants
    assert sum(variant.is_baseline for variant in design.variants) == compared
    trials = len(plan.points) * len(design.workloads) * len(design.variants) * design.repetitions
    assert listed()[name] == trials > 0

    experiment = Experiment(design, plan.points, ours())
    check(experiment)
    assert digest(experiment) == DIGESTS[name]

    assert (again.repetitions, again.path) == (47, design.path)
    assert_same(designs.parse(again.text, again.path), again, set(Design.model_fields))
    assert_same(design, again, set(Design.model_fields) - {"repetitions"})

    if all(workload.name != "competing" for workload in design.workloads):
        itself = against_itself(design, design.variants[-1].label)
        read = designs.parse(itself.text, "written.toml")
        assert read.variants == itself.variants
        assert_same(design, read, set(Design.model_fields) - {"variants", "repetitions", "until"})
        # Arms that are to be equal decide nothing: such a design stops at its first look.
        repetitions = design.repetitions if design.until is None else design.looks[0]
        assert (read.repetitions, read.until) == (repetitions, None)


def assert_same(design: Design, other: Design, fields: set[str]) -> None:
    assert {field: getattr(other, field) for field in fields} == {
        field: getattr(design, field) for field in fields
    }
    assert list(other.factors) == list(design.factors)  # their order is that of the axes
