"""A frame holds what the harness measured of a trial as the trial's record has it."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fecbench.results.analysis import frames
from fecbench.results.analysis.harness import FIRST_PACKETS
from fecbench.results.store import schema
from fecbench.results.store.database import Database, DatabaseError
from fecbench.results.store.records import (
    HARNESS_COLUMNS,
    TRIAL_COLUMNS,
    CampaignInfo,
    TrialRecord,
    VerdictLog,
)
from tests.results.conftest import either

Make = Callable[..., TrialRecord]
NewCampaign = Callable[..., CampaignInfo]

OF_DIRECTION = (
    *("first_lost", "late", "lateness_max_us", "lost", "outage_dropped", "packets", "queue_dropped"),
)

counts = st.integers(0, 2**53)
seeds = st.integers(0, 2**64 - 1)
durations = st.floats(0, 1e9)


@st.composite
def directions(draw: st.DrawFn) -> dict[str, Any]:
    """Draw the record of one direction of a link. A backend may not know how late packets were."""
    lateness = draw(st.none() | durations)
    return {
        "seed": draw(seeds),
        "dropper": {"seen": draw(counts), "dropped": draw(counts), "gso": 0},
        "link": {
            "frames_in": draw(counts),
            "queue_dropped": draw(counts),
            **draw(st.just({}) | st.fixed_dictionaries({"outage_dropped": counts})),
            "late": draw(st.none() | counts),
            "lateness_us": None if lateness is None else {"p50": lateness / 2, "max": lateness},
            "conserved": True,
        },
    }


def measured_by(
    names: list[str], content: int, drawing: list[dict[str, Any]], **checks: Any
) -> dict[str, Any]:
    """The fields of a record for these directions ("internet/up")."""
    of_links: dict[str, Any] = {}
    for name, direction in zip(names, drawing, strict=True):
        link, _, end = name.partition("/")
        report = of_links.setdefault(link, {"backend": "wire", "command": ["wire"], "directions": {}})
        report["directions"][end] = direction["link"]
    return {
        "seeds": {"content": content, **{n: d["seed"] for n, d in zip(names, drawing, strict=True)}},
        "dropper": {n: d["dropper"] for n, d in zip(names, drawing, strict=True)},
        "links": of_links,
        "checks": {"verdicts": {}, **checks},
    }


def expected_of(names: list[str], drawing: list[dict[str, Any]]) -> dict[str, float]:
    columns = {}
    for name, direction in zip(names, drawing, strict=True):
        of_link, prefix = direction["link"], name.replace("/", ".")
        values = {
            "packets": direction["dropper"]["seen"],
            "lost": direction["dropper"]["dropped"],
            "queue_dropped": of_link["queue_dropped"],
            "outage_dropped": of_link.get("outage_dropped"),
            "late": of_link["late"],
            "lateness_max_us": (of_link["lateness_us"] or {}).get("max"),
        }
        columns |= {
            f"{prefix}.{what}": math.nan if value is None else float(value) for what, value in values.items()
        }
    return columns


CHECKED = ("stolen_s", "watch_gap_s", "late_max_ms", "late_sum_ms")
NAMES = ["internet/up", "internet/down", "path 2/up", "path 2/down"]


@either
@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_frame_has_what_the_record_of_a_trial_has(
    database: Database, new_campaign: NewCampaign, make: Make, data: st.DataObject
) -> None:
    campaign = new_campaign(database, f"campaign {len(database.campaigns())}")
    records, expected = [], []
    for n in range(data.draw(st.integers(1, 4))):
        drawing = [data.draw(directions()) for _ in NAMES]
        content, stalled_s, at_once = data.draw(seeds), data.draw(durations), data.draw(st.integers(1, 64))
        fields = measured_by(NAMES, content, drawing, stalled_s=stalled_s, trials_at_once=at_once)
        times = {name: data.draw(durations) for name in CHECKED}
        fields["checks"] |= times | {"lost_elsewhere": {"packets": n, "places": {"r1": {"r1-r2: drops": n}}}}
        record = make(n, overhead_s={"droppers": 0.1, "total": stalled_s / 3}, **fields)
        database.record(campaign.id, record)
        records.append(record)
        row = {"trials_at_once": at_once, "stalled_s": stalled_s, "overhead_s": stalled_s / 3}
        expected.append(row | times | {"lost_elsewhere": n} | expected_of(NAMES, drawing))
    frame = frames.trials(database, campaign)
    for n, record in enumerate(records):
        row = frame.iloc[n]
        assert row["started_at"] == pd.Timestamp(record.started_at)
        assert row["reason"] == record.reason
        for name, value in expected[n].items():
            assert row[name] == value or (math.isnan(value) and math.isnan(row[name])), name
        for name, seed in record.seeds.items():
            assert row[f"seed.{name.replace('/', '.')}"] == seed
    assert frame.filter(regex="^seed").dtypes.unique().tolist() == [pd.UInt64Dtype()]


bitmaps = st.lists(st.booleans(), max_size=FIRST_PACKETS // 100).flatmap(
    lambda bits: st.integers(0, FIRST_PACKETS).map(lambda spared: [False] * spared + bits)
)


def packed(bits: list[bool]) -> bytes:
    return np.packbits(np.array(bits, bool), bitorder="little").tobytes()


@either
@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(drawn=st.lists(st.tuples(bitmaps, bitmaps), min_size=1, max_size=5))
def test_the_first_packet_lost_is_the_first_bit_of_the_recorded_verdicts(
    database: Database, new_campaign: NewCampaign, make: Make, drawn: list[tuple[list[bool], list[bool]]]
) -> None:
    campaign = new_campaign(database, f"campaign {len(database.campaigns())}")
    for n, of_directions in enumerate(drawn):
        logs = [
            VerdictLog("internet", end, len(bits), sum(bits), packed(bits))
            for end, bits in zip(("up", "down"), of_directions, strict=True)
        ]
        seeds = {"content": 1, "internet/up": 2, "internet/down": 3}
        database.record(campaign.id, make(n, seeds=seeds, verdicts=logs))
    frame = frames.trials(database, campaign)
    for n, of_directions in enumerate(drawn):
        for end, bits in zip(("up", "down"), of_directions, strict=True):
            first_lost = frame.loc[n, f"internet.{end}.first_lost"]
            first = bits[:FIRST_PACKETS]
            assert first_lost == first.index(True) if any(first) else math.isnan(first_lost)


@pytest.fixture
def measured(database: Database, campaign: CampaignInfo, make: Make) -> CampaignInfo:
    """Ten trials with two directions, of which every third failed before anything was measured."""
    for n in range(10):
        link = {"queue_dropped": n, "outage_dropped": 0, "late": 0, "lateness_us": {"max": n / 7}}
        drawing = [{"seed": 2**64 - 1 - n, "dropper": {"seen": n, "dropped": 0}, "link": link}] * 2
        fields = measured_by(NAMES[:2], n, drawing, stalled_s=n / 3, trials_at_once=2)
        nothing = {"state": "invalid", "seeds": fields["seeds"], "checks": {"trials_at_once": 2}}
        database.record(campaign.id, make(n, **(nothing if n % 3 == 0 else fields)))
    return campaign


@either
def test_what_was_not_measured_is_absent(database: Database, measured: CampaignInfo) -> None:
    frame = frames.trials(database, measured)
    failed = frame["repetition"] % 3 == 0
    of_links = [f"internet.{end}.{what}" for end in ("down", "up") for what in OF_DIRECTION]
    for name in ("stalled_s", "overhead_s", *of_links):
        assert frame.loc[failed, name].isna().all(), name
    for name in ("stalled_s", *of_links):
        assert frame.loc[~failed, name].notna().all() != name.endswith("first_lost"), name  # none was lost
    assert frame["seed.internet.up"].tolist() == [2**64 - 1 - n for n in range(10)]
    assert frame["trials_at_once"].tolist() == [2] * 10
    assert frame["reason"].tolist() == ["it was invalid" if n % 3 == 0 else "" for n in range(10)]


def test_columns_of_the_harness_stand_behind_the_others_in_their_order(
    database: Database, measured: CampaignInfo
) -> None:
    frame = frames.trials(database, measured)
    links = [f"internet.{end}.{what}" for end in ("down", "up") for what in OF_DIRECTION]
    columns_of_harness = [*HARNESS_COLUMNS, *links, "seed.content", "seed.internet.down", "seed.internet.up"]
    without = frames.trials(database, measured, harness=False)
    assert list(without.columns[: len(TRIAL_COLUMNS)]) == list(TRIAL_COLUMNS)
    assert list(frame.columns) == [*without.columns, *columns_of_harness]
    pd.testing.assert_frame_equal(frame[without.columns], without)


def test_they_are_read_with_all_metrics_or_when_they_are_asked_for(
    database: Database, measured: CampaignInfo
) -> None:
    columns = {
        (metrics is None, harness): set(frames.trials(database, measured, metrics, harness).columns)
        for metrics in (None, ["client.dct_s"])
        for harness in (None, False, True)
    }
    with_harness = {key for key, names in columns.items() if "seed.content" in names}
    assert with_harness == {(True, None), (True, True), (False, True)}
    assert "client.packets_sent" not in columns[False, True]


def test_what_is_named_of_it_is_read_and_nothing_else(database: Database, measured: CampaignInfo) -> None:
    named = ["client.dct_s", "internet.up.lost", "stalled_s"]
    whole, without = frames.trials(database, measured), frames.trials(database, measured, named[:1])
    frame = frames.trials(database, measured, named)
    assert set(frame.columns) == {*without.columns, *named}
    pd.testing.assert_frame_equal(frame[named], whole[named])
    assert "stalled_s" not in frames.trials(database, measured, named, harness=False)


def test_the_names_of_metrics_are_those_of_the_numbers_that_trials_have(
    database: Database, measured: CampaignInfo
) -> None:
    frame = frames.trials(database, measured)
    names = frames.metric_names(database, measured)
    assert (
        {"client.dct_s", "stalled_s", "duration_s", "internet.down.lost"} <= set(names) <= set(frame.columns)
    )
    assert not {"id", "point", "seed.content", "reason", "host", "started_at", "owd_ms"} & set(names)
    assert len(names) == len(set(names))


def test_it_is_the_same_however_trials_are_paged(
    database: Database, measured: CampaignInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = frames.trials(database, measured)
    for trials in (1, 4):
        monkeypatch.setattr(frames, "_PAGE_TRIALS", trials)
        pd.testing.assert_frame_equal(frames.trials(database, measured), whole)


@either
def test_links_have_their_columns_where_every_trial_failed_before_they_were_built(
    database: Database, campaign: CampaignInfo, make: Make
) -> None:
    database.record(campaign.id, make(0, state="invalid", seeds={"content": 1, "internet/up": 2}))
    frame = frames.trials(database, campaign)
    assert frame[[f"internet.up.{what}" for what in OF_DIRECTION]].isna().all(axis=None)


def test_a_campaign_without_trials_has_the_columns_too(database: Database, campaign: CampaignInfo) -> None:
    frame = frames.trials(database, campaign)
    assert frame.empty
    assert list(frame.columns[-len(HARNESS_COLUMNS) :]) == list(HARNESS_COLUMNS)


def test_the_host_is_that_of_the_start_and_unknown_without_one(
    sqlite: str, new_campaign: NewCampaign, make: Make
) -> None:
    """Many trials without one may come first: a reader might then read the column as numbers."""
    with Database.open(sqlite, create=True) as database:
        campaign = new_campaign(database, repetitions=2000)
        database.record(campaign.id, make(1999))
        columns = [column.name for column in schema.trials.c if column.name not in ("id", "repetition")]
        copies = (
            "WITH RECURSIVE counted(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM counted WHERE n < 1499)"
            f" SELECT n, {', '.join(columns)} FROM counted CROSS JOIN trials"
        )
        with database._transaction(database._writers) as connection:
            connection.exec_driver_sql(f"INSERT INTO trials (repetition, {', '.join(columns)}) {copies}")
        start = database.start(campaign.id, "ada", {})
        database.record(campaign.id, make(1500), start.id)
        host = frames.trials(database, campaign, [], harness=True).set_index("repetition")["host"]
    assert host[1500] == "ada"
    assert host.drop(1500).isna().all()
    assert len(host) == 1502


def test_a_factor_that_has_the_name_of_such_a_column_keeps_it(
    database: Database, new_campaign: NewCampaign, make: Make
) -> None:
    campaign = new_campaign(database, points=[{"host": "near", "owd_ms": 5}])
    database.record(campaign.id, make(0))
    frame = frames.trials(database, campaign)
    assert frame["host"].tolist() == ["near"]
    assert "reason" in frame


NO_HARNESS_WRITES: list[tuple[str, Any]] = [
    ("checks", {"stalled_s": "long"}),
    ("seeds", {"content": -1}),
    ("seeds", {"content": 2**64}),
    ("links", {"internet": {"directions": {"up": {"late": [1]}}}}),
    ("dropper", {"internet/up": 3}),
    ("overhead_s", [1]),
    ("started_at", "yesterday"),
]


def test_what_no_harness_writes_is_refused_in_a_line(database: Database, measured: CampaignInfo) -> None:
    second = schema.trials.c.id == 2
    for column, value in NO_HARNESS_WRITES:
        with database._transaction(database._writers) as connection:
            usual = connection.execute(sa.select(schema.trials.c[column]).where(second)).scalar_one()
            connection.execute(sa.update(schema.trials).where(second).values({column: value}))
        with pytest.raises(DatabaseError, match="what the harness measured of trials 1 to 10") as refusal:
            frames.trials(database, measured)
        assert "\n" not in str(refusal.value), (column, value)
        assert len(frames.trials(database, measured, harness=False)) == 10
        with database._transaction(database._writers) as connection:
            connection.execute(sa.update(schema.trials).where(second).values({column: usual}))


def test_runs_that_were_superseded_are_left_out(
    database: Database, campaign: CampaignInfo, make: Make
) -> None:
    database.record(campaign.id, make(0, state="invalid", seeds={"content": 1}))
    database.record(campaign.id, make(0, seeds={"content": 2}))
    assert frames.trials(database, campaign)["seed.content"].tolist() == [2]
