"""The database of a command: that of --db, else of FECBENCH_DB, else fecbench.sqlite in this folder."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fecbench.runners.refusal import Refusal

READERS = [
    ["show"],
    ["report", "--output", "report"],
    ["explain", "--output", "explained"],
    ["export", "--output", "x.csv"],
    ["aa", "between", "a", "b"],
]
WRITERS = [
    ["run", "smoke"],
    ["aa", "itself", "smoke", "--variant", "rQUIC, FEC off"],
    ["aa", "jobs", "smoke", "--against-jobs", "2"],
]


@pytest.fixture(autouse=True)
def an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FECBENCH_DB", raising=False)


def test_the_default_database_is_in_this_folder_and_reading_does_not_make_it(
    fecbench_here: Any, tmp_path: Path
) -> None:
    for words in READERS:
        assert "fecbench.sqlite: no such database" in fecbench_here(*words).refusal()
        assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("can_run_trials")
def test_running_makes_the_default_database_and_says_where_it_is(
    fecbench_here: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_: object) -> None:
        raise Refusal("enough")

    monkeypatch.setattr("fecbench.runners.campaign.campaign.run", run)
    line = "note: the database is fecbench.sqlite in this folder; choose another with --db or FECBENCH_DB"
    for words in WRITERS:
        assert fecbench_here(*words).stderr.splitlines() == [line, "fecbench: enough"]
        assert [path.name for path in tmp_path.iterdir()] == ["fecbench.sqlite"]
        (tmp_path / "fecbench.sqlite").unlink()


def test_the_default_database_is_told_once_and_not_among_the_results(
    fecbench_here: Any, plant: Callable[..., Path], tmp_path: Path
) -> None:
    plant(tmp_path / "fecbench.sqlite", points=1)
    result = fecbench_here("show", "--trials")
    assert result.returncode == 0
    assert result.stdout.startswith("campaign planted")
    assert result.stderr.count("\n") == 1
    assert "fecbench.sqlite" in result.stderr


def test_the_environment_names_the_database_and_the_option_goes_before_it(
    fecbench_here: Any, plant: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(tmp_path / "one.sqlite", points=1)
    plant(tmp_path / "two.sqlite", points=2)
    monkeypatch.setenv("FECBENCH_DB", "one.sqlite")
    by_environment, by_option = fecbench_here("show"), fecbench_here("show", "--db", "two.sqlite")
    assert "2 of 2 trials" in by_environment.stdout
    assert "4 of 4 trials" in by_option.stdout
    assert by_environment.stderr == by_option.stderr == ""
