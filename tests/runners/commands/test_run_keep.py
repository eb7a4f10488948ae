"""`fecbench run --keep`: what becomes of the files of trials."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.designs import workload

ONE = ["--filter", "point=0", "--filter", "repetition=0"]
TOO_SHORT = {"timeout_s": 0.3, "workloads": [workload(size_bytes=5_000_000)]}


def ids(fecbench: Any, database: Path) -> set[str]:
    """The folders that all runs of all trials have when they are kept."""
    return {f"trial-{run['id']}" for trial in fecbench.trials(database) for run in trial["attempts"]}


@pytest.mark.usefixtures("can_run_trials")
def test_the_files_of_all_trials_are_kept_and_those_of_another_database_replaced(
    fecbench: Any, little_design: Path, tmp_path: Path
) -> None:
    database, kept = tmp_path / "x.sqlite", tmp_path / "not" / "yet" / "kept"
    stale = kept / "trial-1" / "stale"
    stale.mkdir(parents=True)
    fecbench.run(little_design, database, *ONE, "--keep", "all", kept)
    assert {path.name for path in kept.iterdir()} == ids(fecbench, database)
    for folder in kept.iterdir():
        assert {"client.json", "server.json", "client", "server"} <= {path.name for path in folder.iterdir()}
    assert not stale.exists()


@pytest.mark.usefixtures("can_run_trials")
def test_the_files_of_trials_that_are_not_ok_are_kept_and_no_others(
    fecbench: Any, write_design: Callable[..., Path], little_design: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "kept"
    database = tmp_path / "x.sqlite"
    fecbench.run(little_design, database, *ONE, "--keep", "failed", folder)
    states = {
        f"trial-{run['id']}": run["state"] for trial in fecbench.trials(database) for run in trial["attempts"]
    }
    assert {path.name for path in folder.iterdir()} == {name for name in states if states[name] != "ok"}
    (tmp_path / "short").mkdir()
    design, other = write_design(tmp_path / "short", **TOO_SHORT), tmp_path / "short" / "x.sqlite"
    fecbench.run(design, other, *ONE, "--keep", "failed", tmp_path / "timeouts")
    assert {path.name for path in (tmp_path / "timeouts").iterdir()} == ids(fecbench, other)


def test_a_wrong_call_is_refused_before_a_database_is_made(
    fecbench_here: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    for options, message in (
        (["fialed", "kept"], "--keep fialed kept: must be failed DIR or all DIR; did you mean 'failed'?"),
        (["all", "file"], "--keep file: cannot be made a folder"),
        (["all"], "Option '--keep' requires 2 arguments"),
    ):
        assert message in fecbench_here("run", "smoke", "--db", "x.sqlite", "--keep", *options).refusal()
        assert [path.name for path in tmp_path.iterdir()] == ["file"]
