"""A notebook reads what the database holds, and an exported file holds what the notebook reads."""

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import get_args

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa

from fecbench import results
from fecbench.errors import BadInput
from fecbench.results.analysis import frames
from fecbench.results.reading import Campaign, Results
from fecbench.results.store import export, schema, stored_series
from fecbench.results.store.database import Database, DatabaseError
from fecbench.results.store.export import Table
from fecbench.results.store.records import CampaignInfo, TrialKey, TrialRecord
from tests.results.conftest import either

Filled = Callable[..., tuple[Database, CampaignInfo]]
Make = Callable[..., TrialRecord]
NewCampaign = Callable[..., CampaignInfo]

OFF, XOR = "rquic-off", "rquic-xor"
# Numbers that need all their digits.
OUTCOMES = {
    TrialKey(variant, "download-10000", point, repetition): ("ok", 0.1 + (repetition + 1) / 3 + point / 7)
    for variant, point, repetition in product((OFF, XOR), (0, 1), range(6))
} | {TrialKey(OFF, "download-2000", 0, 0): ("failed", 1.0)}


@pytest.fixture
def read(filled: Filled, sqlite: str) -> Results:
    filled(OUTCOMES)
    with results.open(sqlite) as opened:
        return opened


def test_campaigns_are_listed_with_what_was_planned_and_what_was_run(read: Results) -> None:
    (row,) = read.campaigns().to_dict("records")
    assert row["campaign"] == "campaign-0"
    assert (row["points"], row["variants"], row["workloads"], row["repetitions"]) == (2, 2, 2, 1000)
    assert (row["planned_trials"], row["trials"]) == (8000, len(OUTCOMES))
    assert list(read) == ["campaign-0"]


def test_a_campaign_gives_the_frames_of_its_points_trials_and_metrics(read: Results) -> None:
    campaign = read["campaign-0"]
    assert campaign.points().to_dict("records") == [
        {"point": i, **factors, "rtt_ms": 2 * float(factors["owd_ms"])}
        for i, factors in enumerate(campaign.info.points)
    ]
    trials = campaign.trials()
    expected = frames.trials(campaign.database, campaign.info)
    pd.testing.assert_frame_equal(trials[list(expected)], expected)
    metrics = campaign.metrics()
    assert len(metrics) == 2 * len(OUTCOMES)
    dct = metrics[metrics["metric"] == "client.dct_s"].set_index("id")["value"]
    assert dct.to_dict() == trials.set_index("id")["client.dct_s"].to_dict()


def test_a_campaign_compares_two_of_its_variants(read: Results) -> None:
    campaign = read["campaign-0"]
    pairing = campaign.paired(OFF, XOR)
    assert pairing.ratios["ratio"].tolist() == [1.0, 1.0]
    assert len(pairing.matched) == 12
    assert pairing.unpaired["repetitions"].tolist() == [1]
    assert campaign.intervals(OFF, XOR)["verdict"].tolist() == ["equivalent"] * 2


def test_matched_repetitions_are_those_whose_statistics_make_the_ratios(read: Results) -> None:
    pairing = read["campaign-0"].paired(OFF, XOR)
    medians = pairing.matched.groupby(["workload", "point"], observed=True)[["baseline", "variant"]].median()
    expected = pairing.ratios.set_index(["workload", "point"])[["baseline", "variant"]]
    pd.testing.assert_frame_equal(medians, expected)


def test_one_timeout_of_nine_takes_no_gain_from_a_point(filled: Filled, sqlite: str) -> None:
    outcomes = {
        TrialKey(variant, "download-10000", point, n): ("ok", 1.0 if variant == OFF else 0.5)
        for variant, point, n in product((OFF, XOR), (0, 1), range(9))
    }
    filled(outcomes | {TrialKey(XOR, "download-10000", 1, 0): ("timeout", 60.0)})
    with results.open(sqlite) as opened:
        table = opened["campaign-0"].intervals(OFF, XOR)
    assert table[["pairs", "timeouts", "verdict"]].to_numpy().tolist() == [[9, 0, "gain"], [9, 1, "gain"]]
    # The interval reaches to where the median would be if two or three more had timed out.
    assert table["high"].tolist() == [0.5, 0.5]


@pytest.mark.filterwarnings("error")
def test_a_metric_that_is_0_gives_no_warning_and_no_infinite_ratio(
    database: Database, new_campaign: Callable[..., CampaignInfo], make: Callable[..., TrialRecord]
) -> None:
    info = new_campaign(database)
    for variant, point, n in product((OFF, XOR), (0, 1), range(6)):
        lost = 0 if variant == OFF and (point == 0 or n < 2) else 1 + n
        key = TrialKey(variant, "download-10000", point, n)
        database.record(info.id, make(key=key, metrics={"server": {"packets_lost": lost}}))
    table = Campaign(database, info).intervals(OFF, XOR, "server.packets_lost")
    assert table["point"].tolist() == [1]
    assert table["ratio"].tolist() == [1.0]
    assert table["verdict"].tolist() == ["undecided"]


