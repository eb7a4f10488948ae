"""Hosts differ when their trials do by more than it is chance which of them ran a group."""

from collections.abc import Callable, Iterator
from html import unescape

import numpy as np
import pandas as pd
import pytest

from fecbench.results.analysis import equality, frames, hosts
from fecbench.results.analysis.choosing import log_ratios
from fecbench.results.analysis.hosts import LEAST_GROUPS, compare
from fecbench.results.analysis.pairing import OTHER_HOSTS, paired
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, Group, TrialKey, TrialRecord
from tests.results.conftest import make_record
from tests.results.pages import page_of

Filled = Callable[..., tuple[Database, CampaignInfo]]

CELLS = 5


def groups(
    random: np.random.Generator,
    slower: float = 1.0,
    per_host: int = 20,
    names: tuple[str, ...] = ("ada", "bob"),
) -> pd.DataFrame:
    """Groups of points that differ much, run by hosts by chance; the last host is slower."""
    rows = []
    for point in range(CELLS):
        base = random.normal(0, 2)
        for repetition in range(per_host):
            host = str(random.choice(names))
            log = base + random.normal(0, 0.1) + (np.log(slower) if host == names[-1] else 0)
            rows.append(("download", point, repetition, host, log))
    return pd.DataFrame(rows, columns=["workload", "point", "repetition", "host", "log"])


def test_a_host_that_is_a_tenth_slower_is_found() -> None:
    (result,) = compare(groups(np.random.default_rng(1), 1.1))
    assert result.differ
    assert result.interval[0] < 1.1 < result.interval[1]
    assert (result.first, result.second) == ("ada", "bob")
    assert "they differ by more than the noise" in hosts.sentence(result)


def test_equal_hosts_are_seldom_told_apart() -> None:
    for names in (("ada", "bob"), ("ada", "bob", "cyd", "dot")):
        random, campaigns = np.random.default_rng(2), 60
        wrong = sum(
            any(result.differ for result in compare(groups(random, names=names))) for _ in range(campaigns)
        )
        # At level 0.05: of 60, beyond 10 in less than one of a thousand.
        assert wrong <= 10, names


def test_the_ratio_of_two_hosts_is_the_inverse_the_other_way_around() -> None:
    frame = groups(np.random.default_rng(3), 1.05)
    (one,) = compare(frame)
    (other,) = compare(frame.assign(host=frame["host"].map({"ada": "bob", "bob": "ada"})))
    assert one.ratio == pytest.approx(1 / other.ratio)
    assert one.p_value == pytest.approx(other.p_value)


def test_hosts_that_share_too_few_groups_are_not_compared() -> None:
    frame = groups(np.random.default_rng(4), per_host=100)
    assert compare(frame[frame["host"] == "ada"]) == []
    alone = frame.assign(host=np.where(frame["point"] < 2, "ada", "bob"))
    assert compare(alone) == []  # no point that both have run
    few = frame[frame["point"] == 0].head(2 * LEAST_GROUPS - 2)
    assert compare(few) == []


def test_hosts_that_are_equal_to_the_bit_do_not_differ() -> None:
    frame = groups(np.random.default_rng(5)).assign(log=0.0)
    (result,) = compare(frame)
    assert (result.ratio, result.p_value, result.differ) == (1.0, 1.0, False)


def test_hosts_are_compared_by_groups_that_lack_no_variant(
    sqlite: str, new_campaign: Callable[..., CampaignInfo]
) -> None:
    """A group that was not finished has another mean, since its variants do."""
    with Database.open(sqlite, create=True) as database:
        campaign, random = new_campaign(database), np.random.default_rng(7)
        for name in ("ada", "bob"):
            start = database.start(campaign.id, name, {})
            records = [
                make_record(
                    key=TrialKey(variant, "download-10000", 0, 2 * repetition + (name == "bob")),
                    metrics={"client": {"dct_s": slow * float(random.lognormal(0, 0.1))}},
                )
                for repetition in range(40)
                for variant, slow in {"rquic-off": 1, "rquic-xor": 9}.items()
                if variant == "rquic-off" or name == "ada" or repetition < 30
            ]
            database.record_all(campaign.id, records, start.id)
        (result,) = hosts.differences(database, campaign)
    assert result.groups == (40, 30) and not result.differ


@pytest.fixture
def two_hosts(
    sqlite: str, new_campaign: Callable[..., CampaignInfo]
) -> Iterator[tuple[Database, CampaignInfo]]:
    """A campaign whose hosts have run 40 groups of two variants each, bob at half the speed; one run of bob
    was invalid first."""
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
    two_hosts: tuple[Database, CampaignInfo],
) -> None:
    (result,) = hosts.differences(*two_hosts)
    assert result.interval[0] < 2 < result.interval[1]
    assert result.groups == (40, 40)
    remarks = hosts.told_of(*two_hosts)
    (warning,), (note,) = remarks.warnings, remarks.notes
    assert warning.startswith("Hosts differ: bob against ada: ratio ")
    assert note.startswith("Whether ratios depend on the host was tested of each variant")
    page = unescape(page_of(*two_hosts))
    assert warning in page
    assert note in page


