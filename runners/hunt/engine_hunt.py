"""The course of a hunt for networks in which emulation and virtual time disagree.

Emulated trials take as long as they last, so they are few. Virtual trials choose their networks: those in
which a little time of a processor changes the result by more than virtual time vouches for (`sensitivity`).
Emulated endpoints take such time, and virtual ones do not. Other networks are spread evenly, for an answer
about the whole space. Every finding is confirmed by trials that did not choose it.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from fecbench.quantities import counted
from fecbench.results.analysis.intervals import LEVEL
from fecbench.runners.hunt import region
from fecbench.runners.hunt.both_engines import Dose, Screened
from fecbench.runners.hunt.budget import START_REPETITIONS, Budget
from fecbench.runners.hunt.disagreement import Disagreements
from fecbench.runners.hunt.engine_question import LONGEST_S, REPETITIONS, EngineQuestion
from fecbench.runners.hunt.hunt import ONE_KIND, Answer, confirmed_again, kinds
from fecbench.runners.hunt.hunt_finding import Finding, confirmed
from fecbench.runners.hunt.lookout import Look, Lookout, TimeIsOver
from fecbench.runners.hunt.measured import Floats
from fecbench.runners.hunt.search import ALIKE, PARENTS, TOGETHER, Share
from fecbench.runners.hunt.sensitivity import doses, sensitivity
from fecbench.runners.hunt.shrinking import shrink
from fecbench.runners.hunt.space import Network
from fecbench.runners.refusal import Refusal

START, SCAN, CONFIRM = 0.2, 0.3, 0.15
"""Share of all emulated trials; the rest shrinks what was confirmed."""
SEARCH = ((1, 0.12, 0.2), (3, 0.08, 0.3))
"""Rounds: repetitions, the share of all trials, and that of neighbours among their networks."""
SENSITIVE = 0.6
"""Share of the scan's networks that are the most sensitive; the others are spread evenly."""
FEWEST_SCREENED, MOST_SCREENED = 32, 512
"""Networks that are run in virtual time, each once for every dose: about twice as many as trials emulated."""
LOOKS = 2
"""Looks at each candidate, which share the level: one at all, and one at those that stay open."""
OPEN = 2
"""Candidates that are measured more often where none was confirmed."""
FEWEST_AT_A_TIME = 2
"""Plainer networks of a finding that are tried together."""


class Laboratory(Protocol):
    """A laboratory that runs trials of both engines."""

    def screen(self, number: int, networks: Sequence[Network], dose: Dose) -> Screened: ...

    def __call__(self, look: Look) -> Disagreements: ...


def fewest_trials() -> int:
    """Return the least trials of a hunt that can confirm one network."""
    return math.ceil(REPETITIONS / CONFIRM)


def check_trials(trials: int) -> None:
    """Raises Refusal for too few emulated trials to confirm anything."""
    if trials < (fewest := fewest_trials()):
        raise Refusal(
            f"--trials {trials}: is too few to confirm one network by emulation, which takes {REPETITIONS}"
            f" repetitions in {CONFIRM:.0%} of the trials: must be {fewest} or more"
        )


@dataclass(frozen=True)
class Screen:
    """Networks that were run in virtual time."""

    sequence: list[Network]
    """The sequence that fills the space evenly: a network may be there several times."""
    networks: list[Network]
    """Each of them once."""
    sensitivity: Floats
    """NaN for a trial that came to no end."""
    lasted_s: Floats

    @property
    def is_short(self) -> np.ndarray:
        """Whether the trials of each can be emulated."""
        with np.errstate(invalid="ignore"):
            short: np.ndarray = self.lasted_s <= LONGEST_S
        return short

    @property
    def mean_s(self) -> float:
        """Mean duration of those that can be emulated; 0 for none."""
        return float(self.lasted_s[self.is_short].mean()) if self.is_short.any() else 0.0


def screen(
    question: EngineQuestion,
    trials: int,
    laboratory: Laboratory,
    tell: Callable[[str], None] = lambda _: None,
) -> Screen:
    """Look at the whole space in virtual time, as is worth it for so many emulated trials. Raises
    TimeIsOver."""
    count = min(max(2 * trials, FEWEST_SCREENED), MOST_SCREENED)
    sequence = question.space.spread(count, 0, question.seed("networks"))
    networks = list(dict.fromkeys(sequence))
    tell(
        f"screen: {counted(len(networks), 'network')} in virtual time, each with and without time of"
        " a processor"
    )
    runs = [laboratory.screen(number, networks, dose) for number, dose in enumerate(doses(question.design))]
    sensitive = sensitivity(runs[0].round_trips_s, [run.values for run in runs])
    return Screen(sequence, networks, sensitive, runs[0].lasted_s)


