"""A laboratory of both engines whose truth is known: no trial is run, and a test plants disagreement.

Emulated trials take a hair more or less than virtual ones; under losses one in five is far off by chance, as
often longer as shorter.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fecbench.runners.hunt.both_engines import Dose, Screened
from fecbench.runners.hunt.disagreement import Disagreements, pairs_of
from fecbench.runners.hunt.engine_question import EngineQuestion, engine_question
from fecbench.runners.hunt.lookout import Look
from fecbench.runners.hunt.space import Network
from tests.runners.hunt.planted import LOSSY, Effect, design

TOLERANCE = 0.03
A_HAIR = 0.005
CHANCE, FAR = 0.2, 0.4
"""Chance of a trial that met losses to be far off, and how far."""


def question_with_seed(seed: int) -> EngineQuestion:
    return engine_question(design(seed))


def nothing(_: Network) -> float:
    return 1.0


@dataclass
class PlantedEngines:
    """Emulated trials take so many times as long as virtual ones."""

    question: EngineQuestion
    effect: Effect
    sensitive: Effect = nothing
    """Factor by which a little time of a processor changes a virtual trial."""
    lasts_s: Effect = nothing
    looks: list[Look] = field(default_factory=list)

    def screen(self, number: int, networks: Sequence[Network], dose: Dose) -> Screened:
        del number
        values = np.array([self.sensitive(network) if dose else 1.0 for network in networks])
        lasts_s = np.array([self.lasts_s(network) for network in networks])
        return Screened(values, lasts_s, np.full(len(networks), 0.1))

    def __call__(self, look: Look) -> Disagreements:
        self.looks.append(look)
        random = np.random.default_rng(self.question.seed("planted", look.number))
        rows = []
        for place, network in enumerate(look.networks):
            chance = CHANCE if LOSSY[str(network.point["losses"])] else 0.0
            for _ in range(look.repetitions):
                far = FAR * (random.random() < chance) * random.choice([-1, 1])
                log = float(np.log(self.effect(network)) + random.normal(0, A_HAIR) + far)
                rows.append((place, log, -TOLERANCE, TOLERANCE, len(rows), 10_000 + len(rows)))
        return Disagreements(len(look.networks), pairs_of(rows), len(rows))
