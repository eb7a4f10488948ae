from pathlib import Path

import pytest

from bench.synthetic import fill
from fecbench.results.analysis import frames
from fecbench.results.analysis.ratios import ratio_table
from fecbench.results.report import exploring
from fecbench.results.store.database import Database


def test_only_metrics_that_have_room_get_intervals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, computed = str(tmp_path / "campaign.sqlite"), []
    campaign = fill(path, "campaign", points=3, repetitions=2)
    with Database.open(path) as database:
        frame = frames.trials(database, campaign)

    def counted(*arguments: object) -> object:
        computed.append(arguments)
        return ratio_table(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(exploring, "ratio_table", counted)
    others = list(exploring._others(frame, campaign, []))
    assert len(others) == len(computed) > 2
    rows = len(others[0]["point"])
    for room in (0, 1, 2):
        computed.clear()
        monkeypatch.setattr(exploring, "_MOST_ROWS", room * rows + rows // 2)
        assert len(list(exploring._others(frame, campaign, []))) == len(computed) == room
