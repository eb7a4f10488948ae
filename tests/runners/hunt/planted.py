"""A laboratory whose truth is known: no trial is run, and harm is where a test plants it.

Where nothing is lost, both arms take the same time but for a hair. Under losses, either takes longer now and
then, as often and as much; so a single pair says little there.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from fecbench import designs
from fecbench.designs import Design
from fecbench.runners.hunt.hunt_question import Question, Sought, question
from fecbench.runners.hunt.lookout import Look
from fecbench.runners.hunt.measured import Measured, Part
from fecbench.runners.hunt.space import Network
from tests.support.campaigns import campaign_info, types_of, variants, workload
from tests.support.designs import Table, between, one_of, text_of, variant

ARM, AGAINST = "new", "old"
LOSSES = {"none": (0, 1), "single, 1 %": (0.01, 1), "single, 10 %": (0.1, 1), "bursts of 3, 5 %": (0.05, 3)}
"""Rate and mean length of bursts."""
RANGES = {
    "bandwidth_mbps": between(0.3, 100, scale="log"),
    "owd_ms": between(5, 400, scale="log"),
    "queue_bdp": between(0.25, 4, scale="log"),
    "jitter_ms": between(0, 30),
    "workload.size_bytes": between(1_000, 5_000_000, scale="log", integer=True),
    "option.initial_window": one_of(10, 32),
    "option.congestion_control": one_of("cubic", "bbr3"),
}


def design_text(seed: int, points: int = 8, factors: Table = RANGES, **constants: object) -> str:
    linked = {name: {"loss.rate": rate, "loss.burst": burst} for name, (rate, burst) in LOSSES.items()}
    return text_of(
        "planted",
        seed=seed,
        repetitions=40,
        statistic="mean",
        margin=0.02,
        plan={"method": "sobol", "points": points},
        factors={**factors, "losses": {"linked": linked}},
        constants={"loss.model": "markov", **constants},
        workloads=[{"name": "download"}, {"name": "upload"}],
        variants=[variant(AGAINST, "made-up", baseline=True), variant(ARM, "made-up")],
    )


LOSSY = {"none": 0.0, "single, 1 %": 0.05, "single, 10 %": 0.5, "bursts of 3, 5 %": 0.3}
"""Chance, by loss model, that a transfer loses something that costs time."""
COSTS = 0.5
"""The mean of the logarithm by which such a transfer takes longer."""
A_HAIR = 1e-4

Effect = Callable[[Network], float]
"""Factor by which the arm takes longer in a network."""


def design(seed: int) -> Design:
    return designs.parse(design_text(seed), "planted.toml")


def question_with_seed(seed: int, sought: Sought = "harm") -> Question:
    return question(design(seed), ARM, "", sought)


@dataclass(frozen=True)
class Planted:
    """A laboratory in which the arm takes longer by this effect."""

    question: Question
    effect: Effect

    def __call__(self, look: Look) -> Measured:
        parts, before = [], 0
        for label in self.question.space.workloads:
            places = [place for place, network in enumerate(look.networks) if network.workload == label]
            if places:
                parts.append(self._part(look, label, places, before))
                before += len(parts[-1].trials)
        return Measured(self.question, len(look.networks), parts)

    def _part(self, look: Look, label: str, places: list[int], before: int) -> Part:
        networks = [look.networks[place] for place in places]
        times = self.times(networks, look.repetitions, self.question.seed("look", look.number, label))
        points, repetitions = (index.ravel() for index in np.indices((len(networks), look.repetitions)))
        trials = pd.concat(
            [
                pd.DataFrame(
                    {
                        "workload": label,
                        "point": points,
                        "repetition": repetitions,
                        "variant": arm,
                        "state": "ok",
                        "client.dct_s": of_arm.ravel(),
                    }
                )
                for arm, of_arm in times.items()
            ],
            ignore_index=True,
        )
        campaign = campaign_info(
            repetitions=look.repetitions,
            statistic="mean",
            margin=0.02,
            provenance={"engine": "virtual"},
            points=[network.point for network in networks],
            variants=variants(AGAINST, ARM),
            workloads=[{**workload(label, label), "metric": "client.dct_s"}],
        )
        trials = trials.astype(types_of(campaign))
        return Part(campaign, trials.assign(id=np.arange(len(trials)) + before + 1, attempt=1), places)

    def times(self, networks: list[Network], repetitions: int, seed: int) -> dict[str, np.ndarray]:
        """Return the times of each arm: networks × repetitions."""
        random = np.random.default_rng(seed)
        shape = (len(networks), repetitions)
        chance = np.array([LOSSY[str(network.point["losses"])] for network in networks])[:, np.newaxis]
        effect = np.array([self.effect(network) for network in networks])[:, np.newaxis]

        def delays() -> np.ndarray:
            return np.asarray((random.random(shape) < chance) * random.exponential(COSTS, shape))

        both = delays()
        hair = random.normal(0, A_HAIR, shape)
        return {AGAINST: np.exp(both + delays()), ARM: effect * np.exp(both + delays() + hair)}
