"""The series of an endpoint are read from files of its log folder, never beyond the limit."""

import os
from pathlib import Path

import pytest

from fecbench.runners.tasks import series
from fecbench.runners.tasks.series import SeriesError
from tests.support.refusals import refusal_of

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


def test_what_is_no_file_of_the_endpoint_is_not_read_and_holds_no_trial_up(tmp_path: Path) -> None:
    def refused() -> str:
        return refusal_of(series.collect, tmp_path, {"cwnd": series.LIMIT_BYTES}, by=SeriesError)

    secret, file = tmp_path / "secret", tmp_path / "cwnd.series.csv"
    assert "no series cwnd: cwnd.series.csv: No such file" in refused()
    secret.write_bytes(GOOD)
    file.symlink_to(secret)
    assert "no series cwnd" in refused()
    file.unlink()
    file.mkdir()
    assert "no series cwnd" in refused()
    file.rmdir()
    os.mkfifo(file)  # to which nobody writes
    assert "is not a file" in refused()
