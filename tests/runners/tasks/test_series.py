"""What an endpoint leaves over time is taken from a file of its log folder, and never more than the limit."""

import os
from pathlib import Path

import pytest

from fecbench.runners.tasks import series
from fecbench.runners.tasks.series import SeriesError

GOOD = b"t_s,window_bytes\n0,100\n"


def test_a_file_is_taken_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "cwnd.series.csv").write_bytes(GOOD)
    (tmp_path / "other.series.csv").write_bytes(b"not asked for")
    assert series.collect(tmp_path, {"cwnd": series.LIMIT_BYTES}) == {"cwnd": GOOD}


def test_as_much_as_the_limit_is_taken_and_not_a_byte_more(tmp_path: Path) -> None:
    file = tmp_path / "cwnd.series.csv"
    file.write_bytes(bytes(series.LIMIT_BYTES))
    assert len(series.collect(tmp_path, {"cwnd": series.LIMIT_BYTES})["cwnd"]) == series.LIMIT_BYTES
    file.write_bytes(bytes(series.LIMIT_BYTES + 1))
    with pytest.raises(SeriesError, match=f"a series cwnd of more than {series.LIMIT_BYTES} bytes"):
        series.collect(tmp_path, {"cwnd": series.LIMIT_BYTES})


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(SeriesError, match=r"no series cwnd: cwnd\.series\.csv: No such file"):
        series.collect(tmp_path, {"cwnd": series.LIMIT_BYTES})


def test_what_is_no_file_of_the_endpoint_is_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(GOOD)
    left = tmp_path / "cwnd.series.csv"
    left.symlink_to(secret)
    with pytest.raises(SeriesError, match="no series cwnd"):
        series.collect(tmp_path, {"cwnd": series.LIMIT_BYTES})
    left.unlink()
    left.mkdir()
    with pytest.raises(SeriesError, match="no series cwnd"):
        series.collect(tmp_path, {"cwnd": series.LIMIT_BYTES})


def test_a_pipe_that_nobody_writes_to_does_not_hold_the_trial_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "cwnd.series.csv")
    with pytest.raises(SeriesError, match="is not a file"):
        series.collect(tmp_path, {"cwnd": series.LIMIT_BYTES})
