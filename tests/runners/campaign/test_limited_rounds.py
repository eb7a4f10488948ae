"""Rounds until a verdict or the end of the time, on an engine that is not there."""

import dataclasses
import re
from collections.abc import Callable

import pytest

from fecbench import designs
from fecbench.looks import looks_of_builds
from fecbench.results.store.records import CampaignInfo, TrialKey
from fecbench.runners.campaign.limited_rounds import AGAIN, LOT_S, LimitedRounds
from fecbench.runners.campaign.request import Request, request
from fecbench.runners.implementations.finding import Implementations
from fecbench.runners.tasks.task import VIRTUAL
from tests.runners.conftest import MADE_UP, WriteDesign


class Trials:
    """A database of which only the trials that have a state are asked for, and a clock that they move."""

    def __init__(self, took_s: float) -> None:
        self.took_s = took_s
        self.now = 100.0
        self.done: dict[TrialKey, tuple[str, int]] = {}
        self.starts_before = 1

    def starts(self, _: int) -> list[int]:
        return list(range(self.starts_before))

    def states(self, _: int) -> dict[TrialKey, tuple[str, int]]:
        return dict(self.done)

    def run(self, rounds: LimitedRounds, campaign: CampaignInfo) -> list[int]:
        """Return how many trials each round had."""
        sizes = []
        due = rounds.first(None)
        while due:
            assert not self.done.keys() & due.keys()
            self.done |= dict.fromkeys(due, ("ok", 1))
            self.now += self.took_s * len(due)
            sizes.append(len(due))
            due = rounds.next(campaign)
        return sizes


@pytest.fixture
def base(made_up: WriteDesign) -> Request:
    design = designs.rewritten(designs.load(made_up()), repetitions=12)
    return request(design, Implementations([MADE_UP.parent]), backend=VIRTUAL)


Rounds = Callable[..., LimitedRounds]


def rounds_of(base: Request, trials: Trials, decides_at: int, limit_s: float = 1e9) -> LimitedRounds:
    """Return rounds that are decided once each network has so many repetitions."""

    def decides(_: object) -> bool:
        return min(repetitions(trials, base).values()) >= decides_at

    return LimitedRounds(base, trials, limit_s, decides, lambda: trials.now)  # type: ignore[arg-type]