def test_a_wrong_name_is_refused_with_the_right_one(read: Results) -> None:
    with pytest.raises(DatabaseError, match=r"campaign 'campaign-1'.*did you mean 'campaign-0'"):
        read["campaign-1"]
    with pytest.raises(DatabaseError, match=r"variant 'rquic-xro'.*did you mean 'rquic-xor'"):
        read["campaign-0"].paired(OFF, "rquic-xro")


def test_a_metric_that_was_not_measured_is_refused_with_the_one_that_was(read: Results) -> None:
    campaign = read["campaign-0"]
    for wrong in (lambda name: campaign.trials([name]), lambda name: campaign.intervals(OFF, XOR, name)):
        with pytest.raises(DatabaseError, match=r"metric 'client.dct_ss'.*did you mean 'client.dct_s'"):
            wrong("client.dct_ss")
    with pytest.raises(TypeError, match=r"must be a list of names: \['client.dct_s'\]"):
        campaign.trials("client.dct_s")


@either
def test_a_metric_that_failed_trials_do_not_have_is_absent_and_no_error(
    database: Database, new_campaign: Callable[..., CampaignInfo], make: Callable[..., TrialRecord]
) -> None:
    info = new_campaign(database)
    campaign = Campaign(database, info)
    database.record(info.id, make(0, state="failed", metrics={}))
    assert campaign.trials(["client.dct_s", "server.packets_lost"]).iloc[:, -2:].isna().all(axis=None)
    database.record(info.id, make(1, state="failed", metrics={"server": {"packets_sent": 3}}))
    assert campaign.trials(["client.dct_s"])["client.dct_s"].isna().all()
    assert campaign.paired(OFF, XOR).ratios.empty
    with pytest.raises(DatabaseError, match=r"metric 'server.packets_snet'.*'server.packets_sent'"):
        campaign.trials(["client.dct_s", "server.packets_snet"])


def test_a_database_without_campaigns_says_that_none_was_run_into_it(sqlite: str) -> None:
    Database.open(sqlite, create=True).close()
    with results.open(sqlite) as empty:
        assert empty.campaigns().empty
        with pytest.raises(DatabaseError, match="is empty: no campaign was run into it"):
            empty["demo"]


def test_an_empty_campaign_has_empty_frames_with_the_same_columns(filled: Filled, sqlite: str) -> None:
    filled({})
    with results.open(sqlite) as opened:
        campaign = opened["campaign-0"]
        assert campaign.trials().empty
        assert list(campaign.trials().columns)[:8] == list(frames.TRIAL_COLUMNS)  # type: ignore[attr-defined]
        assert campaign.metrics().empty
        assert campaign.paired(OFF, XOR).ratios.empty
        assert campaign.intervals(OFF, XOR).empty


# Series


@pytest.fixture
def with_series(database: Database, new_campaign: NewCampaign, make: Make) -> Campaign:
    """Trials in another order than the design's, which left tables of 1, 2, 3, … rows."""
    info = new_campaign(database)
    keys = [TrialKey(variant, "download-10000", 0, n) for variant in (XOR, OFF) for n in (1, 0)]
    for rows, key in enumerate(keys, start=1):
        times = pa.array([n / 3 for n in range(rows)], pa.float64())
        windows = {"client": {}, "server": {"window_bytes": pa.array(range(rows), pa.int64())}}
        tables = [
            stored_series.of_endpoint(endpoint, "cwnd", pa.table({"t_s": times, **window}))
            for endpoint, window in windows.items()
        ]
        database.record(info.id, make(key=key, series=tables))
    return Campaign(database, info)


@either
def test_a_series_of_a_campaign_is_one_frame_in_the_order_of_the_design(with_series: Campaign) -> None:
    frame = with_series.series("cwnd")
    key = ["id", "variant", "workload", "point", "repetition", "endpoint"]
    assert list(frame.columns) == [*key, "t_s", "window_bytes"]
    expected = [
        (
            trial_id,
            variant,
            "download-10000",
            0,
            repetition,
            endpoint,
            n / 3,
            n if endpoint == "server" else None,
        )
        for trial_id, variant, repetition in ((4, OFF, 0), (3, OFF, 1), (2, XOR, 0), (1, XOR, 1))
        for endpoint in ("client", "server")
        for n in range(trial_id)
    ]
    rows = frame.astype(object).where(frame.notna(), None).itertuples(index=False)
    assert [tuple(row) for row in rows] == expected
    assert frame["variant"].dtype == with_series.trials()["variant"].dtype


def test_only_the_named_columns_of_a_series_are_read_in_their_order(with_series: Campaign) -> None:
    whole = with_series.series("cwnd")
    for columns in (["window_bytes", "t_s"], ["t_s"], ["window_bytes"], []):
        frame = with_series.series("cwnd", columns)
        pd.testing.assert_frame_equal(frame, whole[[*whole.columns[:6], *columns]])


