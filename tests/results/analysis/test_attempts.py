"""Second tries are counted by variant and state, and can be left out with the whole group."""

import math
from collections.abc import Callable
from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fecbench.results.analysis import frames
from fecbench.results.analysis.attempts import by_variant, first_attempts, groups, sentences
from fecbench.results.store.database import Database
from fecbench.results.store.records import STATES, CampaignInfo, TrialKey, TrialRecord
from tests.results.analysis.outcomes import KEYS, OFF, XOR, frame_with

Make = Callable[..., TrialRecord]


@pytest.fixture
def retried(database: Database, campaign: CampaignInfo, make: Make) -> CampaignInfo:
    """A campaign of 10 repetitions: XOR was invalid once in two, twice in one, and is still invalid in
    another."""
    tries = {1: 1, 2: 1, 3: 2, 4: 1}
    for variant in (OFF, XOR):
        for n in range(10):
            for _ in range(tries.get(n, 0) if variant == XOR else 0):
                database.record(campaign.id, make(n, variant=variant, state="invalid"))
            if (variant, n) != (XOR, 4):
                database.record(campaign.id, make(n, variant=variant, state="timeout" if n == 9 else "ok"))
    return campaign


def test_attempts_are_counted_by_variant_and_state_with_those_that_were_superseded(
    database: Database, retried: CampaignInfo
) -> None:
    columns = ["variant", "attempts", *STATES, "superseded", "retried_groups"]
    assert by_variant(database, retried)[columns].to_numpy().tolist() == [
        [OFF, 10, 9, 0, 1, 0, 0, 0, 0],
        [XOR, 14, 8, 0, 1, 0, 5, 4, 3],
    ]


@pytest.mark.parametrize("is_retried", [False, True])
def test_attempts_are_counted_the_same_of_trials_that_were_read_before(
    database: Database, campaign: CampaignInfo, make: Make, request: pytest.FixtureRequest, is_retried: bool
) -> None:
    if is_retried:
        request.getfixturevalue("retried")
    else:
        for n, state in enumerate(("ok", "invalid", "timeout", "ok")):
            database.record(campaign.id, make(n, variant=XOR if n else OFF, state=state))
    read = by_variant(database, campaign, frames.trials(database, campaign, []))
    pd.testing.assert_frame_equal(read, by_variant(database, campaign))
    assert read["attempts"].sum() == (24 if is_retried else 4)


def test_shares_of_invalid_attempts_stand_beside_each_other_with_an_exact_test(
    database: Database, retried: CampaignInfo
) -> None:
    table = by_variant(database, retried).set_index("variant")
    assert table["invalid_share"].tolist() == [0, 5 / 14]
    assert (table["low"] <= table["invalid_share"]).all()
    assert (table["invalid_share"] <= table["high"]).all()
    assert math.isnan(table.loc[OFF, "p_value"])
    # Of 24 attempts, 5 are invalid: hypergeometric, and as unlikely on the other side.
    as_extreme = [n for n in range(6) if chance(n) <= chance(5) * (1 + 1e-7)]
    assert table.loc[XOR, "p_value"] == pytest.approx(sum(map(chance, as_extreme)))
    shares, again = sentences(by_variant(database, retried), retried)
    assert shares.startswith(f"Invalid attempts, of all: {OFF} 0 of 10 (0.0 %, 0.0 % to ")
    assert f"; {XOR} 5 of 14 (35.7 %, " in shares
    assert shares.endswith(f" against {OFF}.")
    assert again == f"Trials that were run again: {OFF} 0, {XOR} 3."


def chance(invalid: int) -> float:
    """Return the chance that so many of the 5 invalid ones of 24 attempts are among XOR's 14."""
    return math.comb(14, invalid) * math.comb(10, 5 - invalid) / math.comb(24, 5)


def test_a_campaign_without_second_tries_says_nothing_of_them(
    database: Database, campaign: CampaignInfo, make: Make
) -> None:
    assert sentences(by_variant(database, campaign), campaign) == []
    database.record(campaign.id, make(0, state="timeout"))
    assert sentences(by_variant(database, campaign), campaign) == []


def test_a_group_with_a_second_try_or_an_invalid_trial_is_left_out_whole(
    database: Database, retried: CampaignInfo
) -> None:
    frame = frames.trials(database, retried)
    first = first_attempts(frame)
    assert sorted(first["repetition"]) == sorted([0, 5, 6, 7, 8, 9] * 2)
    assert (groups(frame), groups(first)) == (10, 6)


@settings(max_examples=50, deadline=None)
@given(attempts=st.lists(st.integers(1, 3), min_size=len(KEYS), max_size=len(KEYS)))
def test_first_attempts_hold_each_group_whole_or_not_at_all(attempts: list[int]) -> None:
    frame = frame_with(dict.fromkeys(KEYS, ("ok", 1.0))).assign(attempt=attempts)
    of_key = dict(zip(keys_of(frame), attempts, strict=True))
    expected = {
        key for key in of_key if all(of_key[replace(key, variant=variant)] == 1 for variant in (OFF, XOR))
    }
    assert set(keys_of(first_attempts(frame))) == expected


def keys_of(frame: pd.DataFrame) -> list[TrialKey]:
    columns = frame[["variant", "workload", "point", "repetition"]].astype(object)
    return [TrialKey(*row) for row in columns.itertuples(index=False, name=None)]
