"""Synthetic campaigns read as those that were run, and have the ties that virtual time gives."""

import re

import pandas as pd
import pytest

from bench.synthetic import SIZES, VARIANTS, fill
from fecbench import results
from fecbench.results.analysis import equality, frames
from fecbench.results.analysis.intervals import EFFECTS, FEWEST, of_campaign
from fecbench.results.analysis.pairing import Pairing, comparisons
from fecbench.results.analysis.rules import explain
from fecbench.results.report.evidence import parts_of
from fecbench.results.report.finding_sentences import findings, headline
from fecbench.results.store.database import Database

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
    sure = of_campaign(pairing, campaign)
    assert not (sure["ratio"].eq(1) & sure["verdict"].isin(EFFECTS)).any()
    # Where each pair ties there is no spread: so sure is nothing else. Where some differ, more may be true.
    unspread = sure[_every_pair_ties(pairing, sure) & (sure["pairs"] >= FEWEST)]
    assert len(unspread) > POINTS / 2
    assert (unspread["verdict"] == "equivalent").all()
    assert (unspread[["low", "high"]] == 1).all(axis=None)
    explanation = explain(pairing, campaign)
    assert [str(rule) for rule in explanation.rules if rule.ratio == rule.low == rule.high == 1]
    table = findings(frame, campaign, pd.concat([part.ratios for part in parts_of(frame, campaign)]))
    sentence = next(line for line in headline(frame, campaign, table) if line.startswith("RLC"))
    smallest = sentence[sentence.index("1 kB: ") : sentence.index("10 kB: ")]
    match = re.search(
        rf"helps in (\d+) of {POINTS} networks .*, harms in (\d+), no difference in (\d+)", smallest
    )
    assert match
    helps, harms, equivalent = map(int, match.groups())
    assert (helps, harms) == (0, 0)
    assert len(unspread.query("workload == 'download-1000'")) <= equivalent <= POINTS


def _every_pair_ties(pairing: Pairing, ratios: pd.DataFrame) -> pd.Series:
    """Return for each of these ratios whether both arms took the same time in every repetition."""
    place = ["workload", "point"]
    ties = pairing.matched.groupby(place, observed=True)["ratio"].agg(lambda pairs: (pairs == 1).all())
    return ties.loc[pd.MultiIndex.from_frame(ratios[place])].set_axis(ratios.index)


def test_two_campaigns_that_are_the_same_to_the_bit_do_not_differ(path: str) -> None:
    with Database.open(path) as database:
        match = equality.between(database, *database.campaigns())
    assert (match.median, match.interval, match.p_value, match.differ) == (1, (1, 1), 1, False)
    assert match.pairs > 0.9 * TRIALS


def test_phases_are_read_of_all_trials(path: str) -> None:
    with Database.open(path) as database:
        campaign = database.campaigns()[0]
        phases = frames.overheads(database, campaign)
        counted = database.states_of(campaign.id)
        stored = database.trial(campaign.id, 5)
    assert stored is not None
    assert len(phases) == sum(counted.values()) == TRIALS
    assert phases.iloc[4].to_dict() == stored.record.overhead_s
