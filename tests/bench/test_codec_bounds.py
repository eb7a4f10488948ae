"""The bounds of the codes' benchmark: what misses one is told, and shown in the table."""

import pytest

from bench import codec_cost

ROWS = {row.ours: row for row in codec_cost.rows()}
PEER = {row.peer: 7000.0 for row in ROWS.values() if row.peer}
BOUNDS_NS = {**codec_cost.BOUNDS_NS, **dict.fromkeys(codec_cost.NO_SLOWER_THAN_PEER, 7000.0)}
AT_THE_BOUND = {name: BOUNDS_NS.get(name, 0.0) for name in ROWS}


def test_every_bound_is_that_of_a_row() -> None:
    assert ROWS.keys() >= codec_cost.BOUNDS_NS.keys()
    assert all(ROWS[name].peer for name in codec_cost.NO_SLOWER_THAN_PEER)
    assert codec_cost.BOUNDS_NS.keys().isdisjoint(codec_cost.NO_SLOWER_THAN_PEER)


def test_at_their_bounds_all_are_kept() -> None:
    assert codec_cost.missed(AT_THE_BOUND, PEER) == []


def test_a_row_beyond_its_bound_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    for name in sorted(BOUNDS_NS):
        ours = {**AT_THE_BOUND, name: 1.01 * BOUNDS_NS[name]}
        (line,) = codec_cost.missed(ours, PEER)
        assert ROWS[name].code in line
        codec_cost.print_rows(ours, PEER)
        printed = capsys.readouterr().out
        assert "…" not in printed
        assert printed.count("MISSED:") == 1
