"""Synthetic campaigns read as those that were run, and have the ties that virtual time gives."""

from __future__ import annotations

import pandas as pd
import pytest

import results
from bench.synthetic import SIZES, VARIANTS, fill
from results.analysis import equality, frames
from results.analysis.intervals import ratio_intervals
from results.analysis.pairing import comparisons
from results.analysis.rules import explain
from results.report.drawings import parts_of
from results.report.findings import findings, headline
from results.store.database import Database

POINTS, REPETITIONS = 60, 6
TRIALS = POINTS * REPETITIONS * len(VARIANTS) * len(SIZES)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("synthetic") / "two.sqlite")
    for name, seed in (("one", 1), ("same", 1)):
        fill(path, name, POINTS, REPETITIONS, seed)
    return path


def test_all_trials_are_read_with_what_the_harness_measured(path: str) -> None:
    with results.open(path) as database:
        read = database["same"].trials()
    assert len(read) == TRIALS
    assert {"client.dct_s", "internet.down.first_lost", "seed.internet.up", "owd_ms"} <= set(read.columns)
    lost = read["internet.down.lost"] > 0
    assert (read.loc[lost, "internet.down.first_lost"] == 0).all()
    assert set(read["state"]) >= {"ok", "timeout"}


def test_what_loses_nothing_ties(path: str) -> None:
    with Database.open(path) as database:
        campaign = database.campaigns()[0]
        frame = frames.trials(database, campaign, ["client.dct_s"])
    pairing = comparisons(frame, campaign)["RLC (3, 2)"]
    small = pairing.ratios[pairing.ratios["workload"] == "download-1000"]
    assert (small["ratio"] == 1).mean() > 0.9
    decided = pairing.decided[pairing.decided["workload"] == "download-1000"]
    assert decided["equal"].sum() == (small["ratio"] == 1).sum()
    assert not (decided["equal"] & decided["faster"]).any()


def test_readers_bear_ties(path: str) -> None:
    with Database.open(path) as database:
        campaign = database.campaigns()[0]
        frame = frames.trials(database, campaign, ["client.dct_s"])
    pairing = comparisons(frame, campaign)["RLC (3, 2)"]
    sure = ratio_intervals(pairing)
    tied = sure[sure["ratio"] == 1]
    assert (tied["verdict"] == "undecided").all()
    explanation = explain(pairing, campaign)
    assert [str(rule) for rule in explanation.rules if rule.ratio == rule.low == rule.high == 1]
    table = findings(frame, campaign, pd.concat([part.ratios for part in parts_of(frame, campaign)]))
    sentence = next(each for each in headline(frame, campaign, table) if each.startswith("RLC"))
    equal = int(pairing.decided.query("workload == 'download-1000'")["equal"].sum())
    assert f"of {POINTS} points, equal at {equal}, for 1 kB" in sentence


def test_two_campaigns_that_are_the_same_to_the_bit_do_not_differ(path: str) -> None:
    with Database.open(path) as database:
        found = equality.between(database, *database.campaigns())
    assert (found.median, found.interval, found.p_value, found.differ) == (1, (1, 1), 1, False)
    assert found.pairs > 0.9 * TRIALS


def test_phases_are_read_of_all_trials(path: str) -> None:
    with Database.open(path) as database:
        campaign = database.campaigns()[0]
        phases = frames.overheads(database, campaign)
        counted = database.states_of(campaign.id)
        stored = database.trial(campaign.id, 5)
    assert stored is not None
    assert len(phases) == sum(counted.values()) == TRIALS
    assert phases.iloc[4].to_dict() == stored.record.overhead_s
