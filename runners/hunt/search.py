"""The search itself: a look at many networks over the whole space, then rounds that go where it looks worst.

Each round measures the most promising networks again, fewer of them with more repetitions and fresh seeds,
and neighbours of the best: successive halving (Jamieson and Talwalkar, AISTATS 2016) whose candidates have
children.

Optuna's TPE in the place of neighbours found the same 8 of 9 planted harms (a box, sizes and jitter, in 0.3 %
of the space, 5,000 trials, three seeds each), and took half as much processor time again: it is not used.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from fecbench.results.analysis.intervals import LEVEL
from fecbench.results.analysis.quantiles import share_interval
from fecbench.runners.hunt.budget import ROUNDS, START_REPETITIONS, Budget
from fecbench.runners.hunt.estimates import Estimates
from fecbench.runners.hunt.hunt_question import Question
from fecbench.runners.hunt.lookout import Lookout
from fecbench.runners.hunt.measured import Measured
from fecbench.runners.hunt.space import Network

ALIKE = 0.1
"""Networks nearer than this are looked at a few at a time."""
TOGETHER = 3
MOST = 20
"""Times as many as are wanted: so many of the best are looked through."""
PARENTS = 24
"""Networks whose neighbours are looked at."""


@dataclass(frozen=True)
class Share:
    """Share of the space in which the effect is, by the space-filling start alone. A network counts as often
    as the space-filling sequence has it: whole numbers may be much of the space."""

    networks: int
    harmed: int
    """Number of networks in which it surely is, by more than the margin."""
    open: int
    """Number of networks in which it may be."""
    margin: float
    """The greatest of any network."""

    @property
    def interval(self) -> tuple[float, float]:
        """Interval from "no open network has it" to "all have it", each end with its own uncertainty."""
        low = share_interval(self.harmed, self.networks, LEVEL)[0]
        return low, share_interval(self.harmed + self.open, self.networks, LEVEL)[1]


def start(question: Question, lookout: Lookout[Measured], budget: Budget, estimates: Estimates) -> Share:
    """Look at networks that fill the space evenly, often enough for an interval of each."""
    sequence = question.space.spread(budget.start_networks, 0, question.seed("networks"))
    networks = list(dict.fromkeys(sequence))
    measured = lookout.look("start", networks, START_REPETITIONS)
    estimates.add(networks, measured)
    # The level is shared: one network that is wrongly excluded would make the share's upper end too low.
    judged = measured.judged(LEVEL / max(len(networks), 1))
    if np.isnan(judged.ratio).all():  # nothing was compared
        return Share(0, 0, 0, question.design.margin)
    # A network without a ratio is open, too: which of two timeouts is worse, nobody can tell.
    times = Counter(sequence)
    times_of = np.array([times[network] for network in networks])
    return Share(
        len(sequence),
        int(times_of[judged.is_sure].sum()),
        int(times_of[judged.is_open].sum()),
        float(np.nanmax(judged.margin, initial=question.design.margin)),
    )


def scan(question: Question, lookout: Lookout[Measured], budget: Budget, estimates: Estimates) -> None:
    """Look once at many more networks of the same sequence."""
    networks = question.space.spread(budget.scan_networks, budget.start_networks, question.seed("networks"))
    fresh = [network for network in dict.fromkeys(networks) if network not in estimates]
    if fresh:  # a small space has no more
        estimates.add(fresh, lookout.look("scan", fresh, 1))


def rounds(question: Question, lookout: Lookout[Measured], budget: Budget, estimates: Estimates) -> None:
    """Look again at the most promising networks, and around them."""
    space, random = question.space, np.random.default_rng(question.seed("neighbours"))
    for number, of_round in enumerate(ROUNDS, start=1):
        count = budget.round_networks(of_round)
        again = promising(question, estimates, round(count * (1 - of_round.new)))
        if again:
            room = count - len(again)
            twins = space.plain_twins(again[:PARENTS], estimates)[: room // 2]
            known = {*again, *twins}
            near = [
                network
                for network in space.neighbours(again[:PARENTS], room - len(twins), estimates, random)
                if network not in known
            ]
            networks = [*again, *twins, *near]
            estimates.add(networks, lookout.look(f"search-{number}", networks, of_round.repetitions))


def promising(
    question: Question, estimates: Estimates, count: int, alike: float = ALIKE, together: int = TOGETHER
) -> list[Network]:
    """The best networks in which there is some of what is sought, by the estimates: of those that are nearer
    to each other than `alike`, at most `together`."""
    best = [network for network in estimates.best() if estimates[network] > 0][: MOST * count]
    apart = question.space.apart(best, alike, together) if best else iter(())
    return [best[index] for index, _ in zip(apart, range(count), strict=False)]
