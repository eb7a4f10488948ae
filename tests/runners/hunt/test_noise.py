"""Findings where delays have noise: they are planted, and no trial is run."""

from dataclasses import dataclass

import pytest

from fecbench import designs
from fecbench.runners.hunt.budget import budget
from fecbench.runners.hunt.hunt import Answer, hunt
from fecbench.runners.hunt.hunt_answer import document, lines
from fecbench.runners.hunt.hunt_question import Question, question
from fecbench.runners.hunt.lookout import Look
from fecbench.runners.hunt.measured import Measured
from fecbench.runners.hunt.space import Network
from tests.runners.hunt.planted import ARM, RANGES, Planted, design_text, question_with_seed

WITHOUT = {name: factor for name, factor in RANGES.items() if name != "jitter_ms"}
TRIALS = 5_000


@dataclass(frozen=True)
class Laboratory:
    """A laboratory whose harm stays with noise, or ends."""

    question: Question
    stays: bool

    def __call__(self, look: Look) -> Measured:
        has_harm = self.stays or not look.noise_ms
        return Planted(self.question, _of_long_queues if has_harm else lambda _: 1.0)(look)


def _of_long_queues(network: Network) -> float:
    return 1.3 if float(network.point["queue_bdp"]) > 3.5 else 1.0


def answer_of(asking: Question, stays: bool) -> Answer:
    return hunt(asking, budget(TRIALS, asking.repetitions), Laboratory(asking, stays))


@pytest.mark.parametrize(("stays", "words"), [(True, "delay: 1."), (False, "delay, not surely so: 1.0")])
def test_a_finding_says_what_is_left_of_it_with_noise(stays: bool, words: str) -> None:
    asking = question(designs.parse(design_text(1, factors=WITHOUT), "planted.toml"), ARM, "", "harm")
    answer = answer_of(asking, stays)
    noisy = answer.findings[0].noisy
    assert noisy is not None and noisy.is_sure == stays and (noisy.interval[0] > 1.02) == stays
    assert f"  with 1 ms of noise of the {words}" in "\n".join(lines(answer, ()))
    noise = document(answer, ())["found"][0]["noise"]
    assert (noise["jitter_ms"], noise["sure"], noise["interval"]) == (1.0, stays, list(noisy.interval))


def test_a_space_with_noise_of_its_own_gets_no_other() -> None:
    answer = answer_of(question_with_seed(1), stays=True)
    assert answer.findings and all(finding.noisy is None for finding in answer.findings)
    assert "noise" not in "\n".join(lines(answer, ())) and document(answer, ())["found"][0]["noise"] is None
