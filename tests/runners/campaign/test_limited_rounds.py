"""Rounds until a verdict or the end of the time, on an engine that is not there."""

from collections.abc import Callable

import pytest

from fecbench import designs
from fecbench.results.store.records import CampaignInfo, TrialKey
from fecbench.runners.campaign.limited_rounds import LOT_S, LimitedRounds, looks
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

    def states(self, _: int) -> dict[TrialKey, tuple[str, int]]:
        return dict(self.done)

    def run(self, rounds: LimitedRounds, campaign: CampaignInfo) -> list[int]:
        """How many trials each round had."""
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
def wanted(made_up: WriteDesign) -> Request:
    design = designs.rewritten(designs.load(made_up()), repetitions=12)
    return request(design, Implementations([MADE_UP.parent]), backend=VIRTUAL)


Rounds = Callable[..., LimitedRounds]


def rounds_of(wanted: Request, trials: Trials, decides_at: int, limit_s: float = 1e9) -> LimitedRounds:
    """It is decided once each network has so many repetitions."""

    def decides(_: object) -> bool:
        return min(repetitions(trials, wanted).values()) >= decides_at

    return LimitedRounds(wanted, trials, limit_s, decides, lambda: trials.now)  # type: ignore[arg-type]


def repetitions(trials: Trials, wanted: Request) -> dict[tuple[str, int], int]:
    places = {(key.workload, key.point): 0 for key in wanted.keys}
    for key in trials.done:
        places[key.workload, key.point] += 1
    return {place: count // 2 for place, count in places.items()}


CAMPAIGN = type("Campaign", (), {"id": 1})()


@pytest.mark.parametrize(
    ("most", "expected"), [(48, (6, 12, 24, 48)), (23, (6, 12, 23)), (11, (6, 11)), (10, (10,)), (1, (1,))]
)
def test_the_looks_are_halves_down_to_six(made_up: WriteDesign, most: int, expected: tuple[int, ...]) -> None:
    assert looks(designs.rewritten(designs.load(made_up()), repetitions=most)) == expected


@pytest.mark.parametrize(("decides_at", "ends_at"), [(1, 6), (6, 6), (7, 12), (12, 12), (13, 12)])
def test_all_networks_get_the_same_repetitions_up_to_the_look_that_decides(
    wanted: Request, decides_at: int, ends_at: int
) -> None:
    trials = Trials(took_s=0.01)
    rounds = rounds_of(wanted, trials, decides_at)
    trials.run(rounds, CAMPAIGN)
    assert set(repetitions(trials, wanted).values()) == {ends_at}
    assert rounds.is_decided == (decides_at <= 12)
    assert not rounds.is_over


def test_it_ends_when_its_time_does_at_most_a_lot_later(wanted: Request) -> None:
    trials = Trials(took_s=3.0)
    rounds = rounds_of(wanted, trials, decides_at=12, limit_s=60)
    trials.run(rounds, CAMPAIGN)
    assert rounds.is_over
    assert not rounds.is_decided
    assert 160 <= trials.now <= 160 + LOT_S + 4 * 2 * trials.took_s
    assert all(
        (TrialKey(arm, key.workload, key.point, key.repetition) in trials.done)
        for key in trials.done
        for arm in ("good", "other")
    ), "a pair was torn"


def test_what_is_there_is_not_run_again(wanted: Request) -> None:
    trials = Trials(took_s=0.01)
    trials.done = dict.fromkeys(wanted.keys, ("ok", 1))
    rounds = rounds_of(wanted, trials, decides_at=12)
    assert rounds.first(CAMPAIGN) == {}
    assert rounds.is_decided


def test_lots_grow_to_what_takes_some_seconds(wanted: Request) -> None:
    trials = Trials(took_s=1.0)
    sizes = trials.run(rounds_of(wanted, trials, decides_at=12), CAMPAIGN)
    assert max(sizes) * trials.took_s <= LOT_S
