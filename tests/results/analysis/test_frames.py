"""Frames hold what was recorded."""

import math
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings

from fecbench.results.analysis import frames, losses
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, TrialKey, TrialRecord
from tests.results.analysis.outcomes import KEYS, Outcomes, frame_with, outcomes
from tests.results.conftest import either

Filled = Callable[..., tuple[Database, CampaignInfo]]
Make = Callable[..., TrialRecord]


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(outcomes=outcomes)
def test_a_frame_holds_each_trial_once_in_the_order_of_the_design(filled: Filled, outcomes: Outcomes) -> None:
    database, campaign = filled(outcomes)
    frame = frames.trials(database, campaign)
    if outcomes:
        expected = frame_with(outcomes)
        pd.testing.assert_frame_equal(frame[expected.columns], expected)
    rows = list(zip(frame["variant"], frame["workload"], frame["point"], frame["repetition"], strict=True))
    assert rows == [(k.variant, k.workload, k.point, k.repetition) for k in KEYS if k in outcomes]
    for row, (_, values) in zip(rows, frame.iterrows(), strict=True):
        assert (values["state"], values["client.dct_s"]) == outcomes[TrialKey(*row)]
        assert values["owd_ms"] == campaign.points[row[2]]["owd_ms"]
        assert values["size_bytes"] == int(row[1].removeprefix("download-"))
        assert values["server.packets_sent"] == 7


def test_metrics_are_the_same_however_they_are_paged_and_whatever_runs_lie_between(
    database: Database, make: Make, new_campaign: Callable[..., CampaignInfo], monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign, other = new_campaign(database, "one"), new_campaign(database, "other")
    for n, key in enumerate(KEYS):
        database.record(other.id, make(key=key, metrics={"client": {"dct_s": -1.0, "odd": 1.0}}))
        database.record(campaign.id, make(key=key, state="invalid", metrics={"client": {"dct_s": -2.0}}))
        database.record(campaign.id, make(key=key, metrics={"client": {"dct_s": 1.0 + n}}))
    whole = frames.trials(database, campaign)
    assert whole["client.dct_s"].tolist() == [1.0 + n for n in range(len(KEYS))]
    assert "client.odd" not in whole
    monkeypatch.setattr(frames, "_PAGE_TRIALS", 5)
    pd.testing.assert_frame_equal(frames.trials(database, campaign), whole)


def test_the_same_file_is_read_when_the_folder_has_changed(
    filled: Filled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, campaign = filled(dict.fromkeys(KEYS, ("ok", 1.0)))
    monkeypatch.chdir(tmp_path)
    with Database.open("campaigns.sqlite") as relative:
        monkeypatch.chdir("/")
        pd.testing.assert_frame_equal(frames.trials(relative, campaign), frames.trials(database, campaign))


@either
def test_each_trial_has_its_own_metrics_whatever_their_names_and_to_the_last_bit(
    database: Database, campaign: CampaignInfo, make: Make
) -> None:
    names = ["a,b", 'a"b', "a\nb", "a\\b", "a.b", "ä", *(f"m{i:03}" for i in range(100))]
    numbers = [5e-324, 0.0, 0.1 + 0.2, 1 / 3, sys.float_info.max, -sys.float_info.epsilon, 2.0**53 - 1]
    for n, key in enumerate(KEYS):
        values = {name: numbers[(n + i) % len(numbers)] for i, name in enumerate(names) if (n + i) % 5}
        database.record(campaign.id, make(key=key, metrics={"client": values, "server": {"a.b": n}}))
    frame = frames.trials(database, campaign)
    for n in range(len(KEYS)):
        for i, name in enumerate(names):
            expected = numbers[(n + i) % len(numbers)] if (n + i) % 5 else math.nan
            assert frame[f"client.{name}"][n].hex() == expected.hex()
        assert frame["server.a.b"][n] == n


def test_the_tables_of_content_are_read_for_what_is_counted_in_them_alone(
    filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []
    monkeypatch.setattr(losses, "contents", lambda *_: read.append(1) or {})
    database, campaign = filled({KEYS[0]: ("ok", 1.0)})
    frames.trials(database, campaign, ["client.dct_s", "internet.down.packets"])
    assert read == []
    frames.trials(database, campaign, ["client.dct_s", "content.losses"])
    assert read == [1]
