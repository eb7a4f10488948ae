"""A selection of arms and workloads says the same as a campaign of these alone."""

import random
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import cast

import pandas as pd
import pytest

from fecbench.results.analysis import frames
from fecbench.results.analysis.pairing import baselines_of
from fecbench.results.analysis.paper_table import summary_table
from fecbench.results.analysis.selection import chosen
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, State, TrialKey, TrialRecord, Variant
from tests.support.campaigns import new_campaign, trial, workload

COMPARED_WITH: dict[str, str | None] = {
    **{"off": None, "fec": None, "more": "fec"},
    **{"others": "its off", "its off": "", "far": "others"},
}
SHARE = "messages.on_time_ratio_50ms"
WORKLOADS = [workload("short"), workload("long"), {**workload("voice", "messages"), "metric": SHARE}]
POINTS, REPETITIONS = 7, 6


def plant(
    path: Path, seed: int, arms: Sequence[str], workloads: Sequence[str]
) -> tuple[pd.DataFrame, CampaignInfo]:
    """A half-run campaign of these arms and workloads, beside another one in the same database."""
    with Database.open(str(path), create=True) as database:
        for name in ("other", "planted"):
            chance = random.Random(f"{name} {seed}")
            campaign = database.create_campaign(
                new_campaign(
                    name,
                    points=[{"owd_ms": 5 + n} for n in range(POINTS)],
                    variants=[variant_of(label) for label in COMPARED_WITH if label in arms],
                    workloads=[work for work in WORKLOADS if work["label"] in workloads],
                    repetitions=REPETITIONS,
                )
            )
            records: tuple[list[TrialRecord], list[TrialRecord]] = ([], [])
            for point, work, repetition, label in product(
                range(POINTS), WORKLOADS, range(REPETITIONS), COMPARED_WITH
            ):
                key = TrialKey(label, work["label"], point, repetition)
                state = chance.choices(["ok", "timeout", "failed", "invalid"], [8, 1, 1, 1])[0]
                share = chance.random()
                measured = {"client": {"dct_s": 1 + share}, "messages": {"on_time_ratio_50ms": share}}
                record = trial(key, cast(State, state), "?", metrics=measured)
                is_run, host = chance.random() < 0.8, chance.random() < 0.1
                if is_run and label in arms and work["label"] in workloads:
                    records[host].append(record)
            for host, of_host in zip(("one", "two"), records, strict=True):
                database.record_all(campaign.id, of_host, database.start(campaign.id, host, {}).id)
        return frames.trials(database, campaign), campaign


def variant_of(label: str) -> Variant:
    own = COMPARED_WITH[label]
    return Variant(label=label, implementation="x", options={}, baseline=label == "off", compared_with=own)


@pytest.mark.parametrize(
    ("arms", "workloads"),
    [(["fec"], []), (["more"], ["long"]), (["far", "fec"], ["short", "voice"]), ([], ["voice"])],
)
def test_a_selection_says_what_a_campaign_of_it_alone_would_say(
    tmp_path: Path, arms: list[str], workloads: list[str]
) -> None:
    labels = [work["label"] for work in WORKLOADS]
    whole = plant(tmp_path / "whole.sqlite", 1, list(COMPARED_WITH), labels)
    baselines = baselines_of(whole[1])
    arms_left = {*arms, *(baselines[arm] for arm in arms)} if arms else set(COMPARED_WITH)
    alone = plant(tmp_path / "alone.sqlite", 1, list(arms_left), workloads or labels)
    some = chosen(*whole, arms, workloads)
    pd.testing.assert_frame_equal(summary_table(*some), summary_table(*alone))
    assert set(baselines_of(some[1]).values()) <= arms_left
