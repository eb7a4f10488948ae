"""Starts that share a campaign walk groups of their own, and end together."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from fecbench.results.store.database import Database
from fecbench.results.store.records import Group
from fecbench.runners.campaign import campaign, share
from fecbench.runners.campaign.claims import Claims
from fecbench.runners.campaign.request import Request
from fecbench.runners.campaign.share import LOT_GROUPS, Share
from fecbench.runners.campaign.walk import STRAYED, Walk
from tests.runners.campaign.conftest import Pretence, Told

GROUPS = [Group("download", point, repetition) for point in range(500) for repetition in range(10)]


def test_one_alone_takes_all_groups_in_order() -> None:
    walk, taken = Walk(GROUPS, 1), []
    while lot := walk.next(64):
        taken += lot
        assert not walk.has_strayed(len(lot), len(lot))
    assert taken == GROUPS


@pytest.mark.parametrize("walkers", [2, 8, 50])
def test_each_group_is_tried_by_few_of_many(walkers: int) -> None:
    """Walkers that never went on elsewhere would each try all groups."""
    free, tried, chance = set(GROUPS), 0, random.Random(5)
    walks = [Walk(GROUPS, seed) for seed in range(walkers)]
    while any(walks):
        walk = chance.choice([walk for walk in walks if walk])
        lot = walk.next(8)
        tried += len(lot)
        if walk.has_strayed(len(free.intersection(lot)), len(lot)):
            walk.leave_out([group for group in walk if group not in free])
        free.difference_update(lot)
    assert not free
    assert tried < 3 * len(GROUPS)


def test_after_several_lots_that_were_taken_a_look_at_the_database_is_due() -> None:
    walk = Walk(GROUPS, 1)
    assert [walk.has_strayed(0, 64) for _ in range(2 * STRAYED)] == 2 * ([False] * (STRAYED - 1) + [True])
    assert not walk.has_strayed(64, 64)
    assert not walk.has_strayed(0, 64)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database.open(str(tmp_path / "x.sqlite"), create=True) as opened:
        yield opened


def test_fewer_groups_are_claimed_together_when_few_are_left_for_several(
    little: Request, database: Database
) -> None:
    stored = campaign.begun(little, database)
    own, other = (database.start(stored.id, name, {}, {}) for name in ("ada", "bob"))
    shared = Share(little, Pretence(deterministic=True), database, own, Told())
    with Claims(database, own) as claims:
        assert shared._lot_size(claims, 10) == LOT_GROUPS
        database.claim(stored.id, other.id, little.keys[0].group)
        sizes = [shared._lot_size(claims, left) for left in (100_000, 1000, 400, 100, 8, 1)]
    assert sizes == [64, 64, 50, 13, 1, 1]
    assert 2 * share.LOTS_EACH * sizes[2] == 400
