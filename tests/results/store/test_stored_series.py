"""A series is read as its endpoint left it, and only what can be read is taken."""

from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fecbench.results.store import database as database_module
from fecbench.results.store import stored_series
from fecbench.results.store.database import Database, DatabaseError
from fecbench.results.store.records import CampaignInfo, TrialRecord

Make = Callable[..., TrialRecord]

finite = st.floats(allow_nan=False, allow_infinity=False)
whole = st.integers(-(2**63), 2**63 - 1)
names = st.text(min_size=1, max_size=12)


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    rows = draw(st.integers(0, 20))
    columns = draw(st.dictionaries(names, st.sampled_from([finite, whole]), min_size=1, max_size=4))
    types = {finite: pa.float64(), whole: pa.int64()}
    values = {
        name: pa.array(draw(st.lists(numbers, min_size=rows, max_size=rows)), types[numbers])
        for name, numbers in columns.items()
    }
    return pa.table(values)


def cwnd(rows: int = 3) -> pa.Table:
    return pa.table(
        {"t_s": [n / 10 for n in range(rows)], "bytes_in_flight": [1000 * n for n in range(rows)]}
    )


@given(table=tables())
def test_a_table_is_unpacked_as_it_was_packed(table: pa.Table) -> None:
    assert stored_series.unpack(stored_series.pack(table)).equals(table)


@given(table=tables(), data=st.data())
def test_only_the_named_columns_are_unpacked(table: pa.Table, data: st.DataObject) -> None:
    chosen = data.draw(st.sets(st.sampled_from(table.column_names)))
    unpacked = stored_series.unpack(
        stored_series.pack(table), [*chosen, "a name that no column of these tables has"]
    )
    assert unpacked.equals(table.select([name for name in table.column_names if name in chosen]))
    assert len(unpacked) == len(table)


def test_a_series_that_repeats_itself_becomes_small() -> None:
    table = pa.table({"t_s": [n / 1000 for n in range(100_000)], "bytes_in_flight": [12_000] * 100_000})
    assert len(stored_series.pack(table)) < table.nbytes / 2


GAPS = "must have a finite number in every row"


NO_SERIES: list[tuple[pa.Table, str]] = [
    (pa.table({"t_s": ["0.1"]}), "has values of type string: must be numbers"),
    (pa.table({"t_s": [True]}), "has values of type bool: must be numbers"),
    (pa.table({"t_s": [0.1, None]}), GAPS),
    (pa.table({"t_s": [float("nan")]}), GAPS),
    (pa.table({"t_s": [float("inf")]}), GAPS),
    (pa.table([[1], [2]], names=["t_s", "t_s"]), "is there twice: must be one column"),
]


def test_a_table_that_cannot_be_a_series_is_refused() -> None:
    for table, message in NO_SERIES:
        with pytest.raises(DatabaseError, match=f"column 't_s' of a series: {message}"):
            stored_series.pack(table)


def test_damaged_data_are_refused_in_a_line() -> None:
    whole = stored_series.pack(cwnd())
    for data in (b"", whole[:-5], b"x" * 100, whole[:4] + bytes(len(whole) - 12) + whole[-8:]):
        with pytest.raises(DatabaseError, match="a series cannot be read: ") as refused:
            stored_series.unpack(data)
        assert "\n" not in str(refused.value)


# In a database


def test_series_are_read_beside_trials_and_not_with_them(
    database: Database, campaign: CampaignInfo, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "PAGE_SERIES", 3)
    left = {}
    for n in range(4):
        record = make(
            n, series=[stored_series.of_endpoint(end, "cwnd", cwnd(n + 1)) for end in ("client", "server")]
        )
        record.series.append(stored_series.of_endpoint("client", "messages", cwnd(7)))
        trial = database.record(campaign.id, record)
        left[trial.id] = record
        assert trial.record.series == []
        assert database.trial(None, trial.id) == trial
        assert database.series_of(trial.id) == [record.series[0], record.series[2], record.series[1]]
    found = list(database.series(campaign.id, "cwnd"))
    assert [(one.trial_id, one.table.endpoint) for one in found] == [
        (trial_id, endpoint) for trial_id in left for endpoint in ("client", "server")
    ]
    for one in found:
        assert one.key == left[one.trial_id].key
        assert one.table in left[one.trial_id].series
        assert stored_series.unpack(one.table.data).num_rows == one.table.rows
    assert len(list(database.series(campaign.id, "messages"))) == 4
    assert list(database.series(campaign.id, "cwdn")) == []


def test_series_of_superseded_runs_and_of_other_campaigns_are_left_out(
    database: Database, campaign: CampaignInfo, new_campaign: Callable[..., CampaignInfo], make: Make
) -> None:
    other = new_campaign(database, "other")
    one = stored_series.of_endpoint("client", "cwnd", cwnd())
    two = stored_series.of_endpoint("client", "stream", cwnd())
    database.record(campaign.id, make(0, state="invalid", series=[one, two]))
    valid = database.record(campaign.id, make(0, series=[one]))
    database.record(other.id, make(0, series=[two]))
    assert [found.trial_id for found in database.series(campaign.id, "cwnd")] == [valid.id]
    assert list(database.series(campaign.id, "stream")) == []
    assert database.series_columns(campaign.id) == {"cwnd": ["t_s", "bytes_in_flight"]}
    assert list(database.series_columns(other.id)) == ["stream"]


def test_two_tables_of_one_name_are_refused(database: Database, campaign: CampaignInfo, make: Make) -> None:
    table = stored_series.of_endpoint("client", "cwnd", cwnd())
    with pytest.raises(DatabaseError, match=r"series client\.cwnd: is there twice"):
        database.record(campaign.id, make(0, series=[table, table]))
    assert database.trial_count(campaign.id) == 0
