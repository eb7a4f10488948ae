"""A design of the catalogue means what it has always meant: the same points, order, seeds and tasks.

catalogue.json has a digest of each design. Whoever changes a design on purpose changes its line.
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fecbench import designs
from fecbench.runners.campaign.experiment import Experiment
from fecbench.runners.campaign.order import trial_keys
from fecbench.runners.implementations.finding import ours
from fecbench.runners.tasks.task import VIRTUAL

DIGESTS: dict[str, str] = json.loads(Path(__file__).with_name("catalogue.json").read_text())
TASKS = 200
"""Of each design, evenly over its order."""


def meaning(design: designs.Design) -> Iterator[Any]:
    """All that decides what a campaign of the design runs."""
    experiment = Experiment(design, design.plan().points, ours())
    keys = trial_keys(design, len(experiment.points))
    yield experiment.points
    yield [[key.variant, key.workload, key.point, key.repetition] for key in keys]
    for key in {(key.point, key.repetition): key for key in keys}.values():
        yield experiment.seeds(key).model_dump()
    for key in keys[:: -(-len(keys) // TASKS)]:
        yield experiment.task(key, VIRTUAL).document()


def digest(design: designs.Design) -> str:
    text = hashlib.sha256()
    for part in meaning(design):
        text.update(json.dumps(part, sort_keys=True).encode())
    return text.hexdigest()


def test_every_design_has_its_digest() -> None:
    assert sorted(DIGESTS) == sorted(designs.catalogue())


@pytest.mark.parametrize("name", sorted(DIGESTS))
def test_a_design_means_what_it_has_always_meant(name: str) -> None:
    assert digest(designs.load(designs.catalogue()[name])) == DIGESTS[name]
