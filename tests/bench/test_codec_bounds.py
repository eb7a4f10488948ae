"""The bounds of the codes' benchmark: what misses one is told, and a known exception is shown as one."""

import pytest

from bench import codec_cost

BOUNDED = [row for row in codec_cost.rows() if row.bound_ns is not None]
AT_THE_BOUND = {row.ours: row.bound_ns or 0.0 for row in codec_cost.rows()}
PEER = {row.peer: 1.0 for row in codec_cost.rows() if row.peer}


def test_every_bound_is_that_of_a_row() -> None:
    assert {row.ours for row in BOUNDED} == codec_cost.BOUNDS_NS.keys() >= codec_cost.EXCEPTIONS


def test_at_their_bounds_all_are_kept() -> None:
    assert codec_cost.missed(AT_THE_BOUND) == []


@pytest.mark.parametrize("row", BOUNDED, ids=lambda row: row.ours)
def test_a_row_beyond_its_bound_is_told_unless_it_is_an_exception(
    capsys: pytest.CaptureFixture[str], row: codec_cost.Row
) -> None:
    assert row.bound_ns is not None
    ours = {**AT_THE_BOUND, row.ours: 1.01 * row.bound_ns}
    exception = row.ours in codec_cost.EXCEPTIONS
    assert [row.code in line for line in codec_cost.missed(ours)] == ([] if exception else [True])
    codec_cost.print_rows(ours, PEER)
    printed = capsys.readouterr().out
    assert "…" not in printed
    assert (printed.count("MISSED:"), printed.count("exception:")) == ((0, 1) if exception else (1, 0))