def hunt_engines(
    question: EngineQuestion,
    trials: int,
    screened: Screen,
    laboratory: Laboratory,
    tell: Callable[[str], None] = lambda _: None,
) -> Answer:
    """Carry the hunt out, with so many emulated trials at most."""
    counting = _Counting(laboratory)
    course = _Course(question, trials, screened, Lookout(counting, Budget(trials, REPETITIONS), tell))
    with suppress(TimeIsOver):
        course.run()
    return dataclasses.replace(course.answer(), looked=counting.emulated)


class _Counting:
    """A laboratory of which the emulated trials are counted."""

    def __init__(self, laboratory: Laboratory) -> None:
        self._laboratory = laboratory
        self.emulated = 0

    def __call__(self, look: Look) -> Disagreements:
        measured = self._laboratory(look)
        self.emulated += measured.emulated
        return measured


def _fewest_pairs(networks: int) -> int:
    """Return the fewest pairs by which the sign test decides, where so many networks share the level."""
    return 1 + math.ceil(math.log2(networks / LEVEL))


def _start_pairs(networks: int) -> int:
    return max(START_REPETITIONS, _fewest_pairs(max(networks, 1)))


@dataclass
class _Course:
    """A hunt under way, with what is known so far."""

    question: EngineQuestion
    trials: int
    screen: Screen
    lookout: Lookout[Disagreements]
    share: Share | None = None
    sure: list[Finding] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    is_whole: bool = False
    beyond: dict[Network, list[float]] = field(default_factory=dict)
    """Excess of the pairs of each network over their tolerances, of all looks that chose."""

    def answer(self) -> Answer:
        effects = [(network, math.exp(abs(self._beyond(network)))) for network in self.beyond]
        return Answer(
            *(self.question, 0, self.share, self.is_whole, len(self.sure), self.findings, effects),
            remarks=tuple(self.remarks),
        )

    def run(self) -> None:
        """Look until the trials are used. Raises TimeIsOver."""
        self._start()
        self._scan()
        for number, (repetitions, share, new) in enumerate(SEARCH, start=1):
            count = int(share * self.trials) // repetitions
            again = self._promising(round(count * (1 - new)), ALIKE, TOGETHER)
            if again:
                self._look(
                    f"search-{number}", [*again, *self._neighbours(again, count - len(again))], repetitions
                )
        candidates = self._promising(max(1, int(CONFIRM * self.trials) // REPETITIONS), ONE_KIND, 1)
        if candidates:
            self._confirm(candidates)
            self._shrink()
        self.is_whole = True

    def _confirm(self, candidates: list[Network]) -> None:
        """Confirm some of the candidates; where none is, the open ones by the trials that are left."""
        of = LOOKS * len(candidates)
        repetitions = max(REPETITIONS, _fewest_pairs(of))
        measured = self.lookout.look("confirm", candidates, repetitions)
        self.sure = confirmed(candidates, candidates, measured, of)
        is_open = measured.judged(LEVEL / of).is_open
        best = [network for network, may_be in zip(candidates, is_open, strict=True) if may_be][:OPEN]
        more = self.lookout.left // max(len(best), 1)
        if not self.sure and best and more > repetitions:
            self.sure = confirmed(best, best, self.lookout.look("confirm-open", best, more), of)
        self.findings = kinds(self.question.space, self.sure)

    def _start(self) -> None:
        """Look at networks that fill the space evenly, often enough for a verdict about each."""
        short = np.flatnonzero(self.screen.is_short)
        pairs = int(START * self.trials)
        count = next(count for count in range(len(short), -1, -1) if count * _start_pairs(count) <= pairs)
        networks = [self.screen.networks[place] for place in short[:count]]
        if long := int((~self.screen.is_short).sum()):
            self.remarks.append(
                f"of {counted(len(self.screen.networks), 'network')}, trials of {long} last longer"
                f" than {LONGEST_S:g} s:"
                " these are not emulated, and count as open"
            )
        if not networks:
            raise TimeIsOver
        judged = self._look("start", networks, _start_pairs(count)).judged(LEVEL / count)
        # Those before the last of them in the sequence that were not emulated may be anything.
        sequence = self.screen.sequence
        looked_at = sequence if count == len(short) else sequence[: sequence.index(networks[-1]) + 1]
        times = Counter(looked_at)
        times_of = np.array([times[network] for network in networks])
        self.share = Share(
            networks=0 if np.isnan(judged.ratio).all() else len(looked_at),
            harmed=int(times_of[judged.is_sure].sum()),
            open=len(looked_at) - int(times_of[~judged.is_open].sum()),
            margin=float(np.nanmax(judged.margin, initial=0.0)),
        )

    def _scan(self) -> None:
        """Look once at the most sensitive networks, and at some of all."""
        places = np.flatnonzero(self.screen.is_short)
        networks, sensitive = self.screen.networks, self.screen.sensitivity
        count = min(int(SCAN * self.trials), len(places))
        ranked = sorted(places, key=lambda place: -np.nan_to_num(sensitive[place], nan=-1.0))
        best = [networks[place] for place in ranked if sensitive[place] > 0]
        apart = self.question.space.apart(best, ALIKE, TOGETHER) if best else iter(())
        chosen = [best[index] for index, _ in zip(apart, range(round(SENSITIVE * count)), strict=False)]
        others = [networks[place] for place in places if networks[place] not in {*chosen, *self.beyond}]
        if scanned := [*chosen, *others[: count - len(chosen)]]:  # a small space may have no more
            self._look("scan", scanned, 1)

    def _look(self, name: str, networks: list[Network], repetitions: int) -> Disagreements:
        measured = self.lookout.look(name, networks, repetitions)
        for network, beyond in zip(networks, measured.beyond(), strict=True):
            self.beyond.setdefault(network, []).extend(beyond)
        return measured

    def _beyond(self, network: Network) -> float:
        """Return the excess of the middle pair of a network over its tolerance, of two in the middle the
        nearer one: a pair that is far off by chance is seldom followed by another one."""
        pairs = sorted(self.beyond[network])
        low, high = (pairs[(len(pairs) - 1) // 2], pairs[len(pairs) // 2]) if pairs else (0.0, 0.0)
        return max(low, 0.0) or min(high, 0.0)

    def _promising(self, count: int, alike: float, together: int) -> list[Network]:
        """The networks whose pairs are farthest beyond their tolerances, few of them alike."""
        ranked = sorted(self.beyond, key=lambda network: -abs(self._beyond(network)))
        best = [network for network in ranked if self._beyond(network)]
        apart = self.question.space.apart(best, alike, together) if best else iter(())
        return [best[index] for index, _ in zip(apart, range(count), strict=False)]

    def _neighbours(self, parents: Sequence[Network], count: int) -> list[Network]:
        random = np.random.default_rng(self.question.seed("neighbours", len(self.beyond)))
        return self.question.space.neighbours(parents[:PARENTS], count, self.beyond, random)

    def _shrink(self) -> None:
        """Make the findings plainer as far as the trials go, and confirm them again."""
        lookout, space = self.lookout, self.question.space
        each = REPETITIONS + 2 * FEWEST_AT_A_TIME * START_REPETITIONS
        count = min(len(self.findings), lookout.left // each)
        first, rest = self.findings[:count], self.findings[count:]
        if first:
            reserve = count * REPETITIONS
            room = (lookout.left - reserve) // (2 * START_REPETITIONS * count)
            shrunk = shrink(space, lookout, first, [0.0] * count, reserve, max(room // 2, FEWEST_AT_A_TIME))
            plainer = confirmed_again(lookout, REPETITIONS, first, shrunk)
            self.findings = kinds(space, [*plainer, *rest])
            self._look_around()
        if self.findings and (rest or lookout.left < each):
            self.remarks.append("shrunk only as far as the trials went; more of them make it plainer")

    def _look_around(self) -> None:
        """Look at boxes around the first findings, where enough trials are left."""
        random = np.random.default_rng(self.question.seed("region"))
        networks = [finding.network for finding in self.findings]
        boxes = region.boxes(self.question.space, self.lookout, networks, random)
        self.findings = [
            dataclasses.replace(finding, box=box) for finding, box in zip(self.findings, boxes, strict=True)
        ]
