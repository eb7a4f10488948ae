"""The builds that `fecbench compare` compares without OLD and NEW: the present folder, and its merge base.
The merge base is the last commit that the user's work has in common with the default branch of its
repository."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from fecbench.quantities import counted
from fecbench.runners.implementations.implementation import DECLARATION
from fecbench.runners.implementations.revisions import SHOWN, Build, git
from fecbench.runners.refusal import Refusal

_BRANCHES = ("origin/main", "origin/master", "main", "master")
"""Default branches of a repository that does not name its own."""


def words(old: str, new: str) -> tuple[str, str]:
    """Return what names the two builds, with what a user left out: NEW is this folder, OLD its merge base.

    Raises Refusal where that is no build, or nothing has changed since.
    """
    new = new or "."
    return old or _merge_base(Path(new)), new


def _merge_base(folder: Path) -> str:
    if not (folder / DECLARATION).is_file():
        raise Refusal(
            f"{folder}: must be a folder with an {DECLARATION}: go there, or name both builds, such as"
            " .@HEAD~1 and ."
        )
    if not git(folder, "rev-parse", "--show-toplevel"):
        raise Refusal(f"{folder}: is in no git repository: name both builds, OLD and NEW")
    branch = _default_branch(folder)
    base = git(folder, "merge-base", "HEAD", branch)
    if not base:
        raise Refusal(f"{folder}: HEAD has no commit in common with {branch}: name OLD, such as .@HEAD~1")
    if base == git(folder, "rev-parse", "HEAD") and not changed_files(folder):
        raise Refusal(f"{folder}: nothing has changed since {branch}: name OLD, such as .@HEAD~1")
    return f"{folder}@{base[:SHOWN]}"


def _default_branch(folder: Path) -> str:
    head = git(folder, "symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD")
    branches = [
        name for name in (head, *_BRANCHES) if name and git(folder, "rev-parse", "--verify", "-q", name)
    ]
    if not branches:
        raise Refusal(
            f"{folder}: its repository has none of {', '.join(_BRANCHES)}: name OLD, such as .@HEAD~1"
        )
    return branches[0]


def changed_files(folder: Path) -> int:
    """Return how many files of its repository are not as HEAD has them."""
    top = git(folder, "rev-parse", "--show-toplevel")
    return len(git(Path(top), "status", "--porcelain").splitlines()) if top else 0


def description(which: str, build: Build) -> str:
    """Return a build in a line: the commit, or the folder with its changes."""
    folder = build.implementation.folder
    if build.commit is not None:
        subject = git(build.tree or folder, "log", "-1", "--format=%cs %s", build.commit)
        return f"{which}: {build.word}: commit {build.commit[:SHOWN]}, {subject}"
    head = git(folder, "rev-parse", "HEAD")
    if not head:
        return f"{which}: {build.word}: the folder as it is"
    count = changed_files(folder)
    files = f"{counted(count, 'file')} changed" if count else "nothing changed"
    return f"{which}: {build.word}: the folder as it is, {files} since commit {head[:SHOWN]}"


@dataclass(frozen=True)
class Origin:
    """The commit that a build is of, or was changed from."""

    commit: str | None
    """None: it is in no git repository."""
    committed_at: str
    """UTC, ISO 8601; "" where there is no commit."""
    changed: int
    """Files that are not as the commit has them."""


def origin(build: Build) -> Origin:
    """Return the commit that a build is of."""
    folder = build.implementation.folder
    tree = build.tree or folder
    commit = build.commit or git(folder, "rev-parse", "HEAD") or None
    if commit is None:
        return Origin(None, "", 0)
    since = git(tree, "log", "-1", "--format=%ct", commit)
    at = datetime.fromtimestamp(int(since), UTC).isoformat() if since.isdigit() else ""
    return Origin(commit, at, 0 if build.commit else changed_files(folder))


def names(old: Build, new: Build) -> tuple[str, str]:
    """Return names of two builds for a title: commits, or the working tree with its changes; the folders
    where neither is a commit."""
    if old.commit is None and new.commit is None:
        return old.word, new.word
    return _name(old), _name(new)


def _name(build: Build) -> str:
    of = origin(build)
    if of.commit is None:
        return build.word
    if build.commit is not None:
        return of.commit[:SHOWN]
    files = f" with {counted(of.changed, 'file')} changed" if of.changed else ""
    return f"the working tree at {of.commit[:SHOWN]}{files}"


def clean_commit(word: str) -> str:
    """Return the word for a folder's commit, if nothing in its repository was changed; else the word."""
    folder = Path(word)
    if folder.is_dir() and git(folder, "rev-parse", "HEAD") and not changed_files(folder):
        return f"{word}@HEAD"
    return word


def swapped(old: Build, new: Build) -> str:
    """Return a warning where NEW is an ancestor of OLD, so that the two may have been exchanged; "" else."""
    if old.tree is None or old.tree != new.tree or new.commit is None:
        return ""
    head = old.commit or git(old.tree, "rev-parse", "HEAD")
    same = head == new.commit
    if same and (old.commit is not None or not changed_files(old.implementation.folder)):
        return ""
    if not same and not is_ancestor(old.tree, new.commit, head):
        return ""
    return f"NEW {new.word} is older than OLD {old.word}: were they exchanged? OLD comes first"


def is_ancestor(tree: Path, commit: str, of: str) -> bool:
    """Return whether a commit is one of those that another was made from."""
    return git(tree, "merge-base", commit, of) == commit
