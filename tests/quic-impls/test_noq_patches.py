"""noq-proto.sh: the patches give the tree that gives the patches, and no edit is thrown away."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from runners.toolchains import TOOLCHAINS

FOLDER = Path(__file__).parents[2] / "quic-impls" / "noq-fec"
GIT = ["git", "-c", "user.name=test", "-c", "user.email=test@localhost"]

pytestmark = pytest.mark.skipif(
    not TOOLCHAINS["rust"].is_recent, reason=f"noq-fec {TOOLCHAINS['rust'].problem}"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the script, the patches, and the tree that they give."""
    shutil.copy(FOLDER / "noq-proto.sh", tmp_path)
    shutil.copytree(FOLDER / "patches", tmp_path / "patches")
    assert run(tmp_path, "apply") == ""
    return tmp_path


def run(folder: Path, command: str) -> str:
    """Standard error of the script: empty if it succeeds."""
    done = subprocess.run([folder / "noq-proto.sh", command], capture_output=True, text=True, timeout=120)
    assert (done.returncode == 0) == (done.stderr == "")
    return done.stderr


def series(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in (folder / "patches").iterdir()}


def test_the_series_is_made_again_as_it_was(folder: Path) -> None:
    before = series(folder)
    assert run(folder, "refresh") == ""
    assert series(folder) == before


def test_an_edit_becomes_a_patch_once_it_is_committed_and_is_never_thrown_away(folder: Path) -> None:
    tree = folder / "build" / "noq-proto"
    before = series(folder)
    with (tree / "src" / "lib.rs").open("a") as source:
        source.write("// edited\n")
    assert "has edits" in run(folder, "apply")
    assert "not committed" in run(folder, "refresh")
    subprocess.run([*GIT, "commit", "--quiet", "--all", "--message", "Edit"], cwd=tree, check=True)
    assert "commits that are not in patches/" in run(folder, "apply")
    assert run(folder, "refresh") == ""
    added = series(folder).keys() - before.keys()
    assert [series(folder)[name].count("+// edited\n") for name in added] == [1]
    assert run(folder, "apply") == ""


def test_another_crate_than_the_pinned_one_is_refused(folder: Path) -> None:
    script = folder / "noq-proto.sh"
    script.write_text(script.read_text().replace("SHA256=c0", "SHA256=c1"))
    shutil.rmtree(folder / "build" / "noq-proto")
    assert "is not noq-proto 1.4.0 as published" in run(folder, "apply")
