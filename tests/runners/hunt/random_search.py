"""Random search, which a hunt is held beside: networks by chance, as many pairs of each as an interval needs.
Those that look surely harmed are confirmed."""

import numpy as np

from fecbench.results.analysis.intervals import LEVEL
from fecbench.runners.hunt.budget import START_REPETITIONS, Budget
from fecbench.runners.hunt.hunt_finding import Finding, confirmed
from fecbench.runners.hunt.hunt_question import Question
from fecbench.runners.hunt.lookout import Laboratory, Lookout
from fecbench.runners.hunt.measured import Measured

CONFIRMED = 0.1
"""Share of all pairs that confirm; a hunt has as many for it."""


def random_search(question: Question, budget: Budget, laboratory: Laboratory[Measured]) -> list[Finding]:
    """Return the findings of the same number of trials."""
    lookout, random = Lookout(laboratory, budget), np.random.default_rng(question.seed("random search"))
    count = int((1 - CONFIRMED) * budget.pairs) // START_REPETITIONS
    space = question.space
    networks = list(dict.fromkeys(map(space.at, random.random((count, space.axes)))))
    judged = lookout.look("random", networks, START_REPETITIONS).judged(LEVEL)
    worst = [networks[place] for place in np.argsort(-judged.low) if judged.is_sure[place]]
    worst = worst[: budget.confirmed_networks]
    if not worst:
        return []
    return confirmed(worst, worst, lookout.look("confirm", worst, budget.repetitions), len(worst))
