"""Only what a dead harness left is removed."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from runners.engines import scratch


@pytest.fixture(autouse=True)
def own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.fixture(scope="module")
def gone() -> int:
    """The id of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


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


KILLED_BEFORE_ITS_LOCK = """
import os, signal
from runners.engines import scratch
scratch.Path.open = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
with scratch.folder():
    pass
"""


def test_the_folder_of_a_harness_that_was_killed_before_it_had_the_lock_is_removed(tmp_path: Path) -> None:
    killed = subprocess.run(
        [sys.executable, "-c", KILLED_BEFORE_ITS_LOCK], env={**os.environ, "TMPDIR": str(tmp_path)}
    )
    assert killed.returncode < 0
    [left] = tmp_path.iterdir()
    assert list(left.iterdir()) == []
    assert scratch.remove_abandoned() == [left]
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_a_lock_is_kept_unless_it_is_an_empty_one_of_ours_and_its_maker_is_gone(
    tmp_path: Path, gone: int
) -> None:
    alive = tmp_path / f"{scratch.PREFIX}{os.getpid()}-abcdefgh"
    full = tmp_path / f"{scratch.PREFIX}{gone}-abcdefgh"
    of_another_name = tmp_path / f"{scratch.PREFIX}{gone}"
    of_another_user = tmp_path / f"{scratch.PREFIX}{gone}-12345678"
    folders = {alive, full, of_another_name, of_another_user}
    for path in folders:
        path.mkdir()
    (full / "note").touch()
    if os.geteuid() == 0:
        os.chown(of_another_user, 12345, -1)
    else:
        of_another_user.rmdir()
    before = set(tmp_path.iterdir())
    assert scratch.remove_abandoned() == []
    assert set(tmp_path.iterdir()) == before
