"""Only what a dead harness left is removed."""

import tempfile
from pathlib import Path

import pytest

from runners import scratch


@pytest.fixture(autouse=True)
def own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_the_folder_of_a_running_harness_is_kept_and_an_abandoned_one_removed(tmp_path: Path) -> None:
    abandoned = tmp_path / f"{scratch.PREFIX}dead"
    abandoned.mkdir()
    (abandoned / scratch.LOCK).touch()
    (abandoned / "trial-0").mkdir()
    foreign = tmp_path / f"{scratch.PREFIX}of-somebody-else"
    foreign.mkdir()
    with scratch.folder() as running:
        assert scratch.remove_abandoned() == [abandoned]
        assert running.is_dir()
        assert foreign.is_dir()
    assert not running.exists()
    assert scratch.abandoned() == []
