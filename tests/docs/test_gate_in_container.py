"""The workflow of docs/ci/ from its first step to its last in a bare Debian 12, such as its container is.

Packages are installed and fecbench is built as the workflow says. What `uses` does is done here by hand: both
trees, caches, and the comment. Takes 12 GB and a quarter of an hour.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from fecbench.checkout import REPOSITORY
from tests.runners.conftest import MADE_UP
from tests.support.revisions import commit, commit_slower, git
from tests.support.workflow import Job, Ran, comment, steps

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

BARE = str(REPOSITORY / "tests" / "bare.sh")
WORKSPACE = Path("/__w/my-stack/my-stack")
HOME = Path("/github/home")
RUNNER = 1001
"""The user of GitHub's runner, whose folders these two are. Steps are root's."""
CACHES = (".cargo/registry", ".cache/go-build")
SKELETON = "libngtcp2-dev libngtcp2-crypto-gnutls-dev libgnutls28-dev libcjson-dev"
"""The packages that docs/skeleton-c is built with."""


def below(root: Path, path: Path) -> Path:
    """Return the place here of a path in the container."""
    return root / path.relative_to("/")


@pytest.fixture(scope="module")
def root() -> Iterator[Path]:
    """A machine that has what the workflow's `uses` steps leave there."""
    if os.geteuid() != 0:
        pytest.skip("needs root: makes a root and namespaces of its own")
    if shutil.which("debootstrap") is None:
        pytest.skip("needs debootstrap: apt-get install debootstrap")
    root = Path(tempfile.mkdtemp(prefix="fecbench-container-"))
    try:
        subprocess.run([BARE, "make", root], check=True)
        workspace, home = below(root, WORKSPACE), below(root, HOME)
        workspace.mkdir(parents=True)
        shutil.copytree(root / "root", home)  # settings of the registries' clients
        for folder in (workspace, home):
            os.chown(folder, RUNNER, RUNNER)
        for cache in CACHES:
            if (Path.home() / cache).is_dir():
                shutil.copytree(Path.home() / cache, home / cache, symlinks=True)
        clone = ["git", "clone", "--quiet", "--depth", "1", f"file://{REPOSITORY}", workspace / "fecbench"]
        subprocess.run(clone, check=True)
        yield root
    finally:
        subprocess.run(["rm", "-rf", "--one-file-system", root, f"{root}.log"], check=True)


@pytest.fixture(scope="module")
def revisions(root: Path) -> dict[str, str]:
    """Three commits of two stacks: the first, one that changes nothing, and one with a slower `made-up`."""
    tree = below(root, WORKSPACE) / "stack"
    shutil.copytree(MADE_UP, tree / "bench" / "made-up")
    skeleton = tree / "bench" / "skeleton-c"
    shutil.copytree(REPOSITORY / "docs" / "skeleton-c", skeleton, ignore=shutil.ignore_patterns("build"))
    git(tree, "init", "--quiet")
    first = commit(tree)
    for path in (tree / "bench" / "made-up" / "simulator.py", skeleton / "Makefile"):
        path.write_text(path.read_text() + "# The same.\n")
    return {"first": first, "same": commit(tree), "slower": commit_slower(tree)}


def job(root: Path, stack: str, change: Mapping[str, str]) -> Job:
    """The job for a change; what one before it has written is gone, what it has built is there."""

    def execute(folder: Path, variables: Mapping[str, str], command: list[str]) -> Ran:
        variables_of_job = [f"{name}={value}" for name, value in {"HOME": str(HOME), **variables}.items()]
        return subprocess.run(
            [BARE, "in", root, folder, *variables_of_job, *command], capture_output=True, text=True
        )

    for name in ("compare", "history.jsonl", "results.sqlite", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
        subprocess.run(["rm", "-rf", below(root, WORKSPACE) / name], check=True)
    return Job(execute, WORKSPACE, stack, change, root)


def summary_of(root: Path, job: Job) -> str:
    """The summary, which the comment has, too, once everything that is to be kept is there."""
    workspace = below(root, WORKSPACE)
    for path in steps()["Keep the report"]["with"]["path"].split():
        assert (workspace / path).exists()
    for name in ("junit.xml", "compare.json"):
        assert (workspace / "compare" / name).stat().st_size > 0
    summary = (workspace / "compare" / "summary.md").read_text()
    assert job.summary == summary
    if shutil.which("node"):
        assert comment(workspace, []) == ("createComment", f"<!-- fecbench compare -->\n{summary}")
    return summary


def test_a_revision_that_changes_nothing_passes_in_virtual_time(
    root: Path, revisions: Mapping[str, str]
) -> None:
    same = job(root, "bench/made-up", {"base": revisions["first"], "head": revisions["same"]})
    for name, ran in same.run():
        assert ran.returncode == 0, (name, ran.stdout, ran.stderr)
    assert "**no difference that matters" in summary_of(root, same)


def test_a_slower_revision_fails_the_step_in_virtual_time(root: Path, revisions: Mapping[str, str]) -> None:
    slower = job(root, "bench/made-up", {"base": revisions["same"], "head": revisions["slower"]})
    failed = {name: ran for name, ran in slower.run() if ran.returncode != 0}
    assert [(name, ran.returncode) for name, ran in failed.items()] == [("Compare", 1)], failed
    assert "**slower" in summary_of(root, slower)


def test_an_emulated_stack_with_packages_of_its_own_is_compared(
    root: Path, revisions: Mapping[str, str]
) -> None:
    """The workflow is unchanged, except for a shorter time."""

    def written(text: str) -> str:
        return text.replace(" git make", f" git make {SKELETON}").replace("--minutes 10", "--minutes 3")

    same = job(root, "bench/skeleton-c", {"base": revisions["first"], "head": revisions["same"]})
    for name, ran in same.run(written):
        assert ran.returncode == 0, (name, ran.stdout, ran.stderr)
    summary = summary_of(root, same)
    assert any(f"**{verdict}" in summary for verdict in ("undecided", "no difference that matters", "faster"))
