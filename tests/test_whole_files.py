"""A file that a command writes is whole or absent, whatever ends the command."""

import errno
import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from fecbench.results.figures.saving import save
from fecbench.whole_files import filling, replacing, write_text

KILLED = """
import os, signal, sys
from pathlib import Path
from fecbench.whole_files import replacing
with replacing(Path(sys.argv[1])) as unfinished:
    unfinished.write_text("half of")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_kill_leaves_the_file_of_before_and_the_next_command_what_it_writes_alone(tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    write_text(file, "before")
    killed = subprocess.run([sys.executable, "-c", KILLED, file])
    assert killed.returncode == -signal.SIGKILL
    assert file.read_text() == "before"
    write_text(file, "after")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"trace.json": "after"}


@pytest.mark.parametrize("error", [OSError("no room"), KeyboardInterrupt()])
def test_an_error_leaves_the_file_of_before_alone(tmp_path: Path, error: BaseException) -> None:
    file = tmp_path / "trace.json"
    write_text(file, "before")
    with pytest.raises(type(error)), replacing(file) as unfinished:
        unfinished.write_text("half of")
        raise error
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"trace.json": "before"}


def test_a_full_disk_is_an_error_that_names_the_file_and_not_the_unfinished_one(tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    with pytest.raises(OSError, match=f"No space left on device: '{file}'$"), replacing(file):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    missing = tmp_path / "missing" / "trace.json"
    with pytest.raises(OSError, match=f"No such file or directory: '{missing}'$"):
        write_text(missing, "text")


def test_a_link_stays_one_and_what_it_leads_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    file = tmp_path / "elsewhere" / "trace.json"
    link = tmp_path / "link.json"
    link.symlink_to(file)
    write_text(link, "after")
    assert link.is_symlink()
    assert file.read_text() == "after"
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_a_figure_that_cannot_be_finished_leaves_the_one_of_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    file = tmp_path / f"figure{suffix}"
    file.write_bytes(b"before")

    def end_halfway(_: Figure, drawing: io.BytesIO, **__: object) -> None:
        drawing.write(b"half of")
        raise OSError("no room")

    monkeypatch.setattr(Figure, "savefig", end_halfway)
    with pytest.raises(OSError, match="no room"):
        save(Figure(), file)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {file.name: b"before"}


@pytest.mark.parametrize("before", [{}, {"kept": "before", "page": "before"}])
def test_a_folder_gets_all_that_was_written_beside_what_it_had(
    tmp_path: Path, before: dict[str, str]
) -> None:
    folder = tmp_path / "above" / "report"
    for name, text in before.items():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    with filling(folder) as unfinished:
        (unfinished / "page").write_text("after")
        (unfinished / "figure").write_text("after")
    assert {path.name: path.read_text() for path in folder.iterdir()} == (
        before | {"page": "after", "figure": "after"}
    )
    assert list(folder.parent.iterdir()) == [folder]


@pytest.mark.parametrize("error", [OSError("no room"), KeyboardInterrupt()])
@pytest.mark.parametrize("before", [{}, {"kept": "before", "page": "before"}])
def test_an_error_leaves_the_folder_of_before_and_an_absent_one_absent(
    tmp_path: Path, before: dict[str, str], error: BaseException
) -> None:
    folder = tmp_path / "above" / "report"
    for name, text in before.items():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    with pytest.raises(type(error)), filling(folder) as unfinished:
        (unfinished / "page").write_text("half of")
        raise error
    if before:
        assert {path.name: path.read_text() for path in folder.iterdir()} == before
    else:
        assert list(tmp_path.iterdir()) == []


KILLED_WHILE_IT_FILLS = """
import os, signal, sys
from pathlib import Path
from fecbench.whole_files import filling
with filling(Path(sys.argv[1])) as unfinished:
    (unfinished / "page").write_text("half of")
    (unfinished / "another").write_text("half of")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("is_there", [False, True])
def test_what_a_killed_command_left_of_a_folder_is_gone_with_the_next(tmp_path: Path, is_there: bool) -> None:
    folder = tmp_path / "report"
    if is_there:
        folder.mkdir()
    killed = subprocess.run([sys.executable, "-c", KILLED_WHILE_IT_FILLS, folder])
    assert killed.returncode == -signal.SIGKILL
    assert not (folder / "page").exists()
    with filling(folder) as unfinished:
        (unfinished / "page").write_text("after")
    assert list(tmp_path.rglob("*")) == [folder, folder / "page"]
