"""The builds of a comparison for which the user names one or none, and those that may have been exchanged."""

import re
from pathlib import Path

import pytest

from fecbench.runners.implementations.base import description, swapped, words
from fecbench.runners.implementations.revisions import BUILDS, build_of
from tests.support import revisions
from tests.support.declarations import declare
from tests.support.refusals import refusal_of


@pytest.fixture
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with two commits on main and one on a branch, in the folder of its stack."""
    top = tmp_path / "repository"
    stack = top / "stack"
    stack.mkdir(parents=True)
    monkeypatch.setenv(BUILDS, str(tmp_path / "builds"))
    monkeypatch.chdir(stack)
    revisions.git(top, "init", "--quiet", "--initial-branch=main")
    for number in (1, 2):
        declare(stack, title=str(number))
        revisions.commit(top)
    git("checkout", "--quiet", "-b", "work")
    declare(stack, title="3")
    revisions.commit(top)
    return stack


def git(*arguments: str) -> str:
    return revisions.git(Path(), *arguments)


def test_without_arguments_the_merge_base_is_old_and_the_folder_as_it_is_new(stack: Path) -> None:
    base = git("rev-parse", "main")
    assert words("", "") == (f".@{base[:12]}", ".")
    assert words(".@main~1", "") == (".@main~1", ".")
    assert words("a", "b") == ("a", "b")
    git("checkout", "--quiet", "main")
    assert "nothing has changed since main" in refusal_of(lambda: words("", ""))
    declare(stack, title="changed")
    assert words("", "") == (f".@{base[:12]}", ".")


def test_the_default_branch_of_the_origin_goes_before_a_local_one(stack: Path) -> None:  # noqa: ARG001
    first = git("rev-parse", "main~1")
    git("update-ref", "refs/remotes/origin/trunk", first)
    git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk")
    assert words("", "")[0] == f".@{first[:12]}"


def test_where_nothing_is_to_be_compared_a_refusal_says_what_to_name(
    stack: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git("branch", "-m", "main", "other")
    assert "none of origin/main, origin/master, main, master" in refusal_of(lambda: words("", ""))
    monkeypatch.chdir(stack.parent)
    assert "must be a folder with an impl.toml" in refusal_of(lambda: words("", ""))
    alone = tmp_path / "alone"
    alone.mkdir()
    declare(alone)
    monkeypatch.chdir(alone)
    assert "is in no git repository" in refusal_of(lambda: words("", ""))


def test_a_new_build_that_is_older_than_the_old_one_is_warned_of(stack: Path) -> None:
    for old, new, warned in (
        (".", ".@main", True),
        (".@work", ".@main", True),
        (".@main", ".@work", False),
        (".@main", ".", False),
        (".", ".@work", False),
        (".@main", ".@main", False),
    ):
        warning = swapped(build_of("OLD", old), build_of("NEW", new))
        assert bool(warning) == warned, (old, new)
        assert not warned or f"NEW {new} is older than OLD {old}" in warning
    declare(stack, title="changed")
    assert swapped(build_of("OLD", "."), build_of("NEW", ".@HEAD"))


def test_each_build_is_told_with_its_commit_or_what_has_changed(stack: Path) -> None:
    commit = git("rev-parse", "HEAD")[:12]
    pattern = rf"new: \.@HEAD: commit {commit}, \d{{4}}-\d\d-\d\d .+"
    assert re.fullmatch(pattern, description("new", build_of("NEW", ".@HEAD")))
    assert description("old", build_of("OLD", ".")).endswith(f"nothing changed since commit {commit}")
    declare(stack, title="changed")
    assert description("old", build_of("OLD", ".")).endswith(f"1 file changed since commit {commit}")
