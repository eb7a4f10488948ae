"""Own reports of endpoints of the interop contract."""

import json
from pathlib import Path

import pytest

from fecbench.runners.tasks.series import SeriesError, table
from fecbench.runners.trial import own_report
from fecbench.runners.trial.own_report import OwnReport
from tests.support.refusals import refusal_of


def test_nothing_need_be_told(tmp_path: Path) -> None:
    assert own_report.read(tmp_path) == OwnReport()


def test_metrics_and_series_are_those_of_the_file(tmp_path: Path) -> None:
    columns = {"t_s": [0.1, 0.2], "window_bytes": [12000, 24000]}
    document = {"metrics": {"packets_sent": 4}, "series": {"cwnd": columns}}
    (tmp_path / own_report.NAME).write_text(json.dumps(document))
    report = own_report.read(tmp_path)
    assert report.metrics == {"packets_sent": 4}
    assert table("cwnd", report.tables(["cwnd"])["cwnd"]).to_pydict() == columns
    with pytest.raises(SeriesError, match="left no series other"):
        report.tables(["other"])


WRONG = {
    "": "which is not right",
    '{"metrics": {"a b": 1}}': "which is not right: metrics.a b",
    '{"metrics": {"a": NaN}}': "which is not right",
    '{"metrics": {"a": "1"}}': "which is not right: metrics.a",
    '{"counters": {}}': "which is not right: counters",
    '{"series": {"cwnd": {"t_s": [1]}}}': "which is not right: series.cwnd",
    "x" * (own_report.LIMIT_BYTES + 1): "of more than",
}


def test_what_is_not_right_is_named_in_one_line(tmp_path: Path) -> None:
    for written, problem in WRONG.items():
        (tmp_path / own_report.NAME).write_text(written)
        assert problem in refusal_of(own_report.read, tmp_path, by=SeriesError)


def test_columns_of_different_lengths_are_named() -> None:
    report = OwnReport(series={"cwnd": {"t_s": [1.0], "window_bytes": [1.0, 2.0]}})
    with pytest.raises(SeriesError, match="must be of one length"):
        report.tables(["cwnd"])


def test_neither_a_link_nor_a_folder_is_read(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text("{}")
    (tmp_path / own_report.NAME).symlink_to(tmp_path / "other.json")
    with pytest.raises(SeriesError, match="cannot be read"):
        own_report.read(tmp_path)
    (tmp_path / own_report.NAME).unlink()
    (tmp_path / own_report.NAME).mkdir()
    with pytest.raises(SeriesError, match="is not a file"):
        own_report.read(tmp_path)
