"""Revisions of a stack in git, for those who compare them."""

import subprocess
from pathlib import Path

_AUTHOR = ("-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgsign=false")


def git(tree: Path, *words: str) -> str:
    """Return what git prints in that tree."""
    command = ["git", "-C", str(tree), *_AUTHOR, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def commit(tree: Path) -> str:
    """The commit of all that has changed."""
    git(tree, "add", ".")
    git(tree, "commit", "--quiet", "--message", "change")
    return git(tree, "rev-parse", "HEAD")


def commit_slower(tree: Path) -> str:
    """The commit of a `bench/made-up` whose downloads take a fifth longer."""
    program = tree / "bench" / "made-up" / "simulator.py"
    right = program.read_text()
    slower = right.replace("+ jitter_s\n", "+ jitter_s\n    dct_s *= 1.2\n")
    assert slower != right
    program.write_text(slower)
    return commit(tree)