def repetitions(trials: Trials, base: Request) -> dict[tuple[str, int], int]:
    places = {(key.workload, key.point): 0 for key in base.keys}
    for key in trials.done:
        places[key.workload, key.point] += 1
    return {place: count // 2 for place, count in places.items()}


CAMPAIGN = type("Campaign", (), {"id": 1})()


def test_the_looks_are_halves_down_to_six() -> None:
    for expected in ((6, 12, 24, 48), (6, 12, 23), (6, 11), (10,), (1,)):
        assert looks_of_builds(expected[-1]) == expected


def test_all_networks_get_the_same_repetitions_up_to_the_look_that_decides(base: Request) -> None:
    for decides_at, ends_at in ((1, 6), (6, 6), (7, 12), (12, 12), (13, 12)):
        trials = Trials(took_s=0.01)
        rounds = rounds_of(base, trials, decides_at)
        trials.run(rounds, CAMPAIGN)
        assert set(repetitions(trials, base).values()) == {ends_at}
        assert rounds.is_decided == (decides_at <= 12)
        assert not rounds.is_over
        assert "earlier start" not in rounds.why


def test_it_ends_when_its_time_does_at_most_a_lot_later(base: Request) -> None:
    trials = Trials(took_s=3.0)
    rounds = rounds_of(base, trials, decides_at=12, limit_s=60)
    trials.run(rounds, CAMPAIGN)
    assert rounds.is_over
    assert not rounds.is_decided
    assert 160 <= trials.now <= 160 + LOT_S + 4 * 2 * trials.took_s
    assert all(
        (TrialKey(arm, key.workload, key.point, key.repetition) in trials.done)
        for key in trials.done
        for arm in ("good", "other")
    ), "a pair was torn"


def emulated(base: Request) -> Request:
    return dataclasses.replace(base, backend="wire")


def test_a_pair_with_an_invalid_trial_is_run_again_before_another(base: Request) -> None:
    trials = Trials(took_s=1.0)
    rounds = rounds_of(emulated(base), trials, decides_at=12)
    first = rounds.first(None)
    disturbed = list(first)[3]
    trials.done = dict.fromkeys(first, ("ok", 1)) | {disturbed: ("invalid", 4)}
    trials.now += 10
    second = rounds.next(CAMPAIGN)
    assert next(iter(second.items())) == (disturbed, 4)
    assert first.keys() & second.keys() == {disturbed}


def test_what_stays_invalid_is_given_up_and_the_others_decide(base: Request) -> None:
    trials = Trials(took_s=0.1)
    rounds = rounds_of(emulated(base), trials, decides_at=6)
    lots, due = 0, rounds.first(None)
    disturbed = next(iter(due))
    while due:
        lots += disturbed in due
        trials.done |= dict.fromkeys(due, ("ok", 1)) | ({disturbed: ("invalid", 4)} if lots else {})
        trials.now += 0.1 * len(due)
        due = rounds.next(CAMPAIGN)
    assert lots == 1 + AGAIN
    assert rounds.is_decided


def test_in_virtual_time_what_is_invalid_stays_so(base: Request) -> None:
    trials = Trials(took_s=0.1)
    rounds = rounds_of(base, trials, decides_at=6)
    trials.done = dict.fromkeys(rounds.first(None), ("invalid", 1))
    assert not trials.done.keys() & rounds.next(CAMPAIGN).keys()


def test_the_looks_may_err_in_shares_that_come_to_no_more_than_all(base: Request) -> None:
    for limit_s in (5.0, 30.0, 60.0, 1e9):
        trials = Trials(took_s=1.0)
        made = 0

        def decides(_: object) -> bool:
            nonlocal made
            made += 1
            return False

        rounds = LimitedRounds(base, trials, limit_s, decides, lambda: trials.now)  # type: ignore[arg-type] # noqa: B023
        trials.run(rounds, CAMPAIGN)
        planned = 1 / len(looks_of_builds(base.design.repetitions))
        last = rounds.share if rounds.is_over else 0.0
        assert made * planned + last == pytest.approx(1)


@pytest.mark.parametrize(
    ("starts", "words"),
    [
        (1, "; 1 earlier start has trials here: if it gave an answer, too, .* err in up to 10 % of cases"),
        (2, "; 2 earlier starts have trials here: if each gave an answer, too, .* in up to 15 % of cases"),
    ],
)
def test_whoever_goes_on_has_no_more_than_a_planned_look(base: Request, starts: int, words: str) -> None:
    """The starts before have looked when their time was over, and each may have erred in 5 % of cases."""
    trials = Trials(took_s=1.0)
    trials.starts_before = starts
    trials.done = dict.fromkeys(base.keys[:8], ("ok", 1))
    rounds = rounds_of(base, trials, decides_at=13, limit_s=5.0)
    due = rounds.first(CAMPAIGN)
    while due:
        trials.done |= dict.fromkeys(due, ("ok", 1))
        trials.now += len(due)
        due = rounds.next(CAMPAIGN)
    assert rounds.is_over
    assert rounds.share == 1 / len(looks_of_builds(base.design.repetitions))
    assert re.search(words, rounds.why)


def test_what_is_there_is_not_run_again(base: Request) -> None:
    trials = Trials(took_s=0.01)
    trials.done = dict.fromkeys(base.keys, ("ok", 1))
    rounds = rounds_of(base, trials, decides_at=12)
    assert rounds.first(CAMPAIGN) == {}
    assert rounds.is_decided
    assert "earlier start" not in rounds.why


def test_lots_grow_to_what_takes_some_seconds(base: Request) -> None:
    trials = Trials(took_s=1.0)
    sizes = trials.run(rounds_of(base, trials, decides_at=12), CAMPAIGN)
    assert max(sizes) * trials.took_s <= LOT_S
