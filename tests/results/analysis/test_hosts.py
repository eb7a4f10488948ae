"""Hosts differ when their trials do by more than it is chance which of them ran a group."""

from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from results.analysis import hosts
from results.analysis.hosts import LEAST_GROUPS, compare
from results.report.report import report
from results.store.database import Database
from results.store.records import CampaignInfo, Group, TrialKey
from tests.results.conftest import make_record

CELLS = 5


def groups(
    random: np.random.Generator, slower: float = 1.0, each: int = 20, names: tuple[str, ...] = ("ada", "bob")
) -> pd.DataFrame:
    """Groups of points that differ much, run by hosts by chance; the last host is slower."""
    rows = []
    for point in range(CELLS):
        base = random.normal(0, 2)
        for repetition in range(each):
            host = str(random.choice(names))
            log = base + random.normal(0, 0.1) + (np.log(slower) if host == names[-1] else 0)
            rows.append(("download", point, repetition, host, log))
    return pd.DataFrame(rows, columns=["workload", "point", "repetition", "host", "log"])


def test_a_host_that_is_a_tenth_slower_is_found() -> None:
    (found,) = compare(groups(np.random.default_rng(1), 1.1))
    assert found.differ
    assert found.interval[0] < 1.1 < found.interval[1]
    assert (found.first, found.second) == ("ada", "bob")
    assert "they differ by more than the noise" in hosts.sentence(found)


@pytest.mark.parametrize("names", [("ada", "bob"), ("ada", "bob", "cyd", "dot")])
def test_equal_hosts_are_seldom_told_apart(names: tuple[str, ...]) -> None:
    random, campaigns = np.random.default_rng(2), 60
    wrong = sum(any(found.differ for found in compare(groups(random, names=names))) for _ in range(campaigns))
    # At level 0.05: of 60, beyond 10 in less than one of a thousand.
    assert wrong <= 10


def test_the_ratio_of_two_hosts_is_the_inverse_the_other_way_around() -> None:
    frame = groups(np.random.default_rng(3), 1.05)
    (one,) = compare(frame)
    (other,) = compare(frame.assign(host=frame["host"].map({"ada": "bob", "bob": "ada"})))
    assert one.ratio == pytest.approx(1 / other.ratio)
    assert one.p_value == pytest.approx(other.p_value)


def test_hosts_that_share_too_few_groups_are_not_compared() -> None:
    frame = groups(np.random.default_rng(4), each=100)
    assert compare(frame[frame["host"] == "ada"]) == []
    alone = frame.assign(host=np.where(frame["point"] < 2, "ada", "bob"))
    assert compare(alone) == []  # no point that both have run
    few = frame[frame["point"] == 0].head(2 * LEAST_GROUPS - 2)
    assert compare(few) == []


def test_hosts_that_are_equal_to_the_bit_do_not_differ() -> None:
    frame = groups(np.random.default_rng(5)).assign(log=0.0)
    (found,) = compare(frame)
    assert (found.ratio, found.p_value, found.differ) == (1.0, 1.0, False)


@pytest.fixture
def two_hosts(
    sqlite: str, new_campaign: Callable[..., CampaignInfo]
) -> Iterator[tuple[Database, CampaignInfo]]:
    """Both have run 40 groups of two variants, bob at half the speed; one run of bob was invalid first."""
    with Database.open(sqlite, create=True) as database:
        campaign = new_campaign(database)
        starts = [database.start(campaign.id, name, {}) for name in ("ada", "bob")]
        random = np.random.default_rng(6)
        for repetition in range(80):
            start = starts[repetition % 2]
            for variant in ("rquic-off", "rquic-xor"):
                key = TrialKey(variant, "download-10000", 0, repetition)
                record = {
                    "key": key,
                    "started_at": f"2026-01-02T03:{repetition // 2:02}:00.000+00:00",
                    "metrics": {"client": {"dct_s": float(random.lognormal(0, 0.1)) * (1 + repetition % 2)}},
                }
                if key == TrialKey("rquic-off", "download-10000", 0, 1):
                    database.record(campaign.id, make_record(state="invalid", **record), start.id)
                database.record(campaign.id, make_record(**record), start.id)
        database.claim(campaign.id, starts[0].id, Group("download-10000", 0, 90))
        yield database, campaign


def test_what_each_host_has_done_is_told(two_hosts: tuple[Database, CampaignInfo]) -> None:
    ada, bob = hosts.hosts_of(*two_hosts)
    assert (ada.host, ada.starts, ada.done, ada.invalid, ada.holds) == ("ada", 1, 80, 0, 1)
    assert (bob.host, bob.done, bob.invalid, bob.holds) == ("bob", 80, 1, 0)
    # 80 runs, two each minute, from 03:00 to 03:39.
    assert ada.per_minute == pytest.approx(79 / 39)
    assert ada.last_seen == "2026-01-02T03:39:00.000+00:00"


def test_a_campaign_and_its_report_warn_of_hosts_that_differ(
    two_hosts: tuple[Database, CampaignInfo], tmp_path: Path
) -> None:
    (found,) = hosts.differences(*two_hosts)
    assert found.interval[0] < 2 < found.interval[1]
    assert found.groups == (40, 40)
    (warning,) = hosts.warnings(*two_hosts)
    assert warning.startswith("Hosts differ: bob against ada: ratio ")
    assert warning in unescape(report(*two_hosts, tmp_path).html.read_text())
