"""Builds of one implementation that are to be compared: a folder as it is, or a git revision of it.

`FOLDER@REVISION` is built once in a tree of its own, below a folder for builds: all files of the repository
at that revision, because implementations are built with what lies beside them. The user's own tree is not
touched.
"""

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fecbench import caches
from fecbench.runners import scratch
from fecbench.runners.implementations.build import build
from fecbench.runners.implementations.implementation import DECLARATION, Implementation, read
from fecbench.runners.refusal import Refusal
from fecbench.runners.sandbox import handed_over

BUILDS = "FECBENCH_BUILDS"
"""The environment variable that names the folder for builds."""
SHOWN = 12
"""Digits of a commit's hash."""


class Unbuildable(Refusal):
    """There is no build of this revision: it lacks the implementation, or building it fails."""


@dataclass(frozen=True)
class Build:
    """A build to compare."""

    word: str
    """The build as the user named it."""
    commit: str | None
    """The commit that it was made of; None: a folder as it is."""
    implementation: Implementation
    tree: Path | None = None
    """The top of the git repository that it is of; None for none."""


def build_of(where: str, word: str) -> Build:
    """The build that `FOLDER` or `FOLDER@REVISION` names, made if need be.

    Raises Refusal, which begins with `where` and the word, when there is none.
    """
    if Path(word).is_dir() or "@" not in word:
        implementation = _loaded(where, word, Path(word))
        top = git(implementation.folder, "rev-parse", "--show-toplevel")
        return Build(word, None, implementation, Path(top) if top else None)
    folder, _, revision = word.rpartition("@")
    tree, inside = _place_in_git(where, word, Path(folder))
    commit = git(tree, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if not commit:
        raise Refusal(f"{where} {word}: {tree} has no revision {revision!r}: git log names them")
    if git(tree, "cat-file", "-t", f"{commit}:{inside / DECLARATION}") != "blob":
        raise Unbuildable(f"{where} {word}: {inside} has no {DECLARATION} in revision {commit[:SHOWN]}")
    builds = _folder_for_builds()
    with _alone(builds / f"{tree.name}-{commit[:SHOWN]}.lock"):
        files = builds / f"{tree.name}-{commit[:SHOWN]}"
        if not files.is_dir():
            _check_out(tree, commit, files)
        implementation = _loaded(where, word, files / inside)
        if implementation.missing_programs():
            try:
                build(implementation, sys.stderr)
            except Refusal as refusal:
                raise Unbuildable(f"{where} {word}: cannot be built: {refusal}") from None
    return Build(word, commit, implementation, tree)


def _loaded(where: str, word: str, folder: Path) -> Implementation:
    if not (folder / DECLARATION).is_file():
        raise Refusal(f"{where} {word}: must be a folder with an {DECLARATION}, or FOLDER@REVISION of git")
    try:
        return read(folder.resolve())
    except Refusal as refusal:
        raise Refusal(f"{where} {word}: {refusal}") from None


def _place_in_git(where: str, word: str, folder: Path) -> tuple[Path, Path]:
    """The top of the repository that a folder is in, and the folder's path from there."""
    if not folder.is_dir():
        raise Refusal(f"{where} {word}: {folder}: there is no such folder")
    top = git(folder, "rev-parse", "--show-toplevel")
    if not top:
        raise Refusal(f"{where} {word}: {folder} is in no git repository: give a folder alone")
    return Path(top), folder.resolve().relative_to(Path(top).resolve())


def _folder_for_builds() -> Path:
    folder = Path(os.environ.get(BUILDS) or caches.folder() / "builds")
    folder.mkdir(parents=True, exist_ok=True)
    return folder.resolve()


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Waits until no other fecbench makes this build."""
    with path.open("w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _check_out(tree: Path, commit: str, target: Path) -> None:
    """Extract all files of a commit as `target`: whole, or not at all."""
    with scratch.folder(target.parent) as folder:
        files = folder / "files"
        handed_over.make_folder(files)
        archive = str(folder / "archive.tar")
        pack = ["git", "-C", str(tree), "archive", "--format=tar", f"--output={archive}", commit]
        for command in (pack, ["tar", "--extract", f"--file={archive}", f"--directory={files}"]):
            ran = subprocess.run(command, stderr=subprocess.PIPE, text=True)
            if ran.returncode != 0:
                words = " ".join(ran.stderr.split())
                raise Refusal(f"{tree}: {command[0]} cannot give the files of {commit[:SHOWN]}: {words}")
        files.rename(target)


def git(folder: Path, *arguments: str) -> str:
    """Return what git answers, without the line break; "" where it refuses."""
    ran = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True)
    return ran.stdout.strip() if ran.returncode == 0 else ""
