"""quic-go.sh: build/quic-go is the published module with the patch, and the patch a part of the sources."""

import shutil
import subprocess
from pathlib import Path

import pytest

from fecbench.runners.implementations.toolchains import TOOLCHAINS

FOLDER = Path(__file__).parents[2] / "quic-impls" / "rquic"
PATCHED = "internal/congestion/cubic_sender.go"

pytestmark = pytest.mark.skipif(not TOOLCHAINS["go"].is_recent, reason=f"rquic {TOOLCHAINS['go'].problem}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with all that the script reads."""
    for name in ("quic-go.sh", "quic-go.patch", "go.mod", "go.sum"):
        shutil.copy(FOLDER / name, tmp_path)
    return tmp_path


def run(folder: Path) -> str:
    """Standard error of the script: empty if it succeeds."""
    result = subprocess.run([folder / "quic-go.sh"], capture_output=True, text=True, timeout=120)
    assert (result.returncode == 0) == (result.stderr == "")
    return result.stderr


def test_the_tree_is_made_once_and_anew_when_the_patch_has_changed(folder: Path) -> None:
    assert run(folder) == ""
    patched = folder / "build" / "quic-go" / PATCHED
    assert "PaceAsIn2020" in patched.read_text()
    inode = patched.stat().st_ino
    assert run(folder) == ""
    assert patched.stat().st_ino == inode
    patch = folder / "quic-go.patch"
    patch.write_text(patch.read_text().replace("PaceAsIn2020", "PaceAsBefore"))
    assert run(folder) == ""
    assert "PaceAsBefore" in patched.read_text()


def test_a_patch_that_does_not_apply_leaves_the_tree_as_it_was(folder: Path) -> None:
    assert run(folder) == ""
    patch = folder / "quic-go.patch"
    patch.write_text(patch.read_text().replace("\n-\tif c.InSlowStart() {", "\n-\tif c.InFastStart() {"))
    assert "quic-go.patch does not apply" in run(folder)
    assert "PaceAsIn2020" in (folder / "build" / "quic-go" / PATCHED).read_text()


def test_a_module_that_is_not_as_published_is_refused(folder: Path) -> None:
    sums = folder / "go.sum"
    sums.write_text(sums.read_text().replace("quic-go v0.65.0 h1:", "quic-go v0.65.0 h1:x"))
    assert run(folder) != ""
    assert not (folder / "build" / "quic-go").exists()


def test_the_patch_is_a_part_of_the_sources(tmp_path: Path) -> None:
    """The build hashes what its Makefile says."""
    copy = tmp_path / "quic-impls" / "rquic"
    shutil.copytree(FOLDER, copy, ignore=shutil.ignore_patterns("build"))
    for name in ("quic-impls/lane", "topologies/wire"):
        shutil.copytree(FOLDER.parents[1] / name, tmp_path / name, ignore=shutil.ignore_patterns("build"))
    shutil.copytree(
        FOLDER.parents[1] / "dropper", tmp_path / "dropper", ignore=shutil.ignore_patterns("build")
    )

    def sources() -> str:
        command = ["make", "--no-print-directory", "--eval", "told: ; @echo $(SOURCES)", "told"]
        return subprocess.run(command, cwd=copy, capture_output=True, text=True, check=True).stdout

    before = sources()
    with (copy / "quic-go.patch").open("a") as patch:
        patch.write("\n")
    assert sources() != before
