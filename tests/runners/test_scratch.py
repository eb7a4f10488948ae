"""Only the folders of dead harnesses are removed."""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from fecbench.runners import scratch


@pytest.fixture(autouse=True)
def own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


NAME = f"{scratch.PREFIX}1-abcdefgh"


def leave(path: Path) -> Path:
    """Make the folder of a killed harness."""
    path.mkdir(mode=0o700)
    (path / scratch.LOCK).touch()
    (path / "trial-0").mkdir()
    return path


def test_the_folder_of_a_running_harness_is_kept_and_an_abandoned_one_removed(tmp_path: Path) -> None:
    foreign = tmp_path / f"{scratch.PREFIX}of-somebody-else"
    foreign.mkdir()
    with scratch.folder() as running:
        abandoned = leave(tmp_path / NAME)
        assert scratch.remove_abandoned() == [abandoned]
        assert running.is_dir()
        assert foreign.is_dir()
    assert not running.exists()
    assert scratch.abandoned() == []


def test_a_harness_removes_what_a_killed_one_left_where_it_makes_its_own_folder(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    abandoned, left_elsewhere = leave(tmp_path / NAME), leave(elsewhere / NAME)
    with scratch.folder(elsewhere) as running:
        assert [*elsewhere.iterdir()] == [running]
        assert abandoned.exists()
    with scratch.folder() as running:
        assert not abandoned.exists()
    assert not left_elsewhere.exists()


def test_a_harness_whose_new_folder_is_taken_for_abandoned_makes_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock, removed = fcntl.flock, []

    def remove_before(lock: Any, how: int) -> None:
        if not removed:  # the other harness sees it before it is locked
            [path] = tmp_path.iterdir()
            removed.append(path)
            assert scratch.remove_abandoned() == [path]
        flock(lock, how)

    monkeypatch.setattr(fcntl, "flock", remove_before)
    with scratch.folder() as running:
        assert [*tmp_path.iterdir()] == [running]
        assert running not in removed


def test_a_folder_that_another_harness_removes_meanwhile_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    abandoned = leave(tmp_path / NAME)

    def remove(path: Path) -> bool:
        shutil.rmtree(path)
        return False

    monkeypatch.setattr(scratch, "_is_unlocked", remove)
    with scratch.folder() as running:
        assert not abandoned.exists()
        assert list(tmp_path.iterdir()) == [running]


@pytest.mark.parametrize("name", ["a file", "a folder"])
def test_what_a_killed_harness_left_and_cannot_be_removed_hinders_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    abandoned = leave(tmp_path / NAME)
    (abandoned / "a folder").mkdir()
    (abandoned / "a file").touch()

    def refuse(remove: Any) -> Any:
        def refused(path: Any, **more: Any) -> None:
            if Path(path).name == name:
                raise PermissionError("Operation not permitted")
            remove(path, **more)

        return refused

    monkeypatch.setattr(os, "unlink", refuse(os.unlink))
    monkeypatch.setattr(os, "rmdir", refuse(os.rmdir))
    with scratch.folder() as running:
        assert running.is_dir()
    assert (abandoned / name).exists()


KILLED_WHILE_IT_REMOVES = """
import os, signal, sys
from fecbench.runners import scratch
left = int(sys.argv[1])
def count(remove):
    def counted(*arguments, **more):
        global left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        remove(*arguments, **more)
    return counted
with scratch.folder() as folder:
    for name in "abc":
        (folder / name).mkdir()
        (folder / name / "file").touch()
    listed = scratch.Path.iterdir  # a file system may list the lock first
    scratch.Path.iterdir = lambda path: sorted(listed(path), key=lambda inner: inner.name != scratch.LOCK)
    os.unlink, os.rmdir = count(os.unlink), count(os.rmdir)
"""


@pytest.mark.parametrize("removals", range(8))
def test_a_harness_that_is_killed_while_it_removes_its_folder_leaves_one_that_is_removed(
    tmp_path: Path, removals: int
) -> None:
    command = [sys.executable, "-c", KILLED_WHILE_IT_REMOVES, str(removals)]
    killed = subprocess.run(command, env={**os.environ, "TMPDIR": str(tmp_path)})
    assert killed.returncode == -signal.SIGKILL
    [abandoned] = tmp_path.iterdir()
    assert scratch.remove_abandoned() == [abandoned]
    assert list(tmp_path.iterdir()) == []


KILLED_BEFORE_ITS_LOCK = """
import os, signal
from fecbench.runners import scratch
scratch.Path.open = lambda *_, **more: os.kill(os.getpid(), signal.SIGKILL)
with scratch.folder():
    pass
"""


def test_the_folder_of_a_harness_that_was_killed_before_it_had_the_lock_is_removed(tmp_path: Path) -> None:
    killed = subprocess.run(
        [sys.executable, "-c", KILLED_BEFORE_ITS_LOCK], env={**os.environ, "TMPDIR": str(tmp_path)}
    )
    assert killed.returncode < 0
    [abandoned] = tmp_path.iterdir()
    assert list(abandoned.iterdir()) == []
    assert scratch.remove_abandoned() == [abandoned]
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_a_lock_is_kept_unless_it_is_an_empty_one_of_ours(tmp_path: Path) -> None:
    """Another process may have the number of its maker by now."""
    empty = [
        tmp_path / f"{scratch.PREFIX}{process}-abcdefgh" for process in sorted((os.getpid(), 1), key=str)
    ]
    full = tmp_path / f"{scratch.PREFIX}2-abcdefgh"
    of_another_name = tmp_path / f"{scratch.PREFIX}2"
    of_another_user = tmp_path / f"{scratch.PREFIX}2-12345678"
    for path in (*empty, full, of_another_name, of_another_user):
        path.mkdir()
    (full / "note").touch()
    if os.geteuid() == 0:
        os.chown(of_another_user, 12345, -1)
    else:
        of_another_user.rmdir()
    before = set(tmp_path.iterdir())
    assert scratch.remove_abandoned() == empty
    assert set(tmp_path.iterdir()) == before - set(empty)


MAKES = """
from fecbench.runners import scratch
for _ in range(200):
    with scratch.folder() as folder:
        (folder / "file").touch()
"""
REMOVES = """
import time
from fecbench.runners import scratch
print("begins", flush=True)
ends_at = time.monotonic() + 60  # whatever becomes of the test
while time.monotonic() < ends_at:
    scratch.remove_abandoned(ignore_errors=True)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes namespaces")
def test_a_harness_keeps_its_folder_whatever_one_in_another_pid_namespace_takes_for_left_over(
    tmp_path: Path,
) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    elsewhere = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, "-c", REMOVES]
    with subprocess.Popen(elsewhere, env=environment, stdout=subprocess.PIPE) as remover:
        assert remover.stdout
        assert remover.stdout.readline()
        makers = [subprocess.Popen([sys.executable, "-c", MAKES], env=environment) for _ in range(2)]
        statuses = [maker.wait() for maker in makers]
        remover.kill()
    assert statuses == [0, 0]
    assert scratch.remove_abandoned() == list(tmp_path.iterdir()) == []


def test_a_link_to_a_folder_is_left_alone_and_keeps_nothing_from_being_removed(tmp_path: Path) -> None:
    target = leave(tmp_path / "of-somebody")
    link = tmp_path / f"{scratch.PREFIX}0-abcdefgh"  # comes before
    link.symlink_to(target)
    nowhere = tmp_path / f"{scratch.PREFIX}0-bcdefghi"
    nowhere.symlink_to(tmp_path / "nowhere")
    abandoned = leave(tmp_path / NAME)
    assert scratch.remove_abandoned() == [abandoned]
    assert link.is_symlink()
    assert nowhere.is_symlink()
    assert (target / "trial-0").is_dir()


def test_a_folder_of_another_user_or_name_or_into_which_others_may_write_is_left_alone(
    tmp_path: Path,
) -> None:
    for name in ("fecbench-x", "fecbench-1", "fecbench-1-abc", "xfecbench-1-abcdefgh"):
        leave(tmp_path / name)
    (tmp_path / f"{scratch.PREFIX}1-of__file").touch()
    folder = leave(tmp_path / NAME)
    for mode in (0o770, 0o707, 0o777):
        folder.chmod(mode)
        assert scratch.remove_abandoned() == []
    folder.chmod(0o700)
    if os.geteuid() == 0:
        os.chown(folder, 12345, -1)
        assert scratch.remove_abandoned() == []
        os.chown(folder, 0, -1)
    assert scratch.remove_abandoned() == [folder]


@pytest.mark.parametrize("of_others", [False, True])
def test_what_cannot_be_removed_is_an_error_unless_programs_of_others_left_it(
    monkeypatch: pytest.MonkeyPatch, of_others: bool
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError("Operation not permitted")

    expected = nullcontext() if of_others else pytest.raises(PermissionError)
    with expected, scratch.folder(of_others=of_others):
        monkeypatch.setattr(os, "rmdir", refuse)


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in the place of the one in memory, beside temporary files that go where Linux has them."""
    monkeypatch.setattr(tempfile, "tempdir", "/tmp")
    monkeypatch.setattr(scratch, "MEMORY", tmp_path)
    return tmp_path


def test_small_files_are_kept_in_memory(memory: Path) -> None:
    assert scratch.memory() == memory
    with scratch.folder(scratch.memory()) as folder:
        assert folder.parent == memory


@pytest.mark.parametrize("lacking", ["room", "rights", "the folder", "the default"])
def test_small_files_are_on_the_disk_where_memory_has_no_place_for_them(
    memory: Path, monkeypatch: pytest.MonkeyPatch, lacking: str
) -> None:
    if lacking == "room":
        status = os.statvfs(memory)
        monkeypatch.setattr(scratch, "ROOM_BYTES", (status.f_bavail + (1 << 20)) * status.f_frsize)
    elif lacking == "rights":
        monkeypatch.setattr(os, "access", lambda path, _: path != memory)
    elif lacking == "the folder":
        monkeypatch.setattr(scratch, "MEMORY", memory / "nowhere")
    else:
        monkeypatch.setattr(tempfile, "tempdir", str(memory))
    assert scratch.memory() is None


def test_what_a_killed_harness_left_in_memory_is_removed(memory: Path) -> None:
    abandoned = leave(memory / NAME)
    assert abandoned in scratch.remove_abandoned()
    assert not abandoned.exists()


def test_memory_is_not_looked_at_where_somebody_chose_another_place(
    memory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    another = tmp_path / "another"
    another.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(another))
    abandoned = leave(memory / NAME)
    assert scratch.remove_abandoned() == []
    assert abandoned.exists()
