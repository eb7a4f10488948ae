"""The ratios of a path beside those of its emulation: the same, not the same, or not sure."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fecbench.results.analysis import blocks, circle
from fecbench.results.analysis.circle import Closed, Missing
from fecbench.results.store.database import Database
from tests.support.field_campaigns import LABEL, UPLOAD, plant

MANY = 150


def both(path: Path, field: float, emulated: float, spread: float, **more: object) -> list[Closed]:
    """Compare MANY blocks with as many repetitions, of ratios with these logs."""
    generator = np.random.default_rng(7)
    plant(path, "home", generator.normal(field, spread, MANY), **more)  # type: ignore[arg-type]
    plant(path, "home-emulated", generator.normal(emulated, spread, MANY), engine="virtual")
    with Database.open(str(path)) as database:
        campaign = database.campaign("home")
        assert campaign is not None
        (emulation,) = circle.emulations(database, campaign)
        assert list(circle.sentences(database, campaign))
        rows, missing = circle.closed(database, campaign, emulation)
        assert missing == []
        return rows


@pytest.mark.parametrize(
    ("field", "emulated", "spread", "verdict"),
    [(0.1, 0.1, 0.02, "same"), (0.1, 0.2, 0.02, "differs"), (0.1, 0.1, 0.5, "not sure")],
)
def test_a_verdict_is_by_the_interval_against_the_margin(
    tmp_path: Path, field: float, emulated: float, spread: float, verdict: str
) -> None:
    (row,) = both(tmp_path / "db.sqlite", field, emulated, spread)
    assert row.verdict == verdict
    assert row.quotient.value == pytest.approx(np.exp(emulated - field), rel=0.2 * spread)
    assert row.quotient.low < row.quotient.value < row.quotient.high
    assert (row.blocks_needed is not None) == (verdict == "not sure")
    if row.blocks_needed is not None:
        assert row.blocks_needed > MANY


def test_pairs_without_a_ratio_are_counted_and_said(tmp_path: Path) -> None:
    (row,) = both(tmp_path / "db.sqlite", 0.1, 0.1, 0.02, timed_out=(3, 9))
    assert (row.field.left_out, row.field.pairs, row.emulated.left_out) == (2, MANY - 2, 0)
    assert "2 pairs of the path have no ratio" in circle.sentence(row, "home-emulated")


def test_networks_that_run_until_decided_count_by_the_first_look_alone(tmp_path: Path) -> None:
    logs = np.random.default_rng(7).normal(0.1, 0.02, MANY)
    first = 38  # a quarter of MANY, rounded up
    logs[first:] += 0.5
    plant(tmp_path / "db.sqlite", "home", logs)
    plant(tmp_path / "db.sqlite", "home-emulated", logs, engine="virtual")
    with Database.open(str(tmp_path / "db.sqlite")) as database:
        home, emulated = (
            replace(campaign, until_decided=True, points=[{}, {"owd_ms": 5}])
            for campaign in database.campaigns()
        )
        (row,), _ = circle.closed(database, home, emulated)
        (course,) = blocks.courses(database, home)
    for ratio in (row.field, row.emulated):
        assert (ratio.value, ratio.pairs) == (pytest.approx(np.exp(logs[:first].mean())), first)
    assert course.blocks == first


def test_too_few_pairs_are_said_and_other_campaigns_are_no_emulation(tmp_path: Path) -> None:
    path = tmp_path / "db.sqlite"
    plant(path, "home", [0.0] * 5)
    plant(path, "other", [0.0] * 5, engine="virtual")
    with Database.open(str(path)) as database:
        home, other = (database.campaign(name) for name in ("home", "other"))
        assert home is not None and other is not None
        assert list(circle.sentences(database, home)) == [] == list(circle.sentences(database, other))
    plant(path, "home-emulated", [0.0] * 5, engine="virtual")
    with Database.open(str(path)) as database:
        assert "too few pairs to compare" in " ".join(circle.sentences(database, home))


def test_of_what_has_too_few_pairs_beside_what_has_enough_both_are_said(tmp_path: Path) -> None:
    path, logs = tmp_path / "db.sqlite", np.random.default_rng(7).normal(0.1, 0.02, MANY)
    plant(path, "home", logs, of_uploads=9)
    plant(path, "home-emulated", logs, engine="virtual")
    with Database.open(str(path)) as database:
        home, emulated = database.campaign("home"), database.campaign("home-emulated")
        assert home is not None and emulated is not None
        (row,), (missing,) = circle.closed(database, home, emulated)
        text = " ".join(circle.sentences(database, home))
    assert (row.workload, row.verdict) == (LABEL, "same")
    assert missing == Missing("rlc", UPLOAD, 9, 0)
    assert "within the margin" in text
    assert f"{UPLOAD}: too few pairs to compare, 9 of the path and 0 emulated" in text


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_intervals_of_the_quotient_hold_the_truth(correlation: float) -> None:
    """Blocks depend on each other, and repetitions do not."""
    from scipy import signal

    generator, count_held, rounds = np.random.default_rng(11), 0, 60
    for _ in range(rounds):
        noise = generator.normal(size=400)
        blocks = 0.2 * signal.lfilter([1], [1, -correlation], noise)[-60:]
        low, high = circle.quotient_interval(blocks, generator.normal(0, 0.2, 60))
        count_held += low <= 0 <= high
    assert count_held >= 0.88 * rounds, count_held
