"""noq-proto.sh: the patches give the tree that gives the patches, no edit is thrown away; FEC comes last."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from fecbench.runners.implementations.toolchains import TOOLCHAINS

FOLDER = Path(__file__).parents[2] / "quic-impls" / "noq-fec"
FEC = re.compile(r"(?<![a-z])fec(?![a-z])|erasure|symbol|repair", re.IGNORECASE)
GIT = ["git", "-c", "user.name=test", "-c", "user.email=test@localhost"]

pytestmark = pytest.mark.skipif(
    not TOOLCHAINS["rust"].is_recent, reason=f"noq-fec {TOOLCHAINS['rust'].problem}"
)


@pytest.fixture
def folder(applied: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    subprocess.run(["cp", "--archive", f"{applied}/.", tmp_path], check=True)
    return tmp_path


def run(folder: Path, command: str) -> str:
    """Standard error of the script: empty if it succeeds."""
    result = subprocess.run([folder / "noq-proto.sh", command], capture_output=True, text=True, timeout=120)
    assert (result.returncode == 0) == (result.stderr == "")
    return result.stderr


def series(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in (folder / "patches").iterdir()}


def test_the_series_is_made_again_as_it_was(folder: Path) -> None:
    before = series(folder)
    assert run(folder, "refresh") == ""
    assert series(folder) == before


def test_patches_without_fec_come_first_and_do_not_mention_it() -> None:
    patches = [path.read_text() for path in sorted((FOLDER / "patches").iterdir())]
    first = next(number for number, patch in enumerate(patches) if "+++ b/src/fec.rs" in patch)
    assert [mentions_fec(patch) for patch in patches] == [number >= first for number in range(len(patches))]


def mentions_fec(patch: str) -> bool:
    """Whether FEC is in a patch's message, in the names of its files or in the lines that it adds."""
    message, *files = patch.split("\ndiff --git ")
    added = [line for file in files for line in file.splitlines() if line.startswith("+")]
    return any(FEC.search(line) for line in [*message.splitlines(), *added])


def test_an_edit_becomes_a_patch_once_it_is_committed_and_is_never_thrown_away(folder: Path) -> None:
    tree = folder / "build" / "noq-proto"
    before = series(folder)
    with (tree / "src" / "lib.rs").open("a") as source:
        source.write("// edited\n")
    assert "has edits" in run(folder, "apply")
    assert "not committed" in run(folder, "refresh")
    subprocess.run([*GIT, "commit", "--quiet", "--all", "--message", "Edit"], cwd=tree, check=True)
    assert "other commits" in run(folder, "apply")
    assert run(folder, "refresh") == ""
    added = series(folder).keys() - before.keys()
    assert [series(folder)[name].count("+// edited\n") for name in added] == [1]
    assert run(folder, "apply") == ""


@pytest.mark.parametrize("missing", [".", ".git/refs/tags/published"])
def test_the_series_is_kept_when_there_is_no_tree_to_make_it_from(folder: Path, missing: str) -> None:
    # As in a clone: the repository above is not to be taken for the tree's.
    subprocess.run([*GIT, "init", "--quiet"], cwd=folder, check=True)
    before = series(folder)
    remove(folder / "build" / "noq-proto" / missing)
    assert run(folder, "refresh") != ""
    assert series(folder) == before


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def test_a_patch_that_does_not_apply_leaves_a_tree_for_the_work_that_it_takes(folder: Path) -> None:
    tree = folder / "build" / "noq-proto"
    third = sorted((folder / "patches").iterdir())[2]
    third.write_text(third.read_text().replace("\n-", "\n-not what is there ", 1))
    before = series(folder)
    for _ in range(2):
        assert "patch 3 of patches/ does not apply" in run(folder, "apply")
    assert "in the midst of git am" in run(folder, "refresh")
    assert series(folder) == before

    subprocess.run([*GIT, "am", "--skip"], cwd=tree, capture_output=True)
    (tree / "ported").touch()
    assert "has edits" in run(folder, "apply")
    subprocess.run([*GIT, "am", "--quit"], cwd=tree, capture_output=True)
    subprocess.run([*GIT, "add", "ported"], cwd=tree, check=True)
    subprocess.run([*GIT, "commit", "--quiet", "--message", "Port"], cwd=tree, check=True)
    assert "other commits" in run(folder, "apply")
    assert run(folder, "refresh") == ""
    assert any("ported" in patch for patch in series(folder).values())
    assert run(folder, "apply") == ""


def test_commits_on_another_branch_and_stashes_are_not_thrown_away(folder: Path) -> None:
    tree = folder / "build" / "noq-proto"
    with (tree / "src" / "lib.rs").open("a") as source:
        source.write("// edited\n")
    subprocess.run([*GIT, "stash", "--quiet"], cwd=tree, check=True)
    assert "other commits" in run(folder, "apply")
    subprocess.run([*GIT, "stash", "drop", "--quiet"], cwd=tree, check=True)
    assert run(folder, "apply") == ""


def test_a_commit_that_was_taken_away_is_not_put_back(folder: Path) -> None:
    tree = folder / "build" / "noq-proto"
    before = series(folder)
    subprocess.run([*GIT, "reset", "--quiet", "--hard", "HEAD~1"], cwd=tree, check=True)
    assert "other commits" in run(folder, "apply")
    assert run(folder, "refresh") == ""
    assert len(series(folder)) == len(before) - 1


def test_another_crate_than_the_pinned_one_is_refused(folder: Path) -> None:
    script = folder / "noq-proto.sh"
    script.write_text(script.read_text().replace("SHA256=c0", "SHA256=c1"))
    assert "is not noq-proto 1.4.0 as published" in run(folder, "apply")


@pytest.fixture(scope="module")
def applied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the script, the patches, and the tree that they give."""
    folder = tmp_path_factory.mktemp("applied")
    shutil.copy(FOLDER / "noq-proto.sh", folder)
    shutil.copytree(FOLDER / "patches", folder / "patches")
    assert run(folder, "apply") == ""
    return folder
