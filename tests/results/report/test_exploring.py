from pathlib import Path
from unittest.mock import Mock

import pandas as pd
import pytest
import vl_convert

from bench.synthetic import fill
from fecbench.results.analysis import frames
from fecbench.results.analysis.pairing import baselines_of, of_arms
from fecbench.results.analysis.ratio_table import ratio_table
from fecbench.results.metrics import choose, of
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


def test_the_library_of_charts_is_built_once_for_all_reports_and_each_time_where_it_cannot_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = Mock(return_value="window.ü = 1;")
    monkeypatch.setattr(vl_convert, "javascript_bundle", build)

    def of_new_process(caches: Path) -> str:
        monkeypatch.setenv("XDG_CACHE_HOME", str(caches))
        exploring._built_library.cache_clear()
        return exploring._library.__wrapped__()

    try:
        assert [of_new_process(tmp_path) for _ in range(3)] == ["window.ü = 1;"] * 3
        assert build.call_count == 1
        (script,) = (file for file in tmp_path.rglob("*") if file.is_file())
        assert script.read_text(encoding="utf-8") == "window.ü = 1;"
        script.write_bytes(b"\xff")
        assert of_new_process(tmp_path) == script.read_text(encoding="utf-8") == "window.ü = 1;"
        (tmp_path / "file").touch()
        assert of_new_process(tmp_path / "file") == "window.ü = 1;"
        assert build.call_count == 3
    finally:
        exploring._built_library.cache_clear()


def test_a_metric_that_has_no_ratio_of_one_arm_is_paired_for_no_other(
    read: tuple[pd.DataFrame, CampaignInfo], monkeypatch: pytest.MonkeyPatch
) -> None:
    frame, campaign = read
    frame = frame[frame["state"] == "ok"].copy()
    first, *_ = baselines_of(campaign)
    sent, lost = "client.packets_sent", "client.packets_lost"
    frame.loc[frame["variant"] == first, sent] = 0.0
    baselines = list(baselines_of(campaign).values())
    frame.loc[frame["variant"].isin(baselines), lost] = 0.0
    paired_arms = []

    def counted(*arguments: object) -> object:
        paired_arms.append(arguments[3])
        return of_arms(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(exploring, "of_arms", counted)
    for name, arms in ((sent, [first]), (lost, [])):
        paired_arms.clear()
        assert exploring._with_logarithms(frame, choose(campaign, name), of(name)) == {}
        assert paired_arms == arms
    received = "client.packets_received"
    pairings = exploring._with_logarithms(frame, choose(campaign, received), of(received))
    assert list(pairings) == list(baselines_of(campaign))