@pytest.fixture
def on_hosts(sqlite: str, new_campaign: Callable[..., CampaignInfo]) -> Iterator[Filled]:
    """Make a campaign of one point: each trial ran on the host that `host_of` names, and took as long as
    `dct_s_of` says; both get a variant and a repetition."""
    with Database.open(sqlite, create=True) as database:

        def fill(
            host_of: Callable[[str, int], str],
            dct_s_of: Callable[[str, int], float] = lambda *_: 1.0,
            repetitions: int = 80,
            engine: str = "local",
        ) -> tuple[Database, CampaignInfo]:
            campaign = new_campaign(database, provenance={"engine": engine})
            starts = {name: database.start(campaign.id, name, {}).id for name in ("ada", "bob")}
            records: dict[int, list[TrialRecord]] = {}
            for repetition in range(repetitions):
                for variant in (OFF, XOR):
                    record = make_record(
                        repetition,
                        variant=variant,
                        metrics={"client": {"dct_s": dct_s_of(variant, repetition)}},
                    )
                    records.setdefault(starts[host_of(variant, repetition)], []).append(record)
            for start, of_start in records.items():
                database.record_all(campaign.id, of_start, start)
            return database, campaign

        yield fill


OFF, XOR = "rquic-off", "rquic-xor"
LOST = f"{OFF} and {XOR}: {OTHER_HOSTS}"


def went_on_elsewhere(variant: str, repetition: int) -> str:
    """Ada died after the first variant of repetitions 0 to 4; bob ran what was missing of their groups."""
    return "bob" if variant == XOR and repetition < 5 else "ada"


def twice_as_slow_on_bob(variant: str, repetition: int) -> float:
    return 2.0 if went_on_elsewhere(variant, repetition) == "bob" else 1.0


def test_no_ratio_compares_two_hosts_and_what_is_left_out_is_counted(on_hosts: Filled) -> None:
    """Otherwise FEC would seem to take twice as long in five of twelve repetitions."""
    database, campaign = on_hosts(went_on_elsewhere, twice_as_slow_on_bob, repetitions=12)
    frame = frames.trials(database, campaign, ["client.dct_s"])
    pairing = paired(frame, OFF, XOR)
    assert pairing.unpaired.values.tolist() == [["download-10000", LOST, 5]]
    assert pairing.matched["ratio"].tolist() == [1.0] * 7
    assert log_ratios(frame, OFF, [XOR], "client.dct_s")[XOR].tolist() == [0.0] * 7
    warning, *_ = hosts.told_of(database, campaign).warnings
    assert warning == (
        f"5 pairs of {XOR} and {OFF} ran on different hosts, since a host ended or another went on: no ratio"
        " has them."
    )
    page = unescape(page_of(database, campaign))
    assert LOST in page
    assert warning in page


def test_pairs_of_two_hosts_are_no_pairs_of_an_a_a_comparison(on_hosts: Filled) -> None:
    result = equality.of_itself(*on_hosts(went_on_elsewhere, twice_as_slow_on_bob, repetitions=12))
    assert (result.pairs, result.median) == (7, 1.0)


def test_in_virtual_time_it_does_not_matter_which_host_ran_a_trial(on_hosts: Filled) -> None:
    database, campaign = on_hosts(went_on_elsewhere, repetitions=12, engine="virtual")
    for metrics in (["client.dct_s"], ["client.dct_s", "host"], None):
        pairing = paired(frames.trials(database, campaign, metrics), OFF, XOR)
        assert (len(pairing.matched), len(pairing.unpaired)) == (12, 0)
    assert hosts.told_of(database, campaign) == hosts.Told([], [])


def test_a_group_whose_host_nobody_knows_is_compared(on_hosts: Filled) -> None:
    frame = frames.trials(*on_hosts(went_on_elsewhere, repetitions=12))
    frame.loc[frame["variant"] == OFF, "host"] = None
    assert len(paired(frame, OFF, XOR).matched) == 12


def by_turns(_: str, repetition: int) -> str:
    return ("ada", "bob")[repetition % 2]


def test_a_host_that_slows_fec_alone_is_found(on_hosts: Filled) -> None:
    """Bob takes twice as long for everything, and a tenth more for FEC."""
    random = np.random.default_rng(11)

    def dct_s(variant: str, repetition: int) -> float:
        slower = (1 + repetition % 2) * (1.1 if variant == XOR and repetition % 2 else 1)
        return float(random.lognormal(0, 0.05)) * slower

    database, campaign = on_hosts(by_turns, dct_s)
    (result,) = hosts.arm_differences(frames.trials(database, campaign), campaign)
    assert (result.variant, result.baseline, result.by.first, result.by.second) == (XOR, OFF, "ada", "bob")
    assert result.differ
    assert result.by.interval[0] < 1.1 < result.by.interval[1]
    remarks = hosts.told_of(database, campaign)
    (warning,) = [line for line in remarks.warnings if line.startswith("Ratios depend on the host: that of ")]
    assert remarks.notes == []
    assert warning in unescape(page_of(database, campaign))


def test_a_host_that_slows_both_arms_alike_is_seldom_taken_for_one_that_slows_fec(on_hosts: Filled) -> None:
    database, campaign = on_hosts(by_turns)
    frame, random, trials = frames.trials(database, campaign), np.random.default_rng(12), 60
    slow = 1 + (frame["repetition"] % 2)
    wrong = 0
    for _ in range(trials):
        again = frame.assign(**{"client.dct_s": slow * random.lognormal(0, 0.1, len(frame))})
        wrong += any(result.differ for result in hosts.arm_differences(again, campaign))
    # At level 0.05: of 60, beyond 10 in less than one of a thousand.
    assert wrong <= 10


def test_too_few_pairs_on_two_hosts_leave_open_whether_ratios_depend_on_the_host(on_hosts: Filled) -> None:
    remarks = hosts.told_of(*on_hosts(by_turns, repetitions=2 * LEAST_GROUPS - 2))
    (note,) = remarks.notes
    assert note.startswith("Whether ratios depend on the host is not known: ")
