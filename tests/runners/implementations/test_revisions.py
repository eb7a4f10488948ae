"""Builds that are to be compared: a folder, or a revision of one, which is built aside."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fecbench.runners import scratch
from fecbench.runners.implementations.revisions import BUILDS, build_of
from tests.support import revisions
from tests.support.declarations import declare
from tests.support.refusals import refusal_of

BUILT = ["/bin/sh", "-c", "mkdir -p build && cat ../shared.txt mine.txt >build/small && chmod +x build/small"]
SMALL = Path("stacks/small")
Git = Callable[..., str]


@pytest.fixture
def git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Git:
    """A repository with an implementation that is built with what lies beside it, in two revisions."""
    top = tmp_path / "repository"
    (top / "stacks" / "small").mkdir(parents=True)
    monkeypatch.setenv(BUILDS, str(tmp_path / "builds"))
    monkeypatch.chdir(top)

    def git(*words: str) -> str:
        return revisions.git(top, *words)

    git("init", "--quiet")
    for number in (1, 2):
        Path("stacks/shared.txt").write_text(f"shared {number}\n")
        Path("stacks/small/mine.txt").write_text(f"mine {number}\n")
        declare(SMALL, "build/small", build=BUILT)
        revisions.commit(top)
    return git


def test_a_revision_is_built_with_what_lay_beside_it_then(git: Git) -> None:
    build = build_of("OLD", "stacks/small@HEAD~1")
    assert build.commit == git("rev-parse", "HEAD~1")
    assert (build.implementation.folder / "build/small").read_text() == "shared 1\nmine 1\n"
    assert not Path("stacks/small/build").exists()
    assert git("status", "--porcelain") == ""


def test_a_revision_is_built_once(git: Git) -> None:  # noqa: ARG001
    program = build_of("OLD", "stacks/small@HEAD").implementation.folder / "build/small"
    program.write_text("built before")
    program.chmod(0o755)
    again = build_of("NEW", "stacks/small@HEAD").implementation.folder / "build/small"
    assert again == program
    assert again.read_text() == "built before"


def test_what_a_killed_command_had_checked_out_is_removed_by_the_next_build(git: Git, tmp_path: Path) -> None:  # noqa: ARG001
    abandoned = tmp_path / "builds" / f"{scratch.PREFIX}1-abcdefgh"
    (abandoned / "files").mkdir(parents=True, mode=0o700)
    (abandoned / scratch.LOCK).touch()
    build_of("OLD", "stacks/small@HEAD")
    assert not abandoned.exists()


def test_a_folder_is_taken_as_it_is_whatever_it_is_called(git: Git) -> None:  # noqa: ARG001
    Path("stacks/small").rename("stacks/other@name")
    build = build_of("NEW", "stacks/other@name")
    assert (build.commit, build.implementation.declaration.name) == (None, "small")


NO_BUILDS = {
    "nowhere": "OLD nowhere: must be a folder with an impl.toml, or FOLDER@REVISION of git",
    "stacks": "OLD stacks: must be a folder with an impl.toml, or FOLDER@REVISION of git",
    "nowhere@HEAD": "OLD nowhere@HEAD: nowhere: there is no such folder",
    "stacks/small@v9": "has no revision 'v9'",
    "stacks/small@--all": "has no revision '--all'",
    "stacks@HEAD": "OLD stacks@HEAD: stacks has no impl.toml in revision",
    "/proc@HEAD": "OLD /proc@HEAD: /proc is in no git repository",
}


def test_what_is_no_build_is_refused_in_one_line(git: Git) -> None:  # noqa: ARG001
    for word, problem in NO_BUILDS.items():
        assert problem in refusal_of(build_of, "OLD", word)


def test_a_build_that_fails_is_refused_and_tried_again(git: Git) -> None:
    for command, problem in (("false", "false ended with 1"), ("no-such", "not installed")):
        declare(SMALL, "build/small", build=[command])
        git("commit", "--quiet", "--all", "--message", "broken")
        for _ in range(2):
            line = refusal_of(build_of, "OLD", "stacks/small@HEAD")
            assert "OLD stacks/small@HEAD: cannot be built: small: " in line and problem in line
