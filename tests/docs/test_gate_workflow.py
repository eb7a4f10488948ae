"""The workflow of docs/ci/: its commands, run one after another on two revisions of a stack.

Nothing is installed and nothing is built here: `apt-get` and `make` note how they are called."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from fecbench.checkout import REPOSITORY
from fecbench.results.history.entries import read
from tests.runners.conftest import MADE_UP
from tests.support.revisions import commit, commit_slower, git
from tests.support.workflow import Job, Ran, comment, steps, workflow

DESIGN = """
base = "recovery"
name = "quick"
title = "A few networks"
repetitions = 6
without = ["workloads"]
[plan]
points = 6
[[workloads]]
name = "download"
size_bytes = 10_000
"""
FEW_NETWORKS = """\
#!{python}
import sys
sys.path.insert(0, "{repository}")
from fecbench.runners.commands.command_line import main
from tests.support import undrawn
undrawn.replace(makes=False)
sys.argv[4:4] = ["{design}"]
sys.argv.append("--no-calibrate")
main()
"""
"""Replacement of the command: the same over fewer networks, with figures of reports unmade."""
NOTES = '#!/bin/sh\necho "${0##*/} $*" >> "$CALLS"\n'


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A runner before it compares: fecbench and a stack of two revisions."""
    command = tmp_path / "fecbench" / ".venv" / "bin" / "fecbench"
    command.parent.mkdir(parents=True)
    (tmp_path / "quick.toml").write_text(DESIGN)
    places = {"python": sys.executable, "repository": REPOSITORY, "design": tmp_path / "quick.toml"}
    command.write_text(FEW_NETWORKS.format(**places))
    command.chmod(0o755)
    shutil.copytree(MADE_UP, tmp_path / "stack" / "bench" / "made-up")
    for name in ("fecbench", "stack"):
        subprocess.run(["git", "init", "--quiet", tmp_path / name], check=True)
    git(tmp_path / "fecbench", "commit", "--quiet", "--allow-empty", "--message", "fecbench")
    for name in ("apt-get", "make"):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(NOTES)
        program.chmod(0o755)
    return tmp_path


@pytest.fixture
def change(workspace: Path) -> dict[str, str]:
    """Two commits of the stack, of which the second is slower."""
    return {"base": commit(workspace / "stack"), "head": commit_slower(workspace / "stack")}


def job_for(workspace: Path, change: Mapping[str, str], *, pushed: bool = False) -> Job:
    """The job for a pull request, or for a push to main."""

    def execute(folder: Path, variables: Mapping[str, str], command: list[str]) -> Ran:
        environment = {
            "HOME": str(workspace),  # git's settings of all trees are here
            "PATH": f"{workspace / 'bin'}:{os.environ['PATH']}",
            "CALLS": str(workspace / "calls"),
        }
        return subprocess.run(
            command, cwd=folder, env=os.environ | environment | variables, capture_output=True, text=True
        )

    return Job(execute, workspace, "bench/made-up", change, pushed=pushed)


@pytest.fixture
def job(workspace: Path, change: Mapping[str, str]) -> Job:
    return job_for(workspace, change)


@pytest.mark.slow
def test_the_steps_one_by_one_fail_for_a_slower_revision_and_tell_why(workspace: Path, job: Job) -> None:
    ran = dict(job.run())
    failed = {name: step.stderr for name, step in ran.items() if step.returncode}
    assert failed.keys() == {"Compare"}, failed
    assert ran["Compare"].returncode == 1, failed
    assert "**slower" in job.summary
    calls = (workspace / "calls").read_text().splitlines()
    assert "make -C fecbench build" in calls
    assert any(call.startswith("apt-get install -y") for call in calls)
    assert (workspace / ".gitconfig").read_text().split() == ["[safe]", "directory", "=", "*"]
    for path in steps()["Keep the report"]["with"]["path"].split():
        assert (workspace / path).exists()


def test_the_cache_has_what_is_built_by_its_commits(workspace: Path, job: Job) -> None:
    cached = steps()["Cache of what is built"]["with"]
    builds = workflow()["env"]["FECBENCH_BUILDS"].rpartition("/")[2]
    assert {"fecbench", builds} <= set(cached["path"].split())
    assert "Which fecbench" in (name for name, _ in job.run())  # and no step after it
    commits = [git(workspace / tree, "rev-parse", "HEAD") for tree in ("fecbench", "stack")]
    assert job.filled(cached["key"]) == "-".join(["fecbench", *commits])
    assert job.filled(cached["key"]).startswith(job.filled(cached["restore-keys"]))


def test_each_run_adds_its_verdict_to_the_history_that_the_cache_keeps(
    workspace: Path, change: Mapping[str, str]
) -> None:
    cached = steps()["Cache of the history"]["with"]
    assert cached["key"].startswith(cached["restore-keys"]) and "run_id" in cached["key"]
    for pushed in (False, True):
        list(job_for(workspace, change, pushed=pushed).run())
    entries = read(workspace / cached["path"])
    assert [entry.verdict for entry in entries] == ["slower", "slower"]
    assert [(entry.old.commit, entry.new.commit) for entry in entries] == [tuple(change.values())] * 2
    assert {"push", "pull_request"} <= workflow()[True].keys()  # YAML's "on" is true


def test_a_refusal_ends_the_step_with_its_own_status_and_words(workspace: Path, job: Job) -> None:
    (workspace / "quick.toml").write_text("name = 3\n")
    ran = dict(job.run())["Compare"]
    assert ran.returncode == 2
    (line,) = ran.stderr.splitlines()
    assert line.startswith("fecbench: ")


def test_no_variable_has_a_name_that_the_build_of_a_stack_may_use() -> None:
    named = {name for step in steps().values() for name in step.get("env", {})} | workflow()["env"].keys()
    assert [name for name in named if not name.startswith("FECBENCH_")] == []


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
@pytest.mark.parametrize(("comments", "done"), [([], "createComment"), (["<!-- fecbench"], "updateComment")])
def test_the_comment_has_the_summary_and_takes_the_place_of_an_older_one(
    tmp_path: Path, comments: list[str], done: str
) -> None:
    (tmp_path / "compare").mkdir()
    (tmp_path / "compare" / "summary.md").write_text("**slower**")
    before = [{"id": 7, "body": f"{body} compare -->\nold"} for body in comments]
    assert comment(tmp_path, before) == (done, "<!-- fecbench compare -->\n**slower**")
