from pathlib import Path

import pandas as pd
import pytest

from bench.synthetic import fill
from fecbench.results.analysis import frames
from fecbench.results.analysis.ratio_table import ratio_table
from fecbench.results.report import exploring
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo


@pytest.fixture
def read(tmp_path: Path) -> tuple[pd.DataFrame, CampaignInfo]:
    path = str(tmp_path / "campaign.sqlite")
    campaign = fill(path, "campaign", points=3, repetitions=2)
    with Database.open(path) as database:
        return frames.trials(database, campaign), campaign


def test_only_metrics_that_have_room_get_intervals(
    read: tuple[pd.DataFrame, CampaignInfo], monkeypatch: pytest.MonkeyPatch
) -> None:
    computed = []

    def counted(*arguments: object) -> object:
        computed.append(arguments)
        return ratio_table(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(exploring, "ratio_table", counted)
    others = list(exploring._others(*read, []))
    assert len(others) == len(computed) > 2
    rows = len(others[0]["point"])
    for room in (0, 1, 2):
        computed.clear()
        monkeypatch.setattr(exploring, "_MOST_ROWS", room * rows + rows // 2)
        assert len(list(exploring._others(*read, []))) == len(computed) == room


def test_fewer_trials_of_each_case_are_listed_the_more_cases_there_are(
    read: tuple[pd.DataFrame, CampaignInfo], monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = 3 * 4 * 4  # points, variants and workloads
    for most, of_each in ((2 * cases, 2), (2 * cases - 1, 1), (cases - 1, 0)):
        monkeypatch.setattr(exploring, "_MOST_TRIALS", most)
        listed = exploring._trials(*read)
        assert listed["of_each"] == of_each
        assert sum(len(ids) for ids, *_ in listed["cases"].values()) == of_each * cases
