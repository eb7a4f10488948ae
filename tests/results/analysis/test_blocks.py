"""A campaign in the field: its ratio by the hour of the day."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fecbench import results
from fecbench.results.analysis import blocks, comparison, dependent, intervals
from fecbench.results.analysis.averages import SENT
from tests.results.pages import page_of, text_of
from tests.support.campaigns import only_campaign
from tests.support.field_campaigns import plant


def test_each_hour_with_enough_blocks_has_a_ratio_of_its_own(tmp_path: Path) -> None:
    generator = np.random.default_rng(3)
    logs = np.concatenate(
        [generator.normal(0.0, 0.05, 60), generator.normal(0.5, 0.05, 60), generator.normal(0, 1, 5)]
    )
    plant(tmp_path / "db.sqlite", "home", logs)
    with only_campaign(tmp_path / "db.sqlite") as (database, campaign):
        strata = blocks.hours(database, campaign)
        (sentence,) = (line for line in blocks.sentences(database, campaign) if "by the hour" in line)
    assert [(one.hour, one.blocks) for one in strata] == [(3, 60), (4, 60)]
    assert [one.mean for one in strata] == pytest.approx([logs[:60].mean(), logs[60:120].mean()])
    assert (
        f"03: {math.exp(logs[:60].mean()):.3f} " in sentence and "04: " in sentence and "05: " not in sentence
    )
    assert sentence.endswith("; 5 blocks in hours with fewer than 20.")


def test_blocks_without_a_ratio_are_told(tmp_path: Path) -> None:
    """The drift and the hours are of blocks where both arms ended, and two of 125 have none."""
    plant(tmp_path / "db.sqlite", "home", np.random.default_rng(3).normal(0, 0.05, 125), timed_out=(2, 70))
    with only_campaign(tmp_path / "db.sqlite") as (database, campaign):
        (course,) = blocks.courses(database, campaign)
        lines = [line for line in blocks.sentences(database, campaign) if line.startswith("rlc, ")]
        assert sum(one.blocks for one in blocks.hours(database, campaign)) == 118
    assert (course.blocks, course.left_out) == (123, 2)
    assert len(lines) == 3 and all(line.endswith(", without 2 blocks that have no ratio.") for line in lines)


def test_a_ratio_is_the_geometric_mean_of_its_blocks_and_within_its_interval(tmp_path: Path) -> None:
    """Blocks that depend on each other make the interval wide; they weigh as much as others."""
    logs = np.where(np.arange(40) < 30, 0.0, 1.0) + np.random.default_rng(1).normal(0, 0.05, 40)
    plant(tmp_path / "db.sqlite", "home", logs)
    with results.open(tmp_path / "db.sqlite") as database:
        (row,) = database["home"].ratios().to_dict("records")
    assert row["ratio"] == pytest.approx(math.exp(logs.mean()))
    assert row["low"] < row["ratio"] < row["high"]


def test_each_look_may_err_in_its_part_in_p_values_as_in_intervals(tmp_path: Path) -> None:
    plant(tmp_path / "db.sqlite", "home", np.random.default_rng(1).normal(0.1, 0.2, 40))
    with results.open(tmp_path / "db.sqlite") as database:
        pairing, campaign = database["home"].paired("off", "rlc"), database["home"].info
    until_decided = replace(campaign, until_decided=True)
    once, often = (intervals.of_campaign(pairing, info).iloc[0] for info in (campaign, until_decided))
    looks = len(until_decided.looks)
    assert looks > 1 and often["p_value"] == pytest.approx(min(1.0, looks * once["p_value"]))
    assert often["low"] < once["low"] and once["p_value"] < 0.5


def test_intervals_of_what_is_saved_and_sent_bear_blocks_that_depend(tmp_path: Path) -> None:
    logs = np.where(np.arange(320) < 200, 0.0, 0.5) + np.random.default_rng(1).normal(0, 0.05, 320)
    plant(tmp_path / "db.sqlite", "home", logs)
    with results.open(tmp_path / "db.sqlite") as database:
        trials, campaign = database["home"].trials(), replace(database["home"].info, statistic="mean")
    sent = trials.groupby("repetition")["client.dct_s"].transform("first") * 1e6
    trials = trials.assign(**{name: sent.where(trials["variant"] == "off", sent * 1.1) for name in SENT})
    trials.loc[trials["variant"] == "rlc", list(SENT)] *= np.exp(logs)[:, np.newaxis]
    (row,) = comparison.of_frame(trials, campaign).to_dict("records")
    arms = trials.pivot(index="repetition", columns="variant", values="client.dct_s")
    saved = dependent.mean_of((arms["off"] - arms["rlc"]).to_numpy()).interval(0.05)
    more = np.expm1(dependent.mean_of(logs + math.log(1.1)).interval(0.05))
    assert (row["saved_low"], row["saved_high"]) == pytest.approx(saved)
    assert (row["more_bytes_low"], row["more_bytes_high"]) == pytest.approx(tuple(more))
    assert math.isnan(row["p95_low"]) and row["p95_ratio"] > 1


def test_the_page_of_a_path_says_what_its_ratios_are(tmp_path: Path) -> None:
    plant(tmp_path / "db.sqlite", "home", np.random.default_rng(1).normal(0.5, 0.05, 30))
    with only_campaign(tmp_path / "db.sqlite") as (database, campaign):
        text = text_of(page_of(database, campaign))
    assert "(geometric mean within blocks)" in text and "same losses" not in text
    assert "Ratio The geometric mean of the ratios of the variant to its baseline within blocks." in text


def test_a_campaign_within_one_hour_has_no_strata(tmp_path: Path) -> None:
    plant(tmp_path / "db.sqlite", "home", np.random.default_rng(4).normal(0, 0.1, 40))
    with only_campaign(tmp_path / "db.sqlite") as (database, campaign):
        assert blocks.hours(database, campaign) == []
        assert "by the hour" not in " ".join(blocks.sentences(database, campaign))
