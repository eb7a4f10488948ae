"""Claims on groups: one start holds each, whoever asks at once, and lets go of it alive or dead."""

import threading
from collections.abc import Callable

import pytest

from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, Group, NewStart, Start
from tests.support.campaigns import new_campaign
from tests.support.together import run_together

GROUPS = [Group("download-10000", point, repetition) for point in range(2) for repetition in range(10)]


@pytest.fixture
def starts(database: Database, campaign: CampaignInfo) -> list[Start]:
    return [database.start(campaign.id, host, {}, {"process": n}) for n, host in enumerate(("ada", "bob"))]


def test_a_group_is_held_by_who_claimed_it_first_until_it_is_given_up(
    database: Database, campaign: CampaignInfo, starts: list[Start]
) -> None:
    ada, bob = starts
    for asking in (ada, bob, ada):
        assert database.claim(campaign.id, asking.id, GROUPS[0]) == ada.id
    database.give_up(campaign.id, bob.id, GROUPS[:1])  # it is not bob's
    assert database.claim(campaign.id, bob.id, GROUPS[0]) == ada.id
    database.give_up(campaign.id, ada.id, GROUPS[:1])
    assert database.claim(campaign.id, bob.id, GROUPS[0]) == bob.id


def test_many_groups_are_claimed_and_given_up_together(
    database: Database, campaign: CampaignInfo, starts: list[Start]
) -> None:
    ada, bob = starts
    database.claim(campaign.id, bob.id, GROUPS[3])
    owners = database.claim_all(campaign.id, ada.id, GROUPS[:5])
    assert owners == {group: bob.id if group == GROUPS[3] else ada.id for group in GROUPS[:5]}
    database.give_up(campaign.id, ada.id, GROUPS[:4])
    held = {group: claimant.start_id for group, claimant in database.claims(campaign.id).items()}
    assert held == {GROUPS[3]: bob.id, GROUPS[4]: ada.id}


def test_claims_of_one_campaign_are_not_those_of_another(
    database: Database, campaign: CampaignInfo, starts: list[Start], new_campaign: Callable[..., CampaignInfo]
) -> None:
    other = new_campaign(database, "other")
    elsewhere = database.start(other.id, "eve", {})
    database.claim(campaign.id, starts[0].id, GROUPS[0])
    assert database.claim(other.id, elsewhere.id, GROUPS[0]) == elsewhere.id
    assert {group: claimant.start_id for group, claimant in database.claims(other.id).items()} == {
        GROUPS[0]: elsewhere.id
    }


def test_those_that_wait_see_who_holds_a_group_and_whether_it_goes_on(
    database: Database, campaign: CampaignInfo, starts: list[Start]
) -> None:
    ada, _ = starts
    database.claim(campaign.id, ada.id, GROUPS[0])
    before = database.claims(campaign.id)[GROUPS[0]]
    assert (before.start_id, before.host, before.holder) == (ada.id, "ada", {"process": 0})
    for beats in (1, 2):
        database.beat(ada.id)
        assert database.claims(campaign.id)[GROUPS[0]].beat == before.beat + beats


def test_all_claims_of_a_start_are_given_up_but_not_when_it_has_gone_on(
    database: Database, campaign: CampaignInfo, starts: list[Start]
) -> None:
    ada, bob = starts
    for group in GROUPS[:3]:
        database.claim(campaign.id, ada.id, group)
    database.claim(campaign.id, bob.id, GROUPS[3])
    seen = database.claims(campaign.id)[GROUPS[0]].beat
    database.beat(ada.id)
    database.give_up_all(ada.id, seen)
    assert len(database.claims(campaign.id)) == 4
    database.give_up_all(ada.id, seen + 1)
    assert list(database.claims(campaign.id)) == [GROUPS[3]]
    database.give_up_all(bob.id)
    assert database.claims(campaign.id) == {}


def test_of_many_that_claim_all_groups_at_once_each_group_has_one(
    database: Database, campaign: CampaignInfo
) -> None:
    barrier = threading.Barrier(6)
    held: dict[int, list[Group]] = {}

    def claim_all() -> None:
        with Database.open(database.address) as own:
            start = own.start(campaign.id, "ada", {})
            barrier.wait()
            held[start.id] = [g for g in GROUPS if own.claim(campaign.id, start.id, g) == start.id]

    run_together([claim_all] * 6)
    assert sorted(group for groups in held.values() for group in groups) == GROUPS
    owners = {group: claimant.start_id for group, claimant in database.claims(campaign.id).items()}
    assert owners == {group: start for start, groups in held.items() for group in groups}


def test_a_group_that_is_claimed_and_given_up_all_the_time_is_held_by_one_at_a_time(
    database: Database, campaign: CampaignInfo
) -> None:
    holders: list[int] = []
    most: list[int] = []

    def take_turns() -> None:
        with Database.open(database.address) as own:
            start = own.start(campaign.id, "ada", {})
            for _ in range(20):
                if own.claim(campaign.id, start.id, GROUPS[0]) == start.id:
                    holders.append(start.id)
                    most.append(len(holders))
                    holders.remove(start.id)
                    own.give_up(campaign.id, start.id, GROUPS[:1])

    run_together([take_turns] * 4)
    assert set(most) == {1}


def test_of_those_that_begin_one_campaign_at_once_one_stores_it_with_its_start(database: Database) -> None:
    barrier = threading.Barrier(6)
    begun: list[Start | None] = []
    new = new_campaign("one", kind="against-itself")

    def begin() -> None:
        with Database.open(database.address) as own:
            barrier.wait()
            begun.append(own.begin(new, NewStart(host="ada", provenance={"cores": 1}, holder={"process": 1})))

    run_together([begin] * 6)
    (start,) = (start for start in begun if start is not None)
    (campaign,) = database.campaigns()
    assert (campaign.name, campaign.kind) == ("one", "against-itself")
    assert database.starts(campaign.id) == [start]
    assert start.holder == {"process": 1}
