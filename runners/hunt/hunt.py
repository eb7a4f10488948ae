"""The course of a hunt: from the first look at the space to the findings that are shown."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fecbench.results.analysis.intervals import LEVEL
from fecbench.results.analysis.margins import percent
from fecbench.results.analysis.unseen import unseen_share
from fecbench.runners.hunt import noise, region, search
from fecbench.runners.hunt.budget import START_REPETITIONS, Budget
from fecbench.runners.hunt.engine_question import EngineQuestion
from fecbench.runners.hunt.estimates import Estimates
from fecbench.runners.hunt.hunt_finding import Finding, confirmed
from fecbench.runners.hunt.hunt_question import Question
from fecbench.runners.hunt.lookout import Laboratory, Lookout, TimeIsOver
from fecbench.runners.hunt.measured import Judging, Measured
from fecbench.runners.hunt.search import Share
from fecbench.runners.hunt.shrinking import shrink
from fecbench.runners.hunt.space import Network, Space

ONE_KIND = 0.15
"""Findings with the same choices that are nearer than this are of one kind."""
RARE = (
    f"these have {START_REPETITIONS} pairs each: a delay that less than"
    f" {percent(unseen_share(START_REPETITIONS))} of the transfers meet may be in none of them"
)
"""The remark on delays that the share of the space, by means, cannot know."""
NO_INTERVAL = f"these have {START_REPETITIONS} pairs each: too few for a median, so failures alone decide"
"""The remark on the share of the space by medians."""
OPEN = 4
"""Networks that are measured more often where no candidate was confirmed, the most promising ones."""
FOR_OPEN = 0.7
"""Share of the pairs that are left, for these."""
OF_ONE_KIND = 200
"""Pairs, about, by which one is shrunk."""


@dataclass(frozen=True)
class Answer:
    """The outcome of a hunt."""

    question: Question | EngineQuestion
    looked: int
    """Trials; of two engines the emulated ones."""
    share: Share | None
    """None where the time was over before."""
    is_whole: bool
    """Whether it came as far as its first confirmation."""
    confirmed: int
    """Networks in which what is sought was surely there; of those that are alike, one is a finding."""
    findings: list[Finding]
    """The one with the greatest sure effect first."""
    looked_at: list[tuple[Network, float]]
    """Each network of the search, and by which factor there is what is sought, by all looks that chose."""
    remarks: tuple[str, ...] = ()
    """Remarks on what it could not do."""

    @property
    def verdict(self) -> Literal["found", "nothing", "no answer"]:
        if self.findings:
            return "found"
        has_compared = self.share is not None and self.share.networks > 0
        return "nothing" if self.is_whole and has_compared else "no answer"


def hunt(
    question: Question,
    budget: Budget,
    laboratory: Laboratory[Measured],
    tell: Callable[[str], None] = lambda _: None,
) -> Answer:
    """Carry the hunt out. The same question, budget and laboratory give the same answer."""
    course = _Course(question, budget, Lookout(laboratory, budget, tell))
    with suppress(TimeIsOver):
        course.run()
    return course.answer()


class _Course:
    """A hunt under way, with what is known so far."""

    def __init__(self, question: Question, budget: Budget, lookout: Lookout[Measured]) -> None:
        self._question = question
        self._budget = budget
        self._lookout = lookout
        self._share: Share | None = None
        self._sure: list[Finding] = []
        self._findings: list[Finding] = []
        self._is_whole = False
        self._estimates = Estimates(question.space)

    def answer(self) -> Answer:
        looked = self._lookout.trials
        sure = len(self._sure)
        effects = self._estimates.effects()
        remark = RARE if self._question.design.statistic == "mean" else NO_INTERVAL
        remarks = () if self._share is None else (remark,)
        return Answer(
            self._question, looked, self._share, self._is_whole, sure, self._findings, effects, remarks
        )

    def run(self) -> None:
        """Look until the budget is used. Raises TimeIsOver."""
        question, budget, lookout = self._question, self._budget, self._lookout
        estimates = self._estimates
        self._share = search.start(question, lookout, budget, estimates)
        search.scan(question, lookout, budget, estimates)
        search.rounds(question, lookout, budget, estimates)
        candidates = search.promising(question, estimates, budget.confirmed_networks, ONE_KIND, together=1)
        if candidates:
            spreads = self._confirm(candidates)
            self._shrink([spreads[finding.network] for finding in self._findings])
        self._is_whole = True

    def _confirm(self, candidates: list[Network]) -> dict[Network, float]:
        """Confirm some of the candidates; where none is, the best of them over more repetitions. Return the
        spread of one pair of each."""
        budget, lookout = self._budget, self._lookout
        of = len(candidates) + OPEN
        measured = lookout.look("confirm", candidates, budget.repetitions)
        self._sure = confirmed(candidates, candidates, measured, of)
        log, spread, _ = measured.estimates()
        spreads = dict(zip(candidates, spread.tolist(), strict=True))
        is_open = measured.judged(LEVEL / of).is_open
        order = [place for place in np.argsort(-np.nan_to_num(log), kind="stable") if is_open[place]]
        best = [candidates[place] for place in order[:OPEN]]
        repetitions = int(FOR_OPEN * lookout.left) // max(len(best), 1)
        if not self._sure and best and repetitions > budget.repetitions:
            measured = lookout.look("confirm-open", best, repetitions)
            self._sure = confirmed(best, best, measured, of)
        self._findings = kinds(self._question.space, self._sure)
        return spreads

    def _shrink(self, spreads: Sequence[float]) -> None:
        """Make findings plainer, confirm them again and look around them: those with the greatest effect, as
        many as there is room for. The others are shown as they were confirmed."""
        space, budget, lookout = self._question.space, self._budget, self._lookout
        each = budget.repetitions + region.PAIRS + OF_ONE_KIND
        count = min(len(self._findings), max(1, lookout.left // each))
        first, rest = self._findings[:count], self._findings[count:]
        has_room = lookout.left >= count * each
        reserve = count * (budget.repetitions + region.PAIRS * has_room)
        shrunk = shrink(space, lookout, first, spreads[:count], reserve)
        first = kinds(space, confirmed_again(lookout, budget.repetitions, first, shrunk))
        self._findings = kinds(space, [*first, *rest])
        random = np.random.default_rng(self._question.seed("region"))
        boxes = region.boxes(space, lookout, [finding.network for finding in first], random)
        around = {finding.network: box for finding, box in zip(first, boxes, strict=True)}
        self._findings = [
            dataclasses.replace(finding, box=around.get(finding.network)) for finding in self._findings
        ]
        self._findings = noise.again(self._question.design, lookout, budget.repetitions, self._findings)


def confirmed_again(
    lookout: Lookout[Judging], repetitions: int, findings: Sequence[Finding], shrunk: Sequence[Network]
) -> list[Finding]:
    """Each finding as it was shrunk where that is confirmed, else as it was."""
    origins = dict(zip(shrunk, findings, strict=True))
    changed = [network for network, finding in origins.items() if network != finding.network]
    if not changed or lookout.left < len(changed) * repetitions:
        return list(findings)
    measured = lookout.look("confirm-shrunk", changed, repetitions)
    shrunk_from = [origins[network].shrunk_from for network in changed]
    sure = confirmed(changed, shrunk_from, measured, len(changed))
    plainer = {finding.network: finding for finding in sure}
    return [plainer.get(network, finding) for network, finding in zip(shrunk, findings, strict=True)]


def kinds(space: Space, findings: Sequence[Finding]) -> list[Finding]:
    """Return findings, one of each kind, the greatest sure effect first."""
    ranked = sorted(findings, key=lambda finding: -finding.sure_effect)
    if not ranked:
        return []
    apart = space.apart([finding.network for finding in ranked], ONE_KIND)
    return [ranked[index] for index in apart]