def test_a_wrong_series_or_column_is_refused_with_the_right_one(with_series: Campaign) -> None:
    with pytest.raises(DatabaseError, match=r"campaign 'demo': series 'cwdn'.*did you mean 'cwnd'"):
        with_series.series("cwdn")
    with pytest.raises(DatabaseError, match=r"series 'cwnd': column 'window'.*did you mean 'window_bytes'"):
        with_series.series("cwnd", ["t_s", "window"])
    with pytest.raises(TypeError, match=r"must be a list of names: \['t_s'\]"):
        with_series.series("cwnd", "t_s")


def test_without_series_none_is_known(read: Results) -> None:
    with pytest.raises(
        DatabaseError, match="campaign 'campaign-0': series 'cwnd': there is none; known: none"
    ):
        read["campaign-0"].series("cwnd")


@either
def test_a_damaged_series_is_refused_with_its_trial(with_series: Campaign) -> None:
    database = with_series.database
    with database._transaction(database._writers) as connection:
        connection.execute(sa.update(schema.series).where(schema.series.c.trial_id == 3).values(data=b"PAR1"))
    with pytest.raises(DatabaseError, match="trial 3: a series cannot be read"):
        with_series.series("cwnd")


def without_column(data: bytes, index: int) -> bytes:
    """The packed table with zeros in the place of that column's values."""
    column = pq.ParquetFile(pa.BufferReader(data)).metadata.row_group(0).column(index)
    pages = [start for start in (column.dictionary_page_offset, column.data_page_offset) if start is not None]
    end = min(pages) + column.total_compressed_size
    return data[: min(pages)] + bytes(end - min(pages)) + data[end:]


def test_columns_that_are_not_named_are_not_read(with_series: Campaign) -> None:
    database = with_series.database
    (table,) = (table for table in database.series_of(3) if table.endpoint == "server")
    damaged = without_column(table.data, table.columns.index("window_bytes"))
    with database._transaction(database._writers) as connection:
        of_table = (schema.series.c.trial_id == 3) & (schema.series.c.endpoint == "server")
        connection.execute(sa.update(schema.series).where(of_table).values(data=damaged))
    assert with_series.series("cwnd", ["t_s"])["t_s"].notna().all()
    with pytest.raises(DatabaseError, match="trial 3: a series cannot be read"):
        with_series.series("cwnd")


# Files


def test_a_csv_file_holds_the_numbers_to_the_last_bit(read: Results, tmp_path: Path) -> None:
    frame = read["campaign-0"].trials()
    export.write(frame, tmp_path / "trials.csv")
    dates = {"parse_dates": ["started_at"], "date_format": "ISO8601"}
    back = pd.read_csv(tmp_path / "trials.csv", **dates)
    words = dict.fromkeys(("variant", "workload", "state"), "str")
    empty = {"reason": ""}  # CSV does not tell it from an absent one
    expected = frame.astype(words).fillna(empty).astype({"started_at": back["started_at"].dtype})
    read_back = back.astype(words).fillna(empty)
    pd.testing.assert_frame_equal(read_back, expected, check_dtype=False, check_exact=True)


@either
def test_every_table_can_be_written_and_holds_what_the_notebook_reads(
    with_series: Campaign, tmp_path: Path
) -> None:
    read = {
        "trials": with_series.trials(),
        "points": with_series.points(),
        "ratios": with_series.ratios(),
        "summary": with_series.summary(),
        "targets": with_series.targets(),
        "metrics": with_series.metrics(),
        "series": with_series.series("cwnd"),
    }
    assert read.keys() == set(get_args(Table))
    for kind, expected in read.items():
        frame = with_series.table(kind, "cwnd")  # type: ignore[arg-type]
        pd.testing.assert_frame_equal(frame, expected, obj=kind)
        for suffix in export.SUFFIXES:
            export.write(frame, tmp_path / f"table{suffix}")
        pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "table.parquet"), frame, obj=kind)
        back = pd.read_csv(tmp_path / "table.csv")
        numbers = [name for name in frame.select_dtypes("number").columns if name in back]
        pd.testing.assert_frame_equal(back[numbers], frame[numbers], check_dtype=False, obj=kind)
        assert list(back.columns) == list(frame.columns), kind


def test_a_table_of_series_needs_the_name_of_one(with_series: Campaign) -> None:
    with pytest.raises(DatabaseError, match="series '': there is none; known: 'cwnd'"):
        with_series.table("series")


def test_a_file_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    wrong = {"trials.xlsx": "must end with .csv or .parquet", "no/trials.csv": "does not exist"}
    for name, message in wrong.items():
        with pytest.raises(BadInput, match=message):
            export.write(pd.DataFrame({"a": [1]}), tmp_path / name)


@pytest.mark.parametrize("suffix", export.SUFFIXES)
def test_a_file_that_could_not_be_finished_leaves_the_old_one(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"trials{suffix}"
    path.mkdir()  # cannot be replaced by a file, for root neither
    with pytest.raises(BadInput, match="cannot be written"):
        export.write(pd.DataFrame({"a": [1]}), path)
    assert list(tmp_path.iterdir()) == [path]
