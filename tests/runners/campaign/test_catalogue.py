"""A design of the catalogue means what it has always meant: the same points, order and seeds.

catalogue.json has their digests as version 0.1.0 made them, but for two: the demo has more points and
repetitions since it runs in virtual time, and rquic2021-bulk-short the paper's sizes where nothing is lost.
Who changes a design on purpose changes its line.
"""

import hashlib
import json
from pathlib import Path

import pytest

from fecbench import designs
from fecbench.checkout import REPOSITORY
from fecbench.runners.campaign.experiment import Experiment
from fecbench.runners.campaign.order import trial_keys
from fecbench.runners.implementations.finding import ours

DIGESTS: dict[str, str] = json.loads(Path(__file__).with_name("catalogue.json").read_text())


@pytest.mark.parametrize("name", sorted(DIGESTS))
def test_a_design_of_the_catalogue_has_the_points_the_order_and_the_seeds_that_it_had(name: str) -> None:
    design = designs.load(REPOSITORY / "designs" / "catalog" / f"{name}.toml")
    experiment = Experiment(design, design.plan().points, ours())
    keys = trial_keys(design, len(experiment.points))
    lines = (f"{key.variant}|{key.workload}|{key.point}|{key.repetition}" for key in keys)
    seeds = {}
    for key in keys:
        of_trial = experiment.seeds(key)
        losses = {
            f"{link}/{direction}": seed
            for link, directions in of_trial.losses.items()
            for direction, seed in directions.items()
        }
        seeds[f"{key.point}|{key.repetition}"] = {"content": of_trial.content, **losses}
    found = {
        "points": experiment.points,
        "order": hashlib.sha256("\n".join(lines).encode()).hexdigest(),
        "seeds": seeds,
    }
    assert hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest() == DIGESTS[name]
