"""A file that a command writes is whole or absent, whatever ends the command."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from fecbench.results.figures.saving import save
from fecbench.whole_files import replacing, write_text

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

    def fill_the_disk(_: Figure, path: Path, **__: object) -> None:
        path.write_bytes(b"half of")
        raise OSError("no room")

    monkeypatch.setattr(Figure, "savefig", fill_the_disk)
    with pytest.raises(OSError, match="no room"):
        save(Figure(), file)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {file.name: b"before"}
